//! Thread pools for the short tasks of a step (the search of one depth), such as counting scores. Without a pool, each
//! task would start its threads again, and starting 71 threads takes a millisecond. A waiting thread starts a task in less than a tenth of a millisecond.

use super::lock;
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The pools of this process, by thread count.
static POOLS: Mutex<BTreeMap<usize, Arc<ThreadPool>>> = Mutex::new(BTreeMap::new());

/// Returns the pool with this number of threads. Creates the pool if necessary. Returns `None` if its threads cannot be
/// started.
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

/// Runs `work` on the calling thread and up to `threads - 1` other threads, but on at most `parts` threads, and
/// returns when all calls have returned. Callers with the same `threads` share these threads, so the other calls of
/// `work` may start late. `threads` must therefore be the same for all tasks of a step, because its threads never end.
/// If the threads cannot be started, only the calling thread runs `work`. `work` must therefore not wait for other
/// calls, and one call must be able to complete the whole task.
pub(super) fn on_threads(threads: usize, parts: usize, work: impl Fn() + Sync) {
    let others = threads.min(parts).saturating_sub(1);
    let pool = if others > 0 { pool(threads - 1) } else { None };
    let Some(pool) = pool else {
        return work();
    };
    let work = &work;
    pool.in_place_scope(|scope| {
        for _ in 0..others {
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

    /// Runs a task and returns the names of its threads. The barrier makes all of them run at the same time. Each test
    /// uses another number of threads, because tasks with the same threads could wait for one another.
    fn ids(threads: usize, parts: usize) -> BTreeSet<String> {
        let ids = Mutex::new(BTreeSet::new());
        let barrier = Barrier::new(threads.min(parts));
        on_threads(threads, parts, || {
            barrier.wait();
            let id: ThreadId = std::thread::current().id();
            lock(&ids).insert(format!("{id:?}"));
        });
        ids.into_inner().unwrap()
    }

    #[test]
    fn threads_are_reused_by_the_next_task() {
        let first = ids(3, 3);
        assert_eq!(first.len(), 3);
        assert_eq!(ids(3, 3), first);
    }

    #[test]
    fn tasks_with_fewer_parts_use_the_same_threads() {
        let all: BTreeSet<String> = (1..=9).flat_map(|parts| ids(7, parts)).collect();
        assert_eq!(all.len(), 7);
    }

    #[test]
    fn single_thread_is_the_calling_thread() {
        let caller = std::thread::current().id();
        for (threads, parts) in [(1, 5), (5, 1), (5, 0)] {
            on_threads(threads, parts, || {
                assert_eq!(std::thread::current().id(), caller);
            });
        }
    }
}
