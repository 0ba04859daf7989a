//! Events of runs, and their delivery to hooks: a command, a webhook, or both.
//!
//! Each hook has a separate thread and queue, so that it delays neither the search nor the other hook. Events
//! are lost if a hook is too slow, hangs or fails. `docs/events.md` documents the guarantees for receivers.

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
