//! A channel that keeps only the last value, like tokio's `watch`, and wakes its receivers in the order in
//! which they started to wait.
//!
//! Tokio's channel wakes its receivers in random order, and only an unstable option can seed that order. With tokio's
//! channel, two simulations with the same seed would therefore differ.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::task::{Context, Poll, Waker};
use thiserror::Error;

/// Error returned if all senders or all receivers of a channel have been dropped.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the channel is closed")]
pub struct Closed;

struct Shared<T> {
    value: RwLock<T>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    version: u64,
    senders: usize,
    receivers: usize,
    /// Key of the next waiter. Keys increase, so the order of `waiters` is the order in which they started to wait.
    next: u64,
    waiters: BTreeMap<u64, Waker>,
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn borrow(&self) -> RwLockReadGuard<'_, T> {
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_values().for_each(Waker::wake);
    }
}

/// Creates a channel. The initial value counts as seen by the receiver.
pub fn channel<T>(initial: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(initial);
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// The sending half of a channel. Clones belong to the same channel.
pub struct Sender<T>(Arc<Shared<T>>);

impl<T> Sender<T> {
    /// Creates a channel that has no receiver.
    pub fn new(initial: T) -> Sender<T> {
        let state = State {
            senders: 1,
            ..State::default()
        };
        Sender(Arc::new(Shared {
            value: RwLock::new(initial),
            state: Mutex::new(state),
        }))
    }

    /// Creates a receiver. The current value counts as seen by the receiver.
    pub fn subscribe(&self) -> Receiver<T> {
        let mut state = self.0.state();
        state.receivers += 1;
        Receiver {
            seen: state.version,
            shared: Arc::clone(&self.0),
        }
    }

    /// Replaces the value.
    ///
    /// # Errors
    /// Returns [`Closed`] and leaves the value unchanged if there is no receiver.
    pub fn send(&self, value: T) -> Result<(), Closed> {
        if self.0.state().receivers == 0 {
            return Err(Closed);
        }
        self.send_replace(value);
        Ok(())
    }

    /// Replaces the value and returns the previous value, even if there is no receiver.
    pub fn send_replace(&self, mut value: T) -> T {
        self.send_modify(|current| std::mem::swap(current, &mut value));
        value
    }

    /// Changes the value, even if there is no receiver.
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Changes the value, and notifies the receivers if `modify` returns `true`. Returns the result of
    /// `modify`.
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        let mut value = self.0.value.write().unwrap_or_else(PoisonError::into_inner);
        let modified = modify(&mut value);
        drop(value);
        if modified {
            self.0.wake(|state| state.version += 1);
        }
        modified
    }

    /// Returns a reference to the value. Sending blocks while the reference exists.
    pub fn borrow(&self) -> RwLockReadGuard<'_, T> {
        self.0.borrow()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.0.state().senders += 1;
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.senders -= 1;
        if state.senders == 0 {
            drop(state);
            self.0.wake(|_| ());
        }
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Sender<T> {
        Sender::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sender").field(&*self.borrow()).finish()
    }
}

/// The receiving half of a channel. A clone inherits the last seen version from the original.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// Version of the value that was last seen.
    seen: u64,
}

impl<T> Receiver<T> {
    /// Returns a reference to the value without marking it as seen. Sending blocks while the reference
    /// exists.
    pub fn borrow(&self) -> RwLockReadGuard<'_, T> {
        self.shared.borrow()
    }

    /// Returns a reference to the value, and marks the value as seen.
    pub fn borrow_and_update(&mut self) -> RwLockReadGuard<'_, T> {
        let value = self.shared.borrow();
        self.seen = self.shared.state().version;
        value
    }

    /// Marks the current value as seen.
    pub fn mark_unchanged(&mut self) {
        self.seen = self.shared.state().version;
    }

    /// Returns whether the current value has not been seen.
    ///
    /// # Errors
    /// Returns [`Closed`] if all senders have been dropped.
    pub fn has_changed(&self) -> Result<bool, Closed> {
        let state = self.shared.state();
        match state.senders {
            0 => Err(Closed),
            _ => Ok(state.version != self.seen),
        }
    }

    /// Waits for a value that has not been seen, and marks it as seen.
    ///
    /// # Errors
    /// Returns [`Closed`] if all senders have been dropped and the last value has been seen.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        let changed = Changed {
            shared: &self.shared,
            seen: self.seen,
            waiter: None,
        };
        self.seen = changed.await?;
        Ok(())
    }

    /// Waits until the value meets a condition, and marks the value as seen. Checks the current value first.
    ///
    /// # Errors
    /// Returns [`Closed`] if all senders have been dropped and the last value does not meet the condition.
    pub async fn wait_for(&mut self, mut meets: impl FnMut(&T) -> bool) -> Result<(), Closed> {
        while !meets(&self.borrow_and_update()) {
            self.changed().await?;
        }
        Ok(())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        self.shared.state().receivers += 1;
        Receiver {
            shared: Arc::clone(&self.shared),
            seen: self.seen,
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.state().receivers -= 1;
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&*self.borrow()).finish()
    }
}

/// A future that waits for a version other than `seen` and returns it.
struct Changed<'a, T> {
    shared: &'a Shared<T>,
    seen: u64,
    waiter: Option<u64>,
}

impl<T> Future for Changed<'_, T> {
    type Output = Result<u64, Closed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<u64, Closed>> {
        let mut state = self.shared.state();
        if state.version != self.seen {
            return Poll::Ready(Ok(state.version));
        }
        if state.senders == 0 {
            return Poll::Ready(Err(Closed));
        }
        let waiter = self.waiter.unwrap_or(state.next);
        state.next = state.next.max(waiter + 1);
        state.waiters.insert(waiter, cx.waker().clone());
        drop(state);
        self.waiter = Some(waiter);
        Poll::Pending
    }
}

impl<T> Drop for Changed<'_, T> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter {
            self.shared.state().waiters.remove(&waiter);
        }
    }
}
