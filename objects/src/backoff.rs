//! Increasing waits between the attempts of an operation.

use crate::options::Options;
use crate::random::Random;
use std::time::Duration;

/// Maximum wait between two attempts.
const LONGEST: Duration = Duration::from_secs(20);

/// Counts the attempts of an operation and computes the waits between them.
#[derive(Debug)]
pub(crate) struct Backoff {
    first_wait: Duration,
    max_attempts: u32,
    attempt: u32,
    random: Random,
}

impl Backoff {
    pub(crate) fn new(options: &Options) -> Backoff {
        Backoff {
            first_wait: options.first_wait,
            max_attempts: options.max_attempts,
            attempt: 1,
            random: options.random.clone(),
        }
    }

    /// Returns the number of the current attempt, counted from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Waits before the next attempt. On average, each wait is twice as long as the previous one, up to [`LONGEST`].
    /// Returns `false` without waiting if no attempts are left.
    pub(crate) async fn wait(&mut self) -> bool {
        if self.attempt >= self.max_attempts {
            return false;
        }
        let whole = self
            .first_wait
            .saturating_mul(1 << (self.attempt - 1).min(20))
            .min(LONGEST);
        self.attempt += 1;
        // A random wait between half of `whole` and `whole` prevents clients that failed together from retrying
        // together.
        let part = 512 + (self.random.number() % 513) as u32;
        tokio::time::sleep(whole / 1024 * part).await;
        true
    }

    /// Resets the attempt count: the current attempt counts as the first one.
    #[cfg(feature = "s3")]
    pub(crate) fn reset(&mut self) {
        self.attempt = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    fn options(seed: u64) -> Options {
        Options {
            max_attempts: 9,
            first_wait: Duration::from_millis(500),
            random: Random::seeded(seed),
            ..Options::default()
        }
    }

    async fn waits(seed: u64) -> Vec<Duration> {
        let mut backoff = Backoff::new(&options(seed));
        let mut waits = Vec::new();
        loop {
            let begin = Instant::now();
            if !backoff.wait().await {
                return waits;
            }
            waits.push(begin.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_twenty_seconds_until_attempts_run_out() {
        let waits = waits(1).await;
        assert_eq!(waits.len(), 8);
        for (number, wait) in waits.into_iter().enumerate() {
            let whole = Duration::from_millis(500 << number).min(LONGEST);
            // Tokio's timer has a resolution of one millisecond.
            let most = whole + Duration::from_millis(1);
            assert!(
                wait >= whole / 2 - Duration::from_millis(1) && wait <= most,
                "{number}: {wait:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn seed_determines_the_waits() {
        assert_eq!(waits(7).await, waits(7).await);
        assert_ne!(waits(7).await, waits(8).await);
    }

    #[cfg(feature = "s3")]
    #[tokio::test(start_paused = true)]
    async fn reset_allows_further_attempts() {
        let mut backoff = Backoff::new(&options(1));
        while backoff.wait().await {}
        backoff.reset();
        assert!(backoff.wait().await);
    }
}
