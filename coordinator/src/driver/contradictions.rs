//! Handling of committed depths that contradict earlier ones, although their tables (the stored wells) are intact: a best well
//! is in no table, a well has no parent, or HATETRIS gives another piece than the game needs. A faulty worker has found such a
//! depth. It and all later depths are searched again.

use super::state::RunDriver;
use hatebeam_report::with_causes;
use hatebeam_runs::{Contradiction, LoopRule, MAX_GAP, ManifestError, ReadError, Table};
use hatebeam_search::DepthRecord;
use std::sync::Arc;

/// Maximum number of times that a run is searched again because of contradictions. A faulty worker that is still there may
/// cause the next one, and searching costs money.
const MAX_SEARCHES: u32 = 5;
/// Maximum number of contradictions that are removed before the search continues. Finding one takes as long as reading a game
/// back.
const MAX_REMOVED: u32 = 100;

impl RunDriver {
    /// Checks a contradiction that a worker has reported, and drops the depth and all later ones if it exists. Returns `true` if
    /// depths were dropped. Returns an error if the tables cannot be read.
    pub(super) async fn drop_if_contradicting(
        &mut self,
        reported: &Contradiction,
    ) -> Result<bool, ManifestError> {
        let Contradiction {
            depth,
            well: Some(well),
        } = reported
        else {
            return Ok(false);
        };
        if self.kept_before(*depth).is_none() {
            return Ok(false);
        }
        let checked = self
            .parts
            .reader
            .check_parent(self.manifest(), *depth, well);
        let Err(error) = checked.await else {
            return Ok(false);
        };
        if let Some(depth) = error.damaged_depth() {
            self.drop_from(depth, &with_causes(&error));
            return Ok(true);
        }
        match error {
            ReadError::Manifest(error) | ReadError::Tables { source: error, .. } => Err(error),
            error => Ok(self.drop_contradicting(&error).await),
        }
    }

    /// Drops a depth that contradicts earlier ones, and all later depths. Returns `false` if the error has another cause, or if the
    /// run was searched again too often for this reason.
    pub(super) async fn drop_contradicting(&mut self, error: &ReadError) -> bool {
        let Some(depth) = self.dropped_for(error) else {
            return false;
        };
        if self.searches_again >= MAX_SEARCHES {
            return false;
        }
        self.searches_again += 1;
        let depth = self.first_unlisted(depth).await.unwrap_or(depth);
        self.drop_from(depth, &with_causes(error));
        // Reading a game back finds the last contradiction first.
        for _ in 0..MAX_REMOVED {
            let (last, progress) = (self.depth(), Arc::default());
            let read = self
                .parts
                .reader
                .read(self.manifest(), Some(last), &progress);
            let Err(error) = read.await else {
                break;
            };
            let Some(depth) = self.dropped_for(&error) else {
                break;
            };
            self.drop_from(depth, &with_causes(&error));
        }
        true
    }

    /// Returns the depth that must be dropped because of a contradiction. Returns `None` if the error has another cause, or if the
    /// search cannot continue shortly before this depth, because the retention rule has dropped the depths there.
    fn dropped_for(&self, error: &ReadError) -> Option<u32> {
        let depth = error.contradiction()?.depth;
        let before = self.kept_before(depth)?;
        (depth - before <= MAX_GAP).then_some(depth)
    }

    /// Returns the last depth before a committed one from which the search can continue. Returns `None` if `depth` is the first
    /// one or is not committed, or if the run applies the loop rule and the tables of a depth are damaged: then games are read back
    /// without its changed pieces, which can cause the contradiction.
    fn kept_before(&self, depth: u32) -> Option<u32> {
        let manifest = self.manifest();
        manifest.committed(depth)?;
        let is_earlier = |record: &&DepthRecord| record.depth < depth;
        let records = manifest.depths.iter().map(|committed| &committed.record);
        let first = records.clone().next()?.depth;
        let is_kept = |record: &&DepthRecord| record.kept || record.depth == first;
        if manifest.spec.loops == LoopRule::Exact && !records.clone().all(|one| is_kept(&one)) {
            return None;
        }
        let kept = records.filter(is_earlier).filter(is_kept);
        kept.map(|record| record.depth).next_back()
    }

    /// Returns the first of a depth and the one before it whose tables contain other wells than their list says. Such tables also
    /// cause contradictions. Returns `None` if there is none, or if the tables cannot be read.
    async fn first_unlisted(&self, depth: u32) -> Option<u32> {
        let manifest = self.manifest();
        for depth in [depth.checked_sub(1)?, depth] {
            let committed = manifest.committed(depth);
            let Some(committed) = committed.filter(|one| one.record.kept && one.tables.is_some())
            else {
                continue;
            };
            let list = manifest.tables(&self.parts.objects, committed).await;
            let list = list.ok()?;
            let tables: Vec<&Table> = list.tables.iter().collect();
            let checked = self.parts.reader.check_wells(manifest, committed, &tables);
            if checked.await.is_err_and(|error| error.is_damage()) {
                return Some(depth);
            }
        }
        None
    }
}
