//! Futures of simulated processes.

use crate::host::{Admission, Host};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A future that is polled only if its host admits the task.
pub(crate) struct Guarded<F> {
    host: Arc<dyn Host>,
    task: u64,
    /// The wrapped future, or `None` after the host has dropped the task.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Guarded<F> {
    pub(crate) fn new(host: Arc<dyn Host>, future: F) -> Guarded<F> {
        Guarded {
            task: host.add_task(),
            future: Some(Box::pin(future)),
            host,
        }
    }
}

impl<F: Future> Future for Guarded<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.host.admit(self.task, cx.waker()) {
            Admission::Run => {}
            Admission::Wait => return Poll::Pending,
            Admission::Drop => self.future = None,
        }
        match &mut self.future {
            Some(future) => future.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Guarded<F> {
    fn drop(&mut self) {
        self.host.remove_task(self.task);
    }
}
