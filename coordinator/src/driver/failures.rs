//! Tracking of failed depths, to decide which worker to quarantine and when a run has failed.
//!
//! A worker that stays connected may still fail every depth, because it cannot reach another worker or cannot carry out
//! its orders (for example, its disk is full). A worker with too little memory is lost at every depth. Such workers are
//! quarantined: they get no part of the search for some time, and the other workers continue without them. A run fails
//! if too many attempts in a row commit no depth. Each attempt is one epoch (a period with a fixed set of workers).

use crate::registry::{PeerFault, PeerReport, WorkerError, WorkerErrorKind};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Number of times that two workers must fail to reach each other, or that a worker must report wrong children from
/// another one, before one of the two is quarantined. A single failure may be a consequence of the loss of a worker.
const PAIR_LIMIT: u32 = 2;
/// Total weight of a worker's own failures at which it is quarantined.
const OWN_LIMIT: u32 = 9;
/// Weight of a permanent failure. A transient failure, such as an unavailable object store, has weight 1. An outage of
/// the store rarely adds up to a quarantine: it usually affects the coordinator too, which then sends no orders.
const PERMANENT: u32 = 3;
/// Duration of a worker's first quarantine. Each further quarantine lasts twice as long, up to [`MAX_QUARANTINE`].
const FIRST_QUARANTINE: Duration = Duration::from_secs(30);
const MAX_QUARANTINE: Duration = Duration::from_secs(600);

/// Number of times that a worker must be lost before it is quarantined. The count restarts when a depth is committed in
/// which the worker took part.
const LOSS_LIMIT: u32 = 3;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exclusion {
    pub(super) worker: String,
    pub(super) reason: String,
    pub(super) how_long: Duration,
}

/// Failures of one worker that involve no other worker.
#[derive(Debug, Default)]
struct OwnFailures {
    weight: u32,
    /// Reason for the last failure.
    reason: String,
}

/// A worker from which wrong children came, according to another worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Accusation {
    /// Name of the reported worker.
    of: String,
    /// Name of the reporting worker.
    by: String,
}

/// The accusations in which a worker is involved.
#[derive(Debug, Default)]
struct Involvement<'a> {
    /// The workers that this one has reported, or that have reported it.
    others: BTreeSet<&'a str>,
    /// The workers that have reported this one.
    by: BTreeSet<&'a str>,
}

/// Failures, losses and quarantines of the workers.
#[derive(Debug, Default)]
pub(super) struct FailureTracker {
    /// Number of times that the two workers of each pair failed to reach each other. The names in a pair are sorted.
    pairs: BTreeMap<(String, String), u32>,
    /// Number of reports of each accusation.
    accusations: BTreeMap<Accusation, u32>,
    /// All accusations, also those of quarantined workers, until a depth is committed in which both workers took part.
    accused: BTreeSet<Accusation>,
    own: BTreeMap<String, OwnFailures>,
    /// Number of losses of each worker since it last took part in a committed depth.
    losses: BTreeMap<String, u32>,
    /// Number of quarantines of each worker so far.
    quarantines: BTreeMap<String, u32>,
}

impl FailureTracker {
    pub(super) fn note(&mut self, error: &WorkerError) {
        for PeerReport { by, of, fault } in &error.reports {
            let (by, of) = (by.clone(), of.clone());
            let count = match fault {
                PeerFault::WrongChildren => {
                    let accusation = Accusation { of, by };
                    self.accused.insert(accusation.clone());
                    self.accusations.entry(accusation).or_default()
                }
                PeerFault::Unreachable if by < of => self.pairs.entry((by, of)).or_default(),
                PeerFault::Unreachable => self.pairs.entry((of, by)).or_default(),
            };
            *count += 1;
        }
        if error.reports.is_empty() {
            let own = self.own.entry(error.worker.clone()).or_default();
            own.weight += match error.kind {
                WorkerErrorKind::Transient => 1,
                WorkerErrorKind::Failed
                | WorkerErrorKind::Damaged(_)
                | WorkerErrorKind::Contradiction(_)
                | WorkerErrorKind::Gone => PERMANENT,
            };
            own.reason = error.reason.clone();
        }
    }

