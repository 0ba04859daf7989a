//! Random numbers for retry jitter, for names, and for tests.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A source of random numbers: the operating system (the default) or a seeded SplitMix64 generator. Clones of a seeded
/// source share one sequence.
#[derive(Clone, Default)]
pub struct Random(Option<Arc<AtomicU64>>);

impl Random {
    /// Creates a source whose numbers depend only on the seed.
    pub fn seeded(seed: u64) -> Random {
        Random(Some(Arc::new(AtomicU64::new(seed))))
    }

    /// Returns the next random number.
    pub fn number(&self) -> u64 {
        /// Increment of SplitMix64: 2⁶⁴ divided by the golden ratio.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let Some(state) = &self.0 else {
            // The standard library seeds its hash maps with random numbers from the operating system, so the hash
            // of a constant is random.
            return RandomState::new().hash_one(0);
        };
        let mut mixed = state.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random name of 32 hexadecimal digits. With random numbers from the operating system, two equal names
    /// are improbable, even on different machines.
    pub(crate) fn name(&self) -> String {
        format!("{:016x}{:016x}", self.number(), self.number())
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.0.as_ref().map_or("system", |_| "seeded");
        f.debug_tuple("Random").field(&source).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_determines_all_numbers() {
        let draw = |seed| {
            let random = Random::seeded(seed);
            (0..100).map(|_| random.number()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        // The published first number of SplitMix64 for the seed 0.
        assert_eq!(draw(0)[0], 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn names_from_the_operating_system_differ() {
        assert_ne!(Random::default().name(), Random::default().name());
    }
}
