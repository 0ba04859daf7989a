//! Tests with workers that leave, disconnect, or fail. An *epoch* is a period of a run with a fixed set of workers.

use super::cluster::{Cluster, Reaction, Script, hello, leaving, obedient, searching};
use crate::registry::WorkerState;
use hatebeam_proto::messages::{AnswerKind, FailureKind, Hello, OrderKind};
use hatebeam_runs::{EndReason, LoopRule, Retention, RunState};
use hatebeam_search::{MAX_LINES, Node, NodeWell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
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

/// Claims that a game has so many lines that the next piece could exceed the maximum.
fn claim_many_lines(answer: &mut AnswerKind) {
    if let AnswerKind::Selected(frontier) = answer
        && let Some(best) = &mut frontier.best
    {
        best.lines = MAX_LINES - 3;
    }
}

/// Returns the script of a worker that alters its answers to some orders.
fn altering(select: fn(&OrderKind) -> bool, alter: fn(&mut AnswerKind)) -> Script {
    Box::new(move |order| match select(order) {
        true => Reaction::Alter(alter),
        false => Reaction::Obey,
    })
}

/// Asserts that a run with an obedient worker `w0` and the worker `w1` with this script reaches its end, that the wells are
/// those of the single-threaded search, and that `w1` is quarantined for a reason that contains `note`.
async fn assert_quarantined(script: Script, note: &str) {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.worker(&process, "w1", script);
    cluster.submit(&process, DEPTH).await;
    let run = cluster.wait(&process, |run| !run.manifest.is_open()).await;
    assert_eq!(run.manifest.state, RunState::Finished, "{}", run.note);
    cluster.assert_finished(DEPTH).await;
    let worker = &process.coordinator.workers()[1];
    assert_eq!(worker.state, WorkerState::Quarantined);
    assert!(worker.note.contains(note), "{}", worker.note);
}

#[tokio::test(start_paused = true)]
async fn worker_with_wrong_lines_is_quarantined() {
    let is_select = |order: &OrderKind| matches!(order, OrderKind::Select(_));
    let note = "lines of the summary's best well do not match";
    assert_quarantined(altering(is_select, claim_many_lines), note).await;
    let one_more = |answer: &mut AnswerKind| {
        if let AnswerKind::Selected(frontier) = answer
            && let Some(best) = &mut frontier.best
        {
            best.lines += 1;
        }
    };
    assert_quarantined(altering(is_select, one_more), note).await;
}

#[tokio::test(start_paused = true)]
async fn worker_with_a_wrong_number_of_wells_is_quarantined() {
    let is_prepare =
        |order: &OrderKind| matches!(order, OrderKind::Prepare(prepare) if prepare.depth > 0);
    let one_more = |answer: &mut AnswerKind| {
        if let AnswerKind::Prepared(prepared) = answer {
            prepared.wells += 1;
        }
    };
    let (cluster, process) = searching(DEPTH).await;
    cluster.wait(&process, |run| run.depth() == 2).await;
    cluster.worker(&process, "w1", altering(is_prepare, one_more));
    cluster.finish(&process, DEPTH).await;
    let worker = &process.coordinator.workers()[1];
    assert_eq!(worker.state, WorkerState::Quarantined);
    let note = &worker.note;
    assert!(
        note.starts_with("it has ") && note.contains("wells at depth"),
        "{note}"
    );
}

#[tokio::test(start_paused = true)]
async fn worker_with_wrong_tables_is_quarantined() {
    let is_commit = |order: &OrderKind| matches!(order, OrderKind::WaitCommit(_));
    let fewer = |answer: &mut AnswerKind| {
        if let AnswerKind::Committed(tables) = answer {
            tables.pop();
        }
    };
    assert_quarantined(altering(is_commit, fewer), "its tables have").await;
    let other_digest = |answer: &mut AnswerKind| {
        if let AnswerKind::Committed(tables) = answer {
            for table in tables {
                table.digest = format!("{:032x}", 1);
            }
        }
    };
    let script = altering(is_commit, other_digest);
    assert_quarantined(script, "its tables have digest").await;
}

#[tokio::test(start_paused = true)]
async fn worker_with_too_many_ties_is_quarantined() {
    let is_verdict = |order: &OrderKind| matches!(order, OrderKind::ValidateCut(_));
    let many = |answer: &mut AnswerKind| {
        if let AnswerKind::CutVerdict(verdict) = answer {
            verdict.tied = vec![NodeWell::default(); 5000];
        }
    };
    let note = "more than 1024 wells with the rank of the cut";
    assert_quarantined(altering(is_verdict, many), note).await;
}

#[tokio::test(start_paused = true)]
async fn worker_that_reports_only_unknown_workers_is_quarantined() {
    let peers = vec!["unknown".to_owned(), "w1".to_owned()];
    for kind in [
        FailureKind::PeersUnreachable {
            peers: peers.clone(),
        },
        FailureKind::WrongChildren {
            peers: peers.clone(),
        },
    ] {
        assert_quarantined(failing(kind.clone()), "it cannot").await;
        let at_uploads = Box::new(move |order: &OrderKind| match order {
            OrderKind::WaitCommit(_) => Reaction::Fail(kind.clone()),
            _ => Reaction::Obey,
        });
        assert_quarantined(at_uploads, "it cannot").await;
    }
}

#[tokio::test(start_paused = true)]
async fn worker_whose_tables_are_always_too_small_is_quarantined() {
    let is_verdict = |order: &OrderKind| matches!(order, OrderKind::ValidateCut(_));
    let dropped = |answer: &mut AnswerKind| {
        if let AnswerKind::CutVerdict(verdict) = answer {
            verdict.dropped = true;
        }
    };
    let note = "its tables are too small in 6 attempts";
    assert_quarantined(altering(is_verdict, dropped), note).await;
}

#[tokio::test(start_paused = true)]
async fn run_ends_before_a_game_exceeds_the_maximum_number_of_lines() {
    let (cluster, process) = searching(3).await;
    cluster.wait_for(&process, RunState::Finished).await;
    process.stop().await.unwrap();
    let mut saved = cluster.load().await;
    let last = saved.manifest.depths.last_mut().unwrap();
    last.record.best_lines = MAX_LINES - 3;
    saved.save().await.unwrap();
    let process = cluster.coordinator("b").await;
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, DEPTH).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert_eq!(run.manifest.end, Some(EndReason::MaxLines));
    assert_eq!(run.manifest.note, EndReason::MaxLines.words());
    cluster.assert_digests(&run.manifest, 3);
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
    assert_quarantined(failing(FailureKind::Worker), "it cannot").await;
}