    pub(super) fn note_lost(&mut self, worker: &str) {
        *self.losses.entry(worker.to_owned()).or_default() += 1;
    }

    /// Clears all failures, except the accusations of other workers than these, and the losses of these workers. Keeps the
    /// numbers of quarantines. Called when a depth is committed in which these workers took part.
    pub(super) fn forget(&mut self, workers: &[&str]) {
        let took_part = |name: &String| workers.contains(&name.as_str());
        self.accused
            .retain(|Accusation { of, by }| !took_part(of) || !took_part(by));
        self.pairs.clear();
        self.accusations.clear();
        self.own.clear();
        self.losses
            .retain(|worker, _| !workers.contains(&worker.as_str()));
    }

    /// Returns a worker to quarantine, if one failed or was lost too often. The only worker of an epoch is never
    /// quarantined. A lost worker is quarantined only if at least `wanted` other workers remain, since otherwise the
    /// run would have to wait for it.
    pub(super) fn exclude(&mut self, workers: &[&str], wanted: usize) -> Option<Exclusion> {
        if workers.len() < 2 {
            return None;
        }
        let found = self.wrong(workers).or_else(|| self.cut_off(workers));
        let found = found.or_else(|| self.failing(workers));
        let (worker, reason) = found.or_else(|| match workers.len() > wanted {
            true => self.dying(workers),
            false => None,
        })?;
        self.pairs
            .retain(|(one, other), _| *one != worker && *other != worker);
        self.accusations
            .retain(|Accusation { of, by }, _| *of != worker && *by != worker);
        self.own.remove(&worker);
        let before = self.quarantines.entry(worker.clone()).or_default();
        let how_long = FIRST_QUARANTINE.saturating_mul(1 << (*before).min(16));
        *before += 1;
        Some(Exclusion {
            worker,
            reason,
            how_long: how_long.min(MAX_QUARANTINE),
        })
    }

