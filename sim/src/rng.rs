//! A random number generator that depends only on its seed.

use hatebeam_objects::Random;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A generator that several tasks can share.
#[derive(Debug)]
pub struct Rng(Random);

impl Rng {
    /// Creates a generator from a seed.
    pub fn seeded(seed: u64) -> Rng {
        Rng(Random::seeded(seed))
    }

    /// Returns the next number.
    pub fn next(&self) -> u64 {
        self.0.number()
    }

    /// Returns a new, independent generator. Its numbers do not depend on later draws from this generator.
    pub(crate) fn fork(&self) -> Rng {
        Rng::seeded(self.next())
    }

    pub(crate) fn range(&self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = range.into_inner();
        low + self.next() % (high - low + 1)
    }

    pub(crate) fn chance(&self, per_mille: u64) -> bool {
        self.next() % 1000 < per_mille
    }

    pub(crate) fn millis(&self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.range(range))
    }

    /// Returns a random number from 0 to `len - 1`. `len` must not be 0.
    pub(crate) fn index(&self, len: usize) -> usize {
        self.range(0..=len as u64 - 1) as usize
    }

    /// Returns a random item, or `None` if there are no items.
    pub(crate) fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        match items.len() {
            0 => None,
            len => items.get(self.index(len)),
        }
    }

    /// Returns a random item of an array, which must not be empty.
    pub(crate) fn one_of<T: Copy, const N: usize>(&self, items: [T; N]) -> T {
        items[self.index(N)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let draw = |seed| {
            let rng = Rng::seeded(seed);
            let own = rng.fork();
            (0..50)
                .map(|_| rng.next() ^ own.range(3..=9))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn ranges_include_both_ends() {
        let rng = Rng::seeded(5);
        let drawn: Vec<u64> = (0..200).map(|_| rng.range(3..=5)).collect();
        assert!((3..=5).all(|number| drawn.contains(&number)));
        assert!(drawn.iter().all(|number| (3..=5).contains(number)));
        assert_eq!(rng.pick::<u64>(&[]), None);
        assert!(!rng.chance(0) && rng.chance(1000));
    }
}
