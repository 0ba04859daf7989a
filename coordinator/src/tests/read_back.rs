//! Tests of reading back the best game on a worker.

use super::cluster::{
    Cluster, Process, Reaction, Script, hello, leaving, searching, unable_to_read_back,
};
use super::support::Faults;
use crate::LimitsChange;
use hatebeam_game::{Geometry, Well};
use hatebeam_objects::faults::Operation;
use hatebeam_proto::messages::{AnswerKind, GameNodes, Hello, OrderKind};
use hatebeam_runs::{FrontierSummary, GameResult, Retention, RunState};
use hatebeam_search::NodeWell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Last depth of the test run.
const DEPTH: u32 = 6;

/// Names of the workers that were ordered to read the game back.
type Readers = Arc<Mutex<Vec<String>>>;

/// Returns the script of a worker that adds its name to `readers` and reacts to the order to read the game back with
/// `react`.
fn reader(readers: &Readers, name: &str, react: fn() -> Reaction) -> Script {
    let (readers, name) = (Arc::clone(readers), name.to_owned());
    Box::new(move |order| match order {
        OrderKind::ReadBack(_) => {
            readers.lock().unwrap().push(name.clone());
            react()
        }
        _ => Reaction::Obey,
    })
}

/// Returns the result of the run without the times.
async fn result(cluster: &Cluster) -> GameResult {
    cluster.assert_finished(DEPTH).await;
    GameResult {
        seconds: 0.0,
        ended_ms: 0,
        files: Vec::new(),
        ..cluster.saved().await.result.unwrap()
    }
}

/// Returns the result of the run if the coordinator itself reads the game back.
async fn expected() -> GameResult {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", unable_to_read_back());
    cluster.submit(&process, DEPTH).await;
    cluster.wait_for(&process, RunState::Finished).await;
    result(&cluster).await
}

/// Starts a coordinator that cannot fetch tables until the returned faults end.
async fn coordinator_without_tables(cluster: &Cluster) -> (Process, Arc<Faults>) {
    let faults = Faults::new();
    let process = cluster.faulty_coordinator("a", &faults).await;
    faults.fail(|call| call.operation == Operation::Get && call.key.contains("/frontier/"));
    (process, faults)
}

/// Starts a run and waits until the search has ended and the best game cannot be read back.
async fn reading_back(cluster: &Cluster) -> (Process, Arc<Faults>) {
    let (process, faults) = coordinator_without_tables(cluster).await;
    cluster.worker(&process, "w0", unable_to_read_back());
    cluster.submit(&process, DEPTH).await;
    let is_retrying = |run: &crate::RunStatus| run.note.contains("retrying");
    cluster.wait(&process, is_retrying).await;
    (process, faults)
}

