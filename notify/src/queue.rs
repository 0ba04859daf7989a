//! What waits to be told to one hook.

use crate::event::{Event, Weight};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Events that wait at most, the last ones of runs not counted: of those there is one a run.
pub(crate) const MOST: usize = 256;

/// Told whether every hook has taken an event in: when the last one is done with it, or has given it up.
pub(crate) struct Receipt {
    /// Hooks that have not taken it in.
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

/// An event on its way to one hook.
pub(crate) struct Delivery {
    pub(crate) event: Arc<Event>,
    pub(crate) receipt: Arc<Receipt>,
}

impl Delivery {
    /// The hook has taken it in.
    pub(crate) fn done(self) {
        let mut missing = self
            .receipt
            .missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
    }
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<Delivery>,
    /// Left out since somebody was told so.
    dropped: u64,
    /// Nothing comes any more.
    is_closed: bool,
    /// What waits is not to be told any more.
    is_given_up: bool,
    /// The one who tells has ended.
    is_over: bool,
}

/// What waits to be told to one hook.
#[derive(Default)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    changed: Condvar,
}

impl Queue {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event in. If there are too many, the oldest of those that weigh least goes; what is the last
    /// of a run goes only for a later last one of the same run.
    pub(crate) fn put(&self, delivery: Delivery) {
        let mut inner = self.inner();
        if inner.is_closed {
            return;
        }
        inner.waiting.push_back(delivery);
        let mut left_out = None;
        if inner.waiting.len() > MOST
            && let Some(at) = least(&inner.waiting)
        {
            left_out = inner.waiting.remove(at);
            inner.dropped += 1;
        }
        drop(inner);
        self.changed.notify_all();
        // Its receipt may call whoever waits for it: not while the queue is held.
        drop(left_out);
    }

    /// Waits for the next event, and says how many were left out since the last one; nothing once there is
    /// nothing more to tell.
    pub(crate) fn next(&self) -> Option<(Delivery, u64)> {
        let mut inner = self.inner();
        loop {
            if inner.is_given_up {
                return None;
            }
            if let Some(delivery) = inner.waiting.pop_front() {
                return Some((delivery, std::mem::take(&mut inner.dropped)));
            }
            if inner.is_closed {
                return None;
            }
            inner = self
                .changed
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether what is under way is to be broken off.
    pub(crate) fn is_given_up(&self) -> bool {
        self.inner().is_given_up
    }

    /// Takes nothing in any more.
    pub(crate) fn close(&self) {
        self.inner().is_closed = true;
        self.changed.notify_all();
    }

    /// Leaves untold what waits; how much that is.
    pub(crate) fn give_up(&self) -> usize {
        let mut inner = self.inner();
        inner.is_given_up = true;
        let left = std::mem::take(&mut inner.waiting);
        drop(inner);
        self.changed.notify_all();
        left.len()
    }

    /// The one who tells has ended.
    pub(crate) fn set_over(&self) {
        self.inner().is_over = true;
        self.changed.notify_all();
    }

    /// Waits until the one who tells has ended; whether he has by then.
    pub(crate) fn wait_over(&self, until: Instant) -> bool {
        let mut inner = self.inner();
        while !inner.is_over {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return false;
            }
            let waited = self.changed.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// The place of the event to leave out.
fn least(waiting: &VecDeque<Delivery>) -> Option<usize> {
    let weights = || waiting.iter().map(|delivery| delivery.event.what.weight());
    match weights().min()? {
        Weight::Last => {
            let newest = &waiting.back()?.event.run;
            let mut earlier = waiting.iter().take(waiting.len() - 1);
            earlier.position(|delivery| delivery.event.run == *newest)
        }
        least => weights().position(|weight| weight == least),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::UNIX_EPOCH;

    fn delivery(run: &str, depth: u32, what: EventKind) -> Delivery {
        Delivery {
            event: Arc::new(Event::new(run, (depth, 0), what, UNIX_EPOCH)),
            receipt: Receipt::new(1, None),
        }
    }

    fn milestone(depth: u32) -> Delivery {
        let what = EventKind::Depth {
            wells: 1,
            children: 1,
            seconds: 0.0,
        };
        delivery("r", depth, what)
    }

    fn failed(run: &str, depth: u32) -> Delivery {
        let reason = String::new();
        delivery(run, depth, EventKind::Failed { reason })
    }

    fn drain(queue: &Queue) -> (Vec<(&'static str, u32)>, u64) {
        queue.close();
        let mut told = Vec::new();
        let mut dropped = 0;
        while let Some((delivery, more)) = queue.next() {
            told.push((delivery.event.what.name(), delivery.event.depth));
            dropped += more;
        }
        (told, dropped)
    }

    #[test]
    fn too_many_cost_the_oldest_milestones_first_and_then_other_news() {
        let queue = Queue::default();
        queue.put(delivery("r", 0, EventKind::BestScore {}));
        for depth in 0..MOST as u32 + 9 {
            queue.put(milestone(depth));
        }
        queue.put(failed("r", 1000));
        let (told, dropped) = drain(&queue);
        assert_eq!((told.len(), dropped), (MOST, 11));
        assert_eq!(told[..2], [("best-score", 0), ("depth", 11)]);
        assert_eq!(told[MOST - 1], ("failed", 1000));
        let queue = Queue::default();
        for depth in 0..MOST as u32 + 1 {
            queue.put(delivery("r", depth, EventKind::BestScore {}));
        }
        let (told, dropped) = drain(&queue);
        assert_eq!((told[0], told.len(), dropped), (("best-score", 1), MOST, 1));
    }

    #[test]
    fn the_end_of_a_run_is_never_left_out() {
        let queue = Queue::default();
        for run in 0..2 * MOST as u32 {
            queue.put(failed(&format!("r{run}"), run));
        }
        // A milestone that comes then goes at once; a later end of the same run takes the earlier one's place.
        queue.put(milestone(9));
        queue.put(failed("r0", 9999));
        let (told, dropped) = drain(&queue);
        let expected = (1..2 * MOST as u32).chain([9999]);
        assert_eq!(
            told,
            expected.map(|run| ("failed", run)).collect::<Vec<_>>()
        );
        assert_eq!(dropped, 2);
    }

    #[test]
    fn a_receipt_comes_when_all_hooks_are_done() {
        let told = Arc::new(AtomicU32::new(0));
        let event = Arc::new(Event::new("r", (0, 0), EventKind::Cancelled {}, UNIX_EPOCH));
        for taken in [2, 1] {
            let says = Arc::clone(&told);
            let then = move |all| says.store(if all { 1 } else { 2 }, Ordering::Relaxed);
            let receipt = Receipt::new(2, Some(Box::new(then)));
            let queues = [Queue::default(), Queue::default()];
            for queue in &queues {
                let (event, receipt) = (Arc::clone(&event), Arc::clone(&receipt));
                queue.put(Delivery { event, receipt });
            }
            drop(receipt);
            told.store(0, Ordering::Relaxed);
            for queue in &queues[..taken] {
                queue.next().unwrap().0.done();
            }
            let before = told.load(Ordering::Relaxed);
            assert_eq!(before, u32::from(taken == 2));
            for queue in &queues {
                queue.give_up();
            }
            assert_eq!(told.load(Ordering::Relaxed), 3 - taken as u32);
        }
    }
}
