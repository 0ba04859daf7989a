//! Tests with coordinators that stop, panic, or lose the lease.

use super::cluster::{
    Cluster, Reaction, Script, hello, leaving, obedient, searching, unable_to_read_back,
};
use super::support::{Faults, faulty};
use crate::{CoordinatorError, LeaseError, RunStatus};
use hatebeam_objects::faults::Operation;
use hatebeam_proto::messages::{Hello, OrderKind};
use hatebeam_runs::{RunState, VersionedManifest};
use hatebeam_search::Fingerprint;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

const DEPTH: u32 = 4;

/// Returns a script that never answers orders with this name, and notifies `reached` when it receives one. It carries
/// out all other orders. Before depth 2, it also carries out orders with this name, except `prepare`, which a worker
/// receives only at the start.
fn hang_at(name: &'static str, reached: &Arc<Notify>) -> Script {
    let reached = Arc::clone(reached);
    let mut depth = 0;
    Box::new(move |order| {
        if let OrderKind::Expand(expand) = order {
            depth = expand.depth;
        }
        let is_first = matches!(order, OrderKind::Prepare(_));
        if order.name() != name || depth < 2 && !is_first {
            return Reaction::Obey;
        }
        reached.notify_one();
        Reaction::Ignore
    })
}

#[tokio::test(start_paused = true)]
async fn run_continues_after_a_restart_in_any_phase() {
    for phase in [
        "prepare",
        "expand",
        "count",
        "validate_cut",
        "select",
        "wait_commit",
    ] {
        let cluster = Cluster::new();
        let first = cluster.coordinator("a").await;
        let reached = Arc::new(Notify::new());
        cluster.worker(&first, "w0", hang_at(phase, &reached));
        cluster.submit(&first, DEPTH).await;
        reached.notified().await;
        let before = cluster.saved().await;
        first.stop().await.unwrap();
        let second = cluster.coordinator("b").await;
        cluster.worker(&second, "w0", obedient());
        let run = cluster.wait_for(&second, RunState::Finished).await;
        assert!(run.manifest.epoch > before.epoch, "{phase}");
        cluster.assert_finished(DEPTH).await;
    }
}

