//! The log of a simulation.

use std::fmt::{Display, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Level of detail of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Injected faults, client requests and their answers, starts and ends of processes, changes to manifests and the
    /// lease, and violations.
    #[default]
    Events,
    /// Everything in [`Detail::Events`], plus messages, object store requests, and the log messages of coordinators
    /// and workers.
    Everything,
}

/// The log of one simulation. Each line contains the virtual time in milliseconds, the name of a process or of a part
/// of the simulation, and a text.
#[derive(Debug)]
pub(crate) struct Trace {
    detail: Detail,
    began: Instant,
    text: Mutex<String>,
}

impl Trace {
    pub(crate) fn new(detail: Detail) -> Trace {
        Trace {
            detail,
            began: Instant::now(),
            text: Mutex::default(),
        }
    }

    fn text(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has(&self, detail: Detail) -> bool {
        self.detail >= detail
    }

    pub(crate) fn event(&self, node: &str, what: impl Display) {
        let millis = self.began.elapsed().as_millis();
        // Writing to a string cannot fail.
        let _ = writeln!(self.text(), "{millis:>8} {node:<6} {what}");
    }

    /// Logs a line if the level is [`Detail::Everything`]. Calls `what` only in this case.
    pub(crate) fn detail<D: Display>(&self, node: &str, what: impl FnOnce() -> D) {
        if self.has(Detail::Everything) {
            self.event(node, what());
        }
    }

    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut *self.text())
    }
}
