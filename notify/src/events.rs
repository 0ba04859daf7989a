//! Hooks, each of which runs on a separate thread.

use crate::command::CommandHook;
use crate::event::Event;
use crate::queue::{Delivery, Queue, Receipt};
use crate::webhook::Webhook;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Maximum time to wait for an aborted delivery to end.
const ABORT: Duration = Duration::from_secs(1);

/// Time limits of hooks.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Maximum duration of a command, after which the command is killed.
    pub command: Duration,
    /// Maximum duration of a webhook request, after which the request is retried.
    pub request: Duration,
    /// Wait before a webhook's first retry. Each further wait is twice as long as the previous one.
    pub first_wait: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            command: Duration::from_secs(60),
            request: Duration::from_secs(10),
            first_wait: Duration::from_millis(500),
        }
    }
}

/// Settings of hooks. This type does not implement `Debug`, because the settings may contain secrets.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Command that `sh -c` runs for each event, with the event on its standard input.
    pub command: Option<String>,
    /// URL to which each event is sent.
    pub webhook: Option<String>,
    /// Secret that signs webhook requests.
    pub secret: Option<String>,
    /// Time limits.
    pub timing: Timing,
}

impl Hooks {
    /// Checks the settings without starting the hooks.
    ///
    /// # Errors
    /// Returns a [`HookError`] if the webhook's URL or secret is invalid.
    pub fn check(&self) -> Result<(), HookError> {
        self.webhook().map(drop)
    }

    fn webhook(&self) -> Result<Option<Webhook>, HookError> {
        let webhook = |address: &String| Webhook::new(address, self.secret.as_deref(), self.timing);
        self.webhook.as_ref().map(webhook).transpose()
    }
}

/// Reason why hooks cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HookError {
    /// The webhook's URL is invalid. The message does not contain the URL, because the URL may contain a
    /// secret.
    #[error("invalid webhook URL: {0}")]
    Address(String),
    /// The webhook's secret is empty.
    #[error("the webhook secret is empty: set it to a value, or unset it")]
    EmptySecret,
    /// A hook's thread or HTTP client cannot be started, for example because the machine's root certificates cannot be
    /// read.
    #[error("cannot start the hooks")]
    Start(#[source] std::io::Error),
}

enum Hook {
    Command(CommandHook),
    Webhook(Box<Webhook>),
}

impl Hook {
    /// Returns the hook's name for logs.
    fn label(&self) -> String {
        match self {
            Hook::Command(_) => "command".to_owned(),
            Hook::Webhook(webhook) => webhook.label(),
        }
    }

    fn deliver(&self, event: &Event, queue: &Queue) -> Result<(), String> {
        let is_aborted = || queue.is_aborted();
        match self {
            Hook::Command(command) => command.deliver(event, is_aborted),
            Hook::Webhook(webhook) => webhook.deliver(event, is_aborted),
        }
    }
}

/// The queues of all running hooks. Only [`Events::close`] waits for deliveries.
#[derive(Clone)]
pub struct Events {
    queues: Arc<Vec<Arc<Queue>>>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Events to {} hooks", self.queues.len())
    }
}

impl Events {
    /// Starts the hooks. Returns `None` if no hooks are configured.
    ///
    /// # Errors
    /// Returns a [`HookError`] if the settings are invalid or a hook cannot be started.
    pub fn start(hooks: &Hooks) -> Result<Option<Events>, HookError> {
        let timing = hooks.timing;
        let mut all = Vec::new();
        if let Some(command) = hooks.command.clone() {
            let timeout = timing.command;
            all.push(Hook::Command(CommandHook { command, timeout }));
        }
        all.extend(
            hooks
                .webhook()?
                .map(|webhook| Hook::Webhook(Box::new(webhook))),
        );
        if all.is_empty() {
            return Ok(None);
        }
        let mut queues = Vec::new();
        for hook in all {
            let queue = Arc::new(Queue::default());
            queues.push(Arc::clone(&queue));
            std::thread::Builder::new()
                .name("events".to_owned())
                .spawn(move || deliver_all(&hook, &queue))
                .map_err(HookError::Start)?;
        }
        let queues = Arc::new(queues);
        Ok(Some(Events { queues }))
    }

    /// Queues an event for all hooks.
    pub fn send(&self, event: Event) {
        self.put(event, None);
    }

    /// Queues an event, and calls `then` after every hook has accepted or dropped the event. The argument is `true` if
    /// every hook accepted it. `then` runs on the thread that accepts or drops the event last.
    pub fn send_then(&self, event: Event, then: impl FnOnce(bool) + Send + 'static) {
        self.put(event, Some(Box::new(then)));
    }

    fn put(&self, event: Event, then: Option<Box<dyn FnOnce(bool) + Send>>) {
        let event = Arc::new(event);
        let receipt = Receipt::new(self.queues.len(), then);
        for queue in self.queues.iter() {
            let (event, receipt) = (Arc::clone(&event), Arc::clone(&receipt));
            queue.put(Delivery { event, receipt });
        }
    }

    /// Refuses further events, and waits until the queued events are delivered. After `limit`, aborts the
    /// remaining deliveries. This function blocks.
    pub fn close(&self, limit: Duration) {
        let until = Instant::now() + limit;
        self.queues.iter().for_each(|queue| queue.close());
        for queue in self.queues.iter() {
            if queue.wait_ended(until) {
                continue;
            }
            let events = queue.abort();
            if events > 0 {
                tracing::warn!(events, "dropped queued events at shutdown");
            }
            queue.wait_ended(Instant::now() + ABORT);
        }
    }
}

/// Delivers queued events one at a time until the queue is aborted, or is closed and empty.
fn deliver_all(hook: &Hook, queue: &Queue) {
    let label = hook.label();
    while let Some((delivery, dropped)) = queue.next() {
        if dropped > 0 {
            tracing::warn!(
                hook = label,
                dropped,
                "dropped events: the hook is too slow"
            );
        }
        let (event, run) = (delivery.event.kind.name(), &delivery.event.run);
        match hook.deliver(&delivery.event, queue) {
            Ok(()) => {
                tracing::debug!(hook = label, event, run, "delivered event");
                delivery.accept();
            }
            Err(reason) => {
                tracing::warn!(hook = label, event, run, reason, "cannot deliver event");
            }
        }
    }
    queue.set_ended();
}
