//! Counters of operations.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Operations of an [`Objects`](crate::Objects) and its clones since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Objects written.
    pub puts: u64,
    /// Objects or ranges read.
    pub gets: u64,
    /// Lists.
    pub lists: u64,
    /// Objects deleted.
    pub deletes: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Requests sent to a server, including retries. The server bills these.
    pub requests: u64,
    /// Requests among them that delete, which are free. One request can delete 1,000 objects.
    pub delete_requests: u64,
    /// Retries: requests sent again and bodies continued after a failure.
    pub retries: u64,
    /// Operations that failed. A missing object and a condition that does not hold do not count.
    pub errors: u64,
}

impl Stats {
    /// Returns the billed requests: those that write or list, and those that read. Deletions are free.
    pub fn charged(&self) -> (u64, u64) {
        let billed = self.requests.saturating_sub(self.delete_requests);
        let reads = self.gets.min(billed);
        (billed - reads, reads)
    }
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) puts: AtomicU64,
    pub(crate) gets: AtomicU64,
    pub(crate) lists: AtomicU64,
    pub(crate) deletes: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    /// Operations that requests were sent for. Amazon's client may send several requests for one.
    pub(crate) operations: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) delete_requests: AtomicU64,
    /// Retries by this crate, not by Amazon's client.
    pub(crate) again: AtomicU64,
    pub(crate) errors: AtomicU64,
    /// Seconds that the server's clock is ahead of this machine's; `None` before its first answer.
    pub(crate) seconds_ahead: Mutex<Option<i64>>,
}

/// Increases a counter.
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Relaxed);
}

impl Counters {
    pub(crate) fn snapshot(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let (again, requests) = (read(&self.again), read(&self.requests));
        let operations = read(&self.operations);
        Stats {
            puts: read(&self.puts),
            gets: read(&self.gets),
            lists: read(&self.lists),
            deletes: read(&self.deletes),
            bytes_in: read(&self.bytes_in),
            bytes_out: read(&self.bytes_out),
            requests,
            delete_requests: read(&self.delete_requests),
            retries: again + requests.saturating_sub(operations),
            errors: read(&self.errors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_that_delete_are_free() {
        let stats = Stats {
            gets: 3,
            deletes: 2000,
            requests: 13,
            delete_requests: 2,
            ..Stats::default()
        };
        assert_eq!(stats.charged(), (8, 3));
        // A folder sends no requests.
        let folder = Stats {
            requests: 0,
            delete_requests: 0,
            ..stats
        };
        assert_eq!(folder.charged(), (0, 0));
    }
}
