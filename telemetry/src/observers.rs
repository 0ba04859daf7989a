//! The observers of a run on this machine: the screen, hooks and metrics.

use crate::screen::Screen;
use hatebeam_runs::{Observer, SearchResult};
use hatebeam_store::{DepthRecord, StoreError};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The observers of a run.
#[derive(Default)]
pub struct Observers {
    /// The progress display.
    pub screen: Option<Screen>,
    /// Hooks and metrics.
    pub others: Vec<Box<dyn Observer>>,
    /// URL of the metrics endpoint, if it is enabled.
    pub metrics_url: Option<String>,
}

impl Observers {
    fn for_each(&mut self, mut notify: impl FnMut(&mut dyn Observer)) {
        for other in &mut self.others {
            notify(other.as_mut());
        }
        if let Some(screen) = &mut self.screen {
            notify(screen);
        }
    }
}

impl Observer for Observers {
    fn begun(&mut self, depth: u32, parents: u64, expanded: &Arc<AtomicU64>) {
        self.for_each(|observer| observer.begun(depth, parents, expanded));
    }

    fn committed(&mut self, record: &DepthRecord) {
        self.for_each(|observer| observer.committed(record));
    }

    fn damaged(&mut self, depth: u32, error: &StoreError) {
        self.for_each(|observer| observer.damaged(depth, error));
    }

    fn ended(&mut self, result: Result<&SearchResult, &str>) {
        self.for_each(|observer| observer.ended(result));
    }
}
