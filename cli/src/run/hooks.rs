//! What a run on one machine tells those who want to know, on its way to whoever else observes it.

use crate::hooks::HookArgs;
use hatebeam_notify::{Event, EventKind, Events};
use hatebeam_runs::{Observer, Run};
use hatebeam_store::{DepthRecord, StoreError};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

/// How long what is still to be told keeps a run that has ended.
const DRAIN: Duration = Duration::from_secs(10);

/// Those who are told. When this goes, all is told, or time is up.
pub(crate) struct Hooks {
    events: Option<Events>,
    every: u32,
    run: String,
    depth: u32,
    lines: u16,
}

impl Hooks {
    /// Begins to tell of a run that is about to be searched.
    pub(crate) fn start(args: &HookArgs, run: &Run, name: &str) -> anyhow::Result<Hooks> {
        let depths = run.store().depths();
        let lines = depths.iter().map(|record| record.best_lines).max();
        let hooks = Hooks {
            events: args.start()?,
            every: args.every(),
            run: name.to_owned(),
            depth: depths.last().map_or(0, |last| last.depth),
            lines: lines.unwrap_or(0),
        };
        let width = run.spec().width;
        hooks.tell(EventKind::Started { width });
        Ok(hooks)
    }

    /// Tells that something happens.
    pub(crate) fn tell(&self, what: EventKind) {
        self.tell_scored(u32::from(self.lines), what);
    }

    /// Tells that something happens which changes the score.
    pub(crate) fn tell_scored(&self, score: u32, what: EventKind) {
        if let Some(events) = &self.events {
            let standing = (self.depth, score);
            events.send(Event::new(&self.run, standing, what, SystemTime::now()));
        }
    }

    /// Tells on what is committed.
    pub(crate) fn observe<'a>(&'a mut self, next: &'a mut dyn Observer) -> Observed<'a> {
        Observed { hooks: self, next }
    }

    fn committed(&mut self, record: &DepthRecord) {
        self.depth = record.depth;
        if record.best_lines > self.lines {
            self.lines = record.best_lines;
            self.tell(EventKind::BestScore {});
        }
        if record.depth.is_multiple_of(self.every) {
            self.tell(EventKind::Depth {
                wells: record.count,
                children: record.children,
                seconds: record.seconds,
            });
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

/// Tells what is committed, and passes it on.
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
