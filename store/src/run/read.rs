//! Reading and verifying depths.

use super::{DEPTHS, RunStore, open_db_read_only};
use crate::error::StoreError;
use crate::path::Lookup;
use crate::records::Records;
use crate::table::{self, Key};
use hatebeam_game::Geometry;
use hatebeam_search::{DepthRecord, Digest, Node, NodeWell};
use rocksdb::{Cache, DB};
use std::path::PathBuf;

/// Maximum number of nodes for which [`RunStore::load`] reserves memory in advance. The count in a
/// record may be wrong.
const MAX_RESERVED: u64 = 1 << 28;

impl RunStore {
    /// Returns the paths of the files that contain the wells of a depth. The files may also contain
    /// wells of other depths.
    ///
    /// # Errors
    /// Returns [`StoreError::NoDepth`] if the depth is not committed, [`StoreError::Dropped`] if
    /// its tables were deleted, or [`StoreError::Db`] or another error if RocksDB fails.
    pub fn tables(&self, depth: u32) -> Result<Vec<PathBuf>, StoreError> {
        self.kept(depth)?;
        let dir = self.db_dir();
        let files = self
            .live_files()?
            .into_iter()
            .filter(|file| table::depths_of(file).is_some_and(|depths| depths.contains(&depth)));
        Ok(files
            .map(|file| dir.join(file.name.trim_start_matches('/')))
            .collect())
    }

    /// Reads all nodes of a depth, checks their count and digest, and returns them sorted by well.
    ///
    /// # Errors
    /// Returns [`StoreError::NoDepth`] if the depth is not committed, [`StoreError::Dropped`] if
    /// its tables were deleted, [`StoreError::DamagedDepth`] if the tables are damaged or missing, or
    /// [`StoreError::Io`] if they cannot be read for another reason.
    pub fn load(&self, depth: u32) -> Result<Vec<Node>, StoreError> {
        let record = self.kept(depth)?;
        let mut nodes = Vec::with_capacity(record.count.min(MAX_RESERVED) as usize);
        self.read_depth(self.db()?, record, |node| nodes.push(node))?;
        Ok(nodes)
    }

    /// Passes each node of a depth to `take` and checks the count and digest.
    fn read_depth(
        &self,
        db: &DB,
        record: &DepthRecord,
        mut take: impl FnMut(Node),
    ) -> Result<(), StoreError> {
        let depth = record.depth;
        let damaged = |reason: String| StoreError::DamagedDepth {
            depth,
            file: None,
            reason,
        };
        let mut digest = Digest::default();
        let mut count = 0;
        let mut cursor = db.raw_iterator_opt(table::scan_options(depth));
        cursor.seek(depth.to_be_bytes());
        while let Some((key, value)) = cursor.item() {
            let node = table::node_of(self.geometry, key, value)
                .ok_or_else(|| damaged(table::INVALID_ENTRY.to_owned()))?;
            digest.add(&node);
            count += 1;
            if count > record.count {
                break;
            }
            take(node);
            cursor.next();
        }
        cursor
            .status()
            .map_err(StoreError::read(depth, &self.db_dir()))?;
        let expected = record.count;
        if count > expected {
            return Err(damaged(format!(
                "the tables contain more than {expected} wells"
            )));
        }
        if count < expected {
            return Err(damaged(format!(
                "the tables contain {count} wells, not {expected}"
            )));
        }
        if record.digest.parse() != Ok(digest) {
            let expected = &record.digest;
            return Err(damaged(format!("the digest is {digest}, not {expected}")));
        }
        Ok(())
    }

    /// Reads every depth that has tables from disk, and checks the block checksums, the count and the
    /// digest. Returns each damaged depth with an error. Ignores depths whose tables another process
    /// has deleted or written again in the meantime.
    pub fn verify(&self) -> Vec<(u32, StoreError)> {
        let mut damaged = self.verify_listed();
        if damaged.is_empty() {
            return damaged;
        }
        // A record is changed before the tables of its depth are deleted.
        match Records::read(&self.dir.join(DEPTHS)) {
            Ok(now) => damaged.retain(|(depth, _)| now.get(*depth) == self.records.get(*depth)),
            Err(error) => tracing::warn!(%error, "cannot read the records again"),
        }
        damaged
    }

    /// Verifies the depths that have tables according to the records in memory.
    fn verify_listed(&self) -> Vec<(u32, StoreError)> {
        let kept = || self.depths().iter().filter(|record| record.kept);
        // A second instance of RocksDB reads from disk, whereas the first one may read from its
        // cache.
        let options = table::options(&Cache::new_lru_cache(1 << 20));
        match open_db_read_only(&options, &self.dir) {
            Ok(db) => kept()
                .filter_map(|record| {
                    let error = self.read_depth(&db, record, |_| {}).err()?;
                    Some((record.depth, error))
                })
                .collect(),
            Err(error) => kept()
                .map(|record| {
                    let error = StoreError::Db {
                        path: self.db_dir(),
                        reason: error.to_string(),
                    };
                    (record.depth, error)
                })
                .collect(),
        }
    }
}

impl Lookup for RunStore {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn depths(&self) -> &[DepthRecord] {
        self.records.list()
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        self.kept(depth)?;
        let keys = wells
            .iter()
            .map(|well| Key::new(self.geometry, depth, well));
        table::nodes_of_values(&self.db_dir(), depth, wells, self.db()?.multi_get(keys))
    }
}
