//! The fingerprint of the search. It distinguishes programs that find different frontiers (wells kept at one depth) for
//! the same run specification.
//!
//! The fingerprint has three parts: a revision that is raised by hand, a hash of the `patterns` tables, and a digest of
//! small beams. The digest detects unintended changes. The revision is for changes that the small beams do not detect.
//! Networks do not affect the fingerprint, because a specification identifies them by their digests.

use crate::evaluator::{EvaluatorKind, EvaluatorSpec, Quiescence};
use crate::node::{Digest, Node};
use crate::patterns;
use crate::step::{Frontier, ShardLayout, Step};
use hatebeam_game::{Emulator, Geometry, Rules, Well};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Revision of the search. Raise it with every change that can change a frontier.
const SEARCH_REVISION: u32 = 1;
/// Fingerprint of version 0.1.0. Specifications from that version contain no fingerprint, so a specification without
/// one has this fingerprint.
const FIRST: &str = "1-aff763be108b4610-95d506e08dd9bdcd";

/// Width of the beams in the self-test.
const WIDTH: usize = 50;
/// Number of depths of each beam.
const DEPTHS: usize = 20;
/// Number of shards of each beam.
const SHARDS: usize = 64;

/// The evaluators in the self-test.
const EVALUATORS: [(EvaluatorKind, Quiescence); 6] = [
    (EvaluatorKind::Patterns, Quiescence::Off),
    (EvaluatorKind::Patterns, Quiescence::First),
    (EvaluatorKind::Knewjade, Quiescence::Single),
    (EvaluatorKind::Knewjade, Quiescence::Forced),
    (EvaluatorKind::Plain, Quiescence::Off),
    (EvaluatorKind::PlainHoles, Quiescence::Off),
];

/// A fingerprint as text: the revision, the hash of the tables and the digest of the self-test, separated by dashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Returns the fingerprint of this program. The first call runs the self-test, which takes milliseconds.
    pub fn current() -> Fingerprint {
        static CURRENT: LazyLock<Fingerprint> = LazyLock::new(|| {
            let (tables, test) = (fnv1a(patterns::TABLES.iter().copied()), self_test());
            Fingerprint(format!("{SEARCH_REVISION}-{tables:016x}-{test:016x}"))
        });
        CURRENT.clone()
    }

    /// Returns the fingerprint of version 0.1.0.
    pub fn first() -> Fingerprint {
        Fingerprint(FIRST.to_owned())
    }

    /// Creates a fingerprint from its text, which is not checked.
    pub fn from_text(text: impl Into<String>) -> Fingerprint {
        Fingerprint(text.into())
    }

    /// Returns the text of the fingerprint.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Fingerprint {
    fn default() -> Fingerprint {
        Fingerprint::current()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Returns the 64-bit FNV-1a hash. It is part of formats, so it never changes.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Searches small beams and returns a hash of all their frontiers.
fn self_test() -> u64 {
    let hashes = EVALUATORS.map(|(kind, quiescence)| {
        let spec = EvaluatorSpec::new(kind, quiescence);
        beam(spec).to_le_bytes()
    });
    fnv1a(hashes.into_iter().flatten())
}

/// Returns a hash of the frontiers of a small beam. The hash depends on the shard of each well.
fn beam(spec: EvaluatorSpec) -> u64 {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    let layout = ShardLayout::new(WIDTH, SHARDS);
    let step = Step::new(&emulator, spec, layout, 1).expect("the weights are valid");
    let first = Node::first(Geometry::STANDARD, &Well::EMPTY, 0);
    let mut frontier = Frontier::new(0, [first], layout);
    let mut text = Vec::new();
    for _ in 0..DEPTHS {
        let next = step.run(&frontier, &AtomicBool::new(false), &AtomicU64::new(0));
        (frontier, _) = next.expect("the step is not cancelled");
        for (shard, nodes) in frontier.shards.iter().enumerate() {
            text.extend((shard as u64).to_le_bytes());
            text.extend(Digest::of(nodes).0.to_le_bytes());
        }
    }
    fnv1a(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, the program and version 0.1.0 find different frontiers. Raise [`SEARCH_REVISION`], pin the
    /// new fingerprint here, and record the change in the changelog: the program will refuse runs of earlier programs.
    #[test]
    fn current_fingerprint_is_that_of_version_0_1_0() {
        assert_eq!(Fingerprint::current().as_str(), FIRST);
    }

    #[test]
    fn fingerprint_is_a_json_string() {
        let text = serde_json::to_string(&Fingerprint::first()).unwrap();
        assert_eq!(text, format!("\"{FIRST}\""));
        let read: Fingerprint = serde_json::from_str(&text).unwrap();
        assert_eq!(read, Fingerprint::first());
    }
}
