//! A neural network with pseudorandom weights, which some simulated runs use as their evaluator.

use hatebeam_runs::RunSpec;
use hatebeam_search::{EvaluatorKind, FEATURES, Network, NetworkWeights};
use std::sync::{Arc, LazyLock};

const LANES: usize = 16;

/// The network. The static reference keeps it registered, so the single-threaded search finds it by its digest.
static NETWORK: LazyLock<Arc<Network>> = LazyLock::new(|| {
    let mut state = 1u64;
    let mut list = |count: usize| -> Vec<i16> {
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 40) as i16 % 100
        };
        (0..count).map(|_| next()).collect()
    };
    let weights = NetworkWeights {
        lanes: LANES,
        bias: list(LANES),
        output: list(LANES),
        rows: list(FEATURES * LANES),
    };
    let network = Network::new("simulation", &weights)
        .expect("each list has the length that the lanes require");
    Network::register(network)
});

/// Returns the evaluator that uses the network.
pub(crate) fn kind() -> EvaluatorKind {
    EvaluatorKind::Network(NETWORK.digest())
}

/// Returns the encoded network if the run uses it, and an empty vector otherwise.
pub(crate) fn file(spec: &RunSpec) -> Vec<u8> {
    match spec.evaluator.kind == kind() {
        true => NETWORK.encode(),
        false => Vec::new(),
    }
}
