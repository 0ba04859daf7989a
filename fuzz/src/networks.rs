//! A property of the parser of network files that must hold for any input. The fuzz target and a short test in the test
//! suite (`search/tests/network.rs`) check this property.

use hatebeam_search::Network;

/// Checks that decoding a network returns an error, or a network that encodes to the same bytes.
pub(crate) fn network(data: &[u8]) {
    if let Ok(network) = Network::decode(data) {
        assert_eq!(network.encode(), data);
    }
}
