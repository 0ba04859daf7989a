//! Tests of client requests.

use super::cluster::{Cluster, Process, Reaction, hello, obedient, searching};
use super::support::Faults;
use crate::{LimitsChange, Machine, RequestError};
use hatebeam_cost::Micros;
use hatebeam_proto::messages::{FailureKind, Hello, OrderKind};
use hatebeam_runs::{
    EndReason, LoopRule, Manifest, Retention, RunState, VersionedManifest, remove_run,
};
use hatebeam_search::Fingerprint;
use std::time::Duration;

fn max_depth(depth: u32) -> LimitsChange {
    LimitsChange {
        max_depth: Some(Some(depth)),
        ..LimitsChange::default()
    }
}

#[tokio::test(start_paused = true)]
async fn raised_limit_is_saved_when_the_call_returns() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.submit(&process, 3).await;
    let raised = process.coordinator.limit(&cluster.run, max_depth(6));
    let run = raised.await.unwrap();
    assert_eq!(run.manifest.limits.max_depth, Some(6));
    assert_eq!(cluster.saved().await.limits.max_depth, Some(6));
    cluster.worker(&process, "w0", obedient());
    cluster.finish(&process, 6).await;
}

/// Starts a run that ends after depth 3, at which the worker's upload takes two seconds. Returns when the upload has begun.
async fn uploading_the_last_depth(cluster: &Cluster) -> Process {
    let process = cluster.coordinator("a").await;
    let script = |order: &OrderKind| match order {
        OrderKind::WaitCommit(wait) if wait.depth == 3 => Reaction::Pause(Duration::from_secs(2)),
        _ => Reaction::Obey,
    };
    cluster.worker(&process, "w0", Box::new(script));
    cluster.submit(&process, 3).await;
    cluster.wait(&process, |run| run.depth() == 2).await;
    // Depth 3 takes a second. Then its upload begins.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(cluster.saved().await.last().unwrap().record.depth, 2);
    process
}

#[tokio::test(start_paused = true)]
async fn limit_raised_during_the_last_upload_continues_the_search() {
    let cluster = Cluster::new();
    let process = uploading_the_last_depth(&cluster).await;
    let raised = process.coordinator.limit(&cluster.run, max_depth(6));
    raised.await.unwrap();
    cluster.finish(&process, 6).await;
}

#[tokio::test(start_paused = true)]
async fn another_limit_reached_during_the_last_upload_is_the_end_reason() {
    let cluster = Cluster::new();
    let process = uploading_the_last_depth(&cluster).await;
    let change = LimitsChange {
        max_time: Some(Some(Duration::from_millis(1))),
        ..max_depth(6)
    };
    process
        .coordinator
        .limit(&cluster.run, change)
        .await
        .unwrap();
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert_eq!(run.depth(), 3);
    assert_eq!(run.manifest.end, Some(EndReason::MaxHours));
    // Without this limit, the run can continue.
    cluster.submit(&process, 6).await;
    cluster.finish(&process, 6).await;
}

#[tokio::test(start_paused = true)]
async fn run_can_be_cancelled_during_the_last_upload() {
    let cluster = Cluster::new();
    let process = uploading_the_last_depth(&cluster).await;
    process.coordinator.cancel(&cluster.run).await.unwrap();
    let run = cluster.wait_for(&process, RunState::Cancelled).await;
    assert_eq!(run.depth(), 3);
    assert_eq!(run.manifest.result, None);
}

#[tokio::test(start_paused = true)]
async fn submission_during_the_last_upload_withdraws_a_stop_request() {
    let cluster = Cluster::new();
    let process = uploading_the_last_depth(&cluster).await;
    process.coordinator.cancel(&cluster.run).await.unwrap();
    cluster.submit(&process, 3).await;
    cluster.finish(&process, 3).await;
}

