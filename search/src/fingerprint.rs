//! The fingerprint of the search: it tells programs apart that would find different frontiers for the same
//! specification.
//!
//! The fingerprint has three parts: a revision that is raised by hand, a hash of the tables that are compiled into the
//! program, and a digest of small beams with all evaluators. The digest reveals unintended changes; the revision is
//! for changes that the small beams do not show. Files that a specification names by their digests are not included.

use crate::evaluator::{EvaluatorKind, EvaluatorSpec, Quiescence, Weights};
use crate::node::{Digest, Node, NodeWell};
use crate::patterns;
use crate::step::{Frontier, ShardLayout, Step};
use hatebeam_game::{Emulator, Geometry, Rules, Well};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Revision of the search. Raise it with every change that can change a frontier.
const SEARCH_REVISION: u32 = 1;
/// Fingerprint of version 0.1.0, whose specifications name none.
const FIRST: &str = "1-aff763be108b4610-95d506e08dd9bdcd";

/// Width and number of depths of the beams of the self-test, and the number of shards that their wells are divided into.
const WIDTH: usize = 50;
const DEPTHS: usize = 20;
const SHARDS: usize = 64;

/// Evaluators of the self-test.
const EVALUATORS: [(EvaluatorKind, Quiescence); 6] = [
    (EvaluatorKind::Patterns, Quiescence::Off),
    (EvaluatorKind::Patterns, Quiescence::First),
    (EvaluatorKind::Knewjade, Quiescence::Single),
    (EvaluatorKind::Knewjade, Quiescence::Forced),
    (EvaluatorKind::Plain, Quiescence::Off),
    (EvaluatorKind::PlainHoles, Quiescence::Off),
];

/// A fingerprint: the revision, the hash of the tables and the digest of the self-test, separated by dashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Returns the fingerprint of this program. The first call runs the self-test, which takes milliseconds.
    pub fn current() -> Fingerprint {
        static CURRENT: LazyLock<Fingerprint> = LazyLock::new(|| {
            let (tables, test) = (fnv(patterns::TABLES), self_test());
            Fingerprint(format!("{SEARCH_REVISION}-{tables:016x}-{test:016x}"))
        });
        CURRENT.clone()
    }

    /// Returns the fingerprint of version 0.1.0.
    pub fn first() -> Fingerprint {
        Fingerprint(FIRST.to_owned())
    }

    /// Returns whether this is the fingerprint of version 0.1.0.
    pub fn is_first(&self) -> bool {
        self.0 == FIRST
    }

    /// Returns a fingerprint with this text.
    pub fn from_text(text: impl Into<String>) -> Fingerprint {
        Fingerprint(text.into())
    }

    /// Returns the text.
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

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Searches small beams and returns a hash of all their frontiers.
fn self_test() -> u64 {
    let hashes = EVALUATORS.map(|(kind, quiescence)| {
        let spec = EvaluatorSpec {
            kind,
            weights: Weights::default(),
            quiescence,
        };
        beam(spec).to_le_bytes()
    });
    fnv(hashes.as_flattened())
}

/// Returns a hash of the frontiers of a small beam and of the shards of their wells.
fn beam(spec: EvaluatorSpec) -> u64 {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    let layout = ShardLayout::new(WIDTH, SHARDS);
    let step = Step::new(&emulator, spec, layout, 1).expect("the weights are valid");
    let first = Node {
        score: 0,
        well: NodeWell::pack(Geometry::STANDARD, &Well::EMPTY),
        lines: 0,
        hint: 0,
    };
    let mut frontier = Frontier::new(0, [first], layout);
    let mut text = Vec::new();
    for _ in 0..DEPTHS {
        let next = step.run(&frontier, &AtomicBool::new(false), &AtomicU64::new(0));
        (frontier, _) = next.expect("nothing cancels it");
        for (shard, nodes) in frontier.shards.iter().enumerate() {
            text.extend((shard as u64).to_le_bytes());
            text.extend(Digest::of(nodes).0.to_le_bytes());
        }
    }
    fnv(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, the program finds other frontiers than 0.1.0: raise [`SEARCH_REVISION`], pin the new fingerprint
    /// here, and say so in the changelog. Runs of the program before are refused from then on.
    #[test]
    fn fingerprint_is_that_of_the_released_program() {
        assert_eq!(Fingerprint::current().as_str(), FIRST);
    }

    #[test]
    fn fingerprint_is_text_in_json() {
        let text = serde_json::to_string(&Fingerprint::first()).unwrap();
        assert_eq!(text, format!("\"{FIRST}\""));
        let read: Fingerprint = serde_json::from_str(&text).unwrap();
        assert!(read.is_first());
    }
}
