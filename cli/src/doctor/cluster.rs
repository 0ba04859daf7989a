//! What many machines need besides: an object store, certificates, a coordinator, and clocks that agree.

use super::check::{Check, within};
use super::machine::noise;
use crate::cluster::{Client, S3Args, TlsArgs, block_on, connect};
use crate::output::count;
use crate::run::screen::{bytes, duration};
use anyhow::Context;
use hatebeam_net::{Tls, explain};
use hatebeam_objects::{Objects, Options};
use hatebeam_proto::v1;
use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use tonic::Request;

/// Where the objects of a check are.
const PREFIX: &str = "probe";

/// What is written and read to judge how fast a store is.
const TEST_BYTES: usize = 8 << 20;

/// How long the store may take over all of it, and one try of a request.
const STORE_LIMIT: Duration = Duration::from_secs(60);
const REQUEST_LIMIT: Duration = Duration::from_secs(15);
const COORDINATOR_LIMIT: Duration = Duration::from_secs(20);

/// Bytes a second that a store should take from one writer.
const SLOW: f64 = 5e6;

/// Certificates that end so soon should be made anew.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// Clocks that differ by so much: S3 refuses whoever is off by 15 minutes, and certificates that were made just
/// now are not valid yet for whoever is behind.
const SKEW: (u64, u64) = (30, 600);

/// Where to look.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    /// The object store: a folder that all machines share, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE", env = "HATEBEAM_STORE")]
    store: Option<String>,
    #[command(flatten)]
    s3: S3Args,
    /// Where the coordinator is, as http://host:port, or https:// with certificates
    #[arg(long, value_name = "URI", env = "HATEBEAM_COORDINATOR")]
    coordinator: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
}

/// Looks at what is named.
pub(super) fn look(
    args: &ClusterArgs,
    tell: &mut impl FnMut(Vec<Check>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if let Some(place) = args.store.clone() {
        let options = Options {
            timeout: REQUEST_LIMIT,
            max_attempts: 2,
            ..args.s3.options()
        };
        let look = move || waited("object store", look_at_store(&place, &options));
        tell(within("object store", STORE_LIMIT, look))?;
    }
    if let Some(dir) = args.tls.dir() {
        tell(certificates(dir))?;
    }
    if let Some(uri) = args.coordinator.clone() {
        let tls = args.tls.clone();
        let look = move || waited("coordinator", look_at_coordinator(&uri, &tls));
        tell(within("coordinator", COORDINATOR_LIMIT, look))?;
    }
    Ok(())
}

/// Looks by waiting for answers.
fn waited(name: &'static str, look: impl Future<Output = Vec<Check>>) -> Vec<Check> {
    let looked = block_on(async { Ok(look.await) });
    looked.unwrap_or_else(|error| vec![Check::failed(name, format!("{error:#}"), "try again")])
}

async fn look_at_store(place: &str, options: &Options) -> Vec<Check> {
    let objects = match Objects::open(place, options).await {
        Ok(objects) => objects,
        Err(error) => {
            let advice = "name a folder or s3://BUCKET/PREFIX with --store";
            return vec![Check::failed("object store", error.to_string(), advice)];
        }
    };
    let mut found = vec![match objects.probe(PREFIX).await {
        Err(error) => Check::failed(
            "object store",
            error.to_string(),
            "look at its name, the network, and these credentials' right to put, get, list and delete",
        ),
        Ok(probe) if !probe.conditional() => Check::warning(
            "object store",
            format!("{place} takes and gives, and does not honour conditional writes"),
            "see to it that there is one coordinator only, and give it --single-coordinator",
        ),
        Ok(_) => Check::ok(
            "object store",
            format!("{place} takes, gives, and honours conditional writes"),
        ),
    }];
    // One that fails at a few bytes need not be tried with many.
    if found[0].verdict != super::Verdict::Failed {
        found.push(store_speed(&objects).await);
    }
    let ahead = match objects.seconds_ahead() {
        Some(ahead) => Some(ahead),
        None => folder_ahead(place),
    };
    found.extend(ahead.map(|ahead| clock(ahead, "the object store")));
    found
}

/// Writes, reads and deletes an object of some size.
async fn store_speed(objects: &Objects) -> Check {
    let key = format!("{PREFIX}/doctor-{:016x}", own_number());
    let tried = round_trip(objects, &key).await;
    // Whatever went wrong: nothing is to be left.
    let deleted = objects.delete(&key).await;
    match (tried, deleted) {
        (Ok((put, get)), Ok(())) => {
            let rate = |took: Duration| TEST_BYTES as f64 / took.as_secs_f64().max(1e-6);
            let found = format!(
                "{}/s written, {}/s read ({} in {} and {})",
                bytes(rate(put) as u64),
                bytes(rate(get) as u64),
                bytes(TEST_BYTES as u64),
                duration(put),
                duration(get)
            );
            match rate(put).min(rate(get)) < SLOW {
                true => Check::warning(
                    "store speed",
                    found,
                    "commits will hold the search up: be in the store's region, or keep fewer depths (--keep)",
                ),
                false => Check::ok("store speed", found),
            }
        }
        (Err(error), _) => Check::failed(
            "store speed",
            format!("{error:#}"),
            "small objects pass and a larger one does not: look at the network and at limits of the store",
        ),
        (Ok(_), Err(error)) => Check::failed(
            "store speed",
            format!("{key} cannot be deleted: {error}"),
            "give these credentials the right to delete",
        ),
    }
}

async fn round_trip(objects: &Objects, key: &str) -> anyhow::Result<(Duration, Duration)> {
    let sent = noise(TEST_BYTES);
    let begun = Instant::now();
    objects.put(key, sent.clone().into()).await?;
    let put = begun.elapsed();
    let (came, _) = objects.get(key).await?;
    anyhow::ensure!(came == sent, "what was written is not what is read");
    Ok((put, begun.elapsed() - put))
}

/// A number that no other process has at this time.
fn own_number() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos() as u64);
    nanos ^ u64::from(std::process::id()).rotate_left(48)
}

