//! Alerts about a run, shown by `hatebeam watch` and the dashboard.

use crate::costs::Cost;
use crate::registry::{LostWorker, WorkerStatus};
use crate::status::RunStatus;
use hatebeam_runs::Limits;
use std::time::Duration;

/// Used share of a limit at which a budget warning appears, from 0 to 1.
pub(crate) const WARN_AT: f64 = 0.8;
/// Time before the deadline at which its warning appears.
const WARN_BEFORE: Duration = Duration::from_secs(3600);
/// Share of free space below which a disk counts as almost full, if the number of free bytes is within
/// [`FREE_BYTES`].
const MIN_FREE_SHARE: f64 = 0.05;
/// Range of free bytes to which [`MIN_FREE_SHARE`] applies. A disk with fewer free bytes always counts as almost full,
/// and a disk with more free bytes never does.
const FREE_BYTES: std::ops::Range<u64> = 2 << 30..20 << 30;

/// A problem that needs attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Kind of the problem.
    pub kind: AlertKind,
    /// Name of the affected worker. Empty if the problem affects the whole run.
    pub worker: String,
    /// Human-readable description.
    pub text: String,
}

/// Kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertKind {
    /// The run makes no progress.
    HeldUp,
    /// The deadline at which all machines stop is near or has passed.
    Deadline,
    /// Most of a limit is used, or the price of a machine is unknown.
    Budget,
    /// A worker was lost recently.
    LostWorker,
    /// A worker is quarantined: it gets no part of the search for some time, because it failed repeatedly.
    QuarantinedWorker,
    /// A worker is far behind the others.
    SlowWorker,
    /// The search waits for a worker's uploads.
    UploadsBehind,
    /// A worker's disk is almost full.
    DiskFilling,
}

impl AlertKind {
    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            AlertKind::HeldUp => "held-up",
            AlertKind::Deadline => "deadline",
            AlertKind::Budget => "budget",
            AlertKind::LostWorker => "lost-worker",
            AlertKind::QuarantinedWorker => "quarantined-worker",
            AlertKind::SlowWorker => "slow-worker",
            AlertKind::UploadsBehind => "uploads-behind",
            AlertKind::DiskFilling => "disk-filling",
        }
    }

    fn of_worker(self, worker: &str, text: String) -> Alert {
        Alert {
            kind: self,
            worker: worker.to_owned(),
            text,
        }
    }

    fn of_run(self, text: String) -> Alert {
        self.of_worker("", text)
    }
}

/// Returns the alerts about a run, its cost and the workers. Returns an empty list if the run has ended.
pub(crate) fn alerts(run: &RunStatus, workers: &[WorkerStatus], lost: &[LostWorker]) -> Vec<Alert> {
    let mut alerts = Vec::new();
    if !run.manifest.is_open() {
        return alerts;
    }
    if !run.note.is_empty() {
        alerts.push(AlertKind::HeldUp.of_run(run.note.clone()));
    }
    alerts.extend(budget_alerts(&run.manifest.limits, &run.cost));
    for lost in lost {
        let text = format!("lost: {}", lost.reason);
        alerts.push(AlertKind::LostWorker.of_worker(&lost.name, text));
    }
    alerts.extend(workers.iter().flat_map(worker_alerts));
    alerts
}

/// Returns an alert if the deadline is at most an hour away or has passed. Both times are in milliseconds since the
/// Unix epoch.
pub(crate) fn deadline_alert(deadline_ms: Option<u64>, now_ms: u64) -> Option<Alert> {
    let deadline_ms = deadline_ms?;
    let remedy = "`terraform apply` moves this deadline";
    let text = match deadline_ms.checked_sub(now_ms).map(Duration::from_millis) {
        None | Some(Duration::ZERO) => {
            format!("the deadline of the machines has passed, so no worker starts: {remedy}")
        }
        Some(left) if left <= WARN_BEFORE => {
            let minutes = left.as_secs().div_ceil(60).max(1);
            format!("all machines stop within {minutes} min, even during a run: {remedy}")
        }
        Some(_) => return None,
    };
    Some(AlertKind::Deadline.of_run(text))
}

