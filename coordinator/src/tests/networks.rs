//! Tests of runs whose evaluator uses a submitted network.

use super::cluster::{Cluster, Process, Reaction, obedient};
use crate::{RequestError, Submission};
use hatebeam_proto::messages::{FailureKind, OrderKind};
use hatebeam_runs::RunState;
use hatebeam_search::{EvaluatorKind, FEATURES, Network, NetworkWeights};

fn network(header: &str) -> Network {
    let weights = NetworkWeights {
        lanes: 16,
        bias: vec![0; 16],
        output: vec![0; 16],
        rows: vec![7; 16 * FEATURES],
    };
    Network::new(header, &weights).unwrap()
}

/// Returns a submission of a run that uses this network. The submission does not contain the network's file.
fn submission(cluster: &Cluster, network: &Network) -> Submission {
    let mut submission = cluster.submission(2);
    submission.spec.evaluator.kind = EvaluatorKind::Network(network.digest());
    submission
}

fn key(network: &Network) -> String {
    format!("networks/{}", network.digest())
}

/// Waits until the only run has failed, and returns the reason.
async fn reason_of_failure(process: &Process) -> String {
    let mut changes = process.coordinator.changes();
    loop {
        changes.mark_unchanged();
        let run = &process.coordinator.runs()[0].manifest;
        if run.state == RunState::Failed {
            return run.note.clone();
        }
        changes.changed().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_network_is_refused_and_valid_network_is_stored() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let network = network("submitted");
    let refused = async |file: Vec<u8>, expected: &str| {
        let mut submission = submission(&cluster, &network);
        submission.network = file;
        let error = process.coordinator.submit(submission).await.unwrap_err();
        let RequestError::Invalid(reason) = error else {
            panic!("{error:?}");
        };
        assert!(reason.contains(expected), "{reason}");
    };
    refused(Vec::new(), &key(&network)).await;
    refused(vec![1; 100], "not a network").await;
    let mut damaged = network.encode();
    damaged[50_000] ^= 4;
    refused(damaged, "damaged").await;
    let mut long = network.encode();
    long.push(0);
    refused(long, "bytes instead of").await;
    let other = self::network("other");
    refused(other.encode(), &other.digest().to_string()).await;
    let mut without = cluster.submission(2);
    without.network = network.encode();
    assert!(process.coordinator.submit(without).await.is_err());
    assert!(process.coordinator.runs().is_empty());
    let objects = cluster.objects();
    assert!(objects.list("networks").await.unwrap().is_empty());
    assert!(objects.list("runs").await.unwrap().is_empty());

    let mut submission = submission(&cluster, &network);
    submission.network = network.encode();
    process
        .coordinator
        .submit(submission.clone())
        .await
        .unwrap();
    let stored = objects.get(&key(&network)).await.unwrap().0;
    assert_eq!(stored, network.encode());
    // A second run with the same network needs no file.
    submission.network = Vec::new();
    submission.spec.width += 1;
    process.coordinator.submit(submission).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn run_without_its_network_fails_at_a_restart_and_is_reopened_by_another_submission() {
    let cluster = Cluster::new();
    let first = cluster.coordinator("a").await;
    let network = network("restart");
    let mut submission = submission(&cluster, &network);
    submission.network = network.encode();
    first.coordinator.submit(submission.clone()).await.unwrap();
    first.stop().await.unwrap();
    cluster.objects().delete(&key(&network)).await.unwrap();
    let second = cluster.coordinator("b").await;
    let reason = reason_of_failure(&second).await;
    assert!(reason.contains(&key(&network)), "{reason}");
    let resumed = second.coordinator.submit(submission).await.unwrap();
    assert_eq!(resumed.manifest.state, RunState::Queued);
    cluster.objects().size(&key(&network)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn run_fails_if_a_worker_finds_its_network_damaged() {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    let network = network("damaged later");
    let mut submission = submission(&cluster, &network);
    submission.network = network.encode();
    process.coordinator.submit(submission).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let damaged = bytes::Bytes::from_static(b"damaged");
    let put = cluster.objects().put(&key(&network), damaged).await;
    put.unwrap();
    let fails = |order: &OrderKind| match order {
        OrderKind::Prepare(_) => Reaction::Fail(FailureKind::Damaged { depth: None }),
        _ => Reaction::Obey,
    };
    cluster.worker(&process, "w0", Box::new(fails));
    cluster.worker(&process, "w1", obedient());
    let reason = reason_of_failure(&process).await;
    assert!(reason.contains(&key(&network)), "{reason}");
}