#[tokio::test(start_paused = true)]
async fn run_that_cannot_be_read_at_the_start_continues_later() {
    let cluster = Cluster::new();
    let first = cluster.coordinator("a").await;
    cluster.worker(&first, "w0", obedient());
    cluster.submit(&first, DEPTH).await;
    cluster.wait(&first, |run| run.depth() >= 2).await;
    first.stop().await.unwrap();
    let faults = Faults::new();
    faults.fail(|call| call.operation == Operation::Get && call.key.ends_with("manifest.json"));
    let second = cluster.faulty_coordinator("b", &faults).await;
    cluster.worker(&second, "w0", obedient());
    assert!(second.coordinator.run(&cluster.run).is_none());
    tokio::time::sleep(Duration::from_secs(600)).await;
    faults.end();
    cluster.finish(&second, DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn idle_coordinator_searches_a_run_that_is_submitted_when_it_would_stop() {
    let mut cluster = Cluster::new();
    cluster.idle_stop = Some(Duration::from_secs(60));
    let faults = Faults::new();
    let process = cluster.faulty_coordinator("a", &faults).await;
    cluster.worker(&process, "w0", obedient());
    tokio::time::sleep(Duration::from_millis(59_900)).await;
    // Each request takes longer than the rest of the idle time.
    faults.delay(Duration::from_millis(300));
    cluster.submit(&process, DEPTH).await;
    faults.end();
    cluster.wait_for(&process, RunState::Finished).await;
    let coordinator = process.coordinator.clone();
    process.running.await.unwrap().unwrap();
    let refused = coordinator.submit(cluster.submission(DEPTH + 1)).await;
    assert!(
        matches!(refused, Err(crate::RequestError::Unavailable(_))),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn superseded_coordinator_stops_without_committing() {
    let cluster = Cluster::new();
    let faults = Faults::new();
    let first = cluster.faulty_coordinator("a", &faults).await;
    cluster.worker(&first, "w0", obedient());
    cluster.submit(&first, 1000).await;
    cluster.wait(&first, |run| run.depth() >= 2).await;
    // The first coordinator loses its connection to the store, but continues to search.
    faults.fail_all();
    let second = cluster.coordinator("b").await;
    cluster.worker(&second, "w1", obedient());
    let depth = cluster.saved().await.last().unwrap().record.depth + 3;
    cluster.wait(&second, |run| run.depth() >= depth).await;
    faults.end();
    let ended = first.running.await.unwrap();
    assert!(
        matches!(ended, Err(CoordinatorError::Lease(LeaseError::Superseded))),
        "{ended:?}"
    );
    second.coordinator.cancel(&cluster.run).await.unwrap();
    let run = cluster.wait_for(&second, RunState::Cancelled).await;
    cluster.assert_digests(&run.manifest, run.depth());
    assert_eq!(run.manifest.coordinator, "b");
}

#[tokio::test(start_paused = true)]
async fn manifest_written_by_a_superseded_coordinator_is_reloaded() {
    let (cluster, process) = searching(1000).await;
    cluster.wait(&process, |run| run.depth() >= 2).await;
    // Another coordinator, which has lost the lease but not noticed it, writes the manifest once more.
    let mut versioned = cluster.load().await;
    versioned.manifest.coordinator = "z".to_owned();
    versioned.save().await.unwrap();
    let epoch = versioned.manifest.epoch;
    cluster
        .wait(&process, |run| run.manifest.epoch > epoch)
        .await;
    process.coordinator.cancel(&cluster.run).await.unwrap();
    let run = cluster.wait_for(&process, RunState::Cancelled).await;
    cluster.assert_digests(&run.manifest, run.depth());
}

#[tokio::test(start_paused = true)]
async fn second_coordinator_is_refused_while_the_first_reads_many_runs() {
    let cluster = Cluster::new();
    for index in 0..40 {
        let manifest = super::support::manifest(&format!("r{index}"), 1);
        VersionedManifest::create(&cluster.objects(), manifest, true)
            .await
            .unwrap();
    }
    let faults = Faults::new();
    // Reading the manifests takes 20 s.
    faults.delay(Duration::from_millis(500));
    let slow = faulty(&cluster.memory, faults);
    let first = cluster.try_coordinator("a", slow);
    let second = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        cluster.try_coordinator("b", cluster.objects()).await
    };
    let (first, second) = tokio::join!(first, second);
    let error = second.err().unwrap();
    assert!(
        matches!(error, CoordinatorError::Lease(LeaseError::Held { .. })),
        "{error}"
    );
    first.unwrap().stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn panic_in_the_search_stops_the_coordinator_with_an_error() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    *process.hooks.panic_at.lock().unwrap() = Some("depth");
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, DEPTH).await;
    let ended = process.running.await.unwrap();
    assert!(
        matches!(
            ended,
            Err(CoordinatorError::Panicked { task: "search", .. })
        ),
        "{ended:?}"
    );
    // The lease is released despite the panic.
    let began = tokio::time::Instant::now();
    cluster.coordinator("b").await;
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn graceful_stop_keeps_the_charges_of_a_suspended_coordinator() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let reached = Arc::new(Notify::new());
    cluster.worker(&process, "w0", hang_at("expand", &reached));
    cluster.submit(&process, DEPTH).await;
    reached.notified().await;
    // Another coordinator, which was suspended and lost the lease, resumes and writes the manifest once more. Its
    // ledger charges an hour more.
    let mut other = cluster.load().await;
    other.manifest.ledger.milliseconds += 3_600_000;
    let charged = other.manifest.ledger.milliseconds;
    other.save().await.unwrap();
    process.stop().await.unwrap();
    let ledger = cluster.saved().await.ledger;
    assert!(ledger.milliseconds >= charged, "{ledger:?}");
    assert_eq!(ledger.until_ms, None);
}

#[tokio::test(start_paused = true)]
async fn undelivered_finished_event_is_delivered_by_the_next_coordinator() {
    let cluster = Cluster::new();
    let first = cluster.coordinator("a").await;
    *first.hooks.panic_at.lock().unwrap() = Some("finished");
    cluster.worker(&first, "w0", obedient());
    cluster.submit(&first, DEPTH).await;
    let ended = first.running.await.unwrap();
    assert!(ended.is_err());
    assert_eq!(cluster.saved().await.state, RunState::Finished);
    let second = cluster.coordinator("b").await;
    assert_eq!(second.hooks.names(), ["finished"]);
    second.stop().await.unwrap();
    assert!(cluster.objects().list("events").await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn stopping_coordinator_disconnects_its_workers_while_the_store_hangs() {
    let cluster = Cluster::new();
    let faults = Faults::new();
    let process = cluster.faulty_coordinator("a", &faults).await;
    let coordinator = process.coordinator.clone();
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, 1000).await;
    cluster.wait(&process, |run| run.depth() >= 2).await;
    faults.delay(Duration::from_secs(3600));
    let stopping = tokio::spawn(process.stop());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(coordinator.workers(), []);
    let refused = cluster.join(&coordinator, hello("w1"), obedient()).err();
    assert_eq!(refused.unwrap().reason, "the coordinator is shutting down");
    let stopped = tokio::time::timeout(Duration::from_secs(30), stopping).await;
    stopped.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn game_is_read_back_by_the_next_coordinator() {
    let cluster = Cluster::new();
    let faults = Faults::new();
    let first = cluster.faulty_coordinator("a", &faults).await;
    let halted = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&halted);
    let script: Script = Box::new(move |order| {
        *counted.lock().unwrap() += u32::from(matches!(order, OrderKind::Halt));
        match order {
            OrderKind::ReadBack(_) => Reaction::Ignore,
            _ => Reaction::Obey,
        }
    });
    let worker = cluster.try_worker(&first, hello("w0"), script).unwrap();
    cluster.submit(&first, DEPTH).await;
    // The tables of the game cannot be read.
    faults.fail(|call| call.operation == Operation::Get && call.key.contains("/frontier/"));
    cluster
        .wait(&first, |run| run.manifest.reading_back().is_some())
        .await;
    assert_eq!(*halted.lock().unwrap(), 1);
    assert_eq!(first.coordinator.workers()[0].shards, 0);
    // A worker that wants to leave is released immediately.
    worker.send(leaving()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(first.coordinator.workers(), []);
    assert_eq!(cluster.saved().await.state, RunState::Running);
    first.stop().await.unwrap();
    let second = cluster.coordinator("b").await;
    cluster.finish(&second, DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn damaged_last_depth_is_kept_if_the_next_coordinator_reads_the_game_back() {
    let cluster = Cluster::new();
    let faults = Faults::new();
    let first = cluster.faulty_coordinator("a", &faults).await;
    cluster.worker(&first, "w0", unable_to_read_back());
    cluster.submit(&first, DEPTH).await;
    // The first coordinator marks the damaged depth, but cannot store the game.
    faults.fail(|call| call.key.contains("/frontier/") && call.operation == Operation::Get);
    cluster
        .wait(&first, |run| run.manifest.reading_back().is_some())
        .await;
    cluster.delete_table(DEPTH).await;
    faults.end();
    faults.fail(|call| call.key.contains("/replays/"));
    let is_marked = |run: &RunStatus| run.manifest.last().is_some_and(|last| !last.record.kept);
    cluster.wait(&first, is_marked).await;
    first.stop().await.unwrap();
    let second = cluster.coordinator("b").await;
    let run = cluster.wait_for(&second, RunState::Finished).await;
    assert_eq!(run.depth(), DEPTH);
    assert!(run.manifest.result.is_some(), "{}", run.note);
}

#[tokio::test(start_paused = true)]
async fn upgraded_coordinator_refuses_old_workers_and_does_not_search_old_runs() {
    let mut cluster = Cluster::new();
    let old = cluster.coordinator("old").await;
    cluster.worker(&old, "w0", obedient());
    cluster.submit(&old, DEPTH).await;
    cluster.wait(&old, |run| run.depth() >= 2).await;
    old.stop().await.unwrap();
    let before = cluster.saved().await;

    let (old_search, new_search) = (Fingerprint::current(), Fingerprint::from_text("2-new"));
    let new_hello = |name| Hello {
        search: new_search.to_string(),
        ..hello(name)
    };
    cluster.search = new_search.clone();
    let new = cluster.coordinator("new").await;
    let refused = cluster.try_worker(&new, hello("w0"), obedient()).err();
    let reason = refused.unwrap().reason;
    assert!(
        reason.contains(&format!("worker w0 has search fingerprint {old_search}"))
            && reason.contains("the coordinator has 2-new"),
        "{reason}"
    );
    cluster
        .try_worker(&new, new_hello("w1"), obedient())
        .unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let run = new.coordinator.run(&cluster.run).unwrap();
    assert!(
        run.note.contains("use the program that began the run"),
        "{}",
        run.note
    );
    assert_eq!(cluster.saved().await, before);
    new.stop().await.unwrap();

    cluster.search = old_search;
    let old = cluster.coordinator("old").await;
    cluster
        .try_worker(&old, new_hello("w1"), obedient())
        .unwrap_err();
    cluster.worker(&old, "w0", obedient());
    cluster.finish(&old, DEPTH).await;
}