fn budget_alerts(limits: &Limits, cost: &Cost) -> Vec<Alert> {
    let mut alerts = Vec::new();
    if let Some(used) = cost.used_share()
        && used.share >= WARN_AT
    {
        let (limit, percent) = (used.limit, used.share * 100.0);
        let text = format!("{percent:.0} % of --{limit} is spent");
        alerts.push(AlertKind::Budget.of_run(text));
    }
    let unpriced = cost.unpriced();
    if limits.max_cost.is_some() && unpriced > 0 {
        let text = format!(
            "--max-cost ignores {unpriced} machines whose price is unknown: start their workers with --price-per-hour"
        );
        alerts.push(AlertKind::Budget.of_run(text));
    }
    alerts
}

fn worker_alerts(worker: &WorkerStatus) -> Vec<Alert> {
    let mut alerts = Vec::new();
    let mut alert = |kind: AlertKind, text| alerts.push(kind.of_worker(&worker.name, text));
    if !worker.note.is_empty() {
        let text = format!("quarantined: {}", worker.note);
        alert(AlertKind::QuarantinedWorker, text);
    }
    if worker.slow {
        let text = "the other workers are waiting for it".to_owned();
        alert(AlertKind::SlowWorker, text);
    }
    if worker.uploads_behind {
        let megabytes = worker.uploading_bytes.div_ceil(1_000_000);
        let text = format!("the search is waiting for it to upload {megabytes} MB of tables");
        alert(AlertKind::UploadsBehind, text);
    }
    if is_disk_almost_full(worker) {
        let megabytes = worker.disk_free_bytes / 1_000_000;
        let text = format!("its disk has {megabytes} MB free");
        alert(AlertKind::DiskFilling, text);
    }
    alerts
}

fn is_disk_almost_full(worker: &WorkerStatus) -> bool {
    let (free, size) = (worker.disk_free_bytes, worker.disk_bytes);
    let is_small_share = (free as f64) < size as f64 * MIN_FREE_SHARE;
    size > 0 && (free < FREE_BYTES.start || is_small_share && free < FREE_BYTES.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::{run_status, worker_status};
    use hatebeam_runs::RunState;

    fn kinds(run: &RunStatus, worker: &WorkerStatus) -> Vec<AlertKind> {
        let alerts = alerts(run, std::slice::from_ref(worker), &[]);
        alerts.into_iter().map(|alert| alert.kind).collect()
    }

    #[test]
    fn problems_are_reported_only_while_the_run_is_open() {
        let run = run_status(RunState::Running, "");
        let good = WorkerStatus {
            disk_bytes: 100 << 30,
            disk_free_bytes: 50 << 30,
            uploading_bytes: 1,
            ..worker_status("w")
        };
        assert_eq!(kinds(&run, &good), []);
        let bad = WorkerStatus {
            uploads_behind: true,
            disk_free_bytes: 4 << 30,
            slow: true,
            note: "it cannot write".to_owned(),
            ..good
        };
        let expected = [
            AlertKind::QuarantinedWorker,
            AlertKind::SlowWorker,
            AlertKind::UploadsBehind,
            AlertKind::DiskFilling,
        ];
        assert_eq!(kinds(&run, &bad), expected);
        let held_up = run_status(RunState::Running, "waiting for workers: 0 of 1");
        assert_eq!(kinds(&held_up, &bad)[0], AlertKind::HeldUp);
        let ended = run_status(RunState::Finished, "the best game was not kept");
        assert_eq!(kinds(&ended, &bad), []);
    }

    #[test]
    fn deadline_alert_appears_an_hour_before_the_deadline() {
        const MINUTE: u64 = 60_000;
        let at = 100 * MINUTE;
        let text = |now_ms| deadline_alert(Some(at), now_ms).map(|alert| alert.text);
        assert_eq!(text(at - 61 * MINUTE), None);
        for (left, expected) in [(60 * MINUTE, "within 60 min"), (1, "within 1 min")] {
            let shown = text(at - left).unwrap();
            assert!(shown.contains(expected), "{shown}");
        }
        for now_ms in [at, at + MINUTE] {
            let passed = text(now_ms).unwrap();
            assert!(passed.contains("has passed"), "{passed}");
        }
        assert_eq!(deadline_alert(None, at), None);
    }

    #[test]
    fn almost_full_disk_is_detected_by_free_bytes_and_free_share() {
        let is_alert = |free_gib: u64, size_gib: u64| {
            is_disk_almost_full(&WorkerStatus {
                disk_free_bytes: free_gib << 30,
                disk_bytes: size_gib << 30,
                ..worker_status("w")
            })
        };
        assert!(is_alert(1, 4));
        assert!(!is_alert(3, 4));
        assert!(is_alert(19, 500));
        assert!(!is_alert(21, 500));
        assert!(!is_alert(0, 0));
    }
}