    /// Returns the worker that is the most likely cause of reports of wrong children, and the reason to quarantine it.
    /// Returns `None` if no accusation was reported [`PAIR_LIMIT`] times.
    ///
    /// A reporting worker may itself be faulty: it may compute wrong scores when it checks the children of others.
    /// Therefore, the cause is the worker that most other workers have reported or been reported by. If several are equal,
    /// which is always so with two workers, it is the one that most others have reported, and otherwise the one with the
    /// greatest name.
    ///
    /// Accusations of quarantined workers count too: a worker that alone has reported several others, one after another, is
    /// itself the cause.
    fn wrong(&self, workers: &[&str]) -> Option<(String, String)> {
        let is_here = |name: &String| workers.contains(&name.as_str());
        let accusations: Vec<_> = self
            .accusations
            .iter()
            .filter(|(Accusation { of, by }, _)| is_here(of) && is_here(by))
            .collect();
        if !accusations.iter().any(|(_, count)| **count >= PAIR_LIMIT) {
            return None;
        }
        let mut involved: BTreeMap<&str, Involvement<'_>> = BTreeMap::new();
        for (Accusation { of, by }, _) in accusations {
            let reported = involved.entry(of).or_default();
            reported.others.insert(by);
            reported.by.insert(by);
            involved.entry(by).or_default().others.insert(of);
        }
        let weight = |(_, one): &(&str, Involvement<'_>)| (one.others.len(), one.by.len());
        let (worker, Involvement { others, by }) = involved.into_iter().max_by_key(weight)?;
        let join = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
        if let (Some(reporter), 1) = (by.first(), by.len()) {
            let alone = self.accused_only_by(reporter);
            if alone.len() > 1 {
                let reason = format!("it alone reported wrong children from {}", join(alone));
                return Some(((*reporter).to_owned(), reason));
            }
        }
        let reason = match by.is_empty() {
            true => format!("it alone reported wrong children from {}", join(others)),
            false => format!("it sent wrong children, as reported by {}", join(by)),
        };
        Some((worker.to_owned(), reason))
    }

    /// Returns the workers that `reporter` and no other worker has reported.
    fn accused_only_by(&self, reporter: &str) -> BTreeSet<&str> {
        let has_witness = |of: &str| {
            let mut others = self.accused.iter();
            others.any(|other| other.of == of && other.by != reporter)
        };
        let own = self.accused.iter().filter(|one| one.by == reporter);
        own.map(|one| one.of.as_str())
            .filter(|of| !has_witness(of))
            .collect()
    }

    /// Returns the worker with the most unreachable peers, and the reason to quarantine it. Returns `None` if no pair
    /// of workers has failed [`PAIR_LIMIT`] times. If several workers have equally many unreachable peers, returns
    /// the one with the greatest name.
    fn cut_off(&self, workers: &[&str]) -> Option<(String, String)> {
        let is_here = |name: &String| workers.contains(&name.as_str());
        let pairs: Vec<_> = self
            .pairs
            .iter()
            .filter(|((one, other), _)| is_here(one) && is_here(other))
            .collect();
        if !pairs.iter().any(|(_, count)| **count >= PAIR_LIMIT) {
            return None;
        }
        let mut peers: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
        for ((one, other), _) in pairs {
            peers.entry(one).or_default().insert(other);
            peers.entry(other).or_default().insert(one);
        }
        let (worker, peers) = peers.into_iter().max_by_key(|(_, peers)| peers.len())?;
        let peers: Vec<&str> = peers.into_iter().map(String::as_str).collect();
        let reason = format!("no connection to {}", peers.join(", "));
        Some((worker.clone(), reason))
    }

    /// Returns a worker whose own failures have reached [`OWN_LIMIT`], and the reason for its last failure.
    fn failing(&self, workers: &[&str]) -> Option<(String, String)> {
        let is_failing = |(name, own): &(&String, &OwnFailures)| {
            own.weight >= OWN_LIMIT && workers.contains(&name.as_str())
        };
        let (name, own) = self.own.iter().find(is_failing)?;
        Some((name.clone(), own.reason.clone()))
    }

    /// Returns a worker that was lost too often, and the reason to quarantine it. Sets its losses to one below the
    /// limit, so that a single loss after the quarantine causes the next quarantine.
    fn dying(&mut self, workers: &[&str]) -> Option<(String, String)> {
        let is_dying = |(name, losses): &(&String, &mut u32)| {
            **losses >= LOSS_LIMIT && workers.contains(&name.as_str())
        };
        let (name, losses) = self.losses.iter_mut().find(is_dying)?;
        let reason = format!("it was lost {losses} times without a committed depth in between");
        *losses = LOSS_LIMIT - 1;
        Some((name.clone(), reason))
    }
}

/// Number of permanent failures of one depth at which the run is marked failed.
pub(super) const MAX_FAILURES: u32 = 5;
/// Pause before a failed depth is retried, after a permanent failure or the first transient one.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum pause after consecutive transient failures, as a multiple of [`PAUSE`].
const MAX_PAUSES: u32 = 20;

/// Number of attempts, each ended by the loss of a worker, after which the run is marked failed. A committed depth
/// resets the count. Epochs with at least [`WORKERS_PER_LOSS`] workers have a higher limit.
const MAX_LOSSES: u32 = 8;
/// Number of workers in an epoch per loss that is allowed in addition to [`MAX_LOSSES`]. The workers of a large epoch
/// may leave one by one.
const WORKERS_PER_LOSS: u32 = 4;
/// Maximum pause after an attempt that ended with the loss of a worker.
const MAX_LOSS_PAUSE: Duration = Duration::from_secs(30);

/// Failures of the depth that is being searched.
#[derive(Debug, Default)]
pub(super) struct Retries {
    depth: u32,
    /// Number of permanent failures of `depth`.
    permanent: u32,
    /// Number of transient failures, up to [`MAX_PAUSES`].
    transient: u32,
    /// Number of attempts that ended with the loss of a worker.
    pub(super) losses: u32,
}

impl Retries {
    /// Records a failure of `depth`, and returns the pause before the next attempt. Returns `None` after
    /// [`MAX_FAILURES`] permanent failures of one depth.
    pub(super) fn pause_after(&mut self, depth: u32, is_transient: bool) -> Option<Duration> {
        if is_transient {
            // The object store may be unavailable for a long time. This must not fail the run.
            self.transient = (self.transient + 1).min(MAX_PAUSES);
            return Some(PAUSE * self.transient);
        }
        if self.depth != depth {
            self.depth = depth;
            self.permanent = 0;
        }
        self.permanent += 1;
        (self.permanent < MAX_FAILURES).then_some(PAUSE)
    }

