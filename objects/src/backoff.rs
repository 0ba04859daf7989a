//! Waits between tries.

use crate::options::Options;
use crate::random::random;
use std::time::Duration;

/// No wait is longer.
const LONGEST: Duration = Duration::from_secs(20);

/// How many tries are left, and how long to wait before the next one.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    most: u32,
    made: u32,
}

impl Backoff {
    /// The first try is about to be made.
    pub(crate) fn new(options: &Options) -> Backoff {
        Backoff {
            first: options.first_wait,
            most: options.max_attempts,
            made: 1,
        }
    }

    /// Waits before the next try, each time about twice as long; false if there is none left.
    pub(crate) async fn wait(&mut self) -> bool {
        if self.made >= self.most {
            return false;
        }
        let whole = self
            .first
            .saturating_mul(1 << (self.made - 1).min(20))
            .min(LONGEST);
        self.made += 1;
        // Between half and all of it, so that clients that failed together do not come back together.
        let part = 512 + (random() % 513) as u32;
        tokio::time::sleep(whole / 1024 * part).await;
        true
    }

    /// Counts from the start again.
    pub(crate) fn reset(&mut self) {
        self.made = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn allows_as_many_tries_as_asked_for() {
        let options = Options {
            max_attempts: 3,
            first_wait: Duration::from_micros(10),
            ..Options::default()
        };
        let mut backoff = Backoff::new(&options);
        assert!(backoff.wait().await);
        assert!(backoff.wait().await);
        assert!(!backoff.wait().await);
        backoff.reset();
        assert!(backoff.wait().await);
    }
}
