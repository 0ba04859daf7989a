//! Events of runs, and their delivery to hooks: a command, a webhook, or both.
//!
//! Each hook has a thread and a queue of its own, so that neither a search nor the other hook waits for it. A hook that is
//! slow, hangs or fails loses events, but never delays a search. `docs/events.md` is the contract with receivers.

mod command;
mod event;
mod events;
mod milestones;
mod queue;
mod webhook;

pub use event::{Event, EventKind, Progress, VERSION};
pub use events::{Events, HookError, Hooks, Timing};
pub use milestones::Milestones;
pub use webhook::SECRET_VARIABLE;
