//! What happens to a run, told to whoever wants to know: a command, a webhook, or both.
//!
//! Each hook has a thread and a queue of its own, so that neither a search nor the other hook waits for it.
//! A hook that is slow, hangs or fails loses milestones, and the search nothing. `docs/events.md` is the
//! contract with those who listen.

mod command;
mod event;
mod events;
mod queue;
mod webhook;

pub use event::{Event, EventKind, VERSION};
pub use events::{Events, HookError, Hooks, Timing};
pub use webhook::SECRET_VARIABLE;
