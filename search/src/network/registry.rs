//! The networks that evaluators of this process find by digest.

use super::{Network, NetworkDigest};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, RwLock, Weak};

static SHIPPED: LazyLock<Arc<Network>> = LazyLock::new(|| {
    let network = Network::decode(include_bytes!("shipped.bin"));
    Arc::new(network.expect("the program contains a valid network"))
});

static REGISTERED: RwLock<BTreeMap<NetworkDigest, Weak<Network>>> = RwLock::new(BTreeMap::new());

impl Network {
    /// The network that is part of the program. A recipe in `docs/learning.md` makes it.
    pub fn shipped() -> &'static Arc<Network> {
        &SHIPPED
    }

    /// Makes a network available to evaluators of this process by its digest, as long as the returned reference or a
    /// clone of it exists.
    pub fn register(network: Network) -> Arc<Network> {
        let digest = network.digest();
        let mut registered = REGISTERED
            .write()
            .unwrap_or_else(|poison| poison.into_inner());
        registered.retain(|_, network| network.strong_count() > 0);
        if let Some(network) = registered.get(&digest).and_then(Weak::upgrade) {
            return network;
        }
        let network = Arc::new(network);
        registered.insert(digest, Arc::downgrade(&network));
        network
    }

    /// Returns the network with this digest, if it is the shipped one or is registered.
    pub fn find(digest: NetworkDigest) -> Option<Arc<Network>> {
        if digest == SHIPPED.digest() {
            return Some(Arc::clone(&SHIPPED));
        }
        let registered = REGISTERED
            .read()
            .unwrap_or_else(|poison| poison.into_inner());
        registered.get(&digest).and_then(Weak::upgrade)
    }
}
