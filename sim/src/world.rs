//! The state that all tasks of a simulation share.

use crate::checks::Checker;
use crate::inbox::Inbox;
use crate::machine::Machine;
use crate::money::Presence;
use crate::network::Network;
use crate::options::Options;
use crate::plan::{Class, Liar, Plan, Target};
use crate::rng::Rng;
use crate::serving::{Listening, Listing, Serving};
use crate::store::Store;
use crate::trace::Trace;
use std::sync::Arc;

/// State that all tasks of a simulation share.
pub(crate) struct World {
    pub(crate) trace: Arc<Trace>,
    pub(crate) network: Arc<Network>,
    pub(crate) store: Store,
    pub(crate) checker: Arc<Checker>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) coordinators: Vec<Arc<Machine>>,
    pub(crate) workers: Vec<Arc<Machine>>,
    pub(crate) serving: Arc<Listing<Serving>>,
    pub(crate) joined: Arc<Listing<Listening>>,
    pub(crate) plan: Plan,
    pub(crate) options: Options,
    pub(crate) rng: Rng,
}

impl World {
    pub(crate) fn machine(&self, target: Target) -> &Arc<Machine> {
        match target {
            Target::Coordinator(at) => &self.coordinators[at],
            Target::Worker(at) => &self.workers[at],
        }
    }

    /// Whether the number of workers with enough memory is less than the minimum number of workers of a run.
    pub(crate) fn lacks_memory(&self) -> bool {
        let has_small = self.plan.classes.contains(&Class::OutOfMemory);
        has_small && self.plan.all_workers - 1 < self.plan.min_workers
    }

    /// Returns the liar of the plan if it is the worker `target` and may still lie.
    pub(crate) fn liar(&self, target: Target) -> Option<Liar> {
        let liar = self.plan.liar?;
        let is_lying = target == Target::Worker(liar.worker) && !self.checker.is_quiet();
        is_lying.then_some(liar)
    }

    pub(crate) fn machines(&self) -> impl Iterator<Item = &Arc<Machine>> {
        self.coordinators.iter().chain(&self.workers)
    }
}