#[tokio::test(start_paused = true)]
async fn simultaneous_changes_of_different_limits_are_merged() {
    let cluster = Cluster::new();
    let script = |order: &OrderKind| match order {
        OrderKind::Prepare(_) => Reaction::Pause(Duration::from_secs(3)),
        _ => Reaction::Obey,
    };
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", Box::new(script));
    cluster.submit(&process, 3).await;
    cluster.wait(&process, |run| run.manifest.epoch == 1).await;
    let cost = LimitsChange {
        max_cost: Some(Some(Micros(5_000_000))),
        ..LimitsChange::default()
    };
    let limit = |change| process.coordinator.limit(&cluster.run, change);
    let (first, second) = tokio::join!(limit(max_depth(6)), limit(cost));
    first.unwrap();
    second.unwrap();
    let limits = cluster.saved().await.limits;
    assert_eq!(limits.max_depth, Some(6));
    assert_eq!(limits.max_cost, Some(Micros(5_000_000)));
}

/// Starts a run whose worker never answers at depth 4. Returns after depth 3.
async fn hanging_at_depth_4(cluster: &Cluster) -> Process {
    let process = cluster.coordinator("a").await;
    let script = |order: &OrderKind| match order {
        OrderKind::Expand(expand) if expand.depth == 4 => Reaction::Ignore,
        _ => Reaction::Obey,
    };
    cluster.worker(&process, "w0", Box::new(script));
    cluster.submit(&process, 100).await;
    cluster.wait(&process, |run| run.depth() == 3).await;
    process
}

#[tokio::test(start_paused = true)]
async fn limit_can_be_lowered_during_a_depth() {
    let cluster = Cluster::new();
    let process = hanging_at_depth_4(&cluster).await;
    let lowered = process.coordinator.limit(&cluster.run, max_depth(3));
    lowered.await.unwrap();
    assert_eq!(cluster.saved().await.limits.max_depth, Some(3));
    // After the worker times out, the run ends with depth 3.
    cluster.finish(&process, 3).await;
}

#[tokio::test(start_paused = true)]
async fn run_can_be_cancelled_during_a_depth() {
    let cluster = Cluster::new();
    let process = hanging_at_depth_4(&cluster).await;
    let began = tokio::time::Instant::now();
    process.coordinator.cancel(&cluster.run).await.unwrap();
    let run = cluster.wait_for(&process, RunState::Cancelled).await;
    assert_eq!(run.depth(), 3);
    // The coordinator would wait for the worker much longer.
    let waited = began.elapsed();
    assert!(waited < Duration::from_secs(5), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn update_that_cannot_be_saved_is_applied_later() {
    let cluster = Cluster::new();
    let faults = Faults::new();
    let process = cluster.faulty_coordinator("a", &faults).await;
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, 1000).await;
    cluster.wait(&process, |run| run.depth() >= 2).await;
    faults.fail(|call| call.key.ends_with("manifest.json"));
    let cancelled = process.coordinator.cancel(&cluster.run).await;
    assert!(
        matches!(cancelled, Err(RequestError::Timeout(_))),
        "{cancelled:?}"
    );
    assert_eq!(cluster.saved().await.state, RunState::Running);
    faults.end();
    cluster.wait_for(&process, RunState::Cancelled).await;
    let saved = cluster.saved().await;
    assert_eq!(saved.state, RunState::Cancelled);
    assert!(!saved.stop_requested);
}

#[tokio::test(start_paused = true)]
async fn cancelled_run_continues_when_submitted_again() {
    let (cluster, process) = searching(1000).await;
    cluster.wait(&process, |run| run.depth() >= 2).await;
    process.coordinator.cancel(&cluster.run).await.unwrap();
    let cancelled = cluster.wait_for(&process, RunState::Cancelled).await;
    assert_eq!(process.hooks.names().last(), Some(&"cancelled"));
    let depth = cancelled.depth();
    cluster.submit(&process, depth + 3).await;
    cluster.finish(&process, depth + 3).await;
}

#[tokio::test(start_paused = true)]
async fn finished_run_continues_only_with_a_higher_limit() {
    let (cluster, process) = searching(3).await;
    cluster.wait_for(&process, RunState::Finished).await;
    let same = cluster.submit(&process, 3).await;
    assert_eq!(same.manifest.state, RunState::Finished);
    cluster.submit(&process, 5).await;
    cluster.wait(&process, |run| run.depth() == 5).await;
    cluster.finish(&process, 5).await;
}

#[tokio::test(start_paused = true)]
async fn submission_whose_answer_was_lost_can_be_repeated() {
    let cluster = Cluster::new();
    let faults = Faults::new();
    let process = cluster.faulty_coordinator("a", &faults).await;
    faults.lose_answers();
    let submission = cluster.submission(2);
    let lost = process.coordinator.submit(submission.clone()).await;
    assert!(
        matches!(lost, Err(RequestError::Unavailable(_))),
        "{lost:?}"
    );
    faults.end();
    process.coordinator.submit(submission).await.unwrap();
    cluster.worker(&process, "w0", obedient());
    cluster.wait_for(&process, RunState::Finished).await;
}

#[tokio::test(start_paused = true)]
async fn missing_and_damaged_manifests_do_not_block_the_queue() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let mut first: Manifest = super::support::manifest("first", 0);
    first.submitted_ms = 0;
    process.coordinator.0.queue.put(&first);
    let mut damaged: Manifest = super::support::manifest("damaged", 0);
    damaged.submitted_ms = 1;
    process.coordinator.0.queue.put(&damaged);
    let key = "runs/damaged/manifest.json";
    cluster.objects().put(key, "{}".into()).await.unwrap();
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, 2).await;
    cluster.wait_for(&process, RunState::Finished).await;
    assert!(process.coordinator.run("first").is_none());
    let damaged = process.coordinator.run("damaged").unwrap();
    assert_eq!(damaged.manifest.state, RunState::Failed);
    assert!(damaged.note.contains("cannot be read"), "{}", damaged.note);
}

