//! Those who are told, each by a thread of its own.

use crate::command::CommandHook;
use crate::event::Event;
use crate::queue::{Delivery, Queue, Receipt};
use crate::webhook::Webhook;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// What is broken off gets so long to end.
const BREAK_OFF: Duration = Duration::from_secs(1);

/// How long a hook may take.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A command; then it is ended.
    pub command: Duration,
    /// A request of a webhook; then it is made again.
    pub request: Duration,
    /// The wait before the second try of a webhook; each further one is twice as long.
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

/// Who is to be told. It is not shown, as it may hold secrets.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Run by `sh -c` for each event, with the event on its standard input.
    pub command: Option<String>,
    /// Where each event is sent.
    pub webhook: Option<String>,
    /// What requests to the webhook are signed with.
    pub secret: Option<String>,
    /// How long they may take.
    pub timing: Timing,
}

impl Hooks {
    /// Sees whether they can be started, without starting them.
    ///
    /// # Errors
    /// [`HookError`].
    pub fn check(&self) -> Result<(), HookError> {
        self.webhook().map(drop)
    }

    fn webhook(&self) -> Result<Option<Webhook>, HookError> {
        let webhook = |address: &String| Webhook::new(address, self.secret.as_deref(), self.timing);
        self.webhook.as_ref().map(webhook).transpose()
    }
}

/// Why nobody can be told.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HookError {
    /// The webhook's address cannot be used. It is not repeated here, as it may hold a secret.
    #[error("the webhook's address cannot be used: {0}")]
    Address(String),
    /// The secret is set to nothing: whoever set it did not mean to do without.
    #[error("the webhook's secret is empty")]
    EmptySecret,
    /// There is no thread, or are no certificates, to be had.
    #[error("the hooks cannot be started")]
    Start(#[source] std::io::Error),
}

enum Hook {
    Command(CommandHook),
    Webhook(Box<Webhook>),
}

impl Hook {
    fn shown(&self) -> String {
        match self {
            Hook::Command(_) => "the command".to_owned(),
            Hook::Webhook(webhook) => webhook.shown(),
        }
    }

    fn deliver(&self, event: &Event, queue: &Queue) -> Result<(), String> {
        let is_given_up = || queue.is_given_up();
        match self {
            Hook::Command(command) => command.deliver(event, is_given_up),
            Hook::Webhook(webhook) => webhook.deliver(event, is_given_up),
        }
    }
}

/// Tells events to all hooks. Nothing here waits for them but [`Events::close`].
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
    /// Starts the hooks; none if there is nobody to tell.
    ///
    /// # Errors
    /// [`HookError`].
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
                .spawn(move || work(&hook, &queue))
                .map_err(HookError::Start)?;
        }
        let queues = Arc::new(queues);
        Ok(Some(Events { queues }))
    }

    /// Tells an event.
    pub fn send(&self, event: Event) {
        self.put(event, None);
    }

    /// Tells an event, and then says whether all hooks have taken it in: once the last one is done with it,
    /// on a thread of its own.
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

    /// Takes nothing in any more, and waits until all is told, but not for longer than this. It blocks.
    pub fn close(&self, within: Duration) {
        let until = Instant::now() + within;
        self.queues.iter().for_each(|queue| queue.close());
        for queue in self.queues.iter() {
            if queue.wait_over(until) {
                continue;
            }
            let left = queue.give_up();
            if left > 0 {
                tracing::warn!(left, "events are not told any more");
            }
            queue.wait_over(Instant::now() + BREAK_OFF);
        }
    }
}

/// Tells what comes, one after the other.
fn work(hook: &Hook, queue: &Queue) {
    while let Some((delivery, dropped)) = queue.next() {
        let shown = hook.shown();
        if dropped > 0 {
            tracing::warn!(hook = shown, dropped, "too slow: events were left out");
        }
        let (event, run) = (delivery.event.what.name(), &delivery.event.run);
        match hook.deliver(&delivery.event, queue) {
            Ok(()) => {
                tracing::debug!(hook = shown, event, run, "told");
                delivery.done();
            }
            Err(reason) => tracing::warn!(hook = shown, event, run, reason, "not told"),
        }
    }
    queue.set_over();
}
