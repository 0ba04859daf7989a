//! Checks of an object store: access, conditional writes, speed, and clock.

use crate::check::{Check, Verdict};
use crate::cluster::{clock, seconds_between};
use crate::machine::noise;
use hatebeam_objects::{ObjectError, Objects, Options};
use hatebeam_report::{bytes, duration};
use std::time::{Duration, Instant, SystemTime};

/// Key prefix of the objects that the checks write.
const PREFIX: &str = "probe";

/// Size in bytes of the object that is written and read to measure the speed.
const TEST_BYTES: usize = 8 << 20;

/// Speed in bytes per second below which the check warns.
const MIN_SPEED: f64 = 5e6;

/// Checks the object store at `location`. Does not create a folder, so that a wrong path is reported.
pub(crate) async fn check(location: &str, options: &Options) -> Vec<Check> {
    const NAME: &str = "object store";
    let opened = match Objects::open_existing(location, options).await {
        Ok(_) => Objects::open(location, options).await,
        error => error,
    };
    let objects = match opened {
        Ok(objects) => objects,
        Err(error) => {
            let advice = "name a folder or s3://BUCKET/PREFIX with --store, and create the folder if the store is new";
            return vec![Check::failed(NAME, error.to_string(), advice)];
        }
    };
    let access = match objects.probe(PREFIX).await {
        Err(error) => Check::failed(
            NAME,
            error.to_string(),
            "check the name of the store, the network, and that the credentials allow put, get, list and delete",
        ),
        Ok(probe) if !probe.conditional() => Check::warning(
            NAME,
            format!(
                "{location} allows reads and writes, but ignores the conditions of conditional writes"
            ),
            "run only one coordinator, with --single-coordinator",
        ),
        Ok(_) => Check::ok(
            NAME,
            format!("{location} allows reads, writes, and conditional writes"),
        ),
    };
    // If small objects fail, the large object of the speed check would fail too.
    let is_usable = access.verdict != Verdict::Failed;
    let mut found = vec![access];
    if is_usable {
        found.push(speed(&objects).await);
    }
    let ahead = objects.seconds_ahead().or_else(|| folder_ahead(location));
    found.extend(ahead.map(|ahead| clock(ahead, "the object store")));
    found
}

/// Times for writing and for reading an object.
struct RoundTrip {
    put: Duration,
    get: Duration,
}

/// Measures the speed of the store by writing, reading and deleting an object.
async fn speed(objects: &Objects) -> Check {
    const NAME: &str = "store speed";
    let key = format!("{PREFIX}/doctor-{:016x}", unique_number());
    let result = round_trip(objects, &key).await;
    // The object is deleted even if it could not be read.
    let deleted = objects.delete(&key).await;
    match (result, deleted) {
        (Ok(Some(times)), Ok(())) => {
            let rate = |took: Duration| TEST_BYTES as f64 / took.as_secs_f64().max(1e-6);
            let found = format!(
                "{}/s written, {}/s read ({} in {} and {})",
                bytes(rate(times.put) as u64),
                bytes(rate(times.get) as u64),
                bytes(TEST_BYTES as u64),
                duration(times.put),
                duration(times.get)
            );
            let is_slow = rate(times.put).min(rate(times.get)) < MIN_SPEED;
            let advice = "commits would slow down the search: use machines in the store's region, or keep fewer depths (--keep)";
            Check::unless_low(NAME, found, is_slow, advice)
        }
        (Ok(None), _) => Check::failed(
            NAME,
            "the bytes read differ from the bytes written",
            "the store corrupts data: do not use it",
        ),
        (Err(error), _) => Check::failed(
            NAME,
            error.to_string(),
            "small objects work, but a larger object fails: check the network and the limits of the store",
        ),
        (Ok(Some(_)), Err(error)) => Check::failed(
            NAME,
            format!("cannot delete {key}: {error}"),
            "allow these credentials to delete objects",
        ),
    }
}

/// Writes and reads an object. Returns `None` if the bytes read differ from the bytes written.
async fn round_trip(objects: &Objects, key: &str) -> Result<Option<RoundTrip>, ObjectError> {
    let sent = noise(TEST_BYTES);
    let begun = Instant::now();
    objects.put(key, sent.clone().into()).await?;
    let put = begun.elapsed();
    let (received, _) = objects.get(key).await?;
    let get = begun.elapsed() - put;
    Ok((received == sent).then_some(RoundTrip { put, get }))
}

/// Returns a number that other processes are unlikely to use at the same time.
fn unique_number() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos() as u64);
    nanos ^ u64::from(std::process::id()).rotate_left(48)
}

/// Returns the number of seconds by which the clock of a folder's file system is ahead of this machine's clock. A
/// network file system may use the server's clock.
fn folder_ahead(location: &str) -> Option<i64> {
    let file = tempfile::tempfile_in(location).ok()?;
    let modified = file.metadata().ok()?.modified().ok()?;
    seconds_between(SystemTime::now(), modified)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::waited;

    #[test]
    fn check_of_folder_passes_and_leaves_no_objects() {
        let dir = tempfile::tempdir().unwrap();
        let location = dir.path().display().to_string();
        let options = Options::default();
        let found = waited("object store", check(&location, &options));
        let verdicts: Vec<Verdict> = found.iter().map(|check| check.verdict).collect();
        assert_eq!(verdicts, [Verdict::Ok; 3], "{found:?}");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let left = runtime.block_on(async {
            let objects = Objects::open(&location, &options).await.unwrap();
            objects.list("").await.unwrap()
        });
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn check_of_unusable_store_fails() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let missing = dir.path().join("missing");
        for location in [
            &file.display().to_string(),
            &missing.display().to_string(),
            "gs://x",
            "",
        ] {
            let found = waited("object store", check(location, &Options::default()));
            assert_eq!(found[0].verdict, Verdict::Failed, "{found:?}");
        }
        assert!(!missing.exists());
    }
}