    /// Records a loss in an epoch with this number of workers, and returns the pause before the next attempt. Returns
    /// `None` if there were too many losses. The first two pauses are zero, since single losses are normal. The later
    /// pauses start at one second and double, so that a network outage can end in the meantime.
    pub(super) fn pause_after_loss(&mut self, workers: usize) -> Option<Duration> {
        self.losses += 1;
        let workers = u32::try_from(workers).unwrap_or(u32::MAX);
        let pause = match self.losses {
            ..=2 => Duration::ZERO,
            losses => Duration::from_secs(1 << (losses - 3).min(16)).min(MAX_LOSS_PAUSE),
        };
        (self.losses < MAX_LOSSES + workers / WORKERS_PER_LOSS).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permanent_failures_of_one_depth_are_limited() {
        let mut retries = Retries::default();
        for _ in 1..MAX_FAILURES {
            assert_eq!(retries.pause_after(7, false), Some(PAUSE));
        }
        assert_eq!(retries.pause_after(7, false), None);
        assert_eq!(retries.pause_after(8, false), Some(PAUSE));
    }

    #[test]
    fn permanent_failure_does_not_reset_the_number_of_losses() {
        let mut retries = Retries::default();
        for _ in 0..3 {
            retries.pause_after_loss(1);
        }
        assert_eq!(retries.pause_after(7, false), Some(PAUSE));
        assert_eq!(retries.pause_after_loss(1), Some(Duration::from_secs(2)));
    }

    #[test]
    fn transient_failures_are_retried_indefinitely_with_increasing_pauses() {
        let mut retries = Retries::default();
        let pauses: Vec<_> = (0..100).map(|_| retries.pause_after(7, true)).collect();
        assert_eq!(pauses[0], Some(PAUSE));
        assert_eq!(pauses[1], Some(2 * PAUSE));
        assert_eq!(pauses[99], Some(MAX_PAUSES * PAUSE));
    }

    #[test]
    fn losses_without_a_committed_depth_are_limited() {
        for (workers, expected) in [(1, 7), (64, 23)] {
            let mut retries = Retries::default();
            let pauses: Vec<Duration> =
                std::iter::from_fn(|| retries.pause_after_loss(workers)).collect();
            assert_eq!(pauses.len(), expected);
            let seconds: Vec<u64> = pauses[..7].iter().map(Duration::as_secs).collect();
            assert_eq!(seconds, [0, 0, 1, 2, 4, 8, 16]);
            assert!(pauses.iter().all(|pause| *pause <= MAX_LOSS_PAUSE));
        }
    }

    #[test]
    fn repeatedly_lost_worker_is_quarantined_unless_it_commits_a_depth() {
        let mut failures = FailureTracker::default();
        for _ in 0..LOSS_LIMIT {
            assert_eq!(failures.exclude(&["a", "b"], 1), None);
            failures.note_lost("a");
            // Worker `b` commits a depth without `a`.
            failures.forget(&["b"]);
        }
        let exclusion = failures.exclude(&["a", "b"], 1).unwrap();
        let reason = "it was lost 3 times without a committed depth in between";
        assert_eq!(exclusion.reason, reason);
        assert_eq!(exclusion.how_long, FIRST_QUARANTINE);
        // After the quarantine, one more loss is enough.
        assert_eq!(failures.exclude(&["a", "b"], 1), None);
        failures.note_lost("a");
        let exclusion = failures.exclude(&["a", "b"], 1).unwrap();
        assert_eq!(exclusion.how_long, 2 * FIRST_QUARANTINE);
        failures.note_lost("a");
        failures.forget(&["a", "b"]);
        assert_eq!(failures.exclude(&["a", "b"], 1), None);
    }

    /// Returns an error with reports, each of which names the reporting and the reported worker.
    fn reports(fault: PeerFault, pairs: &[(&str, &str)]) -> WorkerError {
        let report = |(by, of): &(&str, &str)| PeerReport {
            by: (*by).to_owned(),
            of: (*of).to_owned(),
            fault,
        };
        WorkerError {
            reports: pairs.iter().map(report).collect(),
            ..WorkerError::failed(pairs[0].0, "no answer")
        }
    }

    fn unreachable(pairs: &[(&str, &str)]) -> WorkerError {
        reports(PeerFault::Unreachable, pairs)
    }

    /// Returns the exclusion after two failures with the same reports of wrong children.
    fn excluded(workers: &[&str], pairs: &[(&str, &str)]) -> Exclusion {
        let mut failures = FailureTracker::default();
        failures.note(&reports(PeerFault::WrongChildren, pairs));
        assert_eq!(failures.exclude(workers, 1), None);
        failures.note(&reports(PeerFault::WrongChildren, pairs));
        let exclusion = failures.exclude(workers, 1).unwrap();
        assert_eq!(failures.exclude(workers, 1), None);
        exclusion
    }

    #[test]
    fn of_two_workers_the_one_that_is_reported_for_wrong_children_is_quarantined() {
        for (by, of) in [("a", "b"), ("b", "a")] {
            let exclusion = excluded(&["a", "b"], &[(by, of)]);
            assert_eq!(exclusion.worker, of);
            let reason = format!("it sent wrong children, as reported by {by}");
            assert_eq!(exclusion.reason, reason);
        }
        // Nothing distinguishes two workers that report each other.
        let both = [("a", "b"), ("b", "a")];
        assert_eq!(excluded(&["a", "b"], &both).worker, "b");
    }

    #[test]
    fn sender_or_receiver_of_most_wrong_children_is_quarantined() {
        let all = ["a", "b", "c"];
        // All others report the sender.
        let exclusion = excluded(&all, &[("b", "a"), ("c", "a")]);
        assert_eq!(exclusion.worker, "a");
        let reason = "it sent wrong children, as reported by b, c";
        assert_eq!(exclusion.reason, reason);
        // A receiver that reports all others is faulty itself.
        let exclusion = excluded(&all, &[("a", "b"), ("a", "c")]);
        assert_eq!(exclusion.worker, "a");
        let reason = "it alone reported wrong children from b, c";
        assert_eq!(exclusion.reason, reason);
        // Such a receiver may also send wrong children.
        let pairs = [("a", "b"), ("a", "c"), ("b", "a")];
        assert_eq!(excluded(&all, &pairs).worker, "a");
        assert_eq!(excluded(&all, &[("c", "a")]).worker, "a");
    }

    #[test]
    fn committed_depth_clears_reports_of_wrong_children() {
        let mut failures = FailureTracker::default();
        for _ in 0..4 {
            failures.note(&reports(PeerFault::WrongChildren, &[("a", "b")]));
            assert_eq!(failures.exclude(&["a", "b"], 1), None);
            failures.forget(&["a", "b"]);
        }
    }

    #[test]
    fn single_failure_of_a_pair_quarantines_no_worker() {
        let mut failures = FailureTracker::default();
        failures.note(&unreachable(&[("a", "b")]));
        assert_eq!(failures.exclude(&["a", "b", "c"], 1), None);
        failures.forget(&[]);
        failures.note(&unreachable(&[("b", "a")]));
        assert_eq!(failures.exclude(&["a", "b", "c"], 1), None);
    }

    #[test]
    fn worker_that_reports_one_worker_after_another_is_quarantined() {
        let mut failures = FailureTracker::default();
        let report_twice = |failures: &mut FailureTracker, of: &str| {
            for _ in 0..PAIR_LIMIT {
                failures.note(&reports(PeerFault::WrongChildren, &[("h", of)]));
            }
        };
        report_twice(&mut failures, "a");
        let exclusion = failures.exclude(&["a", "b", "c", "h"], 1).unwrap();
        assert_eq!(exclusion.worker, "a");
        // Commits without `a` do not clear the report.
        failures.forget(&["b", "c", "h"]);
        report_twice(&mut failures, "b");
        let exclusion = failures.exclude(&["b", "c", "h"], 1).unwrap();
        assert_eq!(exclusion.worker, "h");
        assert_eq!(
            exclusion.reason,
            "it alone reported wrong children from a, b"
        );
        failures.forget(&["a", "b", "c", "h"]);
        report_twice(&mut failures, "c");
        let exclusion = failures.exclude(&["a", "b", "c", "h"], 1).unwrap();
        assert_eq!(exclusion.worker, "c");
    }

    #[test]
    fn worker_with_most_unreachable_peers_is_quarantined() {
        let mut failures = FailureTracker::default();
        failures.note(&unreachable(&[("a", "c"), ("b", "a")]));
        failures.note(&unreachable(&[("c", "a")]));
        let exclusion = failures.exclude(&["a", "b", "c"], 1).unwrap();
        assert_eq!(exclusion.worker, "a");
        assert_eq!(exclusion.how_long, FIRST_QUARANTINE);
        assert_eq!(exclusion.reason, "no connection to b, c");
        assert_eq!(failures.exclude(&["b", "c"], 1), None);
    }

    #[test]
    fn one_of_two_workers_is_quarantined_but_a_sole_worker_is_not() {
        let mut failures = FailureTracker::default();
        failures.note(&unreachable(&[("a", "b")]));
        failures.note(&unreachable(&[("b", "a")]));
        assert_eq!(failures.exclude(&["a"], 1), None);
        assert_eq!(failures.exclude(&["a", "b"], 1).unwrap().worker, "b");
    }

    #[test]
    fn worker_is_quarantined_after_many_transient_failures() {
        let mut failures = FailureTracker::default();
        for _ in 0..OWN_LIMIT {
            assert_eq!(failures.exclude(&["a", "b"], 1), None);
            failures.note(&WorkerError {
                kind: WorkerErrorKind::Transient,
                ..WorkerError::failed("a", "the object store does not answer")
            });
        }
        assert_eq!(failures.exclude(&["a", "b"], 1).unwrap().worker, "a");
    }

    #[test]
    fn failing_worker_is_quarantined_for_longer_each_time() {
        let mut failures = FailureTracker::default();
        for times in 0..8 {
            for _ in 0..OWN_LIMIT / PERMANENT {
                assert_eq!(failures.exclude(&["a", "b"], 1), None);
                failures.note(&WorkerError::failed("a", "the disk is full"));
            }
            let exclusion = failures.exclude(&["a", "b"], 1).unwrap();
            assert_eq!(exclusion.worker, "a");
            assert_eq!(exclusion.reason, "the disk is full");
            let how_long = FIRST_QUARANTINE * (1 << times);
            assert_eq!(exclusion.how_long, how_long.min(MAX_QUARANTINE));
        }
    }
}
