//! The simulated hooks, which coordinators call with the events of runs.

use crate::process::Process;
use hatebeam_coordinator::EventSink;
use hatebeam_env::Env;
use hatebeam_notify::{Event, EventKind};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// Probability that a hook fails, per mille.
const FAILS: u64 = 100;

/// Names of the runs for which a hook has received the event that the search is complete.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<BTreeSet<String>>);

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_end_of(&self, run: &str) -> bool {
        self.lock().contains(run)
    }
}

/// The event sink of one coordinator process. It delays each event, and pending events are lost when the process ends.
pub(crate) struct Sink {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) process: Arc<Process>,
    pub(crate) env: Env,
    pub(crate) is_closed: AtomicBool,
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sink").field(&self.process.name).finish()
    }
}

impl EventSink for Sink {
    fn send(&self, event: Event, done: Option<Box<dyn FnOnce(bool) + Send>>) {
        if self.is_closed.load(Relaxed) {
            return;
        }
        let delay = self.process.rng().millis(1..=3_000);
        let fails = self.process.rng().chance(FAILS);
        let inbox = Arc::clone(&self.inbox);
        self.env.spawn(async move {
            sleep(delay).await;
            let is_end = matches!(&event.kind, EventKind::Finished { end, .. } if end == "over");
            if is_end && !fails {
                inbox.lock().insert(event.run);
            }
            if let Some(done) = done {
                done(!fails);
            }
        });
    }

    fn close(&self, _: Duration) {
        self.is_closed.store(true, Relaxed);
    }
}
