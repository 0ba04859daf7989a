//! Reads the time at which all machines are stopped from a file that the deployment writes.

use hatebeam_env::Env;
use std::path::{Path, PathBuf};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::watch;

/// Interval between two reads of the file.
const DEADLINE_INTERVAL: Duration = Duration::from_secs(30);

/// Returns a receiver for the time in `file`, in milliseconds since the Unix epoch. The value is `None` if the file
/// cannot be read or parsed. A background task updates the value every 30 s. Must be called within a Tokio runtime.
pub fn follow_deadline(file: PathBuf) -> watch::Receiver<Option<u64>> {
    let (tx, rx) = watch::channel(read_deadline(&file));
    // The simulation does not call this function, so the system environment is used.
    Env::system().spawn(async move {
        while !tx.is_closed() {
            tokio::time::sleep(DEADLINE_INTERVAL).await;
            tx.send_replace(read_deadline(&file));
        }
    });
    rx
}

fn read_deadline(file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).inspect_err(
        |error| tracing::warn!(%error, file = %file.display(), "cannot read the deadline"),
    );
    parse_deadline(&text.ok()?)
}

fn parse_deadline(text: &str) -> Option<u64> {
    let time = OffsetDateTime::parse(text.trim(), &Rfc3339)
        .inspect_err(|error| tracing::warn!(%error, text, "cannot parse the deadline"));
    u64::try_from(time.ok()?.unix_timestamp_nanos() / 1_000_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_requires_a_time_zone() {
        for (text, expected) in [
            ("2026-11-22T06:00:00Z\n", Some(1_795_327_200_000)),
            ("2026-11-22T06:00:00+01:00", Some(1_795_323_600_000)),
            ("2026-11-22T06:00:00", None),
            ("tomorrow", None),
            ("", None),
        ] {
            assert_eq!(parse_deadline(text), expected, "{text}");
        }
    }
}
