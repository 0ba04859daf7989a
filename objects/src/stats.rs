//! Operation counters.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of the operations on a store since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of objects written.
    pub puts: u64,
    /// Number of objects or ranges read.
    pub gets: u64,
    /// Number of list operations.
    pub lists: u64,
    /// Number of objects deleted.
    pub deletes: u64,
    /// Number of bytes read.
    pub bytes_in: u64,
    /// Number of bytes written.
    pub bytes_out: u64,
    /// Number of requests to a server or to a store in memory, including retries. A store in a folder has no requests.
    pub requests: u64,
    /// Number of delete requests, which are included in `requests`. S3 does not bill them. One request can delete up
    /// to 1,000 objects.
    pub delete_requests: u64,
    /// Number of requests that read an object or its metadata, successful or not. They are included in `requests`. S3
    /// bills them at a lower price than writes and lists.
    pub read_requests: u64,
    /// Number of retries, including resumed downloads.
    pub retries: u64,
    /// Number of failed operations, except for missing objects and unmet conditions.
    pub errors: u64,
}

impl Stats {
    /// Returns the number of billed requests other than reads, and the number of billed reads. Delete requests are not
    /// billed.
    pub fn charged(&self) -> (u64, u64) {
        let others = self.delete_requests.saturating_add(self.read_requests);
        (self.requests.saturating_sub(others), self.read_requests)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) puts: AtomicU64,
    pub(crate) gets: AtomicU64,
    pub(crate) lists: AtomicU64,
    pub(crate) deletes: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    /// Number of operations that send requests. The AWS SDK may send several requests per operation.
    pub(crate) operations: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) delete_requests: AtomicU64,
    pub(crate) read_requests: AtomicU64,
    /// Number of retries by this crate, excluding retries by the AWS SDK.
    pub(crate) again: AtomicU64,
    pub(crate) errors: AtomicU64,
    /// Number of seconds by which the server's clock is ahead of this machine's clock, or `None` before the
    /// first response.
    pub(crate) seconds_ahead: Mutex<Option<i64>>,
}

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
            read_requests: read(&self.read_requests),
            retries: again + requests.saturating_sub(operations),
            errors: read(&self.errors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_charged_by_kind_and_not_by_operation() {
        let stats = Stats {
            gets: 3,
            deletes: 2000,
            requests: 15,
            delete_requests: 2,
            // Three reads, and two that failed or asked only for a size.
            read_requests: 5,
            ..Stats::default()
        };
        assert_eq!(stats.charged(), (8, 5));
        // Operations on a folder send no requests.
        let folder = Stats {
            requests: 0,
            delete_requests: 0,
            read_requests: 0,
            ..stats
        };
        assert_eq!(folder.charged(), (0, 0));
    }
}