/// Sends an invalid best well.
fn spoil_best_well(answer: &mut AnswerKind) {
    if let AnswerKind::Selected(frontier) = answer {
        frontier.best = Some(Node {
            score: 0,
            well: NodeWell([0xff; 20]),
            lines: 0,
            hint: 0,
        });
    }
}

/// Sends fewer histograms than the order has queries.
fn omit_histogram(answer: &mut AnswerKind) {
    if let AnswerKind::Counted(histograms) = answer {
        histograms.pop();
    }
}

#[tokio::test(start_paused = true)]
async fn worker_with_invalid_answers_is_quarantined_and_the_others_continue() {
    assert_quarantined(altering(|_| true, spoil_best_well), "the summary").await;
    let note = "it sent 0 histograms instead of 1";
    assert_quarantined(altering(|_| true, omit_histogram), note).await;
}

/// Returns a script of a worker that cannot connect to the address of the worker `peer`.
fn unable_to_reach(peer: &'static str) -> Script {
    Box::new(move |order| match order {
        OrderKind::Prepare(prepare) if prepare.members.iter().any(|one| one.name == peer) => {
            let peers = vec![peer.to_owned()];
            Reaction::Fail(FailureKind::PeersUnreachable { peers })
        }
        _ => Reaction::Obey,
    })
}

