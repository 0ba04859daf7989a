//! Tests of neural networks that are stored in an object store.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use bytes::Bytes;
use hatebeam_objects::{Memory, Objects, Options};
use hatebeam_runs::{ManifestError, fetch_network, store_network};
use hatebeam_search::{
    EvaluatorKind, EvaluatorSpec, FEATURES, MAX_NETWORK_BYTES, Network, NetworkWeights, Quiescence,
};

fn network(header: &str) -> Network {
    let weights = NetworkWeights {
        lanes: 16,
        bias: vec![1; 16],
        output: vec![2; 16],
        rows: vec![3; 16 * FEATURES],
    };
    Network::new(header, &weights).unwrap()
}

fn evaluator(network: &Network) -> EvaluatorSpec {
    EvaluatorSpec::new(EvaluatorKind::Network(network.digest()), Quiescence::Off)
}

fn objects() -> Objects {
    Objects::in_memory(&Memory::default(), &Options::default()).unwrap()
}

#[tokio::test]
async fn fetched_network_is_registered_while_reference_exists() {
    let (objects, network) = (objects(), network("fetched"));
    let digest = network.digest();
    let key = format!("networks/{digest}");
    store_network(&objects, &network).await.unwrap();
    let (stored, version) = objects.get(&key).await.unwrap();
    assert_eq!(stored, network.encode());
    assert!(Network::find(digest).is_none());
    let fetched = fetch_network(&objects, &evaluator(&network)).await.unwrap();
    assert_eq!(fetched.as_ref().unwrap().digest(), digest);
    assert!(Network::find(digest).is_some());
    drop(fetched);
    assert!(Network::find(digest).is_none());
    // The second write does nothing.
    store_network(&objects, &network).await.unwrap();
    assert_eq!(objects.get(&key).await.unwrap().1, version);
}

#[tokio::test]
async fn shipped_network_is_not_stored() {
    let objects = objects();
    for name in Network::SHIPPED {
        let shipped = Network::shipped(name).unwrap();
        store_network(&objects, shipped).await.unwrap();
        assert!(objects.list("").await.unwrap().is_empty());
        let fetched = fetch_network(&objects, &evaluator(shipped)).await.unwrap();
        assert!(fetched.is_none());
    }
}

#[tokio::test]
async fn missing_or_damaged_network_is_reported_and_can_be_replaced() {
    let (objects, network) = (objects(), network("damaged"));
    let key = format!("networks/{}", network.digest());
    let mut damaged = network.encode();
    damaged[100_000] ^= 1;
    let other = self::network("other").encode();
    let long = vec![0; MAX_NETWORK_BYTES + 2];
    let reasons = [
        (None, "it is missing"),
        (Some(damaged), "is damaged or incomplete"),
        (Some(other), "it contains the network"),
        (Some(long), "not a network"),
        (Some(Vec::new()), "networks/"),
    ];
    for (bytes, expected) in reasons {
        if let Some(bytes) = bytes {
            objects.put(&key, Bytes::from(bytes)).await.unwrap();
        }
        let fetched = fetch_network(&objects, &evaluator(&network)).await;
        let error = fetched.err().unwrap();
        assert!(matches!(error, ManifestError::Network { .. }), "{error:?}");
        assert!(error.is_damage() && !error.is_transient());
        let text = error.to_string();
        assert!(text.contains(&key) && text.contains(expected), "{text}");
        store_network(&objects, &network).await.unwrap();
        let fetched = fetch_network(&objects, &evaluator(&network)).await;
        assert!(fetched.unwrap().is_some());
    }
}

#[tokio::test]
async fn largest_network_has_documented_size_and_can_be_stored() {
    let weights = NetworkWeights {
        lanes: 32,
        bias: vec![0; 32],
        output: vec![0; 32],
        rows: vec![0; 32 * FEATURES],
    };
    let header = "x".repeat(hatebeam_search::MAX_HEADER_BYTES);
    let network = Network::new(&header, &weights).unwrap();
    assert_eq!(network.encode().len(), MAX_NETWORK_BYTES);
    // docs/formats.md contains this number.
    assert_eq!(MAX_NETWORK_BYTES, 4_047_228);
    let objects = objects();
    store_network(&objects, &network).await.unwrap();
    let fetched = fetch_network(&objects, &evaluator(&network)).await;
    assert!(fetched.unwrap().is_some());
}
