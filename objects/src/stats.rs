//! What was done, counted.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What an [`Objects`](crate::Objects) has done since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Objects written.
    pub puts: u64,
    /// Objects, or parts of them, read.
    pub gets: u64,
    /// Listings.
    pub lists: u64,
    /// Objects deleted.
    pub deletes: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Requests sent to a server, those sent again included: what it writes on the bill.
    pub requests: u64,
    /// Requests sent again, and bodies gone on with, after a failure.
    pub retries: u64,
    /// Operations that failed in the end; a lost race for a key or a missing object is no failure.
    pub errors: u64,
}

impl Stats {
    /// Requests by what they cost: those that write or list, and those that read. Deletions are free.
    pub fn charged(&self) -> (u64, u64) {
        let reads = self.gets.min(self.requests);
        let free = self.gets.saturating_add(self.deletes);
        (self.requests.saturating_sub(free), reads)
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
    /// What requests are sent for, by Amazon's client.
    pub(crate) operations: AtomicU64,
    pub(crate) requests: AtomicU64,
    /// Tries made again by us and not by Amazon's client.
    pub(crate) again: AtomicU64,
    pub(crate) errors: AtomicU64,
    /// Seconds that the server's clock is ahead of ours; `None` until it has told the time.
    pub(crate) seconds_ahead: Mutex<Option<i64>>,
}

/// Adds to a counter.
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
            retries: again + requests.saturating_sub(operations),
            errors: read(&self.errors),
        }
    }
}
