//! Storage of evaluators' networks in the object store, with keys of the form `networks/<digest>`.
//!
//! A key contains the digest of its object, so all writers of a key write the same bytes. Runs with the same network
//! share the object, so removing a run does not remove it.

use crate::error::ManifestError;
use bytes::Bytes;
use hatebeam_objects::{ObjectError, Objects};
use hatebeam_search::{EvaluatorKind, EvaluatorSpec, MAX_NETWORK_BYTES, Network, NetworkDigest};
use std::sync::Arc;

fn key(digest: NetworkDigest) -> String {
    format!("networks/{digest}")
}

/// Reads the network of an evaluator and [registers](Network::register) it. The network stays registered while the
/// returned reference exists. Returns `None` if the evaluator uses no network or a network that is part of the program.
///
/// # Errors
/// Returns [`ManifestError::Network`] if the network is missing or damaged, and [`ManifestError::Object`] if the
/// object store fails.
pub async fn fetch_network(
    objects: &Objects,
    evaluator: &EvaluatorSpec,
) -> Result<Option<Arc<Network>>, ManifestError> {
    match evaluator.kind {
        EvaluatorKind::Network(digest) if !digest.is_shipped() => {
            let network = read(objects, digest).await?;
            Ok(Some(Network::register(network)))
        }
        _ => Ok(None),
    }
}

/// Writes a network unless it is part of the program or the object store contains it. Replaces a damaged object.
///
/// # Errors
/// Returns [`ManifestError::Object`] if the object store fails.
pub async fn store_network(objects: &Objects, network: &Network) -> Result<(), ManifestError> {
    let digest = network.digest();
    if digest.is_shipped() {
        return Ok(());
    }
    match read(objects, digest).await {
        Err(ManifestError::Network { .. }) => {
            let bytes = Bytes::from(network.encode());
            Ok(objects.put(&key(digest), bytes).await?)
        }
        stored => stored.map(drop),
    }
}

/// Reads and checks a network.
async fn read(objects: &Objects, digest: NetworkDigest) -> Result<Network, ManifestError> {
    let key = key(digest);
    let unusable = |reason: String| ManifestError::Network {
        key: key.clone(),
        reason,
    };
    let range = 0..MAX_NETWORK_BYTES as u64 + 1;
    let bytes = match objects.get_range(&key, range).await {
        Ok(bytes) => bytes,
        Err(ObjectError::NotFound { .. }) => return Err(unusable("it is missing".to_owned())),
        Err(error @ (ObjectError::Damaged { .. } | ObjectError::OutOfRange { .. })) => {
            return Err(unusable(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let network = Network::decode(&bytes).map_err(|error| unusable(error.to_string()))?;
    if network.digest() != digest {
        let found = network.digest();
        return Err(unusable(format!("it contains the network {found}")));
    }
    Ok(network)
}
