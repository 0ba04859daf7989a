//! The networks that this process can ask, by their digest.

use super::{Network, NetworkDigest};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, RwLock};

static SHIPPED: LazyLock<Arc<Network>> = LazyLock::new(|| {
    let network = Network::decode(include_bytes!("shipped.bin"));
    Arc::new(network.expect("the program contains a valid network"))
});

static REGISTERED: RwLock<BTreeMap<NetworkDigest, Arc<Network>>> = RwLock::new(BTreeMap::new());

impl Network {
    /// The network that is part of the program. A recipe in `docs/learning.md` makes it.
    pub fn shipped() -> &'static Arc<Network> {
        &SHIPPED
    }

    /// Makes a network available to evaluators of this process by its digest.
    pub fn register(network: Network) -> NetworkDigest {
        let digest = network.digest();
        let mut registered = REGISTERED
            .write()
            .unwrap_or_else(|poison| poison.into_inner());
        registered
            .entry(digest)
            .or_insert_with(|| Arc::new(network));
        digest
    }

    /// Returns the network with this digest, if it is the shipped one or was registered.
    pub fn find(digest: NetworkDigest) -> Option<Arc<Network>> {
        if digest == SHIPPED.digest() {
            return Some(Arc::clone(&SHIPPED));
        }
        let registered = REGISTERED
            .read()
            .unwrap_or_else(|poison| poison.into_inner());
        registered.get(&digest).cloned()
    }
}
