//! Handling of committed depths whose tables (the stored wells) cannot be read. The depths after the last intact one
//! are searched again. The search is deterministic, so it finds the same wells.

use super::state::RunDriver;
use hatebeam_cost::Micros;
use hatebeam_runs::{CommittedDepth, LoopRule, ManifestError, Table, fetch_network};
use std::collections::BTreeMap;
use std::fmt::Display;

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
            Ok(()) => Ok(false),
            Err(error) if error.is_damage() => {
                self.drop_from(depth, &error);
                Ok(true)
            }
            Err(error) => Err(error),
        }
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

    /// Drops a depth after the first one and all later depths. The search resumes from the last remaining depth whose tables are
    /// stored.
    pub(super) fn drop_from(&mut self, depth: u32, reason: &dyn Display) {
        let last = self.depth();
        tracing::warn!(depth, last, %reason, "dropped depths: searching them again");
        let depths = self.manifest().depths.iter();
        self.keep_first(depths.take_while(|one| one.record.depth < depth).count());
        self.drop_trailing();
        let next = self.depth() + 1;
        self.note(format!("searching again from depth {next} on: {reason}"));
    }

    /// Keeps this number of depths, at least one. The cost of the others counts as the cost of waiting, since the next depth
    /// need not cost as much. If depths are removed, the search has not ended.
    fn keep_first(&mut self, count: usize) {
        let manifest = self.manifest_mut();
        let kept = count.max(1).min(manifest.depths.len());
        let removed = manifest.depths.split_off(kept);
        if !removed.is_empty() {
            manifest.end = None;
        }
        let cost: Micros = removed.iter().map(|depth| depth.cost).sum();
        self.waiting = self.waiting.saturating_add(cost);
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
        let depths = &self.manifest().depths;
        let is_stored = |depth: &&CommittedDepth| depth.record.kept;
        let count = match is_exact {
            true => depths.iter().take_while(is_stored).count(),
            false => {
                let last = depths.iter().rposition(|depth| is_stored(&depth));
                last.map_or(0, |last| last + 1)
            }
        };
        self.keep_first(count);
    }
}