#[tokio::test(start_paused = true)]
async fn run_can_be_cancelled_while_its_game_is_read_back() {
    let cluster = Cluster::new();
    let (process, _faults) = reading_back(&cluster).await;
    let cancelled = process.coordinator.cancel(&cluster.run).await.unwrap();
    assert_eq!(cancelled.manifest.state, RunState::Cancelled);
    assert_eq!(cluster.saved().await.state, RunState::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn higher_limit_continues_the_search_while_the_game_is_read_back() {
    let cluster = Cluster::new();
    let (process, faults) = reading_back(&cluster).await;
    let higher = LimitsChange {
        max_depth: Some(Some(DEPTH + 3)),
        ..LimitsChange::default()
    };
    process
        .coordinator
        .limit(&cluster.run, higher)
        .await
        .unwrap();
    cluster.wait(&process, |run| run.depth() == DEPTH + 3).await;
    faults.end();
    cluster.finish(&process, DEPTH + 3).await;
}

#[tokio::test(start_paused = true)]
async fn worker_with_the_most_memory_reads_the_game_back() {
    let cluster = Cluster::new();
    let (process, _faults) = coordinator_without_tables(&cluster).await;
    let readers = Readers::default();
    for (name, gib) in [("w0", 4), ("w1", 16), ("w2", 8)] {
        let hello = Hello {
            memory_bytes: gib << 30,
            ..hello(name)
        };
        let script = reader(&readers, name, || Reaction::Obey);
        cluster.try_worker(&process, hello, script).unwrap();
    }
    cluster.submit(&process, DEPTH).await;
    cluster.wait_for(&process, RunState::Finished).await;
    assert_eq!(*readers.lock().unwrap(), ["w1"]);
    // It is the same game as without a worker, although the coordinator has fetched no table.
    assert_eq!(result(&cluster).await, expected().await);
}

#[tokio::test(start_paused = true)]
async fn lost_reader_is_replaced_by_another_worker_and_then_by_the_coordinator() {
    for (reactions, by_coordinator) in [
        ([|| Reaction::Disconnect, || Reaction::Obey], false),
        ([|| Reaction::Disconnect, || Reaction::Disconnect], true),
        // A worker without progress is given up after ten minutes.
        ([|| Reaction::Ignore, || Reaction::Obey], false),
    ] {
        let cluster = Cluster::new();
        let (process, faults) = coordinator_without_tables(&cluster).await;
        let readers = Readers::default();
        for (name, react) in ["w0", "w1"].into_iter().zip(reactions) {
            cluster.worker(&process, name, reader(&readers, name, react));
        }
        cluster.submit(&process, DEPTH).await;
        if by_coordinator {
            let failed = "reading back the best game failed";
            cluster
                .wait(&process, |run| run.note.starts_with(failed))
                .await;
            faults.end();
        }
        cluster.wait_for(&process, RunState::Finished).await;
        assert_eq!(*readers.lock().unwrap(), ["w0", "w1"]);
        assert_eq!(result(&cluster).await, expected().await);
    }
}

#[tokio::test(start_paused = true)]
async fn leaving_reader_is_released_and_the_coordinator_reads_the_game_back() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let readers = Readers::default();
    let script = reader(&readers, "w0", || Reaction::Ignore);
    let worker = cluster.try_worker(&process, hello("w0"), script).unwrap();
    cluster.submit(&process, DEPTH).await;
    let note = "reading back the best game on worker w0";
    cluster
        .wait(&process, |run| run.note.starts_with(note))
        .await;
    worker.send(leaving()).await.unwrap();
    cluster.wait_for(&process, RunState::Finished).await;
    assert_eq!(result(&cluster).await, expected().await);
}

#[tokio::test(start_paused = true)]
async fn next_coordinator_lets_a_worker_that_reconnects_read_the_game_back() {
    let cluster = Cluster::new();
    let (first, _) = coordinator_without_tables(&cluster).await;
    let readers = Readers::default();
    let script = reader(&readers, "w0", || Reaction::Ignore);
    cluster.worker(&first, "w0", script);
    cluster.submit(&first, DEPTH).await;
    let reads = |run: &crate::RunStatus| run.note.contains("on worker w0");
    cluster.wait(&first, reads).await;
    first.stop().await.unwrap();
    let (second, _) = coordinator_without_tables(&cluster).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let script = reader(&readers, "w1", || Reaction::Obey);
    cluster.worker(&second, "w1", script);
    cluster.wait_for(&second, RunState::Finished).await;
    assert_eq!(*readers.lock().unwrap(), ["w0", "w1"]);
    assert_eq!(result(&cluster).await, expected().await);
}

/// Returns the nodes in an answer.
fn nodes(answer: &mut AnswerKind) -> &mut GameNodes {
    match answer {
        AnswerKind::GameNodes(nodes) => nodes,
        answer => panic!("{answer:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_answers_of_readers_are_refused() {
    let wrong: [fn(&mut AnswerKind); 5] = [
        |answer| nodes(answer).nodes.clear(),
        |answer| {
            nodes(answer).nodes.remove(2);
        },
        |answer| nodes(answer).nodes[3].lines += 1,
        |answer| nodes(answer).nodes[1].well.0[0] ^= 1,
        |answer| *answer = AnswerKind::Halted,
    ];
    let expected = expected().await;
    for alter in wrong {
        let cluster = Cluster::new();
        let process = cluster.coordinator("a").await;
        let script: Script = Box::new(move |order| match order {
            OrderKind::ReadBack(_) => Reaction::Alter(alter),
            _ => Reaction::Obey,
        });
        cluster.worker(&process, "w0", script);
        cluster.submit(&process, DEPTH).await;
        cluster.wait_for(&process, RunState::Finished).await;
        assert_eq!(result(&cluster).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn damage_that_a_reader_finds_is_verified_by_the_coordinator() {
    let (cluster, process) = searching(3).await;
    cluster.wait_for(&process, RunState::Finished).await;
    cluster.delete_table(2).await;
    cluster.submit(&process, DEPTH).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert!(run.manifest.result.is_some(), "{}", run.note);
    assert!(!run.manifest.depths[2].record.kept);
}

/// Replaces the best well of a part by its mirror image, which has as many cells but is not in the tables.
fn mirror_best_well(answer: &mut AnswerKind) {
    let AnswerKind::Selected(FrontierSummary {
        best: Some(best), ..
    }) = answer
    else {
        return;
    };
    let geometry = Geometry::STANDARD;
    let well = best.well.unpack(geometry).unwrap();
    let rows = well.rows().map(|row| row.reverse_bits() >> 6);
    best.well = NodeWell::pack(geometry, &Well::from_rows(rows));
}

/// Returns the script of a worker that lies about the best well of the last depth `times` times.
fn mirroring(mut times: u32) -> Script {
    Box::new(move |order| match order {
        OrderKind::Select(select) if select.depth == DEPTH && times > 0 => {
            times -= 1;
            Reaction::Alter(mirror_best_well)
        }
        _ => Reaction::Obey,
    })
}

#[tokio::test(start_paused = true)]
async fn depth_whose_best_well_is_not_in_its_tables_is_searched_again() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", mirroring(2));
    cluster.submit(&process, DEPTH).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert!(run.manifest.result.is_some(), "{}", run.note);
    cluster.assert_finished(DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn run_fails_after_too_many_contradictions() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", mirroring(u32::MAX));
    cluster.submit(&process, DEPTH).await;
    let run = cluster.wait_for(&process, RunState::Failed).await;
    assert!(
        run.note.contains("does not contain the well"),
        "{}",
        run.note
    );
}

#[tokio::test(start_paused = true)]
async fn run_that_keeps_only_its_last_depth_ends_without_a_game_if_its_best_well_does_not_exist() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", mirroring(1));
    let mut submission = cluster.submission(DEPTH);
    submission.keep = Retention::Last;
    process.coordinator.submit(submission).await.unwrap();
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert_eq!(run.depth(), DEPTH);
    let note = &run.manifest.note;
    assert!(note.contains("does not contain the well"), "{note}");
}

#[tokio::test(start_paused = true)]
async fn table_that_is_wrong_in_a_single_read_is_kept() {
    let cluster = Cluster::new();
    let faults = Faults::new();
    let process = cluster.faulty_coordinator("a", &faults).await;
    cluster.worker(&process, "w0", unable_to_read_back());
    faults.miss_once(|call| call.operation == Operation::Get && call.key.contains("/frontier/"));
    cluster.submit(&process, DEPTH).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert!(faults.has_missed());
    assert!(run.manifest.result.is_some(), "{}", run.note);
    cluster.assert_finished(DEPTH).await;
    let depths = &run.manifest.depths;
    assert!(depths.iter().all(|depth| depth.record.kept));
}
