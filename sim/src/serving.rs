//! The processes that accept connections.

use crate::machine::Machine;
use crate::network::NodeId;
use crate::process::Process;
use hatebeam_coordinator::Coordinator;
use hatebeam_env::Env;
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

/// The coordinators that accept workers and clients, by machine.
#[derive(Default)]
pub(crate) struct Coordinators(Mutex<BTreeMap<NodeId, Serving>>);

impl Coordinators {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, Serving>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn all(&self) -> Vec<Serving> {
        self.lock().values().cloned().collect()
    }
}

/// A worker that accepts streams from other workers.
#[derive(Clone)]
pub(crate) struct Listening {
    pub(crate) process: Arc<Process>,
    pub(crate) env: Env,
    pub(crate) inbound: InboundExchange,
    pub(crate) attempt: Attempt,
}

/// The workers that accept streams, by machine.
#[derive(Default)]
pub(crate) struct Workers(Mutex<BTreeMap<NodeId, Listening>>);

impl Workers {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, Listening>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The depth and the attempt number of the last `expand` order that a worker process received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempt(Arc<Mutex<(u32, u32)>>);

impl Attempt {
    pub(crate) fn get(&self) -> (u32, u32) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, depth: u32, number: u32) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (depth, number);
    }
}
