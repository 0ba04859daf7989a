//! Limits of a run.

use crate::end::EndReason;
use hatebeam_cost::Micros;
use hatebeam_search::MAX_LINES;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Maximum number of lines that a piece clears.
const LINES_PER_PIECE: u16 = 4;

/// Limits of a run. The search stops before a depth that would exceed a limit if it took as much money or time as the last
/// depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Depth at which the search stops. Depths are counted from the start of the game, even if the search starts later.
    pub max_depth: Option<u32>,
    /// Maximum total cost.
    #[serde(rename = "max_cost_micros")]
    pub max_cost: Option<Micros>,
    /// Maximum time spent searching and waiting for workers, including the time before a run was resumed.
    #[serde(rename = "max_seconds", with = "seconds")]
    pub max_time: Option<Duration>,
}

/// Resources that a run has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Last completed depth.
    pub depth: u32,
    /// Most lines of any game at this depth.
    pub best_lines: u16,
    /// Total cost of the run.
    pub cost: Micros,
    /// Cost of the last depth alone.
    pub depth_cost: Micros,
    /// Total time of the run.
    pub time: Duration,
    /// Time of the last depth alone.
    pub depth_time: Duration,
}

/// Share of a limit that has been used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsedShare {
    /// The limit.
    pub limit: EndReason,
    /// The used share; 1 means that the limit is reached.
    pub share: f64,
}

impl Limits {
    /// Returns the limit that has been reached, or that the next depth would exceed if it took as much money or time as
    /// the last depth. The maximum number of lines, which is the same for all runs, is one of these limits.
    pub fn exceeded_by(&self, usage: &Usage) -> Option<EndReason> {
        if may_exceed_max_lines(usage.best_lines) {
            return Some(EndReason::MaxLines);
        }
        let next_cost = usage.cost.saturating_add(usage.depth_cost);
        let next_time = usage.time.saturating_add(usage.depth_time);
        if self.max_depth.is_some_and(|max| usage.depth >= max) {
            Some(EndReason::MaxDepth)
        } else if self
            .max_cost
            .is_some_and(|max| usage.cost >= max || next_cost > max)
        {
            Some(EndReason::MaxCost)
        } else if self
            .max_time
            .is_some_and(|max| usage.time >= max || next_time > max)
        {
            Some(EndReason::MaxHours)
        } else {
            None
        }
    }

    /// Returns the used share of the cost limit or of the time limit, whichever is greater. Returns `None` if
    /// neither limit is set.
    pub fn used_share(&self, cost: Micros, time: Duration) -> Option<UsedShare> {
        let used = |limit, used: f64, max: f64| UsedShare {
            limit,
            share: used / max.max(f64::MIN_POSITIVE),
        };
        let cost = self
            .max_cost
            .map(|max| used(EndReason::MaxCost, cost.dollars(), max.dollars()));
        let time = self
            .max_time
            .map(|max| used(EndReason::MaxHours, time.as_secs_f64(), max.as_secs_f64()));
        let shares = cost.into_iter().chain(time);
        shares.max_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// Returns whether at least one of these limits is set and differs from the limit in `current`.
    pub fn differ_from(&self, current: &Limits) -> bool {
        fn differs<T: PartialEq>(asked: Option<T>, current: Option<T>) -> bool {
            asked.is_some() && asked != current
        }
        differs(self.max_depth, current.max_depth)
            || differs(self.max_cost, current.max_cost)
            || differs(self.max_time, current.max_time)
    }

    /// Returns whether a run that ended for the reason `end` under the limits `before` can continue under
    /// these limits.
    pub fn allow_more_than(&self, before: &Limits, end: EndReason) -> bool {
        fn is_more<T: PartialOrd>(now: Option<T>, before: Option<T>) -> bool {
            match (now, before) {
                (None, _) => true,
                (Some(now), Some(before)) => now > before,
                (Some(_), None) => true,
            }
        }
        match end {
            EndReason::MaxDepth => is_more(self.max_depth, before.max_depth),
            EndReason::MaxCost => is_more(self.max_cost, before.max_cost),
            EndReason::MaxHours => is_more(self.max_time, before.max_time),
            EndReason::Over | EndReason::MaxLines => false,
            EndReason::Interrupted => true,
        }
    }
}

/// Returns whether a game could clear more than [`MAX_LINES`] lines at the next depth. `best_lines` is the most lines of any
/// game so far.
pub const fn may_exceed_max_lines(best_lines: u16) -> bool {
    best_lines > MAX_LINES - LINES_PER_PIECE
}

/// Converts a time limit in hours to seconds. Rounds up, because the protocol encodes no limit as 0 seconds.
pub fn seconds_of_hours(hours: f64) -> u64 {
    (hours * 3600.0).ceil() as u64
}

/// Serialization of a duration as a number of seconds.
mod seconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let whole = time.filter(|time| time.subsec_nanos() == 0);
        match whole {
            // A whole number of seconds is written as an integer.
            Some(time) => time.as_secs().serialize(serializer),
            None => time.map(|time| time.as_secs_f64()).serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let time = match Option::<Seconds>::deserialize(deserializer)? {
            None => Ok(None),
            Some(Seconds::Whole(seconds)) => Ok(Some(Duration::from_secs(seconds))),
            Some(Seconds::Part(seconds)) => Duration::try_from_secs_f64(seconds).map(Some),
        };
        time.map_err(serde::de::Error::custom)
    }