#[tokio::test(start_paused = true)]
async fn worker_with_an_unusable_address_is_quarantined_and_the_others_continue() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    for name in ["w1", "w2"] {
        cluster.worker(&process, name, unable_to_reach("w0"));
    }
    cluster.submit(&process, DEPTH).await;
    cluster.finish(&process, DEPTH).await;
    let workers = process.coordinator.workers();
    let states: Vec<_> = workers.iter().map(|worker| worker.state).collect();
    assert_eq!(states[0], WorkerState::Quarantined);
    assert!(
        !states[1..].contains(&WorkerState::Quarantined),
        "{states:?}"
    );
}

/// Returns a script of a worker that reports wrong children from the worker `peer` whenever it counts candidates.
fn receiving_wrong_children(peer: &'static str) -> Script {
    let mut has_peer = false;
    Box::new(move |order| {
        match order {
            OrderKind::Prepare(prepare) => {
                has_peer = prepare.members.iter().any(|one| one.name == peer);
            }
            OrderKind::Count(_) if has_peer => {
                let peers = vec![peer.to_owned()];
                return Reaction::Fail(FailureKind::WrongChildren { peers });
            }
            _ => {}
        }
        Reaction::Obey
    })
}

#[tokio::test(start_paused = true)]
async fn worker_that_sends_wrong_children_is_quarantined_instead_of_the_receiver() {
    for (sender, receiver) in [("w0", "w1"), ("w1", "w0")] {
        let cluster = Cluster::new();
        let process = cluster.coordinator("a").await;
        cluster.worker(&process, sender, obedient());
        cluster.worker(&process, receiver, receiving_wrong_children(sender));
        cluster.submit(&process, DEPTH).await;
        cluster.finish(&process, DEPTH).await;
        let workers = process.coordinator.workers();
        let quarantined: Vec<_> = workers
            .iter()
            .filter(|worker| worker.state == WorkerState::Quarantined)
            .map(|worker| (worker.name.as_str(), worker.note.as_str()))
            .collect();
        let note = format!("it sent wrong children, as reported by {receiver}");
        assert_eq!(quarantined, [(sender, note.as_str())]);
    }
}

