//! The status of workers, for clients.

use super::state::{Worker, WorkerRegistry};
use hatebeam_cost::Machine;
use std::time::Duration;
use tokio::time::Instant;

/// State of a connected worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// It has no shards.
    Idle,
    /// It works on the current epoch.
    Working,
    /// It leaves at the end of the current depth.
    Draining,
    /// It failed repeatedly and gets no shards for a while.
    Quarantined,
}

impl WorkerState {
    /// Returns the name, as in JSON and metrics.
    pub fn name(self) -> &'static str {
        match self {
            WorkerState::Idle => "idle",
            WorkerState::Working => "working",
            WorkerState::Draining => "draining",
            WorkerState::Quarantined => "quarantined",
        }
    }
}

/// A connected worker, as clients see it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerStatus {
    /// Its name.
    pub name: String,
    /// URI at which other workers reach it.
    pub address: String,
    /// Its state.
    pub state: WorkerState,
    /// Reason for its quarantine; empty if it is not quarantined.
    pub note: String,
    /// Threads that search.
    pub threads: u32,
    /// Shards that it has.
    pub shards: u32,
    /// Parents of the current depth that it has expanded.
    pub expanded: u64,
    /// Parents of the current depth in its shards.
    pub parents: u64,
    /// Resident memory of the process.
    pub rss_bytes: u64,
    /// Memory that it may use.
    pub memory_bytes: u64,
    /// Free space on the disk of its scratch directory.
    pub disk_free_bytes: u64,
    /// Size of that disk.
    pub disk_bytes: u64,
    /// Time since its last message.
    pub silent: Duration,
    /// Whether the other workers wait for it, or it is silent.
    pub slow: bool,
    /// Its machine.
    pub machine: Machine,
    /// Bytes of tables that are not uploaded yet.
    pub uploading_bytes: u64,
    /// Whether the search has waited for its uploads for a while.
    pub uploads_behind: bool,
}

impl Worker {
    fn state(&self, epoch: u64, now: Instant) -> WorkerState {
        if self.is_leaving {
            WorkerState::Draining
        } else if self.quarantined(now).is_some() {
            WorkerState::Quarantined
        } else if self.heartbeat.epoch == epoch && epoch > 0 {
            WorkerState::Working
        } else {
            WorkerState::Idle
        }
    }
}

impl WorkerRegistry {
    /// Returns the status of all workers while `epoch` is the current one.
    pub(crate) fn statuses(&self, epoch: u64) -> Vec<WorkerStatus> {
        let now = self.env.now();
        let status = |worker: &Worker| {
            let (hello, beat) = (&worker.hello, &worker.heartbeat);
            let silent = worker.heard.elapsed();
            WorkerStatus {
                name: hello.name.clone(),
                address: hello.address.clone(),
                state: worker.state(epoch, now),
                note: worker.quarantined(now).unwrap_or_default().to_owned(),
                threads: hello.threads,
                shards: worker.shards,
                expanded: beat.expanded,
                parents: beat.parents,
                rss_bytes: beat.rss_bytes,
                memory_bytes: hello.memory_bytes,
                disk_free_bytes: beat.disk_free_bytes,
                disk_bytes: hello.disk_bytes,
                silent,
                slow: worker.is_slow() || silent > self.heartbeat * 3,
                machine: hello.machine.clone(),
                uploading_bytes: beat.uploading_bytes,
                uploads_behind: worker.is_uploading_late(),
            }
        };
        self.sessions().workers.values().map(status).collect()
    }

    /// Returns the parents of this epoch's current depth that are expanded, and all of them.
    pub(crate) fn expansion(&self, epoch: u64) -> Expansion {
        let sessions = self.sessions();
        let workers = sessions.workers.values();
        let beats = workers.map(|worker| worker.heartbeat);
        let current = beats.filter(|beat| beat.epoch == epoch);
        current.fold(Expansion::default(), |sum, beat| Expansion {
            expanded: sum.expanded + beat.expanded,
            parents: sum.parents + beat.parents,
        })
    }
}

/// Progress of the current depth's expansion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expansion {
    /// Parents that are expanded.
    pub expanded: u64,
    /// All parents.
    pub parents: u64,
}
