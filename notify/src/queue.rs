//! Queues of events for hooks. A hook is a command or a webhook that receives the events.

use crate::event::{Event, Importance};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of queued events. A queue that contains only run-end events may exceed this number, because it
/// drops a run-end event only when a later one of the same run replaces it.
pub(crate) const MAX_WAITING: usize = 256;

/// Runs a callback after every hook has accepted or dropped an event. The callback's argument is `true` if every
/// hook accepted the event.
pub(crate) struct Receipt {
    /// Number of hooks that have not accepted the event.
    missing: Mutex<usize>,
    then: Mutex<Option<Then>>,
}

type Then = Box<dyn FnOnce(bool) + Send>;

impl Receipt {
    pub(crate) fn new(hooks: usize, then: Option<Then>) -> Arc<Receipt> {
        Arc::new(Receipt {
            missing: Mutex::new(hooks),
            then: Mutex::new(then),
        })
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        let missing = *self
            .missing
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let then = self.then.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(then) = then.take() {
            then(missing == 0);
        }
    }
}

/// An event for one hook, which is queued or being delivered.
pub(crate) struct Delivery {
    pub(crate) event: Arc<Event>,
    pub(crate) receipt: Arc<Receipt>,
}

impl Delivery {
    pub(crate) fn accept(self) {
        let mut missing = self
            .receipt
            .missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
    }
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Delivery>,
    /// Number of events dropped since the last call to [`Queue::next`].
    dropped: u64,
    /// Whether further events are refused.
    is_closed: bool,
    /// Whether the queued events are dropped and the current delivery is aborted.
    is_aborted: bool,
    /// Whether the hook's thread has ended.
    has_ended: bool,
}

