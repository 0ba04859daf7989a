//! An event, as those who listen see it.

use serde::{Deserialize, Serialize};
use std::time::SystemTime;
use time::OffsetDateTime;

/// Of the form of events. Fields may be added to a version; what is there stays and means the same.
pub const VERSION: u32 = 1;

/// Something that happened to a run: one JSON object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// [`VERSION`].
    pub version: u32,
    /// What happened: `event` says which, and the fields of that stand beside it.
    #[serde(flatten)]
    pub what: EventKind,
    /// The run's name.
    pub run: String,
    /// When, as `2026-11-21T17:05:09Z`.
    pub time: String,
    /// The last depth that is committed.
    pub depth: u32,
    /// The most lines of any game so far.
    pub score: u32,
}

/// What can happen to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EventKind {
    /// It is begun, or gone on with.
    Started {
        /// Wells.
        width: u64,
    },
    /// Another so many depths are committed.
    Depth {
        /// Wells of the depth.
        wells: u64,
        /// Children made for it.
        children: u64,
        /// How long that took.
        seconds: f64,
    },
    /// A game has more lines than any before.
    BestScore {},
    /// Much of what it may take is taken, or all of it.
    Budget {
        /// Which limit: `max-cost`, `max-hours`.
        limit: String,
        /// How much of it is taken.
        percent: u32,
        /// The same in words.
        text: String,
    },
    /// A worker is not there any more.
    WorkerLost {
        /// Its name.
        worker: String,
        /// What is known of it.
        reason: String,
    },
    /// It has come to its end.
    Finished {
        /// What ended it: `over` if no well had a child that is alive, or the limit that was reached.
        end: String,
        /// Pieces of the best game, if that was read back.
        pieces: Option<u32>,
        /// The best game in Base2048.
        replay: Option<String>,
        /// Where it lies: keys in the object store, or files of this machine.
        files: Vec<String>,
    },
    /// It cannot go on.
    Failed {
        /// Why.
        reason: String,
    },
    /// Somebody stopped it.
    Cancelled {},
}

/// How much is lost with an event that is not told, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// The next one makes up for it.
    Milestone,
    /// It is missed.
    News,
    /// Nothing comes after it: it is never left out.
    Last,
}

impl EventKind {
    /// The name, as `event` has it.
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

    pub(crate) fn weight(&self) -> Weight {
        match self {
            EventKind::Depth { .. } => Weight::Milestone,
            EventKind::Finished { .. } | EventKind::Failed { .. } | EventKind::Cancelled {} => {
                Weight::Last
            }
            _ => Weight::News,
        }
    }
}

impl Event {
    /// Of something that happened to a run at this time, at a depth and with a score.
    pub fn new(run: &str, (depth, score): (u32, u32), what: EventKind, time: SystemTime) -> Event {
        Event {
            version: VERSION,
            what,
            run: run.to_owned(),
            time: text_of(time),
            depth,
            score,
        }
    }

    pub(crate) fn json(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| error.to_string())
    }
}

/// As RFC 3339 has it, in whole seconds.
fn text_of(time: SystemTime) -> String {
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
    use serde_json::json;
    use std::time::{Duration, UNIX_EPOCH};

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn an_event_is_one_flat_object() {
        let what = EventKind::Budget {
            limit: "max-cost".to_owned(),
            percent: 80,
            text: "$16 of $20 are spent".to_owned(),
        };
        let event = Event::new("r", (7, 3), what, at(1_795_280_709));
        let expected = json!({
            "version": 1, "event": "budget", "run": "r", "time": "2026-11-21T17:05:09Z", "depth": 7,
            "score": 3, "limit": "max-cost", "percent": 80, "text": "$16 of $20 are spent",
        });
        assert_eq!(serde_json::to_value(&event).unwrap(), expected);
    }

    #[test]
    fn every_event_is_read_as_it_was_written_and_has_its_name() {
        let text = || "x".to_owned();
        for what in [
            EventKind::Started { width: 9 },
            EventKind::Depth {
                wells: 1,
                children: 2,
                seconds: 0.5,
            },
            EventKind::BestScore {},
            EventKind::Budget {
                limit: text(),
                percent: 100,
                text: text(),
            },
            EventKind::WorkerLost {
                worker: text(),
                reason: text(),
            },
            EventKind::Finished {
                end: text(),
                pieces: Some(9),
                replay: None,
                files: vec![text()],
            },
            EventKind::Failed { reason: text() },
            EventKind::Cancelled {},
        ] {
            let event = Event::new("r", (1, 2), what, at(0));
            let json = event.json().unwrap();
            let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
            assert_eq!(value["event"], event.what.name());
            assert_eq!(serde_json::from_slice::<Event>(&json).unwrap(), event);
        }
    }
}
