//! A coordinator: whether it answers, its version, and its clock.

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
            let advice = "check that it runs, its address and port, --tls, and firewalls";
            return vec![Check::failed(NAME, format!("{error}{cause}"), advice)];
        }
    };
    let listed = client.list(Request::new(v1::ListRequest {})).await;
    let workers = client.workers(Request::new(v1::WorkersRequest {})).await;
    let (listed, workers) = match (listed, workers) {
        (Ok(listed), Ok(workers)) => (listed, workers.into_inner().workers.len()),
        (Err(status), _) | (_, Err(status)) => return vec![refused(uri, &status)],
    };
    let date = listed.metadata().get("date");
    let date = date.and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    // The date has no fractions of a second: half a second is the best guess.
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
        format!("{uri} refuses the request: {}", explain(status)),
        "pass its token: --token-file, HATEBEAM_TOKEN, or `token` in the folder of --tls",
    )
}

/// Compares the coordinator's version with that of this program.
fn versions(target: &Coordinator, version: &str, workers: usize) -> Check {
    let (uri, own) = (&target.endpoint.uri, target.version);
    let workers = count(workers as u64, "worker");
    if version == own {
        let found = format!("{uri} answers, of the same version {own}, with {workers}");
        return Check::ok(NAME, found);
    }
    if version.is_empty() {
        return Check::warning(
            NAME,
            format!("{uri} answers, with {workers}, but does not report its version"),
            format!("it is older than this program, {own}: install the same version everywhere"),
        );
    }
    Check::failed(
        NAME,
        format!("{uri} has version {version}, and this program {own}"),
        "install the same version everywhere: a coordinator refuses workers of another version",
    )
}
