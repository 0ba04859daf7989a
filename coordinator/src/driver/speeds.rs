//! Measured speeds of workers, which determine their shares of the search.

use std::collections::BTreeMap;

/// Minimum measured time before a worker's speed is used, in microseconds.
const MIN_BUSY: u64 = 1_000_000;
/// Measured time of a worker above which its measurements so far are halved, in microseconds. Newer measurements then
/// count more.
const MAX_BUSY: u64 = 60_000_000;
/// Maximum ratio, in either direction, of a worker's weight to the speed expected from its thread count.
const MAX_RATIO: u64 = 4;

/// Number of wells that a worker has expanded, and the time that it needed.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    wells: u64,
    busy_micros: u64,
}

impl Measured {
    /// Returns the wells per second, or `None` if the measured time is shorter than [`MIN_BUSY`].
    fn speed(self) -> Option<u64> {
        (self.busy_micros >= MIN_BUSY)
            .then(|| self.wells.saturating_mul(1_000_000) / self.busy_micros)
    }
}

/// Measured speeds by worker name.
#[derive(Debug, Default)]
pub(super) struct Speeds(BTreeMap<String, Measured>);

impl Speeds {
    /// Adds the measurement of a worker's expansion of one depth.
    pub(super) fn add(&mut self, worker: &str, wells: u64, busy_micros: u64) {
        let measured = self.0.entry(worker.to_owned()).or_default();
        measured.wells = measured.wells.saturating_add(wells);
        measured.busy_micros = measured.busy_micros.saturating_add(busy_micros);
        if measured.busy_micros > MAX_BUSY {
            measured.wells /= 2;
            measured.busy_micros /= 2;
        }
    }

    /// Returns the weights of `workers`, a list of names and thread counts. A worker's weight is its measured speed,
    /// limited by [`MAX_RATIO`]. A worker without a measurement counts as if its threads had the mean speed of the
    /// measured workers' threads. If no worker was measured, the weights are the thread counts.
    pub(super) fn weights(&self, workers: &[(&str, u32)]) -> Vec<u64> {
        let speed = |name: &str| self.0.get(name).and_then(|measured| measured.speed());
        let known = workers
            .iter()
            .filter_map(|(name, threads)| Some((speed(name)?, u64::from(*threads))));
        let (speeds, threads) = known.fold((0u64, 0u64), |(speeds, threads), (speed, own)| {
            (speeds.saturating_add(speed), threads + own)
        });
        let mean = speeds.checked_div(threads).filter(|mean| *mean > 0);
        let weight = |(name, threads): &(&str, u32)| {
            let threads = u64::from(*threads);
            let Some(mean) = mean else {
                return threads;
            };
            let expected = mean.saturating_mul(threads);
            let speed = speed(name).unwrap_or(expected);
            speed.clamp(expected / MAX_RATIO, expected.saturating_mul(MAX_RATIO))
        };
        workers.iter().map(weight).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_threads_until_speeds_are_measured() {
        let mut speeds = Speeds::default();
        let workers = [("a", 72), ("b", 64), ("c", 8)];
        assert_eq!(speeds.weights(&workers), [72, 64, 8]);
        // A single short depth is not enough.
        speeds.add("a", 1000, 1000);
        assert_eq!(speeds.weights(&workers), [72, 64, 8]);
        speeds.add("a", 720_000, 999_000);
        speeds.add("b", 1_280_000, 1_000_000);
        let weights = speeds.weights(&workers);
        // 721,000 and 1,280,000 wells per second, on average 14,713 per thread.
        assert_eq!(weights, [721_000, 1_280_000, 8 * 14_713]);
    }

    #[test]
    fn old_measurements_count_less_and_outliers_are_limited() {
        let mut speeds = Speeds::default();
        for _ in 0..100 {
            speeds.add("a", 1_000, 1_000_000);
            speeds.add("b", 1_000, 1_000_000);
        }
        // The first worker becomes ten times as fast.
        for _ in 0..300 {
            speeds.add("a", 10_000, 1_000_000);
            speeds.add("b", 1_000, 1_000_000);
        }
        let weights = speeds.weights(&[("a", 1), ("b", 1)]);
        assert!((9_000..=10_000).contains(&weights[0]), "{weights:?}");
        // A quarter of the mean, which is 5,500.
        assert!((1_200..1_400).contains(&weights[1]), "{weights:?}");
    }
}
