//! Checks of a coordinator: access, version, and clock.

use crate::check::Check;
use crate::cluster::{Coordinator, clock, seconds_between};
use hatebeam_net::explain;
use hatebeam_proto::v1;
use hatebeam_report::count;
use std::error::Error;
use std::time::{Duration, SystemTime};
use tonic::{Request, Status};

const NAME: &str = "coordinator";

/// Checks a coordinator and its clock.
pub(crate) async fn check(target: &Coordinator) -> Vec<Check> {
    let uri = &target.endpoint.uri;
    let mut client = match target.endpoint.connect().await {
        Ok(client) => client,
        Err(error) => {
            let cause = error
                .source()
                .map_or_else(String::new, |cause| format!(": {cause}"));
            let advice = "check that the coordinator is running, and check its address and port, --tls, and firewalls";
            return vec![Check::failed(NAME, format!("{error}{cause}"), advice)];
        }
    };
    let listed = client.list(Request::new(v1::ListRequest::default())).await;
    let workers = client.workers(Request::new(v1::WorkersRequest {})).await;
    let (listed, workers) = match (listed, workers) {
        (Ok(listed), Ok(workers)) => (listed, workers.into_inner().workers.len()),
        (Err(status), _) | (_, Err(status)) => return vec![refused(uri, &status)],
    };
    let date = listed.metadata().get("date");
    let date = date.and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    // The date is truncated to whole seconds, so half a second is added as the best estimate.
    let ahead =
        date.and_then(|date| seconds_between(SystemTime::now(), date + Duration::from_millis(500)));
    let version = listed.into_inner().version;
    let first = versions(target, &version, workers);
    let clock = ahead.map(|ahead| clock(ahead, "the coordinator"));
    [first].into_iter().chain(clock).collect()
}

fn refused(uri: &str, status: &Status) -> Check {
    Check::failed(
        NAME,
        format!("{uri} refused the request: {}", explain(status)),
        "pass the coordinator's token with --token-file, HATEBEAM_TOKEN, or the file `token` in the folder of --tls",
    )
}

/// Compares the coordinator's version with the version of this program.
fn versions(target: &Coordinator, version: &str, workers: usize) -> Check {
    let (uri, own) = (&target.endpoint.uri, target.version);
    let workers = count(workers as u64, "worker");
    if version == own {
        let found = format!("{uri} has the same version {own} and {workers}");
        return Check::ok(NAME, found);
    }
    if version.is_empty() {
        return Check::warning(
            NAME,
            format!("{uri} has {workers}, but does not report its version"),
            format!(
                "the coordinator is older than this program, {own}: install the same version everywhere"
            ),
        );
    }
    Check::failed(
        NAME,
        format!("{uri} has version {version}, but this program has version {own}"),
        "install the same version everywhere: a coordinator refuses workers of another version",
    )
}