#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event. A full queue drops the oldest of its least important events. A run-end event is dropped
    /// only when a later run-end event of the same run replaces it.
    pub(crate) fn put(&self, delivery: Delivery) {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return;
        }
        waiting.events.push_back(delivery);
        let mut dropped = None;
        if waiting.events.len() > MAX_WAITING
            && let Some(index) = to_drop(&waiting.events)
        {
            dropped = waiting.events.remove(index);
            waiting.dropped += 1;
        }
        drop(waiting);
        self.changed.notify_all();
        // Dropping the delivery may run the receipt's callback, which must not happen while the queue is
        // locked.
        drop(dropped);
    }

    /// Waits for the next event. Returns the event and the number of events dropped since the last call, or `None`
    /// if no more events will follow.
    pub(crate) fn next(&self) -> Option<(Delivery, u64)> {
        let mut waiting = self.lock();
        loop {
            if waiting.is_aborted {
                return None;
            }
            if let Some(delivery) = waiting.events.pop_front() {
                return Some((delivery, std::mem::take(&mut waiting.dropped)));
            }
            if waiting.is_closed {
                return None;
            }
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns whether the current delivery must be aborted.
    pub(crate) fn is_aborted(&self) -> bool {
        self.lock().is_aborted
    }

    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Drops the queued events, requests that the current delivery be aborted, and returns the number of
    /// dropped events.
    pub(crate) fn abort(&self) -> usize {
        let mut waiting = self.lock();
        waiting.is_aborted = true;
        let dropped = std::mem::take(&mut waiting.events);
        drop(waiting);
        self.changed.notify_all();
        dropped.len()
    }

    pub(crate) fn set_ended(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits until the hook's thread has ended, at most until `until`. Returns whether the thread has ended.
    pub(crate) fn wait_ended(&self, until: Instant) -> bool {
        let mut waiting = self.lock();
        while !waiting.has_ended {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return false;
            }
            let waited = self.changed.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Returns the index of the event to drop from a full queue, if an event can be dropped.
fn to_drop(events: &VecDeque<Delivery>) -> Option<usize> {
    let importances = || {
        events
            .iter()
            .map(|delivery| delivery.event.kind.importance())
    };
    match importances().min()? {
        Importance::End => {
            let newest = &events.back()?.event.run;
            let mut earlier = events.iter().take(events.len() - 1);
            earlier.position(|delivery| delivery.event.run == *newest)
        }
        least => importances().position(|importance| importance == least),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventKind, Progress};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::UNIX_EPOCH;

    fn delivery(run: &str, depth: u32, kind: EventKind) -> Delivery {
        Delivery {
            event: Arc::new(Event::new(
                run,
                Progress { depth, lines: 0 },
                kind,
                UNIX_EPOCH,
            )),
            receipt: Receipt::new(1, None),
        }
    }

    fn milestone(depth: u32) -> Delivery {
        let kind = EventKind::Depth {
            wells: 1,
            children: 1,
            seconds: 0.0,
        };
        delivery("r", depth, kind)
    }

    fn failed(run: &str, depth: u32) -> Delivery {
        let reason = String::new();
        delivery(run, depth, EventKind::Failed { reason })
    }

    fn drain(queue: &Queue) -> (Vec<(&'static str, u32)>, u64) {
        queue.close();
        let mut names = Vec::new();
        let mut dropped = 0;
        while let Some((delivery, more)) = queue.next() {
            names.push((delivery.event.kind.name(), delivery.event.depth));
            dropped += more;
        }
        (names, dropped)
    }

    #[test]
    fn full_queue_drops_oldest_milestones_before_other_events() {
        let queue = Queue::default();
        queue.put(delivery("r", 0, EventKind::BestScore {}));
        for depth in 0..MAX_WAITING as u32 + 9 {
            queue.put(milestone(depth));
        }
        queue.put(failed("r", 1000));
        let (names, dropped) = drain(&queue);
        assert_eq!((names.len(), dropped), (MAX_WAITING, 11));
        assert_eq!(names[..2], [("best-score", 0), ("depth", 11)]);
        assert_eq!(names[MAX_WAITING - 1], ("failed", 1000));
        let queue = Queue::default();
        for depth in 0..MAX_WAITING as u32 + 1 {
            queue.put(delivery("r", depth, EventKind::BestScore {}));
        }
        let (names, dropped) = drain(&queue);
        assert_eq!(
            (names[0], names.len(), dropped),
            (("best-score", 1), MAX_WAITING, 1)
        );
    }

    #[test]
    fn run_end_event_is_dropped_only_if_a_later_one_replaces_it() {
        let queue = Queue::default();
        for run in 0..2 * MAX_WAITING as u32 {
            queue.put(failed(&format!("r{run}"), run));
        }
        // The queue contains only run-end events, so it drops the milestone immediately. The later run-end event of
        // run `r0` replaces the earlier one.
        queue.put(milestone(9));
        queue.put(failed("r0", 9999));
        let (names, dropped) = drain(&queue);
        let expected = (1..2 * MAX_WAITING as u32).chain([9999]);
        assert_eq!(
            names,
            expected.map(|run| ("failed", run)).collect::<Vec<_>>()
        );
        assert_eq!(dropped, 2);
    }

    #[test]
    fn receipt_reports_whether_all_hooks_accepted() {
        let called = Arc::new(AtomicU32::new(0));
        let event = Arc::new(Event::new(
            "r",
            Progress::default(),
            EventKind::Cancelled {},
            UNIX_EPOCH,
        ));
        for taken in [2, 1] {
            let caller = Arc::clone(&called);
            let then = move |all| caller.store(if all { 1 } else { 2 }, Ordering::Relaxed);
            let receipt = Receipt::new(2, Some(Box::new(then)));
            let queues = [Queue::default(), Queue::default()];
            for queue in &queues {
                let (event, receipt) = (Arc::clone(&event), Arc::clone(&receipt));
                queue.put(Delivery { event, receipt });
            }
            drop(receipt);
            called.store(0, Ordering::Relaxed);
            for queue in &queues[..taken] {
                queue.next().unwrap().0.accept();
            }
            let before = called.load(Ordering::Relaxed);
            assert_eq!(before, u32::from(taken == 2));
            for queue in &queues {
                queue.abort();
            }
            assert_eq!(called.load(Ordering::Relaxed), 3 - taken as u32);
        }
    }
}
