//! Threads that share a list of jobs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs a job for each item on up to `threads` threads, and returns the results in the order of the items.
pub(crate) fn run_in_threads<I: Sync, T: Send>(
    threads: usize,
    items: &[I],
    job: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<T>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let result = job(item);
            *done[index]
                .lock()
                .unwrap_or_else(|poison| poison.into_inner()) = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            scope.spawn(work);
        }
        work();
    });
    let take = |slot: Mutex<Option<T>>| {
        slot.into_inner()
            .unwrap_or_else(|poison| poison.into_inner())
    };
    done.into_iter().filter_map(take).collect()
}
