//! Results of checks, and groups of checks with a time limit.

use serde::Serialize;
use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No problem was found.
    Ok,
    /// A search works, but may be slow or limited.
    Warning,
    /// A search would fail.
    Failed,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the check.
    #[serde(rename = "check")]
    pub name: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// Description of the findings.
    pub found: String,
    /// Remedy for the problem, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Check {
    pub(crate) fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check {
            name,
            verdict: Verdict::Ok,
            found: found.into(),
            advice: None,
        }
    }

    pub(crate) fn warning(
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

    pub(crate) fn failed(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Check {
        Check {
            verdict: Verdict::Failed,
            ..Check::warning(name, found, advice)
        }
    }

    /// Returns a warning if `is_low` is `true`, and a check with the verdict `ok` otherwise.
    pub(crate) fn unless_low(
        name: &'static str,
        found: String,
        is_low: bool,
        advice: &str,
    ) -> Check {
        if is_low {
            Check::warning(name, found, advice)
        } else {
            Check::ok(name, found)
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

/// A group of checks with a time limit.
pub struct Examination {
    name: &'static str,
    limit: Duration,
    examine: Box<dyn FnOnce() -> Vec<Check> + Send>,
}

impl Examination {
    pub(crate) fn new(
        name: &'static str,
        limit: Duration,
        examine: impl FnOnce() -> Vec<Check> + Send + 'static,
    ) -> Examination {
        let examine = Box::new(examine);
        Examination {
            name,
            limit,
            examine,
        }
    }

    /// Runs the checks in a new thread and returns their results. Returns a failed check if the thread cannot be
    /// started, panics, or exceeds the time limit. After the time limit, the thread continues.
    pub fn run(self) -> Vec<Check> {
        let Examination {
            name,
            limit,
            examine,
        } = self;
        let (tx, rx) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(move || {
            // Sending fails if the time limit has passed, because the receiver no longer exists.
            let _ = tx.send(examine());
        });
        if let Err(error) = started {
            return vec![Check::failed(
                name,
                format!("cannot start a thread for the check ({error})"),
                "end other processes, or raise `ulimit -u`",
            )];
        }
        match rx.recv_timeout(limit) {
            Ok(found) => found,
            Err(mpsc::RecvTimeoutError::Timeout) => vec![Check::failed(
                name,
                format!("no result within {} s", limit.as_secs()),
                "a disk or a server does not answer: check disk and network",
            )],
            Err(mpsc::RecvTimeoutError::Disconnected) => vec![Check::failed(
                name,
                "the check panicked",
                "this is a bug in hatebeam: please report it",
            )],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_that_hangs_or_panics_fails() {
        let slow = Examination::new("disk", Duration::from_millis(20), || {
            thread::sleep(Duration::from_secs(60));
            Vec::new()
        });
        let found = slow.run();
        assert_eq!(found[0].verdict, Verdict::Failed);
        assert!(found[0].found.contains("no result within"), "{found:?}");
        let quick = Examination::new("disk", Duration::from_secs(60), || {
            vec![Check::ok("disk", "1 GB free")]
        });
        assert_eq!(quick.run(), [Check::ok("disk", "1 GB free")]);
        let broken = Examination::new("disk", Duration::from_secs(60), || panic!("broken"));
        assert!(broken.run()[0].found.contains("panicked"));
    }

    #[test]
    fn check_is_formatted_as_one_line() {
        let check = Check::warning("disk", "1 MB free", "free some space");
        let expected = "warning  disk          1 MB free; free some space";
        assert_eq!(check.to_string(), expected);
    }
}
