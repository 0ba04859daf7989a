//! Test of a run whose evaluator is a neural network from a file.

use crate::harness::Cluster;
use crate::hostile::connect;
use crate::one_process;
use crate::program::{hatebeam, wait_until};
use hatebeam_proto::v1;
use hatebeam_proto::v1::runs_client::RunsClient;
use hatebeam_search::{FEATURES, Network, NetworkWeights};
use std::fs;
use std::path::{Path, PathBuf};
use tonic::Code;

/// Writes a network with pseudorandom weights to a file.
fn write_network(path: &Path) -> Network {
    let mut state = 1u64;
    let mut list = |count: usize| -> Vec<i16> {
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 40) as i16 % 200
        };
        (0..count).map(|_| next()).collect()
    };
    let weights = NetworkWeights {
        lanes: 16,
        bias: list(16),
        output: list(16),
        rows: list(16 * FEATURES),
    };
    let network = Network::new("end to end", &weights).unwrap();
    fs::write(path, network.encode()).unwrap();
    network
}

fn stored(cluster: &Cluster, network: &Network) -> PathBuf {
    let folder = Path::new(&cluster.store.location).join("networks");
    folder.join(network.digest().to_string())
}

/// Submits a run's specification with the given network file. The width is changed to 77, so that this is a new run.
/// Asserts that the coordinator refuses the submission, and returns the code and the text of the error.
async fn refusal(cluster: &Cluster, run: &str, network: Vec<u8>) -> (Code, String) {
    let mut spec = cluster.manifest(run)["spec"].clone();
    spec["width"] = 77.into();
    let request = v1::SubmitRequest {
        spec: spec.to_string(),
        network,
        ..v1::SubmitRequest::default()
    };
    let mut client = RunsClient::new(connect(&cluster.uri()).await);
    let status = client.submit(request).await.unwrap_err();
    (status.code(), status.message().to_owned())
}

#[test]
fn cluster_stores_network_and_recovers_from_damaged_copy_by_resubmission() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("network");
    let network = write_network(&file);
    let args = ["--width", "300", "--evaluator", file.to_str().unwrap()];
    let expected = one_process(&args);
    let mut cluster = Cluster::new();
    cluster.set_coordinator_flags(&["--min-workers", "2"]);
    cluster.start_coordinator();
    let run = cluster.submit_name(&args);
    let stored = stored(&cluster, &network);
    assert_eq!(fs::read(&stored).unwrap(), network.encode());
    cluster.restart_coordinator();

    // If the stored network is damaged, the run fails, and its note contains the key of the object.
    let mut damaged = network.encode();
    damaged[1_000_000] ^= 1;
    fs::write(&stored, &damaged).unwrap();
    cluster.start_worker("w0", &[]);
    cluster.start_worker("w1", &[]);
    let state = |cluster: &Cluster| cluster.status().unwrap_or_default();
    wait_until(|| state(&cluster)["state"] == "failed", || cluster.logs());
    let note = state(&cluster)["note"].to_string();
    let key = format!("networks/{}", network.digest());
    assert!(note.contains(&key), "{note}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for (file, reason) in [(Vec::new(), key.as_str()), (damaged, "damaged")] {
            let (code, text) = refusal(&cluster, &run, file).await;
            assert_eq!(code, Code::InvalidArgument, "{text}");
            assert!(text.contains(reason), "{text}");
        }
    });

    // Another submission replaces the damaged object, and the run continues.
    cluster.submit(&args);
    cluster.watch().assert_same(&expected);
    assert_eq!(fs::read(&stored).unwrap(), network.encode());
    // Commands that read or remove the stored run do not need the network's file.
    let store = cluster.store.location.clone();
    cluster.workers.clear();
    cluster.coordinator = None;
    for args in [
        &["runs", "show", &run][..],
        &["keyframes", &run],
        &["runs", "rm", &run, "--yes"],
    ] {
        let output = hatebeam().args(args).args(["--store", &store]).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert!(stored.exists());
}
