//! Tests with workers that leave, disconnect, or fail.

use super::cluster::{Cluster, Reaction, Script, hello, leaving, obedient};
use crate::registry::WorkerState;
use hatebeam_proto::messages::{FailureKind, OrderKind};
use hatebeam_runs::RunState;
use std::time::Duration;

const DEPTH: u32 = 5;

/// Returns a script that runs `reaction` once, at the expansion of a depth, and carries out all other orders.
fn once(depth: u32, reaction: impl FnOnce() -> Reaction + Send + 'static) -> Script {
    let mut reaction = Some(reaction);
    Box::new(move |order| match order {
        OrderKind::Expand(expand) if expand.depth == depth => reaction
            .take()
            .map_or(Reaction::Obey, |reaction| reaction()),
        _ => Reaction::Obey,
    })
}

/// Returns a script that fails every expansion.
fn failing(kind: FailureKind) -> Script {
    Box::new(move |order| match order {
        OrderKind::Expand(_) => Reaction::Fail(kind.clone()),
        _ => Reaction::Obey,
    })
}

#[tokio::test(start_paused = true)]
async fn two_workers_search_to_the_depth_limit() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.worker(&process, "w1", obedient());
    cluster.submit(&process, DEPTH).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert_eq!(run.manifest.epoch, 1);
    cluster.assert_finished(DEPTH).await;
    assert_eq!(
        process.hooks.names(),
        ["started", "depth", "depth", "finished"]
    );
    process.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn run_continues_without_a_worker_that_disconnects() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.worker(&process, "w1", once(3, || Reaction::Disconnect));
    cluster.submit(&process, DEPTH).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert_eq!(run.manifest.epoch, 2);
    cluster.assert_finished(DEPTH).await;
    assert!(process.hooks.names().contains(&"worker-lost"));
}

#[tokio::test(start_paused = true)]
async fn epoch_ends_when_a_worker_joins_or_leaves() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let first = cluster
        .try_worker(&process, hello("w0"), obedient())
        .unwrap();
    cluster.submit(&process, 100).await;
    cluster.wait(&process, |run| run.depth() >= 2).await;
    cluster.worker(&process, "w1", obedient());
    cluster.wait(&process, |run| run.manifest.epoch == 2).await;
    first.send(leaving()).await.unwrap();
    cluster.wait(&process, |run| run.manifest.epoch == 3).await;
    let workers = process.coordinator.workers();
    let names: Vec<_> = workers.iter().map(|worker| worker.name.as_str()).collect();
    assert_eq!(names, ["w1"]);
    process.coordinator.drain("w0").unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn failing_worker_is_quarantined_and_the_others_continue() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.worker(&process, "w1", failing(FailureKind::Worker));
    cluster.submit(&process, DEPTH).await;
    cluster.wait_for(&process, RunState::Finished).await;
    cluster.assert_finished(DEPTH).await;
    let workers = process.coordinator.workers();
    assert_eq!(workers[1].state, WorkerState::Quarantined);
    assert_eq!(workers[1].note, "it cannot");
}

#[tokio::test(start_paused = true)]
async fn run_whose_only_worker_keeps_failing_fails_and_can_be_resubmitted() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let mut left = 5;
    let script = move |order: &OrderKind| match order {
        OrderKind::Expand(expand) if expand.depth == 3 && left > 0 => {
            left -= 1;
            Reaction::Fail(FailureKind::Worker)
        }
        _ => Reaction::Obey,
    };
    cluster.worker(&process, "w0", Box::new(script));
    cluster.submit(&process, DEPTH).await;
    let run = cluster.wait_for(&process, RunState::Failed).await;
    let expected = "depth 3 failed 5 times; the last failure was on worker w0: it cannot";
    assert_eq!(run.note, expected);
    cluster.assert_digests(&cluster.saved().await, 2);
    cluster.submit(&process, DEPTH).await;
    cluster.wait_for(&process, RunState::Finished).await;
    cluster.assert_finished(DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn transient_failures_do_not_fail_the_run() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let mut left = 40;
    let script = move |order: &OrderKind| match order {
        OrderKind::Expand(_) if left > 0 => {
            left -= 1;
            Reaction::Fail(FailureKind::Unavailable)
        }
        _ => Reaction::Obey,
    };
    cluster.worker(&process, "w0", Box::new(script));
    cluster.submit(&process, DEPTH).await;
    cluster.wait_for(&process, RunState::Finished).await;
    cluster.assert_finished(DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn run_continues_without_a_worker_that_makes_no_progress() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.worker(&process, "w1", once(2, || Reaction::Ignore));
    cluster.submit(&process, DEPTH).await;
    cluster.wait_for(&process, RunState::Finished).await;
    cluster.assert_finished(DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn note_of_a_waiting_run_contains_the_required_number_of_workers() {
    let mut cluster = Cluster::new();
    cluster.min_workers = 2;
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, DEPTH).await;
    let note = "waiting for workers: 1 of 2";
    cluster.wait(&process, |run| run.note == note).await;
    cluster.worker(&process, "w1", obedient());
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert_eq!(run.note, "");
}

#[tokio::test(start_paused = true)]
async fn run_begins_while_workers_keep_joining_and_leaving() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    let churn = async {
        loop {
            let worker = cluster.try_worker(&process, hello("w1"), obedient());
            tokio::time::sleep(Duration::from_millis(100)).await;
            worker.unwrap().send(leaving()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let finish = async {
        cluster.submit(&process, 2).await;
        let began = tokio::time::Instant::now();
        cluster.wait(&process, |run| run.manifest.epoch > 0).await;
        assert!(began.elapsed() < Duration::from_secs(6));
    };
    tokio::select! {
        biased;
        () = churn => {}
        () = finish => {}
    }
}
