//! A property of the network parser that must hold for any input. The fuzz target and the bounded run in the test
//! suite (`search/tests/network.rs`) share this property.

use hatebeam_search::Network;

/// Checks that decoding a network returns an error, or a network that encodes to the same bytes.
pub(crate) fn network(data: &[u8]) {
    if let Ok(network) = Network::decode(data) {
        assert_eq!(network.encode(), data);
    }
}