    /// Large integers are not converted to `f64`, because it could round them to a number that is no duration.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Seconds {
        Whole(u64),
        Part(f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits() -> Limits {
        Limits {
            max_depth: Some(100),
            max_cost: Some(Micros(1_000_000)),
            max_time: Some(60 * SECOND),
        }
    }

    #[test]
    fn search_stops_before_depth_that_may_exceed_limit() {
        let used = |depth, [cost, depth_cost]: [u64; 2], [time, depth_time]: [u32; 2]| {
            limits().exceeded_by(&Usage {
                depth,
                cost: Micros(cost),
                depth_cost: Micros(depth_cost),
                time: time * SECOND,
                depth_time: depth_time * SECOND,
                ..Usage::default()
            })
        };
        assert_eq!(used(99, [500_000, 400_000], [30, 20]), None);
        assert_eq!(
            used(99, [700_000, 400_000], [30, 20]),
            Some(EndReason::MaxCost)
        );
        assert_eq!(used(99, [1_000_000, 0], [0, 0]), Some(EndReason::MaxCost));
        assert_eq!(used(99, [0, 0], [50, 20]), Some(EndReason::MaxHours));
        assert_eq!(used(100, [0, 0], [0, 0]), Some(EndReason::MaxDepth));
        let usage = Usage {
            depth: u32::MAX,
            cost: Micros(u64::MAX),
            ..Usage::default()
        };
        assert_eq!(Limits::default().exceeded_by(&usage), None);
    }

    #[test]
    fn search_stops_before_depth_with_more_than_maximum_lines() {
        let reached = |best_lines| {
            let usage = Usage {
                best_lines,
                ..Usage::default()
            };
            Limits::default().exceeded_by(&usage)
        };
        assert_eq!(reached(65_530), None);
        assert_eq!(reached(65_531), Some(EndReason::MaxLines));
        assert_eq!(reached(u16::MAX), Some(EndReason::MaxLines));
        // No other limit lets the run continue.
        assert!(!Limits::default().allow_more_than(&limits(), EndReason::MaxLines));
        assert!(!EndReason::MaxLines.is_limit());
    }

    #[test]
    fn used_share_reports_limit_with_greatest_share() {
        let share = |cost, seconds| {
            let used = limits().used_share(Micros(cost), seconds * SECOND);
            used.map(|used| (used.limit, used.share))
        };
        assert_eq!(share(800_000, 30), Some((EndReason::MaxCost, 0.8)));
        assert_eq!(share(100_000, 57), Some((EndReason::MaxHours, 0.95)));
        assert_eq!(Limits::default().used_share(Micros(1), SECOND), None);
    }

    #[test]
    fn ended_run_can_continue_only_under_higher_limit() {
        let more = Limits {
            max_cost: Some(Micros(2_000_000)),
            ..limits()
        };
        assert!(more.differ_from(&limits()));
        assert!(!Limits::default().differ_from(&limits()));
        assert!(more.allow_more_than(&limits(), EndReason::MaxCost));
        assert!(!more.allow_more_than(&limits(), EndReason::MaxDepth));
        assert!(!limits().allow_more_than(&more, EndReason::MaxCost));
        assert!(Limits::default().allow_more_than(&limits(), EndReason::MaxHours));
        assert!(!Limits::default().allow_more_than(&limits(), EndReason::Over));
    }

    #[test]
    fn limits_round_trip_through_json() {
        let odd = Limits {
            max_time: Some(Duration::from_millis(360)),
            ..limits()
        };
        for limits in [limits(), odd, Limits::default()] {
            let text = serde_json::to_string(&limits).unwrap();
            assert_eq!(serde_json::from_str::<Limits>(&text).unwrap(), limits);
        }
        let text = serde_json::to_string(&limits()).unwrap();
        let expected = r#"{"max_depth":100,"max_cost_micros":1000000,"max_seconds":60}"#;
        assert_eq!(text, expected);
        let negative = r#"{"max_depth":null,"max_cost_micros":null,"max_seconds":-1}"#;
        assert!(serde_json::from_str::<Limits>(negative).is_err());
    }

    #[test]
    fn each_time_limit_can_be_read_back() {
        for max_time in [
            Duration::ZERO,
            60 * SECOND,
            Duration::from_millis(1500),
            Duration::from_secs(u64::MAX),
        ] {
            let limits = Limits {
                max_time: Some(max_time),
                ..limits()
            };
            let text = serde_json::to_string(&limits).unwrap();
            assert_eq!(serde_json::from_str::<Limits>(&text).unwrap(), limits);
        }
    }
}
