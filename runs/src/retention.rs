//! The retention rule of a run, which determines the depths that keep their tables.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Maximum distance between two kept depths. To cross a gap, reading a game back tries all possible parents of each
/// candidate well. A well has about five parents, so the effort grows exponentially with the gap.
pub const MAX_GAP: u32 = 6;

/// Width above which a run keeps every fourth depth by default. 250 depths of 100,000,000 wells take 260 GB, which cost $6 a
/// month in S3; at 1,000,000,000 wells they would cost as much as the machines.
const KEEP_ALL_WIDTH: u64 = 100_000_000;

/// Rule that determines which depths keep their tables. Its text form is `all`, `last` or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Retention {
    /// All depths. Reading back a game takes one lookup per depth.
    All,
    /// Every Nth depth, where N is 2 to [`MAX_GAP`]. Reading back a game searches across the gaps.
    Every(u32),
    /// Only the last depth, from which the run can be resumed. No game can be read back.
    Last,
}

/// Error for text that is not a retention rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not a retention rule: give all, last, or a number from 2 to {MAX_GAP}")]
pub struct NotRetention(String);

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Retention::All => f.pad("all"),
            Retention::Every(every) => every.fmt(f),
            Retention::Last => f.pad("last"),
        }
    }
}

impl From<Retention> for String {
    fn from(keep: Retention) -> String {
        keep.to_string()
    }
}

impl TryFrom<String> for Retention {
    type Error = NotRetention;

    fn try_from(text: String) -> Result<Retention, NotRetention> {
        text.parse()
    }
}

impl FromStr for Retention {
    type Err = NotRetention;

    fn from_str(text: &str) -> Result<Retention, NotRetention> {
        match text {
            "all" => Ok(Retention::All),
            "last" => Ok(Retention::Last),
            _ => match text.parse() {
                Ok(every) if (2..=MAX_GAP).contains(&every) => Ok(Retention::Every(every)),
                _ => Err(NotRetention(text.to_owned())),
            },
        }
    }
}

impl Retention {
    /// Returns the default for runs of a width that do not apply the loop rule.
    pub fn default_for(width: u64) -> Retention {
        if width > KEEP_ALL_WIDTH {
            Retention::Every(4)
        } else {
            Retention::All
        }
    }

    /// Returns the approximate share of `depths` depths that keep their tables. It is at most 1.
    pub fn share(self, depths: u32) -> f64 {
        match self {
            Retention::All => 1.0,
            Retention::Every(every) => 1.0 / f64::from(every),
            Retention::Last => 2.0 / f64::from(depths.max(2)),
        }
    }

    /// Returns whether a depth keeps its tables after the next depth has been committed. `first` is the run's
    /// first depth.
    pub fn keeps(self, depth: u32, first: u32) -> bool {
        match self {
            Retention::All => true,
            Retention::Every(every) => depth == first || depth.is_multiple_of(every),
            Retention::Last => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_runs_keep_every_fourth_depth_by_default() {
        assert_eq!(Retention::default_for(100_000_000), Retention::All);
        assert_eq!(Retention::default_for(100_000_001), Retention::Every(4));
    }

    #[test]
    fn retention_rules_are_parsed_and_formatted() {
        for (text, keep) in [
            ("all", Retention::All),
            ("2", Retention::Every(2)),
            ("6", Retention::Every(6)),
            ("last", Retention::Last),
        ] {
            assert_eq!(text.parse(), Ok(keep));
            assert_eq!(keep.to_string(), text);
        }
        for text in ["", "0", "1", "7", "-2", "first", "2.5"] {
            assert!(text.parse::<Retention>().is_err(), "{text}");
        }
    }

    #[test]
    fn first_depth_and_every_nth_depth_are_kept() {
        let kept = |keep: Retention| -> Vec<u32> {
            (3..10).filter(|&depth| keep.keeps(depth, 3)).collect()
        };
        assert_eq!(kept(Retention::Every(4)), [3, 4, 8]);
        assert_eq!(kept(Retention::All), Vec::from_iter(3..10));
        assert_eq!(kept(Retention::Last), [0; 0]);
    }
}
