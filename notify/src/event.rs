//! Events of runs, and their JSON format.

use serde::{Deserialize, Serialize};
use std::time::SystemTime;
use time::OffsetDateTime;

/// Version of the event format. A later release may add fields, but existing fields keep their meaning.
pub const VERSION: u32 = 1;

/// An event of a run, which is sent as one JSON object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Version of the format: [`VERSION`].
    pub version: u32,
    /// Kind of the event. In JSON, the field `event` names the kind, and the kind's own fields follow at the
    /// same level.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Name of the run.
    pub run: String,
    /// Time of the event, such as `2026-11-21T17:05:09Z`.
    pub time: String,
    /// Last committed depth.
    pub depth: u32,
    /// Maximum number of rows cleared by any game so far.
    pub score: u32,
}

/// Kind of an event, with the fields specific to that kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EventKind {
    /// The search of the run starts or resumes.
    Started {
        /// Width of the beam in wells.
        width: u64,
    },
    /// A milestone: the committed depth is a multiple of the configured interval.
    Depth {
        /// Number of wells at this depth.
        wells: u64,
        /// Number of children generated for this depth.
        children: u64,
        /// Search time of this depth, in seconds.
        seconds: f64,
    },
    /// A game clears more rows than any game before.
    BestScore {},
    /// The run has used most of a limit, or reached it.
    Budget {
        /// Name of the limit: `max-cost` or `max-hours`.
        limit: String,
        /// Percentage of the limit that has been used.
        percent: u32,
        /// Human-readable description of the usage.
        text: String,
    },
    /// A worker of the run has disconnected, or no longer sends heartbeats.
    WorkerLost {
        /// Name of the worker.
        worker: String,
        /// Reason why the worker counts as lost.
        reason: String,
    },
    /// The run has ended.
    Finished {
        /// Reason for the end: `over` if the search is complete, or the name of a limit.
        end: String,
        /// Number of pieces in the best game, if the game was read back.
        pieces: Option<u32>,
        /// The best game encoded in Base2048, if the game was read back.
        replay: Option<String>,
        /// Files of the game: keys in the object store, or paths on this machine.
        files: Vec<String>,
    },
    /// The run cannot continue.
    Failed {
        /// Reason for the failure.
        reason: String,
    },
    /// A user stopped the run.
    Cancelled {},
}

/// Importance of an event, in ascending order. A full queue drops the least important events first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Importance {
    /// The event may be dropped, because the next milestone replaces it.
    Milestone,
    /// The event may be dropped, but no later event replaces it.
    Notice,
    /// The event reports the end of a run. It is dropped only if a later run-end event of the same run replaces it.
    End,
}

impl EventKind {
    /// Returns the name of the kind, as used in the field `event`.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::Started { .. } => "started",
            EventKind::Depth { .. } => "depth",
            EventKind::BestScore {} => "best-score",
            EventKind::Budget { .. } => "budget",
            EventKind::WorkerLost { .. } => "worker-lost",
            EventKind::Finished { .. } => "finished",
            EventKind::Failed { .. } => "failed",
            EventKind::Cancelled {} => "cancelled",
        }
    }

    pub(crate) fn importance(&self) -> Importance {
        match self {
            EventKind::Depth { .. } => Importance::Milestone,
            EventKind::Finished { .. } | EventKind::Failed { .. } | EventKind::Cancelled {} => {
                Importance::End
            }
            EventKind::Started { .. }
            | EventKind::BestScore {}
            | EventKind::Budget { .. }
            | EventKind::WorkerLost { .. } => Importance::Notice,
        }
    }
}

/// Progress of a run at the time of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Last committed depth.
    pub depth: u32,
    /// Maximum number of rows cleared by any game so far.
    pub lines: u32,
}

impl Event {
    /// Creates an event of a run.
    pub fn new(run: &str, progress: Progress, kind: EventKind, time: SystemTime) -> Event {
        Event {
            version: VERSION,
            kind,
            run: run.to_owned(),
            time: rfc3339(time),
            depth: progress.depth,
            score: progress.lines,
        }
    }

    pub(crate) fn json(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| error.to_string())
    }
}

/// Formats a time according to RFC 3339, truncated to whole seconds.
fn rfc3339(time: SystemTime) -> String {
    let time = OffsetDateTime::from(time);
    let (date, (hour, minute, second)) = (time.date(), time.to_hms());
    format!(
        "{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z",
        date.year(),
        u8::from(date.month()),
        date.day()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    /// Returns all kinds of events, each with the part of its JSON that follows `"event":`.
    fn examples() -> [(EventKind, &'static str); 9] {
        let text = str::to_owned;
        [
            (EventKind::Started { width: 9 }, r#""started","width":9"#),
            (
                EventKind::Depth {
                    wells: 1,
                    children: 2,
                    seconds: 0.5,
                },
                r#""depth","wells":1,"children":2,"seconds":0.5"#,
            ),
            (EventKind::BestScore {}, r#""best-score""#),
            (
                EventKind::Budget {
                    limit: text("max-cost"),
                    percent: 80,
                    text: text("$16 of $20 are spent"),
                },
                r#""budget","limit":"max-cost","percent":80,"text":"$16 of $20 are spent""#,
            ),
            (
                EventKind::WorkerLost {
                    worker: text("w1"),
                    reason: text("timeout"),
                },
                r#""worker-lost","worker":"w1","reason":"timeout""#,
            ),
            (
                EventKind::Finished {
                    end: text("over"),
                    pieces: Some(9),
                    replay: Some(text("x")),
                    files: vec![text("replays/a.txt")],
                },
                r#""finished","end":"over","pieces":9,"replay":"x","files":["replays/a.txt"]"#,
            ),
            (
                EventKind::Finished {
                    end: text("max-depth"),
                    pieces: None,
                    replay: None,
                    files: Vec::new(),
                },
                r#""finished","end":"max-depth","pieces":null,"replay":null,"files":[]"#,
            ),
            (
                EventKind::Failed {
                    reason: text("timeout"),
                },
                r#""failed","reason":"timeout""#,
            ),
            (EventKind::Cancelled {}, r#""cancelled""#),
        ]
    }

    #[test]
    fn events_have_documented_format() {
        let time = UNIX_EPOCH + Duration::from_secs(1_795_280_709);
        let progress = Progress { depth: 7, lines: 3 };
        for (kind, fields) in examples() {
            let name = kind.name();
            let event = Event::new("r", progress, kind, time);
            let expected = format!(
                r#"{{"version":1,"event":{fields},"run":"r","time":"2026-11-21T17:05:09Z","depth":7,"score":3}}"#
            );
            let json = event.json().unwrap();
            assert_eq!(String::from_utf8_lossy(&json), expected);
            assert!(fields.starts_with(&format!("\"{name}\"")), "{name}");
            assert_eq!(serde_json::from_slice::<Event>(&json).unwrap(), event);
        }
    }
}
