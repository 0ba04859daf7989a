//! Events of a run on one machine for hooks.

use crate::hooks::HookArgs;
use hatebeam_notify::{Event, EventKind, Events, Milestones, Progress};
use hatebeam_runs::{Observer, Run};
use hatebeam_store::{DepthRecord, StoreError};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

/// How long the end of a run waits for queued events.
const DRAIN: Duration = Duration::from_secs(10);

/// The hooks of a run. Dropping this waits until queued events are delivered, within a limit.
pub(crate) struct Hooks {
    events: Option<Events>,
    run: String,
    milestones: Milestones,
}

impl Hooks {
    /// Starts the hooks of a run that is about to be searched.
    pub(crate) fn start(args: &HookArgs, run: &Run, name: &str) -> anyhow::Result<Hooks> {
        let progress = Progress {
            depth: run.store().depths().last().map_or(0, |last| last.depth),
            lines: run.best_lines(),
        };
        let hooks = Hooks {
            events: args.start()?,
            run: name.to_owned(),
            milestones: Milestones::new(args.every(), progress),
        };
        let width = run.spec().width;
        hooks.send(EventKind::Started { width });
        Ok(hooks)
    }

    /// Sends an event.
    pub(crate) fn send(&self, kind: EventKind) {
        self.send_with_lines(self.milestones.progress().lines, kind);
    }

    /// Sends an event of a game with this number of lines.
    pub(crate) fn send_with_lines(&self, lines: u32, kind: EventKind) {
        if let Some(events) = &self.events {
            let progress = Progress {
                lines,
                ..self.milestones.progress()
            };
            events.send(Event::new(&self.run, progress, kind, SystemTime::now()));
        }
    }

    /// Returns an observer that sends the events of committed depths and passes all calls on.
    pub(crate) fn observe<'a>(&'a mut self, next: &'a mut dyn Observer) -> Observed<'a> {
        Observed { hooks: self, next }
    }

    fn committed(&mut self, record: &DepthRecord) {
        for event in self.milestones.committed(record) {
            self.send(event);
        }
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        if let Some(events) = &self.events {
            events.close(DRAIN);
        }
    }
}

/// Sends the events of committed depths, and passes all calls on.
pub(crate) struct Observed<'a> {
    hooks: &'a mut Hooks,
    next: &'a mut dyn Observer,
}

impl Observer for Observed<'_> {
    fn begun(&mut self, depth: u32, parents: u64, expanded: &Arc<AtomicU64>) {
        self.next.begun(depth, parents, expanded);
    }

    fn committed(&mut self, record: &DepthRecord) {
        self.hooks.committed(record);
        self.next.committed(record);
    }

    fn damaged(&mut self, depth: u32, error: &StoreError) {
        self.next.damaged(depth, error);
    }
}
