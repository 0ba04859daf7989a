//! What a person who watches a run should look at.

use crate::costs::Cost;
use hatebeam_proto::v1;

/// From this part of a budget on it is said that it runs out.
pub(crate) const WARN_AT: f64 = 0.8;
/// A disk with less room than this part of it is filling.
const LITTLE_ROOM: f64 = 0.05;
/// So many bytes are enough however large the disk is, and so few are not, however small.
const ROOM: std::ops::Range<u64> = 2 << 30..20 << 30;

fn alert(kind: &str, worker: &str, text: String) -> v1::Alert {
    v1::Alert {
        kind: kind.to_owned(),
        worker: worker.to_owned(),
        text,
    }
}

/// What there is to say of a run, its cost, the workers, and those that were lost lately.
pub(crate) fn alerts(
    run: &v1::RunStatus,
    workers: &[v1::WorkerStatus],
    lost: &[(String, String)],
    cost: Option<&Cost>,
) -> Vec<v1::Alert> {
    let mut all = Vec::new();
    if !run.is_open() {
        return all;
    }
    if !run.note.is_empty() {
        all.push(alert("held-up", "", run.note.clone()));
    }
    let has_budget = run.max_cost_micros > 0 || run.max_seconds > 0;
    if let Some(cost) = cost.filter(|_| has_budget) {
        if let Some(used) = cost.used_share().filter(|used| used.share >= WARN_AT) {
            let (limit, percent) = (used.limit, used.share * 100.0);
            let text = format!("{percent:.0} % of --{limit} is spent");
            all.push(alert("budget", "", text));
        }
        let unpriced = cost.unpriced();
        if run.max_cost_micros > 0 && unpriced > 0 {
            let text = format!(
                "the price of {unpriced} machines is not known: what they cost is on no ledger, and the budget \
                 does not see it; start their workers with --price-per-hour"
            );
            all.push(alert("budget", "", text));
        }
    }
    for (worker, reason) in lost {
        all.push(alert("lost-worker", worker, format!("lost: {reason}")));
    }
    for worker in workers {
        all.extend(of_worker(worker));
    }
    all
}

fn of_worker(worker: &v1::WorkerStatus) -> Vec<v1::Alert> {
    let mut all = Vec::new();
    let mut say = |kind, text| all.push(alert(kind, &worker.name, text));
    if !worker.note.is_empty() {
        say(
            "quarantined-worker",
            format!("quarantined: {}", worker.note),
        );
    }
    if worker.slow {
        say("slow-worker", "the others wait for it".to_owned());
    }
    if worker.uploads_behind {
        let text = format!(
            "{} MB of tables are still on their way to the object store, and the search waits for them",
            worker.uploading_bytes.div_ceil(1_000_000)
        );
        say("uploads-behind", text);
    }
    let free = worker.disk_free_bytes;
    let is_little = (free as f64) < worker.disk_bytes as f64 * LITTLE_ROOM && free < ROOM.end;
    if worker.disk_bytes > 0 && (is_little || free < ROOM.start) {
        let text = format!("its disk has {} MB left", free / 1_000_000);
        say("disk-filling", text);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(run: &v1::RunStatus, worker: v1::WorkerStatus) -> Vec<String> {
        let all = alerts(run, &[worker], &[], None);
        all.into_iter().map(|alert| alert.kind).collect()
    }

    #[test]
    fn what_is_wrong_is_said_and_what_is_right_is_not() {
        let run = v1::RunStatus {
            state: v1::State::Running.into(),
            ..v1::RunStatus::default()
        };
        let fine = v1::WorkerStatus {
            parents: 100,
            expanded: 50,
            uploading_bytes: 1,
            uploads_behind: false,
            disk_bytes: 100 << 30,
            disk_free_bytes: 50 << 30,
            ..v1::WorkerStatus::default()
        };
        assert!(kinds(&run, fine.clone()).is_empty());
        let bad = v1::WorkerStatus {
            uploads_behind: true,
            disk_free_bytes: 4 << 30,
            slow: true,
            note: "it cannot write".to_owned(),
            ..fine
        };
        let all = [
            "quarantined-worker",
            "slow-worker",
            "uploads-behind",
            "disk-filling",
        ];
        assert_eq!(kinds(&run, bad.clone()), all);
        let held_up = v1::RunStatus {
            note: "waiting for workers: 0 of 1".to_owned(),
            ..run
        };
        assert_eq!(kinds(&held_up, bad.clone())[0], "held-up");
        let over = v1::RunStatus {
            state: v1::State::Finished.into(),
            ..held_up
        };
        assert!(kinds(&over, bad).is_empty());
    }
}
