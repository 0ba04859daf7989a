//! Handling of committed depths whose tables (the stored wells) cannot be read, or whose wells contradict those of earlier
//! depths. The depths after the last intact one are searched again. The search is deterministic, so it finds the same wells,
//! unless a faulty worker has found wrong ones.

use super::state::RunDriver;
use hatebeam_report::with_causes;
use hatebeam_runs::{CommittedDepth, LoopRule, ManifestError, ReadError, Table, fetch_network};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Maximum number of times that a depth which contradicts earlier ones is searched again although one at the same depth or
/// before it was. A faulty worker that is still there may cause the next contradiction, and searching costs money.
const MAX_REPEATED: u32 = 3;

/// The depths that were dropped because they contradicted earlier ones.
#[derive(Debug, Default)]
pub(super) struct Contradictions {
    /// The first of these depths.
    first: Option<u32>,
    /// Number of depths that were dropped although one at the same depth or before it was. Their wells were found afterwards.
    repeated: u32,
}

impl Contradictions {
    /// Adds a depth that contradicts earlier ones. Returns `false` if this has happened too often to search it again.
    fn add(&mut self, depth: u32) -> bool {
        if self.first.is_some_and(|first| first <= depth) {
            self.repeated += 1;
        }
        self.first = Some(self.first.map_or(depth, |first| first.min(depth)));
        self.repeated <= MAX_REPEATED
    }
}

impl RunDriver {
    /// Checks a committed depth after a worker has reported damage, and drops it and all later depths if it is damaged.
    /// This is the last depth unless the worker names an earlier one, whose tables it needs for the loop rule. An earlier
    /// depth of a run without this rule is not checked: no worker needs its tables, and the retention rule may have deleted
    /// them. Returns `true` if the depth was dropped. Returns an error if the run's network is missing or damaged, or if the
    /// depth cannot be checked.
    pub(super) async fn drop_if_damaged(
        &mut self,
        worker: &str,
        named: Option<u32>,
    ) -> Result<bool, ManifestError> {
        fetch_network(&self.parts.objects, &self.manifest().spec.evaluator).await?;
        let depth = named.unwrap_or_else(|| self.depth());
        let is_needed = depth == self.depth() || self.manifest().spec.loops == LoopRule::Exact;
        let committed = self.manifest().committed(depth);
        let Some(committed) = committed.filter(|depth| is_needed && depth.record.kept) else {
            return Ok(false);
        };
        match self.check_depth(committed, worker).await {
            Ok(()) if self.manifest().spec.loops == LoopRule::Exact => {
                match self.parts.reader.check_games(self.manifest()).await {
                    Ok(()) => Ok(false),
                    Err(error) => Ok(self.drop_contradicting(&error)),
                }
            }
            Ok(()) => Ok(false),
            Err(error) if error.is_damage() => {
                let depths = &mut self.manifest_mut().depths;
                depths.retain(|committed| committed.record.depth <= depth);
                self.drop_damaged(&error);
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Drops a depth that contradicts earlier ones, and all later depths. Returns `false` if the error has another cause, or
    /// if depths were dropped for this reason too often.
    pub(super) fn drop_contradicting(&mut self, error: &ReadError) -> bool {
        let Some(depth) = error.contradicting_depth() else {
            return false;
        };
        let first = self.manifest().depths.first();
        let is_first = first.is_none_or(|first| depth <= first.record.depth);
        if is_first || !self.contradictions.add(depth) {
            return false;
        }
        let depths = &mut self.manifest_mut().depths;
        depths.retain(|committed| committed.record.depth <= depth);
        self.drop_damaged(&with_causes(error));
        true
    }

    /// Checks that all objects of a depth exist and are long enough for their tables. Also verifies the contents of
    /// the tables that `worker` needs: those with wells of its shards, or all if the run applies the loop rule.
    async fn check_depth(&self, depth: &CommittedDepth, worker: &str) -> Result<(), ManifestError> {
        let (objects, manifest) = (&self.parts.objects, self.manifest());
        let list = manifest.tables(objects, depth).await?;
        let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
        for table in &list.tables {
            let end = ends.entry(&table.key).or_default();
            *end = table.offset.saturating_add(table.bytes).max(*end);
        }
        for (key, end) in ends {
            let key = format!("{}/{key}", manifest.prefix());
            let size = objects.size(&key).await?;
            if size < end {
                let reason = format!("{key} has {size} bytes instead of at least {end}");
                return Err(ManifestError::Damaged(reason));
            }
        }
        let layout = manifest.layout();
        let stored = depth.tables.as_ref();
        let stored = stored.map_or(layout, |list| manifest.layout_of(list));
        let is_own = |table: &&Table| {
            let shards = layout.overlapping(stored, table.shard as usize);
            let owners = self.owners.get(shards).unwrap_or_default();
            manifest.spec.loops == LoopRule::Exact || owners.iter().any(|owner| owner == worker)
        };
        let own: Vec<&Table> = list.tables.iter().filter(is_own).collect();
        self.parts.reader.check_wells(manifest, depth, &own).await
    }

    /// Drops the last committed depth, whose tables cannot be read, and the depths directly before it whose tables are
    /// not stored. The search resumes from the last remaining depth.
    pub(super) fn drop_damaged(&mut self, error: &dyn Display) {
        let depth = self.depth();
        tracing::warn!(depth, %error, "dropped damaged depth: searching it again");
        self.mark_damaged(depth);
        self.drop_trailing();
        self.note(format!("searching depth {depth} again: {error}"));
    }

    /// Marks the tables of a depth as not stored.
    pub(super) fn mark_damaged(&mut self, depth: u32) {
        let mut depths = self.manifest_mut().depths.iter_mut();
        if let Some(damaged) = depths.find(|committed| committed.record.depth == depth) {
            damaged.record.kept = false;
            damaged.record.bytes = 0;
        }
    }

    /// Drops depths from the end until the tables of the last remaining depth are stored, since the search can resume
    /// only from such a depth. A run with the loop rule needs the tables of all depths, so all depths from the first one
    /// without tables are dropped. Never drops the first depth.
    pub(super) fn drop_trailing(&mut self) {
        let is_exact = self.manifest().spec.loops == LoopRule::Exact;
        let depths = &mut self.manifest_mut().depths;
        if is_exact && let Some(missing) = depths.iter().position(|depth| !depth.record.kept) {
            depths.truncate(missing.max(1));
        }
        while depths.len() > 1 && depths.last().is_some_and(|last| !last.record.kept) {
            depths.pop();
        }
    }
}