#[tokio::test(start_paused = true)]
async fn run_fails_if_its_only_worker_keeps_failing_and_can_be_resubmitted() {
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
    cluster.finish(&process, DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn worker_is_drained_while_the_run_waits_for_another_one() {
    let mut cluster = Cluster::new();
    cluster.min_workers = 2;
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.worker(&process, "w1", obedient());
    cluster.submit(&process, DEPTH).await;
    cluster.wait(&process, |run| run.depth() == 2).await;
    let state = || process.coordinator.workers()[0].state;
    process.coordinator.drain("w0").unwrap();
    assert_eq!(state(), WorkerState::Draining);
    let note = "waiting for workers: 1 of 2";
    cluster.wait(&process, |run| run.note == note).await;
    assert_eq!(state(), WorkerState::Drained);
}

#[tokio::test(start_paused = true)]
async fn workers_have_no_shards_after_a_run_has_failed() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", failing(FailureKind::Worker));
    cluster.submit(&process, DEPTH).await;
    cluster.wait_for(&process, RunState::Failed).await;
    process.coordinator.drain("w0").unwrap();
    let worker = &process.coordinator.workers()[0];
    assert_eq!((worker.state, worker.shards), (WorkerState::Drained, 0));
}

#[tokio::test(start_paused = true)]
async fn failed_run_is_charged_until_it_fails() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", failing(FailureKind::Worker));
    let began = tokio::time::Instant::now();
    cluster.submit(&process, DEPTH).await;
    cluster.wait_for(&process, RunState::Failed).await;
    // The worker fails after a second at each of the five attempts to expand the depth.
    let passed = began.elapsed().as_millis() as u64;
    let charged = cluster.saved().await.ledger.milliseconds;
    assert!(
        passed > 5_000 && charged + 500 > passed,
        "{charged} of {passed} ms"
    );
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
    cluster.finish(&process, DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn run_continues_without_a_worker_that_makes_no_progress() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.worker(&process, "w1", once(2, || Reaction::Ignore));
    cluster.submit(&process, DEPTH).await;
    cluster.finish(&process, DEPTH).await;
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

fn dying() -> Script {
    Box::new(|order| match order {
        OrderKind::Expand(expand) if expand.depth == 3 => Reaction::Disconnect,
        _ => Reaction::Obey,
    })
}

#[tokio::test(start_paused = true)]
async fn run_fails_when_its_workers_are_always_lost_at_the_same_depth() {
    let cluster = Arc::new(Cluster::new());
    let process = cluster.coordinator("a").await;
    cluster.restarting_worker(&process, "w0", dying);
    cluster.restarting_worker(&process, "w1", dying);
    cluster.submit(&process, DEPTH).await;
    let run = cluster.wait_for(&process, RunState::Failed).await;
    let expected = "depth 3 failed: workers were lost 8 times without a committed depth in between";
    assert!(run.note.starts_with(expected), "{}", run.note);
    assert!(
        run.note.contains("closed the connection") || run.note.contains("disconnected"),
        "{}",
        run.note
    );
    assert!(run.note.contains("memory"), "{}", run.note);
    cluster.assert_digests(&cluster.saved().await, 2);
}

#[tokio::test(start_paused = true)]
async fn worker_that_joins_before_the_last_allowed_loss_saves_the_run() {
    let cluster = Arc::new(Cluster::new());
    let process = cluster.coordinator("a").await;
    cluster.restarting_worker(&process, "w0", dying);
    cluster.submit(&process, DEPTH).await;
    cluster.wait(&process, |run| run.manifest.epoch == 7).await;
    // In epoch 7, worker `w0` is lost for the seventh time. It is the only worker, so it is not quarantined. In epoch
    // 8, which includes `w1`, it is lost once more.
    tokio::time::sleep(Duration::from_secs(5)).await;
    cluster.worker(&process, "w1", obedient());
    let run = cluster.wait(&process, |run| !run.manifest.is_open()).await;
    assert_eq!(run.manifest.state, RunState::Finished, "{}", run.note);
    assert_eq!(run.manifest.epoch, 9);
    cluster.assert_finished(DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn worker_that_is_lost_at_every_depth_stays_quarantined_after_a_restart() {
    let cluster = Arc::new(Cluster::new());
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.restarting_worker(&process, "w1", || {
        Box::new(|order| match order {
            OrderKind::Expand(_) => Reaction::Disconnect,
            _ => Reaction::Obey,
        })
    });
    cluster.submit(&process, 30).await;
    cluster.wait(&process, |run| run.depth() == 25).await;
    let run = process.coordinator.run(&cluster.run).unwrap();
    // Each loss ends one epoch, and the worker's return ends another. During the quarantine, no epoch ends.
    assert!(run.manifest.epoch <= 8, "{}", run.manifest.epoch);
    let worker = &process.coordinator.workers()[1];
    assert_eq!(worker.state, WorkerState::Quarantined);
    assert!(worker.note.contains("was lost"), "{}", worker.note);
}

#[tokio::test(start_paused = true)]
async fn beam_that_exceeds_the_memory_of_the_workers_waits_or_is_refused() {
    let mut cluster = Cluster::new();
    cluster.min_workers = 2;
    let process = cluster.coordinator("a").await;
    let small = |name| Hello {
        memory_bytes: 1 << 20,
        ..hello(name)
    };
    let _first = cluster.try_worker(&process, small("w0"), obedient());
    // Fewer workers than required are connected, so the run is accepted: more workers may join.
    cluster.submit(&process, DEPTH).await;
    let _second = cluster.try_worker(&process, small("w1"), obedient());
    let run = cluster
        .wait(&process, |run| run.note.contains("memory"))
        .await;
    let note = "waiting for workers: a beam of 10 wells in 4 shards needs 0.2 GB of memory, and the 2 connected \
                workers have 0.0 GB";
    assert_eq!(run.note, note);
    let mut wider = cluster.submission(DEPTH);
    wider.spec.width = 1_000_000;
    let error = process.coordinator.submit(wider).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.ends_with("connect more workers first, or choose a smaller width"),
        "{text}"
    );
    // Once there is enough memory, the accepted run begins.
    cluster.worker(&process, "w2", obedient());
    cluster.wait_for(&process, RunState::Finished).await;
}

/// Returns a script that reports damage whenever the worker must load this depth.
fn unable_to_load(depth: u32) -> Script {
    Box::new(move |order| match order {
        OrderKind::Prepare(prepare) if prepare.depth == depth => {
            Reaction::Fail(FailureKind::Damaged { depth: None })
        }
        _ => Reaction::Obey,
    })
}

/// Returns the script of a worker that first reports depth 3 as damaged.
fn damaged_once() -> Script {
    let mut is_damaged = true;
    Box::new(move |order| match order {
        OrderKind::Prepare(prepare) if prepare.depth == 3 && is_damaged => {
            is_damaged = false;
            Reaction::Fail(FailureKind::Damaged { depth: None })
        }
        _ => Reaction::Obey,
    })
}

#[tokio::test(start_paused = true)]
async fn damaged_last_depth_is_searched_again() {
    let (cluster, process) = searching(3).await;
    cluster.wait_for(&process, RunState::Finished).await;
    cluster.delete_table(3).await;
    cluster.worker(&process, "w1", damaged_once());
    cluster.submit(&process, DEPTH).await;
    cluster.finish(&process, DEPTH).await;
    let depths = cluster.saved().await.depths;
    assert!(depths[3].tables != depths[2].tables && depths[3].record.kept);
}

#[tokio::test(start_paused = true)]
async fn earlier_depth_that_a_worker_needs_is_searched_again_if_it_is_damaged() {
    let cluster = Cluster::with(LoopRule::Exact);
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, 4).await;
    cluster.wait_for(&process, RunState::Finished).await;
    cluster.delete_table(3).await;
    // Intact depths are kept, whatever a worker reports.
    let mut reports = [Some(2), Some(3)].into_iter();
    let script = move |order: &OrderKind| match order {
        OrderKind::Prepare(prepare) if prepare.depth == 4 => match reports.next() {
            Some(depth) => Reaction::Fail(FailureKind::Damaged { depth }),
            None => Reaction::Obey,
        },
        OrderKind::Prepare(prepare) => {
            assert!([0, 2].contains(&prepare.depth), "{}", prepare.depth);
            Reaction::Obey
        }
        _ => Reaction::Obey,
    };
    cluster.worker(&process, "w1", Box::new(script));
    cluster.submit(&process, DEPTH).await;
    cluster.finish(&process, DEPTH).await;
    let depths = cluster.saved().await.depths;
    assert!(depths.iter().all(|depth| depth.record.kept));
}

#[tokio::test(start_paused = true)]
async fn contradiction_that_does_not_exist_changes_nothing() {
    let cluster = Cluster::with(LoopRule::Exact);
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, 4).await;
    cluster.wait_for(&process, RunState::Finished).await;
    let best = cluster.saved().await.depths[3].record.best_well.clone();
    // A well that has a parent, one that is not in the tables, and one that is no well.
    let wells = [best, "1".to_owned(), "x".to_owned()];
    let mut reports = wells.into_iter();
    let script = move |order: &OrderKind| match order {
        OrderKind::Prepare(prepare) => {
            assert_eq!(prepare.depth, 4);
            match reports.next() {
                Some(well) => Reaction::Fail(FailureKind::Contradiction { depth: 3, well }),
                None => Reaction::Obey,
            }
        }
        _ => Reaction::Obey,
    };
    cluster.worker(&process, "w1", Box::new(script));
    cluster.submit(&process, DEPTH).await;
    cluster.finish(&process, DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn depths_without_tables_stay_when_a_worker_reports_them_damaged() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    let mut submission = cluster.submission(4);
    submission.keep = Retention::Last;
    process.coordinator.submit(submission).await.unwrap();
    cluster.wait_for(&process, RunState::Finished).await;
    let lowest = Arc::new(AtomicU32::new(u32::MAX));
    let mut left = 3;
    let prepared = Arc::clone(&lowest);
    let script = move |order: &OrderKind| match order {
        OrderKind::Prepare(prepare) => {
            prepared.fetch_min(prepare.depth, Ordering::Relaxed);
            match left {
                0 => Reaction::Obey,
                _ => {
                    left -= 1;
                    Reaction::Fail(FailureKind::Damaged { depth: Some(1) })
                }
            }
        }
        _ => Reaction::Obey,
    };
    cluster.worker(&process, "w1", Box::new(script));
    cluster.submit(&process, DEPTH).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    cluster.assert_digests(&run.manifest, DEPTH);
    assert_eq!(lowest.load(Ordering::Relaxed), 4);
}

#[tokio::test(start_paused = true)]
async fn depth_whose_tables_contain_other_wells_than_listed_is_searched_again() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    // The digests of two tables are exchanged, so the sum is right.
    let exchange = |answer: &mut AnswerKind| {
        if let AnswerKind::Committed(tables) = answer {
            let digest = std::mem::take(&mut tables[0].digest);
            tables[0].digest = std::mem::replace(&mut tables[1].digest, digest);
        }
    };
    let is_last =
        |order: &OrderKind| matches!(order, OrderKind::WaitCommit(wait) if wait.depth == 3);
    let _liar = cluster
        .try_worker(&process, hello("w0"), altering(is_last, exchange))
        .unwrap();
    cluster.submit(&process, 3).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    let before = run.manifest.depths[3].tables.clone();
    process.stop().await.unwrap();
    let process = cluster.coordinator("b").await;
    cluster.worker(&process, "w1", damaged_once());
    cluster.submit(&process, DEPTH).await;
    cluster.finish(&process, DEPTH).await;
    assert_ne!(cluster.saved().await.depths[3].tables, before);
}

#[tokio::test(start_paused = true)]
async fn run_with_the_loop_rule_continues_after_its_game_was_read_back_without_a_depth() {
    let cluster = Cluster::with(LoopRule::Exact);
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, DEPTH).await;
    cluster.wait(&process, |run| run.depth() == 3).await;
    cluster.delete_table(2).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    let damaged = &run.manifest.depths[2];
    assert!(!damaged.record.kept && run.manifest.result.is_some());
    // The list contains the pieces that the loop rule changes, so garbage collection keeps it.
    let list = damaged.tables.as_ref().unwrap();
    let key = format!("{}/{}", run.manifest.prefix(), list.key);
    cluster.objects().size(&key).await.unwrap();
    cluster.submit(&process, DEPTH + 1).await;
    cluster.finish(&process, DEPTH + 1).await;
    let depths = cluster.saved().await.depths;
    assert!(depths.iter().all(|depth| depth.record.kept));
}

