//! Threads that share a list of jobs.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

/// Runs a job for each item on up to `threads` threads, and returns the results in the order of the items.
pub(crate) fn run_in_threads<I: Sync, T: Send>(
    threads: usize,
    items: &[I],
    job: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let threads = threads.min(items.len()).max(1);
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.expect("the system can start threads");
    // The durations of jobs differ a lot, so each job is a task of its own.
    pool.install(|| items.par_iter().with_max_len(1).map(&job).collect())
}
