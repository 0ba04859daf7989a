//! The networks of this process, which evaluators find by their digests.

use super::{Network, NetworkDigest};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, RwLock, Weak};

static SHIPPED: LazyLock<[Arc<Network>; 2]> = LazyLock::new(|| {
    let files: [&[u8]; 2] = [include_bytes!("shipped.bin"), include_bytes!("taught.bin")];
    files
        .map(|bytes| Arc::new(Network::decode(bytes).expect("the program contains valid networks")))
});

static REGISTERED: RwLock<BTreeMap<NetworkDigest, Weak<Network>>> = RwLock::new(BTreeMap::new());

impl Network {
    /// The names of the networks that are part of the program. `network` was trained on beams alone, and `taught` on
    /// public games too. `train/recipes/` contains their recipes.
    pub const SHIPPED: [&str; 2] = ["network", "taught"];

    /// Returns the network with this name if it is part of the program.
    pub fn shipped(name: &str) -> Option<&'static Arc<Network>> {
        let index = Network::SHIPPED
            .iter()
            .position(|shipped| *shipped == name)?;
        Some(&SHIPPED[index])
    }

    /// Registers a network so that [`find`](Network::find) returns it while the returned reference or a clone of it
    /// exists.
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

    /// Returns the network with this digest if it is part of the program or is registered.
    pub fn find(digest: NetworkDigest) -> Option<Arc<Network>> {
        let mut shipped = SHIPPED.iter();
        if let Some(network) = shipped.find(|network| network.digest() == digest) {
            return Some(Arc::clone(network));
        }
        let registered = REGISTERED
            .read()
            .unwrap_or_else(|poison| poison.into_inner());
        registered.get(&digest).and_then(Weak::upgrade)
    }
}

impl NetworkDigest {
    /// Whether a network that is part of the program has this digest.
    pub fn is_shipped(self) -> bool {
        SHIPPED.iter().any(|network| network.digest() == self)
    }
}
