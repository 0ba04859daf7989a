//! The property of the parser of networks, for any input. The fuzz target and the bounded run in the test suite
//! (`search/tests/network.rs`) share it.

use hatebeam_search::Network;

/// The bytes of a network: decoding returns an error, or a network with the same bytes.
pub(crate) fn network(data: &[u8]) {
    if let Ok(network) = Network::decode(data) {
        assert_eq!(network.encode(), data);
    }
}
