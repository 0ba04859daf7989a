//! Tests of commits, of the end of a run, and of outages of the object store.

use super::cluster::{Cluster, Process, obedient, unable_to_read_back};
use super::support::Faults;
use hatebeam_objects::faults::Operation;
use hatebeam_runs::{Retention, RunState, frontier_key};
use std::sync::Arc;
use std::time::Duration;

const DEPTH: u32 = 5;

/// Starts a run, and waits until it has committed this depth.
async fn run_at(depth: u32) -> (Cluster, Process, Arc<Faults>) {
    let cluster = Cluster::new();
    let faults = Faults::new();
    let process = cluster.faulty_coordinator("a", &faults).await;
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, DEPTH).await;
    cluster.wait(&process, |run| run.depth() >= depth).await;
    (cluster, process, faults)
}

#[tokio::test(start_paused = true)]
async fn run_survives_an_outage_of_the_store() {
    let (cluster, process, faults) = run_at(2).await;
    faults.fail_all();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let run = process.coordinator.run(&cluster.run).unwrap();
    assert_eq!(run.manifest.state, RunState::Running);
    faults.end();
    cluster.finish(&process, DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn clients_see_only_saved_state() {
    let (cluster, process, faults) = run_at(2).await;
    faults.fail(|call| call.operation == Operation::PutIf && call.key.ends_with("manifest.json"));
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let run = process.coordinator.run(&cluster.run).unwrap();
        let saved = cluster.saved().await;
        assert_eq!(run.depth(), saved.last().unwrap().record.depth);
        assert_eq!(run.manifest.state, saved.state);
    }
    faults.end();
    cluster.finish(&process, DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn run_survives_lost_responses_of_the_store() {
    let (cluster, process, faults) = run_at(2).await;
    faults.lose_answers();
    tokio::time::sleep(Duration::from_secs(60)).await;
    faults.end();
    cluster.finish(&process, DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn failed_save_of_the_end_of_a_run_is_retried() {
    let (cluster, process, faults) = run_at(DEPTH).await;
    faults.fail(|call| call.operation == Operation::PutIf && call.key.ends_with("manifest.json"));
    tokio::time::sleep(Duration::from_secs(100)).await;
    faults.end();
    cluster.finish(&process, DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn reading_back_is_retried_while_the_store_is_unavailable() {
    let cluster = Cluster::new();
    let faults = Faults::new();
    let process = cluster.faulty_coordinator("a", &faults).await;
    faults.fail(|call| call.operation == Operation::Get && call.key.contains("/frontier/"));
    cluster.worker(&process, "w0", unable_to_read_back());
    cluster.submit(&process, DEPTH).await;
    let note = "reading back the best game failed, retrying";
    let run = cluster
        .wait(&process, |run| run.note.starts_with(note))
        .await;
    assert_eq!(run.manifest.state, RunState::Running);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(cluster.saved().await.state, RunState::Running);
    faults.end();
    cluster.finish(&process, DEPTH).await;
}

#[tokio::test(start_paused = true)]
async fn unreferenced_objects_are_removed_except_those_of_later_epochs() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    let objects = cluster.objects();
    let put = async |name: &str| {
        let key = format!("runs/{}/{name}", cluster.run);
        objects.put(&key, "x".into()).await.unwrap();
        key
    };
    // The run has only epoch 1 (a period with a fixed set of workers). These keys contain the depth and then the epoch.
    let failed = [
        put("frontier/00003/0-w9").await,
        put("tables/00003-0.json").await,
    ];
    let later = [
        put("frontier/00006/2-w9").await,
        put("tables/00006-2.json").await,
    ];
    cluster.submit(&process, DEPTH).await;
    cluster.wait_for(&process, RunState::Finished).await;
    process.stop().await.unwrap();
    for key in failed {
        assert!(
            objects.size(&key).await.unwrap_err().is_not_found(),
            "{key}"
        );
    }
    for key in later {
        objects.size(&key).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn tables_of_later_epochs_stay_when_a_depth_is_no_longer_kept() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let objects = cluster.objects();
    let put = async |name: &str| {
        let key = format!("runs/{}/frontier/00002/{name}", cluster.run);
        objects.put(&key, "x".into()).await.unwrap();
        key
    };
    let (failed, later) = (put("0-w9").await, put("2-w9").await);
    let own = format!("runs/{}/{}", cluster.run, frontier_key(2, 1, "w0"));
    let mut submission = cluster.submission(30);
    submission.keep = Retention::Last;
    process.coordinator.submit(submission).await.unwrap();
    cluster.worker(&process, "w0", obedient());
    cluster.wait(&process, |run| run.depth() == 2).await;
    objects.size(&own).await.unwrap();
    // The run has only epoch 1 (a period with a fixed set of workers). Depth 2 is dropped when depth 3 is committed.
    cluster.wait(&process, |run| run.depth() == 4).await;
    for key in [failed, own] {
        let missing = objects.size(&key).await.unwrap_err();
        assert!(missing.is_not_found(), "{key}");
    }
    objects.size(&later).await.unwrap();
}
