//! The processes that accept connections.

use crate::machine::Machine;
use crate::network::NodeId;
use crate::plan::Target;
use crate::process::Process;
use hatebeam_coordinator::Coordinator;
use hatebeam_env::Env;
use hatebeam_game::Geometry;
use hatebeam_proto::messages::OrderKind;
use hatebeam_worker::InboundExchange;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A coordinator that accepts workers and clients.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) machine: Arc<Machine>,
    pub(crate) process: Arc<Process>,
    pub(crate) env: Env,
    pub(crate) coordinator: Coordinator,
}

/// The processes that accept connections, by machine.
pub(crate) struct Listing<T>(Mutex<BTreeMap<NodeId, T>>);

impl<T: Clone> Listing<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Listing(Mutex::default()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.lock().values().cloned().collect()
    }

    pub(crate) fn get(&self, node: NodeId) -> Option<T> {
        self.lock().get(&node).cloned()
    }

    /// Adds a process until the guard is dropped, so until the process ends for any reason.
    pub(crate) fn add(self: &Arc<Self>, node: NodeId, process: T) -> Listed<T> {
        self.lock().insert(node, process);
        Listed {
            listing: Arc::clone(self),
            node,
        }
    }
}

/// Guard that removes a process from its listing.
pub(crate) struct Listed<T: Clone> {
    listing: Arc<Listing<T>>,
    node: NodeId,
}

impl<T: Clone> Drop for Listed<T> {
    fn drop(&mut self) {
        self.listing.lock().remove(&self.node);
    }
}

/// A worker that accepts streams from other workers.
#[derive(Clone)]
pub(crate) struct Listening {
    pub(crate) process: Arc<Process>,
    pub(crate) target: Target,
    pub(crate) env: Env,
    pub(crate) inbound: InboundExchange,
    pub(crate) orders: LastOrders,
}

/// Contents of the last orders that a worker process received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ordered {
    /// Name of the run.
    pub(crate) run: String,
    /// Geometry of the run's wells.
    pub(crate) geometry: Option<Geometry>,
    /// Depth of the last order to expand.
    pub(crate) depth: u32,
    /// Number of the attempt at this depth.
    pub(crate) attempt: u32,
    /// Depth of the last order to report uploaded tables.
    pub(crate) commit: u32,
}

/// The contents of the last orders, shared by the tasks of a worker process.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastOrders(Arc<Mutex<Ordered>>);

impl LastOrders {
    pub(crate) fn get(&self) -> Ordered {
        self.lock().clone()
    }

    /// Records an order.
    pub(crate) fn note(&self, order: &OrderKind) {
        let mut ordered = self.lock();
        match order {
            OrderKind::Prepare(prepare) => {
                ordered.run.clone_from(&prepare.run);
                ordered.geometry = prepare.spec.well.geometry().ok();
            }
            OrderKind::Expand(expand) => {
                (ordered.depth, ordered.attempt) = (expand.depth, expand.attempt);
            }
            OrderKind::WaitCommit(wait) => ordered.commit = wait.depth,
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ordered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
