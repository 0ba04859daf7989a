#![doc = include_str!("../README.md")]

// The scratch files of the complete search need an operating system.
#[cfg(not(target_family = "wasm"))]
pub mod complete;
pub mod endgame;
mod evaluator;
mod features;
mod fingerprint;
mod generation;
mod network;
mod node;
mod past;
mod patterns;
pub mod perft;
mod record;
mod step;

pub use evaluator::{
    Evaluator, EvaluatorError, EvaluatorKind, EvaluatorSpec, Quiescence, SCALE, WeightError,
    Weights,
};
pub use features::{Features, LANES, count as count_features};
pub use fingerprint::{Fingerprint, fnv1a};
pub use network::{
    CLEARS_FEATURES, FEATURES, FeatureLister, MAX_HEADER_BYTES, MAX_NETWORK_BYTES, Network,
    NetworkDigest, NetworkDigestError, NetworkError, NetworkWeights, VALUE_ONE, WEIGHT_ONE,
};
pub use node::{Digest, MAX_LINES, Node, NodeWell, WELL_BYTES};
pub use past::Past;
pub use record::{ChangedPiece, DepthRecord};
pub use step::{
    Cancelled, Candidates, ChildSink, CountQuery, Cut, CutSearch, DEFAULT_SIGMAS, DIGITS,
    DigitCounts, Edges, Exchange, Frontier, Loops, MAX_SHARDS, MIN_SHARD_WELLS, MIN_SHARDS,
    NextDepth, Origin, Owner, REMOTE_BATCH, RecentCuts, RescoreProgress, SHARD_WELLS, ShardLayout,
    SortBuffer, Step, StepStats, TABLE_WELLS, Targets, Ties, buffer_bytes, estimated_floor,
    gathered_layout, retry_sigmas, shard_starts,
};