/// How many seconds the clock of a folder's disk is ahead: that of the server, where it is on one.
fn folder_ahead(place: &str) -> Option<i64> {
    let file = tempfile::tempfile_in(place).ok()?;
    let modified = file.metadata().ok()?.modified().ok()?;
    seconds_between(SystemTime::now(), modified)
}

/// From one time to another, in whole seconds.
fn seconds_between(from: SystemTime, to: SystemTime) -> Option<i64> {
    let seconds = |span: Duration| i64::try_from(span.as_secs()).ok();
    match to.duration_since(from) {
        Ok(ahead) => seconds(ahead),
        Err(behind) => seconds(behind.duration()).map(|behind| -behind),
    }
}

fn clock(ahead: i64, whose: &str) -> Check {
    let (much, far) = SKEW;
    let off = ahead.unsigned_abs();
    if off <= 1 {
        return Check::ok("clock", format!("agrees with that of {whose}"));
    }
    let side = if ahead > 0 { "behind" } else { "ahead of" };
    let found = format!("{} {side} {whose}", count(off as usize, "second"));
    let advice = "have chrony, systemd-timesyncd or the like set it; S3 refuses 15 minutes";
    match off {
        off if off >= far => Check::failed("clock", found, advice),
        off if off >= much => Check::warning("clock", found, advice),
        _ => Check::ok("clock", found),
    }
}

/// Those of the members in a folder that `hatebeam certs` made, or what of it is on this machine.
fn certificates(dir: &Path) -> Vec<Check> {
    let members = ["coordinator", "worker", "client"];
    let there = members.map(|member| Tls::in_dir(dir, member));
    let mut found: Vec<Check> = members
        .iter()
        .zip(there)
        .filter(|(_, tls)| tls.cert.exists())
        .map(|(member, tls)| certificate(member, &tls))
        .collect();
    if found.is_empty() {
        found.push(Check::failed(
            "certificates",
            format!("there are none in {}", dir.display()),
            "`hatebeam certs --out DIR` makes them",
        ));
    }
    found
}

