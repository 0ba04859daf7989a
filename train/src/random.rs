//! Deterministic pseudorandom numbers, which are the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

pub(crate) struct Random(ChaCha8Rng);

impl Random {
    /// Creates the stream of random numbers for a seed, a generation and a purpose.
    pub(crate) fn new(seed: u64, generation: u32, purpose: u32) -> Random {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..12].copy_from_slice(&generation.to_le_bytes());
        key[12..16].copy_from_slice(&purpose.to_le_bytes());
        Random(ChaCha8Rng::from_seed(key))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a random number from 0 (inclusive) to 1 (exclusive).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a random integer below `count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }

    /// Returns a random integer from `least` to `most`, whose logarithm is uniform.
    pub(crate) fn between(&mut self, [least, most]: [usize; 2]) -> usize {
        let [least, most] = [least as f64, most as f64];
        (least * (most / least).powf(self.unit())).round() as usize
    }

    /// Returns an approximately normal number with mean 0 and standard deviation 1: the sum of twelve uniform numbers,
    /// minus 6.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }
}
