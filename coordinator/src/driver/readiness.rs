//! Waiting for enough workers before an epoch (a period of a run with a fixed set of workers) begins.

use super::assign::{layout_for, shards_in};
use super::state::{RunDriver, RunEnd};
use crate::registry::Member;
use hatebeam_runs::{Manifest, memory_needed, memory_of_loops};
use hatebeam_search::gathered_layout;
use std::time::Duration;

/// Time for which the set of workers must not change before an epoch begins. Workers often join in groups, and each
/// change during an epoch ends it.
const SETTLE: Duration = Duration::from_millis(400);
/// Maximum time to wait for the workers to settle. After this time, the epoch begins even if workers keep joining and
/// leaving.
const MAX_SETTLE: Duration = Duration::from_secs(5);
/// Interval at which a waiting run checks its limits, since waiting also uses time and money.
const LIMIT_CHECK: Duration = Duration::from_secs(1);

pub(super) enum Readiness {
    /// There are enough workers.
    Ready(Vec<Member>),
    /// A client's update must be applied first.
    UpdatePending,
    Ended(RunEnd),
}

/// Describes the lack of memory if a beam does not fit into the memory of these workers. Returns `None` if it fits,
/// or if the memory of a worker is unknown. The shards are those of the manifest, split for these workers.
pub(crate) fn missing_memory(
    workers: &[Member],
    manifest: &Manifest,
    min_shard_wells: usize,
) -> Option<String> {
    let layout = layout_for(workers, manifest.layout(), min_shard_wells);
    let spec = &manifest.spec;
    let fitting = workers
        .iter()
        .map(|worker| shards_in(worker.memory_bytes, worker.threads, spec, layout));
    if fitting.fold(0, usize::saturating_add) >= layout.shards() {
        return None;
    }
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    let memory = workers.iter().map(|worker| worker.memory_bytes).sum();
    // A worker has buffers only for its own threads, so the estimate uses the greatest thread count, not the sum.
    let threads = workers.iter().map(|worker| worker.threads).max();
    let gathered = gathered_layout(layout, spec.evaluator.quiescence);
    let needed = memory_needed(gathered.width() as u64, threads.unwrap_or(0) as usize)
        + memory_of_loops(spec.width, spec.loops) * workers.len() as u64;
    Some(format!(
        "a beam of {} wells in {} shards needs {:.1} GB of memory, and the {} connected workers have {:.1} GB",
        layout.width(),
        layout.shards(),
        gigabytes(needed),
        workers.len(),
        gigabytes(memory),
    ))
}

impl RunDriver {
    /// Waits until there are enough workers, a client update is pending, or the run ends.
    pub(super) async fn wait_for_workers(&self) -> Readiness {
        let registry = &self.parts.registry;
        let mut changes = registry.changes();
        let mut updates = self.parts.queue.updates();
        let wanted = self.parts.settings.min_workers.max(1);
        // Start of the period in which there have been enough workers.
        let mut enough_since = None;
        loop {
            changes.mark_unchanged();
            updates.mark_unchanged();
            if let Some(readiness) = self.reason_not_to_wait() {
                return readiness;
            }
            registry.release(&[]);
            let members = registry.members();
            let missing = match members.len() < wanted {
                true => Some(format!("{} of {wanted}", members.len())),
                false => {
                    let least = self.parts.settings.min_shard_wells;
                    missing_memory(&members, self.manifest(), least)
                }
            };
            if let Some(missing) = missing {
                enough_since = None;
                self.note(format!("waiting for workers: {missing}"));
                tokio::select! {
                    biased;
                    _ = changes.changed() => {}
                    _ = updates.changed() => {}
                    () = tokio::time::sleep(LIMIT_CHECK) => {}
                }
                continue;
            }
            let since = *enough_since.get_or_insert_with(|| self.parts.env.now());
            let settle = SETTLE.min(MAX_SETTLE.saturating_sub(since.elapsed()));
            let settled = tokio::time::timeout(settle, changes.changed()).await;
            if settled.is_err() {
                return Readiness::Ready(members);
            }
        }
    }

    fn reason_not_to_wait(&self) -> Option<Readiness> {
        if self.parts.queue.has_update(&self.manifest().name) {
            Some(Readiness::UpdatePending)
        } else if self.manifest().stop_requested {
            Some(Readiness::Ended(RunEnd::Cancelled))
        } else {
            let limit = self.reached_limit();
            limit.map(|limit| Readiness::Ended(RunEnd::Over(limit)))
        }
    }
}