#[tokio::test(start_paused = true)]
async fn queued_run_can_be_updated_while_another_run_is_searched() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let other = super::support::manifest("zzz", 0);
    let saved = VersionedManifest::create(&cluster.objects(), other, true).await;
    cluster.submit(&process, 3).await;
    // The other run has an earlier submission time, so it becomes the current run and waits for workers.
    process.coordinator.0.queue.put(&saved.unwrap().manifest);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let cancelled = process.coordinator.cancel(&cluster.run).await.unwrap();
    assert!(cancelled.manifest.stop_requested);
    assert!(cluster.saved().await.stop_requested);
}

#[tokio::test(start_paused = true)]
async fn run_of_another_program_can_be_cancelled() {
    let cluster = Cluster::new();
    for state in [RunState::Running, RunState::Queued] {
        let mut other = super::support::manifest(&format!("other-{state:?}"), 3);
        other.spec.search = Fingerprint::from_text("2-a-b");
        other.state = state;
        other.epoch = 7;
        let saved = VersionedManifest::create(&cluster.objects(), other, true).await;
        saved.unwrap();
    }
    let process = cluster.coordinator("a").await;
    assert_eq!(process.coordinator.0.queue.epoch(), 0);
    for name in ["other-Running", "other-Queued"] {
        let cancelled = process.coordinator.cancel(name).await.unwrap();
        assert_eq!(cancelled.manifest.state, RunState::Cancelled);
        let loaded = VersionedManifest::load(&cluster.objects(), name, true).await;
        assert_eq!(loaded.unwrap().manifest.state, RunState::Cancelled);
    }
    assert_eq!(process.hooks.names(), ["cancelled", "cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn run_that_was_removed_can_be_submitted_again() {
    let (cluster, process) = searching(4).await;
    cluster.wait_for(&process, RunState::Finished).await;
    let removed = remove_run(&cluster.objects(), &cluster.saved().await).await;
    assert!(removed.unwrap() > 0);
    cluster.submit(&process, 2).await;
    cluster.wait(&process, |run| run.depth() == 2).await;
    cluster.finish(&process, 2).await;
}

#[tokio::test(start_paused = true)]
async fn reopened_run_has_no_result_until_it_ends_again() {
    let (cluster, process) = searching(2).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert!(run.manifest.result.is_some());
    let reopened = cluster.submit(&process, 4).await;
    assert_eq!(reopened.manifest.result, None);
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert!(run.manifest.result.as_ref().unwrap().pieces > 4);
}

#[tokio::test(start_paused = true)]
async fn run_accepted_by_a_superseded_coordinator_is_adopted() {
    let cluster = Cluster::new();
    let first = cluster.coordinator("a").await;
    // The first coordinator is suspended and no longer renews the lease, so another one takes over.
    first.running.abort();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let second = cluster.coordinator("b").await;
    cluster.worker(&second, "w0", obedient());
    cluster.submit(&first, 2).await;
    assert!(second.coordinator.run(&cluster.run).is_none());
    cluster.wait_for(&second, RunState::Finished).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let notes = cluster.objects().list("submissions").await.unwrap();
    assert!(notes.is_empty(), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn run_whose_manifest_is_written_slowly_is_adopted() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    let objects = cluster.objects();
    let note = format!("submissions/{}-{:016x}", cluster.run, 1);
    objects.put(&note, Vec::new().into()).await.unwrap();
    // The other coordinator, which has lost the lease, writes the manifest after several listings of the notes.
    tokio::time::sleep(Duration::from_secs(300)).await;
    let submission = cluster.submission(2);
    let (spec, keep) = (submission.spec, submission.keep);
    let mut manifest = Manifest::new(cluster.run.clone(), spec, keep, 2, 1);
    manifest.limits = submission.limits;
    let created = VersionedManifest::create(&objects, manifest, true).await;
    created.unwrap();
    cluster.wait_for(&process, RunState::Finished).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(objects.list("submissions").await.unwrap().is_empty());
    // A note without a manifest is deleted in the end.
    objects
        .put("submissions/x-0", Vec::new().into())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert!(objects.list("submissions").await.unwrap().is_empty());
}

/// Reopens a run that has ended, like another coordinator that has lost the lease.
async fn reopen_elsewhere(cluster: &Cluster, max_depth: u32) {
    let mut versioned = cluster.load().await;
    let manifest = &mut versioned.manifest;
    manifest.state = RunState::Queued;
    manifest.limits.max_depth = Some(max_depth);
    manifest.end = None;
    manifest.result = None;
    versioned.save().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn run_reopened_by_a_superseded_coordinator_is_adopted() {
    let (cluster, process) = searching(2).await;
    cluster.wait_for(&process, RunState::Finished).await;
    let objects = cluster.objects();
    let note = format!("submissions/{}-{:016x}", cluster.run, 1);
    objects.put(&note, Vec::new().into()).await.unwrap();
    // The other coordinator writes the manifest after several listings of the notes.
    tokio::time::sleep(Duration::from_secs(300)).await;
    reopen_elsewhere(&cluster, 4).await;
    cluster.wait(&process, |run| run.depth() == 4).await;
    cluster.wait_for(&process, RunState::Finished).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(objects.list("submissions").await.unwrap().is_empty());
    // Without a note, a submission finds the reopened run, even if its own limits are refused.
    reopen_elsewhere(&cluster, 6).await;
    let submitted = process.coordinator.submit(cluster.submission(7)).await;
    let error = submitted.unwrap_err().to_string();
    assert!(error.contains("is open with other limits"), "{error}");
    cluster.wait(&process, |run| run.depth() == 6).await;
    cluster.finish(&process, 6).await;
}

#[tokio::test(start_paused = true)]
async fn submission_after_a_cancellation_always_continues_the_run() {
    for pause in (0..3000).step_by(100).map(Duration::from_millis) {
        let cluster = Cluster::new();
        let faults = Faults::new();
        let process = cluster.faulty_coordinator("a", &faults).await;
        cluster.worker(&process, "w0", obedient());
        cluster.submit(&process, 6).await;
        cluster.wait(&process, |run| run.depth() == 2).await;
        // Saving takes time, during which the submission can arrive.
        faults.delay(Duration::from_millis(500));
        process.coordinator.cancel(&cluster.run).await.unwrap();
        tokio::time::sleep(pause).await;
        cluster.submit(&process, 6).await;
        faults.end();
        let run = cluster.wait(&process, |run| !run.manifest.is_open()).await;
        assert_eq!(run.manifest.state, RunState::Finished, "{pause:?}");
        assert_eq!(run.depth(), 6, "{pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn run_with_different_search_fingerprint_is_refused() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let mut submission = cluster.submission(2);
    submission.spec.search = Fingerprint::from_text("2-a-b");
    let error = process.coordinator.submit(submission).await.unwrap_err();
    assert!(
        error.to_string().contains("search fingerprint 2-a-b"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn run_that_applies_loop_rule_must_keep_all_tables() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let mut submission = cluster.submission(2);
    submission.spec.loops = LoopRule::Exact;
    submission.keep = Retention::Last;
    let error = process.coordinator.submit(submission.clone()).await;
    let error = error.unwrap_err();
    assert!(matches!(error, RequestError::Invalid(_)), "{error}");
    assert!(error.to_string().contains("keep all"), "{error}");
    submission.keep = Retention::All;
    process.coordinator.submit(submission).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn cost_of_waiting_and_of_a_failed_attempt_is_recorded_separately() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let hello = Hello {
        machine: Machine {
            price_per_hour: Some(Micros(3_600_000)),
            ..Machine::default()
        },
        ..hello("w0")
    };
    let mut is_first = true;
    let script = move |order: &OrderKind| match order {
        // The depth is repeated after a pause.
        OrderKind::ValidateCut(cut) if cut.depth == 3 && is_first => {
            is_first = false;
            Reaction::Fail(FailureKind::Worker)
        }
        _ => Reaction::Obey,
    };
    let _worker = cluster
        .try_worker(&process, hello, Box::new(script))
        .unwrap();
    cluster.submit(&process, 5).await;
    let run = cluster.wait_for(&process, RunState::Finished).await;
    let depth = &run.manifest.depths[3];
    // At this price, a millisecond costs one micro. Each attempt takes a second, and the pause 500 ms. Then the set of workers
    // must be unchanged for 400 ms before the search continues.
    assert!((1900..2000).contains(&depth.waiting.0), "{depth:?}");
    assert!(
        (900..1100).contains(&(depth.cost.0 - depth.waiting.0)),
        "{depth:?}"
    );
    assert_eq!(run.manifest.depths[4].waiting, Micros::ZERO);
}

#[tokio::test(start_paused = true)]
async fn graceful_stop_ends_the_charged_time() {
    let (cluster, process) = searching(30).await;
    cluster.wait(&process, |run| run.depth() == 3).await;
    process.stop().await.unwrap();
    let ledger = cluster.saved().await.ledger;
    assert_eq!(ledger.until_ms, None);
    assert!(
        ledger
            .machines
            .iter()
            .all(|machine| machine.until_ms.is_none())
    );
}

#[tokio::test(start_paused = true)]
async fn garbage_of_a_cancelled_run_is_removed() {
    let (cluster, process) = searching(30).await;
    cluster.wait(&process, |run| run.depth() == 2).await;
    let objects = cluster.objects();
    let key = format!("runs/{}/frontier/00009/0-w9", cluster.run);
    objects.put(&key, "x".into()).await.unwrap();
    process.coordinator.cancel(&cluster.run).await.unwrap();
    cluster.wait_for(&process, RunState::Cancelled).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    objects.size(&key).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn simultaneous_submissions_reopen_a_run_once() {
    let cluster = Cluster::new();
    let faults = Faults::new();
    let process = cluster.faulty_coordinator("a", &faults).await;
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, 3).await;
    cluster.wait_for(&process, RunState::Finished).await;
    // Because of this delay, both submissions find the run finished.
    faults.delay(Duration::from_millis(100));
    let submit = |max_depth| process.coordinator.submit(cluster.submission(max_depth));
    let (first, second) = tokio::join!(submit(6), submit(8));
    first.unwrap();
    let error = second.unwrap_err().to_string();
    assert!(error.contains("is open with other limits"), "{error}");
    faults.end();
    let run = cluster.wait_for(&process, RunState::Finished).await;
    assert_eq!(run.depth(), 6);
    cluster.assert_digests(&run.manifest, 6);
}
