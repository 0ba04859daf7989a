//! Tables of a depth in the object store.

use crate::error::ManifestError;
use crate::manifest::RUNS;
use bytes::Bytes;
use hatebeam_objects::{Objects, Stored};
use serde::{Deserialize, Serialize};

/// The table of one shard at one depth: a range of an object. A worker stores its tables of a depth in one object,
/// because an object store charges by the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The shard.
    pub shard: u32,
    /// Key of the object, relative to the run's prefix.
    pub key: String,
    /// Offset of the table in the object.
    pub offset: u64,
    /// Size of the table.
    pub bytes: u64,
    /// Checksum of the table, CRC-64/NVME in hex.
    pub checksum: String,
    /// Number of wells.
    pub count: u64,
    /// Digest of the nodes in hex.
    pub digest: String,
}

impl Table {
    /// Reads the table from the object store and checks it.
    ///
    /// # Errors
    /// [`ManifestError::Damaged`] if the bytes are not those that were written; errors of the object store.
    pub async fn read(&self, objects: &Objects, run: &str) -> Result<Bytes, ManifestError> {
        let end = self.offset.saturating_add(self.bytes);
        let key = format!("{RUNS}/{run}/{}", self.key);
        let bytes = objects.get_range(&key, self.offset..end).await?;
        let found = Stored::of(&bytes);
        if found.bytes != self.bytes || found.checksum.to_string() != self.checksum {
            return Err(ManifestError::Damaged(format!(
                "table at byte {} of {key} has {found} instead of {} bytes with checksum {}",
                self.offset, self.bytes, self.checksum
            )));
        }
        Ok(bytes)
    }
}

/// The object that lists the tables of a depth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableList {
    /// Key of the object, relative to the run's prefix.
    pub key: String,
    /// Size of the object.
    pub bytes: u64,
    /// Checksum of the object in hex.
    pub checksum: String,
}

impl TableList {
    /// Reads the list from the object store and checks it.
    ///
    /// # Errors
    /// [`ManifestError::Damaged`] if the list is not the one that was written; errors of the object store.
    pub async fn read(&self, objects: &Objects, run: &str) -> Result<Vec<Table>, ManifestError> {
        let key = format!("{RUNS}/{run}/{}", self.key);
        let (bytes, _) = objects.get(&key).await?;
        let found = Stored::of(&bytes);
        if found.bytes != self.bytes || found.checksum.to_string() != self.checksum {
            return Err(ManifestError::Damaged(format!(
                "{key} has {found} instead of {} bytes with checksum {}",
                self.bytes, self.checksum
            )));
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| ManifestError::Damaged(format!("{key}: {error}")))
    }
}
