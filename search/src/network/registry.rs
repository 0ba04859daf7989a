//! The networks of this process, which evaluators find by their digests.

use super::{Network, NetworkDigest};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, RwLock, Weak};

/// The files of the networks that are part of the program, in the order of [`Network::SHIPPED`]. The WebAssembly build
/// contains no networks, because a web page loads them only when it needs them.
#[cfg(not(target_family = "wasm"))]
const FILES: &[&[u8]] = &[
    include_bytes!("shipped.bin"),
    include_bytes!("taught.bin"),
    include_bytes!("chains.bin"),
    include_bytes!("selftaught.bin"),
    include_bytes!("relay.bin"),
    include_bytes!("foresight.bin"),
    include_bytes!("outlook.bin"),
];
#[cfg(target_family = "wasm")]
const FILES: &[&[u8]] = &[];

static SHIPPED: LazyLock<Vec<Arc<Network>>> = LazyLock::new(|| {
    let decode = |bytes: &&[u8]| Network::decode(bytes).map(Arc::new);
    let networks: Result<_, _> = FILES.iter().map(decode).collect();
    networks.expect("the program contains valid networks")
});

static REGISTERED: RwLock<BTreeMap<NetworkDigest, Weak<Network>>> = RwLock::new(BTreeMap::new());

fn position(name: &str) -> Option<usize> {
    Network::SHIPPED.iter().position(|shipped| *shipped == name)
}

impl Network {
    /// The names of the networks that are part of the program. The training of `network`, `chains`, `relay`, `foresight` and
    /// `outlook` used only beam searches, that of `taught` also public games, and that of `selftaught` also long games that its
    /// own beams found. `chains`, `foresight` and `outlook` do not see what can be cleared: they are for searches with
    /// [`Quiescence::First`](crate::Quiescence::First) or [`Quiescence::FirstOfBest`](crate::Quiescence::FirstOfBest). Their
    /// recipes are in `train/recipes/`.
    pub const SHIPPED: [&str; 7] = [
        Network::DEFAULT,
        "taught",
        "chains",
        "selftaught",
        "relay",
        "foresight",
        "outlook",
    ];

    /// The name of the network that scores wells of the standard size by default.
    pub const DEFAULT: &str = "network";

    /// Returns the network with this name, or `None` if the program contains no such network.
    pub fn shipped(name: &str) -> Option<&'static Arc<Network>> {
        SHIPPED.get(position(name)?)
    }

    /// Returns the file of the network with this name, or `None` if the program contains no such network.
    pub fn shipped_file(name: &str) -> Option<&'static [u8]> {
        FILES.get(position(name)?).copied()
    }

    /// Registers a network, so that [`find`](Network::find) returns it. The registration ends when the returned
    /// reference and all of its clones have been dropped.
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

    /// Returns the network with this digest, or `None` if it is neither part of the program nor registered.
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
    /// Returns whether a network that is part of the program has this digest.
    pub fn is_shipped(self) -> bool {
        SHIPPED.iter().any(|network| network.digest() == self)
    }
}