fn certificate(member: &str, tls: &Tls) -> Check {
    const NAME: &str = "certificates";
    match tls.valid_until() {
        Err(error) => Check::failed(
            NAME,
            error.to_string(),
            "copy ca.pem, the certificate and its key from the folder that `hatebeam certs` made",
        ),
        Ok(until) => {
            let left = until.duration_since(SystemTime::now()).unwrap_or_default();
            let days = count((left.as_secs() / 86_400) as usize, "day");
            let found = format!("that of {member} is good for {days}");
            match left < SOON {
                true => Check::warning(NAME, found, "`hatebeam certs --renew` makes new ones"),
                false => Check::ok(NAME, found),
            }
        }
    }
}

async fn look_at_coordinator(uri: &str, tls: &TlsArgs) -> Vec<Check> {
    const NAME: &str = "coordinator";
    let mut client = match connect(uri, tls).await {
        Ok(client) => client,
        Err(error) => {
            let advice =
                "look whether it runs, at its address and port, at --tls, and at firewalls between";
            return vec![Check::failed(NAME, format!("{error:#}"), advice)];
        }
    };
    match ask(&mut client).await {
        Err(error) => vec![Check::failed(
            NAME,
            format!("{uri} answers, but not this: {error:#}"),
            "give the token that it has: --token-file, HATEBEAM_TOKEN, or `token` in the folder of --tls",
        )],
        Ok(answer) => {
            let workers = count(answer.workers, "worker");
            let own = env!("CARGO_PKG_VERSION");
            let first = match answer.version.as_str() {
                version if version == own => Check::ok(
                    NAME,
                    format!("{uri} answers, of the same version {own}, with {workers}"),
                ),
                "" => Check::warning(
                    NAME,
                    format!("{uri} answers, with {workers}, and does not say its version"),
                    format!("it is older than this program, {own}: install the same everywhere"),
                ),
                version => Check::failed(
                    NAME,
                    format!("{uri} has version {version}, and this program {own}"),
                    "install the same everywhere: a worker of another version is refused",
                ),
            };
            let clock = answer.ahead.map(|ahead| clock(ahead, "the coordinator"));
            [first].into_iter().chain(clock).collect()
        }
    }
}

struct Answer {
    version: String,
    workers: usize,
    /// Seconds that its clock is ahead.
    ahead: Option<i64>,
}

async fn ask(client: &mut Client) -> anyhow::Result<Answer> {
    let say = |status: tonic::Status| anyhow::anyhow!("{}", explain(&status));
    let listed = client
        .list(Request::new(v1::ListRequest {}))
        .await
        .map_err(say)?;
    let date = listed.metadata().get("date");
    let told = date.and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    // The date has no fractions of a second: half of one is the best guess.
    let ahead =
        told.and_then(|told| seconds_between(SystemTime::now(), told + Duration::from_millis(500)));
    let version = listed.into_inner().version;
    let workers = client
        .workers(Request::new(v1::WorkersRequest {}))
        .await
        .map_err(say)
        .context("the workers")?;
    Ok(Answer {
        version,
        workers: workers.into_inner().workers.len(),
        ahead,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn clocks_may_differ_a_little() {
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

    #[test]
    fn a_folder_is_a_store_and_is_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("store").display().to_string();
        let found = waited("object store", look_at_store(&place, &Options::default()));
        let verdicts: Vec<Verdict> = found.iter().map(|check| check.verdict).collect();
        assert_eq!(verdicts, [Verdict::Ok; 3], "{found:?}");
        let objects = block_on(async { Ok(Objects::open(&place, &Options::default()).await?) });
        let left = block_on(async { Ok(objects.unwrap().list("").await?) }).unwrap();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn a_store_that_cannot_be_had_has_failed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        for place in [&file.display().to_string(), "gs://x", ""] {
            let found = waited("object store", look_at_store(place, &Options::default()));
            assert_eq!(found[0].verdict, Verdict::Failed, "{found:?}");
        }
    }
}
