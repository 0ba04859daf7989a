//! The status of workers for clients. An *epoch* is a period with a fixed set of workers. A *shard* is a range of well
//! hashes that one worker owns. A *parent* is a well that a worker expands. A *table* is a file of wells.

use super::state::{Worker, WorkerRegistry};
use hatebeam_cost::Machine;
use std::time::Duration;

/// State of a connected worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// The worker is not in the current epoch.
    Idle,
    /// The worker is in the current epoch.
    Working,
    /// The worker hands over its shards at the end of the current depth.
    Draining,
    /// A client has drained the worker: it gets no shards.
    Drained,
    /// The worker failed repeatedly, and gets no shards for some time.
    Quarantined,
}

impl WorkerState {
    /// Returns the name used in JSON and metrics.
    pub fn name(self) -> &'static str {
        match self {
            WorkerState::Idle => "idle",
            WorkerState::Working => "working",
            WorkerState::Draining => "draining",
            WorkerState::Drained => "drained",
            WorkerState::Quarantined => "quarantined",
        }
    }
}

/// Status of a connected worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerStatus {
    /// Name of the worker.
    pub name: String,
    /// URI at which other workers reach this worker.
    pub address: String,
    /// State of the worker.
    pub state: WorkerState,
    /// Reason why the worker is quarantined; empty if it is not.
    pub note: String,
    /// Number of search threads.
    pub threads: u32,
    /// Number of shards assigned to the worker.
    pub shards: u32,
    /// Number of expanded parents in the worker's shards at the current depth.
    pub expanded: u64,
    /// Number of parents in the worker's shards at the current depth.
    pub parents: u64,
    /// Resident memory of the process in bytes.
    pub rss_bytes: u64,
    /// Memory limit of the process in bytes.
    pub memory_bytes: u64,
    /// Free space in bytes on the disk of the worker's scratch directory.
    pub disk_free_bytes: u64,
    /// Size in bytes of the disk of the worker's scratch directory.
    pub disk_bytes: u64,
    /// Time since the last message from the worker.
    pub silent: Duration,
    /// Whether the worker is far behind the others, or has missed several heartbeats.
    pub slow: bool,
    /// Machine of the worker.
    pub machine: Machine,
    /// Total size in bytes of the tables that the worker has not uploaded yet.
    pub uploading_bytes: u64,
    /// Whether the search has been waiting for the worker's uploads.
    pub uploads_behind: bool,
}

impl Worker {
    fn state(&self, epoch: u64, is_drained: bool, quarantined: Option<&str>) -> WorkerState {
        if self.is_leaving || is_drained && self.shards > 0 {
            WorkerState::Draining
        } else if is_drained {
            WorkerState::Drained
        } else if quarantined.is_some() {
            WorkerState::Quarantined
        } else if self.heartbeat.epoch == epoch && epoch > 0 {
            WorkerState::Working
        } else {
            WorkerState::Idle
        }
    }
}

impl WorkerRegistry {
    /// Returns the status of all workers, given the current epoch.
    pub(crate) fn statuses(&self, epoch: u64) -> Vec<WorkerStatus> {
        let now = self.env.now();
        let sessions = self.sessions();
        let status = |worker: &Worker| {
            let (hello, beat) = (&worker.hello, &worker.heartbeat);
            let quarantined = sessions.quarantined(&hello.name, now);
            let silent = worker.heard.elapsed();
            WorkerStatus {
                name: hello.name.clone(),
                address: hello.address.clone(),
                state: worker.state(epoch, sessions.drained.contains(&hello.name), quarantined),
                note: quarantined.unwrap_or_default().to_owned(),
                threads: hello.threads,
                shards: worker.shards,
                expanded: beat.expanded,
                parents: beat.parents,
                rss_bytes: beat.rss_bytes,
                memory_bytes: hello.memory_bytes,
                disk_free_bytes: beat.disk_free_bytes,
                disk_bytes: hello.disk_bytes,
                silent,
                slow: worker.is_slow() || silent > self.settings.heartbeat * 3,
                machine: hello.machine.clone(),
                uploading_bytes: beat.uploading_bytes,
                uploads_behind: worker.is_uploading_late(),
            }
        };
        sessions.workers.values().map(status).collect()
    }

    /// Returns the progress of the current depth's expansion, summed over the workers of an epoch.
    pub(crate) fn expansion(&self, epoch: u64) -> Expansion {
        let sessions = self.sessions();
        let workers = sessions.workers.values();
        let beats = workers.map(|worker| worker.heartbeat);
        let current = beats.filter(|beat| beat.epoch == epoch);
        current.fold(Expansion::default(), |sum, beat| Expansion {
            // A false heartbeat may contain any number.
            expanded: sum.expanded.saturating_add(beat.expanded),
            parents: sum.parents.saturating_add(beat.parents),
        })
    }
}

/// Progress of the current depth's expansion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expansion {
    /// Number of parents that are expanded.
    pub expanded: u64,
    /// Total number of parents.
    pub parents: u64,
}
