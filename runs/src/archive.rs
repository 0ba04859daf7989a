//! A run in the object store, read by look-ups: whatever became of the machines that searched it.

use crate::error::ManifestError;
use crate::manifest::Manifest;
use crate::read_back::ReadableRun;
use crate::record::first_node;
use crate::spec::StartingPosition;
use crate::table::Table;
use hatebeam_game::{Emulator, Geometry};
use hatebeam_objects::{ObjectError, Objects};
use hatebeam_search::{Node, NodeWell};
use hatebeam_store::{ColumnFamilies, DepthRecord, Lookup, ShardTables, StoreError};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;
use tokio::runtime::Handle;

/// A run in the object store. Tables are fetched as they are needed, the one table a look-up asks for, into
/// a folder that goes with this value.
///
/// It waits for the object store wherever it is used: not to be used on a thread that drives a runtime.
pub struct Archive {
    objects: Objects,
    runtime: Handle,
    manifest: Manifest,
    records: Vec<DepthRecord>,
    emulator: Emulator,
    start: StartingPosition,
    tables: ShardTables,
    known: Mutex<Known>,
    /// Removed with the value.
    _folder: TempDir,
}

/// What was fetched.
#[derive(Default)]
struct Known {
    lists: HashMap<u32, Vec<Table>>,
    here: HashSet<(u32, u32)>,
    bytes: u64,
}

impl Archive {
    /// Of a run with this manifest; to be called within a runtime. Tables are put into a new folder in
    /// `scratch`.
    ///
    /// # Errors
    /// What making the folder may meet, and a specification that cannot be searched.
    pub fn open(
        objects: &Objects,
        manifest: Manifest,
        scratch: &std::path::Path,
    ) -> Result<Archive, ManifestError> {
        let damaged = |error: &dyn std::fmt::Display| ManifestError::Damaged(error.to_string());
        let start = manifest.spec.check()?;
        let emulator = manifest.spec.emulator()?;
        let folder = tempfile::Builder::new()
            .prefix("hatebeam-archive-")
            .tempdir_in(scratch)
            .map_err(|error| damaged(&error))?;
        let tables = ShardTables::create(
            &folder.path().join("tables"),
            emulator.geometry(),
            ColumnFamilies::Shared,
        )
        .map_err(|error| damaged(&error))?;
        Ok(Archive {
            objects: objects.clone(),
            runtime: Handle::current(),
            records: manifest
                .depths
                .iter()
                .map(|depth| depth.record.clone())
                .collect(),
            manifest,
            emulator,
            start,
            tables,
            known: Mutex::default(),
            _folder: folder,
        })
    }

    /// How many tables were fetched so far, and their bytes.
    pub fn fetched(&self) -> (usize, u64) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        (known.here.len(), known.bytes)
    }

    /// Sees to it that the table of a shard is here; whether it has any well.
    fn fetch(&self, depth: u32, shard: u32) -> Result<bool, StoreError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.here.contains(&(depth, shard)) {
            return Ok(true);
        }
        let path = self.tables.path(&format!("{depth}-{shard}.sst"));
        let list = match known.lists.entry(depth) {
            Entry::Occupied(list) => list.into_mut(),
            Entry::Vacant(place) => {
                let mut depths = self.manifest.depths.iter();
                let of_depth = depths.find(|of| of.record.depth == depth);
                let of_depth = of_depth.ok_or(StoreError::NoDepth { depth })?;
                let list = self
                    .runtime
                    .block_on(self.manifest.tables(&self.objects, of_depth));
                place.insert(list.map_err(|error| failed(depth, &path, error))?)
            }
        };
        let table = list.iter().find(|table| table.shard == shard);
        let Some(table) = table.cloned() else {
            return Ok(false);
        };
        let fetched = table.fetch(&self.objects, &self.manifest.name, &path);
        self.runtime
            .block_on(fetched)
            .map_err(|error| failed(depth, &path, error))?;
        self.tables.ingest(depth, vec![path])?;
        known.here.insert((depth, shard));
        known.bytes += table.bytes;
        Ok(true)
    }
}

/// Converts an error of fetching a table. A missing or wrong object is damage. Any other failure of the object store
/// leaves open whether the table is whole.
fn failed(depth: u32, path: &Path, error: ManifestError) -> StoreError {
    match error {
        ManifestError::Scratch(error) => StoreError::io(path)(error),
        ManifestError::Object(error) if !is_damage(&error) => StoreError::Unavailable {
            depth,
            transient: error.is_transient(),
            source: Box::new(error),
        },
        error => StoreError::DamagedDepth {
            depth,
            file: None,
            reason: error.to_string(),
        },
    }
}

fn is_damage(error: &ObjectError) -> bool {
    matches!(
        error,
        ObjectError::NotFound { .. } | ObjectError::OutOfRange { .. } | ObjectError::Damaged { .. }
    )
}

impl Lookup for Archive {
    fn geometry(&self) -> Geometry {
        self.emulator.geometry()
    }

    fn depths(&self) -> &[DepthRecord] {
        &self.records
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        let record = self.records.iter().find(|record| record.depth == depth);
        match record {
            None => return Err(StoreError::NoDepth { depth }),
            Some(record) if !record.kept => return Err(StoreError::Dropped { depth }),
            Some(_) => {}
        }
        let first = first_node(&self.manifest.spec, &self.start).ok();
        if let Some(first) = first.filter(|_| depth == self.start.depth()) {
            let is_first = |well: &NodeWell| (*well == first.well).then_some(first);
            return Ok(wells.iter().map(is_first).collect());
        }
        let layout = self.manifest.layout();
        let mut by_shard: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, well) in wells.iter().enumerate() {
            let shard = layout.shard_of(well) as u32;
            by_shard.entry(shard).or_default().push(at);
        }
        let mut nodes = vec![None; wells.len()];
        for (shard, places) in by_shard {
            if !self.fetch(depth, shard)? {
                continue;
            }
            let wanted: Vec<NodeWell> = places.iter().map(|&at| wells[at]).collect();
            let found = self.tables.multi_get(depth, &wanted)?;
            for (at, node) in places.into_iter().zip(found) {
                nodes[at] = node;
            }
        }
        Ok(nodes)
    }
}

impl ReadableRun for Archive {
    type Store = Archive;

    fn store(&self) -> &Archive {
        self
    }

    fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    fn start(&self) -> &StartingPosition {
        &self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_or_wrong_objects_are_damage() {
        let (store, key) = ("s3://bucket", "runs/a/frontier/7/1");
        let text = str::to_owned;
        let unavailable = ObjectError::Unavailable {
            store: text(store),
            key: text(key),
            reason: text("SlowDown"),
        };
        let denied = ObjectError::Denied {
            store: text(store),
            key: text(key),
            reason: text("AccessDenied"),
        };
        for (error, transient) in [(unavailable, true), (denied, false)] {
            let error = failed(7, Path::new("7-0.sst"), ManifestError::Object(error));
            assert!(
                matches!(error, StoreError::Unavailable { depth: 7, .. }),
                "{error}"
            );
            assert_eq!(error.is_transient(), transient, "{error}");
        }
        let missing = ManifestError::Object(ObjectError::NotFound {
            store: text(store),
            key: text(key),
        });
        let wrong = ManifestError::Damaged(text("the checksum is wrong"));
        for error in [missing, wrong] {
            let error = failed(7, Path::new("7-0.sst"), error);
            assert!(
                matches!(error, StoreError::DamagedDepth { depth: 7, .. }),
                "{error}"
            );
        }
    }
}
