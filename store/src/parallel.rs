//! Parallel execution of independent calls.

use crate::error::StoreError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` with each index in `0..count` on up to `threads` threads, and returns the results
/// in the order of the indices. After an error, no further calls are started.
///
/// # Errors
/// Returns the error of a failed call. If several calls fail, any of their errors may be returned.
pub fn in_parallel<T: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> Result<T, StoreError> + Sync,
) -> Result<Vec<T>, StoreError> {
    let next = AtomicUsize::new(0);
    // All threads log within the caller's span.
    let span = tracing::Span::current();
    let worker = || {
        let _inside = span.enter();
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(done);
            }
            match work(at) {
                Ok(result) => done.push((at, result)),
                Err(error) => {
                    next.store(count, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let parts: Vec<Result<Vec<(usize, T)>, StoreError>> = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads.min(count))
            .map(|_| scope.spawn(worker))
            .collect();
        let mut parts = vec![worker()];
        for helper in helpers {
            parts.push(
                helper
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        parts
    });
    let mut all = Vec::with_capacity(count);
    for part in parts {
        all.extend(part?);
    }
    all.sort_unstable_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}