#[tokio::test(start_paused = true)]
async fn depth_with_a_missing_table_list_is_searched_again() {
    let (cluster, process) = searching(3).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    let list = run.manifest.last().unwrap().tables.clone().unwrap();
    let key = format!("{}/{}", run.manifest.prefix(), list.key);
    cluster.objects().delete(&key).await.unwrap();
    cluster.submit(&process, DEPTH).await;
    cluster.finish(&process, DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn worker_that_cannot_load_an_intact_depth_is_quarantined() {
    let (cluster, process) = searching(3).await;
    cluster.wait_for(&process, RunState::Finished).await;
    cluster.worker(&process, "w1", unable_to_load(3));
    cluster.submit(&process, DEPTH).await;
    cluster.finish(&process, DEPTH).await;
    assert_eq!(
        process.coordinator.workers()[1].state,
        WorkerState::Quarantined
    );
}

#[tokio::test(start_paused = true)]
async fn best_game_is_read_back_despite_a_damaged_depth() {
    let (cluster, process) = searching(DEPTH).await;
    cluster.wait(&process, |run| run.depth() == 3).await;
    cluster.delete_table(2).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    let depth = &run.manifest.depths[2].record;
    assert!(!depth.kept && depth.bytes == 0, "{depth:?}");
    assert!(run.manifest.result.is_some(), "{}", run.note);
}
