//! What a check has found, and how long it may take to find it.

use serde::Serialize;
use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Warning,
    Failed,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    #[serde(rename = "check")]
    name: &'static str,
    pub(super) verdict: Verdict,
    found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check {
            name,
            verdict: Verdict::Ok,
            found: found.into(),
            advice: None,
        }
    }

    pub(super) fn warning(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Check {
        Check {
            verdict: Verdict::Warning,
            advice: Some(advice.into()),
            ..Check::ok(name, found)
        }
    }

    pub(super) fn failed(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Check {
        Check {
            verdict: Verdict::Failed,
            advice: Some(advice.into()),
            ..Check::ok(name, found)
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Failed => "failed",
        };
        write!(f, "{verdict:<8} {:<13} {}", self.name, self.found)?;
        match &self.advice {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

/// Looks, but no longer than this: a disk or a server that hangs is found out, and not waited for. Its thread
/// then ends with the process.
pub(super) fn within(
    name: &'static str,
    limit: Duration,
    look: impl FnOnce() -> Vec<Check> + Send + 'static,
) -> Vec<Check> {
    let (tell, told) = mpsc::sync_channel(1);
    let thread = thread::Builder::new().name(name.to_owned());
    let started = thread.spawn(move || {
        // If nobody waits any more, it came too late.
        let _ = tell.send(look());
    });
    if let Err(error) = started {
        return vec![Check::failed(
            name,
            format!("no thread to look with ({error})"),
            "end other processes, or raise `ulimit -u`",
        )];
    }
    match told.recv_timeout(limit) {
        Ok(found) => found,
        Err(mpsc::RecvTimeoutError::Timeout) => vec![Check::failed(
            name,
            format!("nothing within {} s", limit.as_secs()),
            "whatever it is waits for something that does not come: look at disk and network",
        )],
        Err(mpsc::RecvTimeoutError::Disconnected) => vec![Check::failed(
            name,
            "the check itself broke off",
            "this is a fault of hatebeam: please report it",
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_has_failed() {
        let found = within("disk", Duration::from_millis(20), || {
            thread::sleep(Duration::from_secs(60));
            Vec::new()
        });
        assert_eq!(found[0].verdict, Verdict::Failed);
        assert!(found[0].to_string().contains("nothing within"), "{found:?}");
        let found = within("disk", Duration::from_secs(60), || {
            vec![Check::ok("disk", "1 GB free")]
        });
        assert_eq!(found, [Check::ok("disk", "1 GB free")]);
    }

    #[test]
    fn a_check_is_one_line() {
        let check = Check::warning("disk", "1 MB free", "make room");
        assert_eq!(
            check.to_string(),
            "warning  disk          1 MB free; make room"
        );
    }
}
