//! Threads that remain between the short tasks of a step. Starting 71 threads takes a millisecond, and a cluster
//! computes seven histograms to find a cut. A waiting thread begins within a tenth of that time.

use super::lock;
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The pools of this process, by their number of threads.
static POOLS: Mutex<BTreeMap<usize, Arc<ThreadPool>>> = Mutex::new(BTreeMap::new());

/// Returns the pool with this number of threads, or `None` if the system starts no more threads.
fn pool(threads: usize) -> Option<Arc<ThreadPool>> {
    let mut pools = lock(&POOLS);
    if let Some(pool) = pools.get(&threads) {
        return Some(Arc::clone(pool));
    }
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    let pool = Arc::new(builder.thread_name(|_| "step".to_owned()).build().ok()?);
    pools.insert(threads, Arc::clone(&pool));
    Some(pool)
}

/// Runs `work` on `threads` threads, one of which is the calling thread. The threads are shared by all callers, so `work`
/// must not wait for other threads, and the calling thread must be able to do all of the work.
pub(super) fn on_threads(threads: usize, work: impl Fn() + Sync) {
    let pool = if threads > 1 { pool(threads - 1) } else { None };
    let Some(pool) = pool else {
        return work();
    };
    let work = &work;
    pool.in_place_scope(|scope| {
        for _ in 1..threads {
            scope.spawn(move |_| work());
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::thread::ThreadId;

    #[test]
    fn tasks_run_on_the_same_threads_again() {
        let ids = || {
            let (ids, barrier) = (Mutex::new(BTreeSet::new()), Barrier::new(3));
            on_threads(3, || {
                // All three run at the same time. No other test uses a pool of this size.
                barrier.wait();
                let id: ThreadId = std::thread::current().id();
                lock(&ids).insert(format!("{id:?}"));
            });
            ids.into_inner().unwrap()
        };
        let first = ids();
        assert_eq!(first.len(), 3);
        assert_eq!(ids(), first);
    }

    #[test]
    fn one_thread_is_the_calling_thread() {
        let caller = std::thread::current().id();
        on_threads(1, || assert_eq!(std::thread::current().id(), caller));
    }
}
