//! Randomness for names and for waits; nothing that is computed hangs on it.

use std::hash::{BuildHasher, RandomState};

/// A random number. The standard library's hash keys come from the operating system, so that two
/// machines do not draw the same.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// A name that nobody else makes.
pub(crate) fn random_name() -> String {
    format!("{:016x}{:016x}", random(), random())
}
