//! Checks of a cluster: the machine's price, an object store, certificates, a coordinator, and clocks.

use crate::check::{Check, Examination};
use crate::{coordinator, store};
use hatebeam_client::Endpoint;
use hatebeam_cost::PriceTable;
use hatebeam_host::Metadata;
use hatebeam_net::Tls;
use hatebeam_objects::Options;
use hatebeam_report::count;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Timeout for a single attempt of a request to the object store.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);

/// Remaining validity of a certificate below which the check warns.
const MIN_VALIDITY: Duration = Duration::from_secs(14 * 86_400);

/// Clock difference in seconds at which the check warns. A machine whose clock is behind rejects a newly created
/// certificate as not yet valid.
const WARN_SKEW: u64 = 30;
/// Clock difference in seconds at which the check fails. S3 refuses requests if the difference is 15 minutes.
const MAX_SKEW: u64 = 600;

/// The parts of a cluster to check.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Location and options of the object store, or `None` to skip the checks of the store.
    pub store: Option<(String, Options)>,
    /// Folder with the certificates, or `None` to skip the checks of certificates.
    pub certificates: Option<PathBuf>,
    /// The coordinator, or `None` to skip the checks of a coordinator.
    pub coordinator: Option<Coordinator>,
}

/// A coordinator to check.
#[derive(Clone, Debug)]
pub struct Coordinator {
    /// Address and credentials of the coordinator.
    pub endpoint: Endpoint,
    /// Version of this program. The coordinator must have the same version.
    pub version: &'static str,
}

impl Cluster {
    /// Returns the checks of all parts that are not `None` and, on AWS, the check of the machine.
    pub fn examinations(self) -> Vec<Examination> {
        let mut all = Vec::new();
        if hatebeam_host::is_aws() {
            all.push(Examination::new("machine", Duration::from_secs(10), || {
                waited("machine", machine())
            }));
        }
        if let Some((location, options)) = self.store {
            let options = Options {
                timeout: REQUEST_LIMIT,
                max_attempts: 2,
                ..options
            };
            let examine = move || waited("object store", store::check(&location, &options));
            all.push(Examination::new(
                "object store",
                Duration::from_secs(60),
                examine,
            ));
        }
        if let Some(dir) = self.certificates {
            let limit = Duration::from_secs(10);
            all.push(Examination::new("certificates", limit, move || {
                certificates(&dir)
            }));
        }
        if let Some(target) = self.coordinator {
            let limit = Duration::from_secs(20);
            all.push(Examination::new("coordinator", limit, move || {
                waited("coordinator", coordinator::check(&target))
            }));
        }
        all
    }
}

/// Runs asynchronous checks on a new tokio runtime, and waits for the result.
pub(crate) fn waited(name: &'static str, check: impl Future<Output = Vec<Check>>) -> Vec<Check> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    match runtime.enable_all().build() {
        Ok(runtime) => runtime.block_on(check),
        Err(error) => {
            let advice = "end other processes, or raise `ulimit -u`";
            vec![Check::failed(
                name,
                format!("cannot start threads ({error})"),
                advice,
            )]
        }
    }
}

/// Checks that the AWS metadata service reports the type and market of this machine, and that its price is known.
async fn machine() -> Vec<Check> {
    const NAME: &str = "machine";
    const ADVICE: &str = "start workers with --machine, --market and --price-per-hour";
    let Some((_, mut machine)) = Metadata::find().await else {
        return vec![Check::warning(
            NAME,
            "the metadata service of this AWS machine does not answer",
            format!("enable IMDSv2 (with a hop limit of 2 for containers), or {ADVICE}"),
        )];
    };
    PriceTable::get().set_price(&mut machine, None, hatebeam_host::machine_threads());
    let found = format!("{}, {}, in {}", machine.kind, machine.market, machine.zone);
    vec![match machine.price_per_hour {
        Some(price) => Check::ok(
            NAME,
            format!("{found}, {price} per hour ({})", machine.price_from),
        ),
        None => Check::warning(
            NAME,
            format!("{found}, price unknown"),
            "start workers with --price-per-hour; otherwise, the cost of runs is unknown",
        ),
    }]
}

/// Checks the certificates from `hatebeam certs` in a folder. A machine may have only some of the certificates.
fn certificates(dir: &Path) -> Vec<Check> {
    let members = ["coordinator", "worker", "client"];
    let all = members.map(|member| (member, Tls::in_dir(dir, member)));
    let existing = all.iter().filter(|(_, tls)| tls.cert.exists());
    let found: Vec<Check> = existing
        .map(|(member, tls)| certificate(member, tls))
        .collect();
    if !found.is_empty() {
        return found;
    }
    vec![Check::failed(
        "certificates",
        format!("no certificates in {}", dir.display()),
        "create them with `hatebeam certs --out DIR`",
    )]
}

fn certificate(member: &str, tls: &Tls) -> Check {
    const NAME: &str = "certificates";
    match tls.valid_until() {
        Err(error) => Check::failed(
            NAME,
            error.to_string(),
            "copy ca.pem, the certificate and its key from the output folder of `hatebeam certs`",
        ),
        Ok(until) => {
            let left = until.duration_since(SystemTime::now()).unwrap_or_default();
            let days = count(left.as_secs() / 86_400, "day");
            let found = format!("the certificate of {member} is valid for {days}");
            let advice = "renew it with `hatebeam certs --renew`";
            Check::unless_low(NAME, found, left < MIN_VALIDITY, advice)
        }
    }
}

/// Compares this machine's clock with the clock of a server. `ahead` is the number of seconds by which the server's
/// clock is ahead.
pub(crate) fn clock(ahead: i64, server: &str) -> Check {
    const NAME: &str = "clock";
    let difference = ahead.unsigned_abs();
    if difference <= 1 {
        return Check::ok(NAME, format!("agrees with the clock of {server}"));
    }
    let side = if ahead > 0 { "behind" } else { "ahead of" };
    let found = format!("{} {side} {server}", count(difference, "second"));
    let advice =
        "set the clock with chrony or systemd-timesyncd; S3 refuses a difference of 15 minutes";
    match difference {
        MAX_SKEW.. => Check::failed(NAME, found, advice),
        WARN_SKEW.. => Check::warning(NAME, found, advice),
        _ => Check::ok(NAME, found),
    }
}

/// Returns the number of whole seconds from `from` to `to`, which is negative if `to` is earlier.
pub(crate) fn seconds_between(from: SystemTime, to: SystemTime) -> Option<i64> {
    let seconds = |span: Duration| i64::try_from(span.as_secs()).ok();
    match to.duration_since(from) {
        Ok(ahead) => seconds(ahead),
        Err(behind) => seconds(behind.duration()).map(|behind| -behind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;

    #[test]
    fn clock_verdict_depends_on_difference() {
        for (ahead, verdict, part) in [
            (0, Verdict::Ok, "agrees"),
            (-1, Verdict::Ok, "agrees"),
            (5, Verdict::Ok, "5 seconds behind the object store"),
            (-40, Verdict::Warning, "40 seconds ahead of"),
            (600, Verdict::Failed, "600 seconds behind"),
            (-90_000, Verdict::Failed, "90000 seconds ahead of"),
            (i64::MIN, Verdict::Failed, "ahead of"),
        ] {
            let check = clock(ahead, "the object store");
            assert_eq!(check.verdict, verdict, "{check}");
            assert!(check.to_string().contains(part), "{check}");
        }
    }
}
