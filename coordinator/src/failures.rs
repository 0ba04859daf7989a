//! Who is left out when workers cannot do their part.
//!
//! A worker that is gone is known by its silence. One that attends, and yet cannot reach another, or cannot
//! do what it is told (its disk is full, the object store is out of its reach), would fail every depth. It
//! is left out for a while, so that the others go on without it.

use crate::registry::WorkerError;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// So often may two workers fail to reach each other before one of them is left out: once may have been
/// because one of them was lost.
const PAIR_TRIES: u32 = 2;
/// So much may a worker fail by itself before it is left out, ...
const OWN_TRIES: u32 = 9;
/// ... where failing for good counts so much, and what may pass counts one: when the object store is away for
/// all, the coordinator mostly is held up as well, and comes to ask nobody.
const FOR_GOOD: u32 = 3;
/// How long a worker is left out the first time, and at most; each time it is twice as long.
const OUT: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));

/// A worker that is to be left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exclusion {
    pub(crate) worker: String,
    pub(crate) reason: String,
    pub(crate) how_long: Duration,
}

/// What workers complained of since a depth was last committed.
#[derive(Debug, Default)]
pub(crate) struct FailureTracker {
    /// Workers that could not reach each other, the lesser name first, and how often.
    pairs: BTreeMap<(String, String), u32>,
    /// Workers that failed by themselves: how much, and why the last time.
    own: BTreeMap<String, (u32, String)>,
    /// How often each was left out so far.
    verdicts: BTreeMap<String, u32>,
}

impl FailureTracker {
    /// Takes note of why a depth failed.
    pub(crate) fn note(&mut self, lost: &WorkerError) {
        for (one, other) in &lost.unreached {
            let pair = if one < other {
                (one.clone(), other.clone())
            } else {
                (other.clone(), one.clone())
            };
            *self.pairs.entry(pair).or_default() += 1;
        }
        if lost.unreached.is_empty() {
            let own = self.own.entry(lost.worker.clone()).or_default();
            let much = if lost.is_transient { 1 } else { FOR_GOOD };
            *own = (own.0 + much, lost.reason.clone());
        }
    }

    /// A depth was committed: whatever it was, it has passed.
    pub(crate) fn forget(&mut self) {
        self.pairs.clear();
        self.own.clear();
    }

    /// Whom to leave out of a workers of these names, if anybody. The last one never is.
    pub(crate) fn verdict(&mut self, workers: &[&str]) -> Option<Exclusion> {
        if workers.len() < 2 {
            return None;
        }
        let (worker, reason) = self.cut_off(workers).or_else(|| self.failing(workers))?;
        self.pairs
            .retain(|(one, other), _| *one != worker && *other != worker);
        self.own.remove(&worker);
        let before = self.verdicts.entry(worker.clone()).or_default();
        let how_long = OUT.0.saturating_mul(1 << (*before).min(16)).min(OUT.1);
        *before += 1;
        Some(Exclusion {
            worker,
            reason,
            how_long,
        })
    }

    /// The worker with the most others that it and they could not reach, once a pair has failed too often.
    /// Of two that fail only each other it is the second: one of them must go, and either would do.
    fn cut_off(&self, workers: &[&str]) -> Option<(String, String)> {
        let here = |name: &String| workers.contains(&name.as_str());
        let pairs: Vec<_> = self
            .pairs
            .iter()
            .filter(|((one, other), _)| here(one) && here(other))
            .collect();
        if !pairs.iter().any(|(_, count)| **count >= PAIR_TRIES) {
            return None;
        }
        let mut others: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
        for ((one, other), _) in pairs {
            others.entry(one).or_default().insert(other);
            others.entry(other).or_default().insert(one);
        }
        let (worker, others) = others.into_iter().max_by_key(|(_, others)| others.len())?;
        let others: Vec<&str> = others.into_iter().map(String::as_str).collect();
        let reason = format!("{} and it cannot reach each other", others.join(", "));
        Some((worker.clone(), reason))
    }

    fn failing(&self, workers: &[&str]) -> Option<(String, String)> {
        let mut own = self.own.iter();
        own.find(|(name, (count, _))| *count >= OWN_TRIES && workers.contains(&name.as_str()))
            .map(|(name, (_, reason))| (name.clone(), reason.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreached(pairs: &[(&str, &str)]) -> WorkerError {
        let pair = |(one, other): &(&str, &str)| ((*one).to_owned(), (*other).to_owned());
        WorkerError {
            unreached: pairs.iter().map(pair).collect(),
            ..WorkerError::of(pairs[0].0, "no answer")
        }
    }

    #[test]
    fn one_failure_is_nobodys_fault() {
        let mut failures = FailureTracker::default();
        failures.note(&unreached(&[("a", "b")]));
        assert_eq!(failures.verdict(&["a", "b", "c"]), None);
        failures.forget();
        failures.note(&unreached(&[("b", "a")]));
        assert_eq!(failures.verdict(&["a", "b", "c"]), None);
    }

    #[test]
    fn the_one_that_most_others_cannot_reach_is_left_out() {
        let mut failures = FailureTracker::default();
        failures.note(&unreached(&[("a", "c"), ("b", "a")]));
        failures.note(&unreached(&[("c", "a")]));
        let verdict = failures.verdict(&["a", "b", "c"]).unwrap();
        assert_eq!(verdict.worker, "a");
        assert_eq!(verdict.how_long, OUT.0);
        assert_eq!(verdict.reason, "b, c and it cannot reach each other");
        assert_eq!(failures.verdict(&["b", "c"]), None);
    }

    #[test]
    fn of_two_one_goes_and_the_last_one_stays() {
        let mut failures = FailureTracker::default();
        failures.note(&unreached(&[("a", "b")]));
        failures.note(&unreached(&[("b", "a")]));
        assert_eq!(failures.verdict(&["a"]), None);
        assert_eq!(failures.verdict(&["a", "b"]).unwrap().worker, "b");
    }

    #[test]
    fn what_may_pass_is_borne_for_longer() {
        let mut failures = FailureTracker::default();
        for _ in 0..OWN_TRIES {
            assert_eq!(failures.verdict(&["a", "b"]), None);
            failures.note(&WorkerError {
                is_transient: true,
                ..WorkerError::of("a", "the object store does not answer")
            });
        }
        assert_eq!(failures.verdict(&["a", "b"]).unwrap().worker, "a");
    }

    #[test]
    fn whoever_fails_by_itself_is_left_out_and_longer_each_time() {
        let mut failures = FailureTracker::default();
        for times in 0..8 {
            for _ in 0..OWN_TRIES / FOR_GOOD {
                assert_eq!(failures.verdict(&["a", "b"]), None);
                failures.note(&WorkerError::of("a", "the disk is full"));
            }
            let verdict = failures.verdict(&["a", "b"]).unwrap();
            assert_eq!(verdict.worker, "a");
            assert_eq!(verdict.reason, "the disk is full");
            assert_eq!(verdict.how_long, (OUT.0 * (1 << times)).min(OUT.1));
        }
    }
}
