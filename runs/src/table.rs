//! Tables in the object store. A table contains the wells of one shard (a range of well hashes) at one depth.

use crate::error::ManifestError;
use crate::manifest::RUNS;
use bytes::Bytes;
use hatebeam_objects::{Objects, Stored};
use hatebeam_search::ChangedPiece;
use serde::{Deserialize, Serialize};

/// Location and checksum of a table. The table is a byte range of an object: a worker stores all of its
/// tables of a depth in one object, because object stores charge per request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The shard.
    pub shard: u32,
    /// Key of the object, relative to the run's prefix.
    pub key: String,
    /// Offset of the table within the object.
    pub offset: u64,
    /// Size of the table.
    pub bytes: u64,
    /// CRC-64/NVME checksum of the table, in hexadecimal.
    pub checksum: String,
    /// Number of wells.
    pub count: u64,
    /// Digest of the nodes, in hexadecimal.
    pub digest: String,
}

/// Returns the key of the object in which a worker stores its tables of a depth, relative to the run's prefix. `epoch` is
/// the number of the epoch (a period with a fixed set of workers) in which the depth was searched.
pub fn frontier_key(depth: u32, epoch: u64, worker: &str) -> String {
    format!("{}/{epoch}-{worker}", frontier_folder(depth))
}

/// Returns the folder of the tables of a depth, relative to the run's prefix.
pub(crate) fn frontier_folder(depth: u32) -> String {
    format!("frontier/{depth:05}")
}

impl Table {
    /// Reads the table from the object store and checks it.
    ///
    /// # Errors
    /// Returns [`ManifestError::Damaged`] if the bytes differ from those that were written, and
    /// [`ManifestError::Object`] if the object store fails.
    pub async fn read(&self, objects: &Objects, run: &str) -> Result<Bytes, ManifestError> {
        let end = self.offset.saturating_add(self.bytes);
        let key = format!("{RUNS}/{run}/{}", self.key);
        let bytes = objects.get_range(&key, self.offset..end).await?;
        let name = || format!("table at byte {} of {key}", self.offset);
        check(&bytes, self.bytes, &self.checksum, name)?;
        Ok(bytes)
    }
}

/// Returns an error with the name of an object if its contents differ from those that were written.
fn check(
    bytes: &Bytes,
    expected: u64,
    checksum: &str,
    name: impl Fn() -> String,
) -> Result<(), ManifestError> {
    let found = Stored::of(bytes);
    if found.bytes == expected && found.checksum.to_string() == checksum {
        return Ok(());
    }
    Err(ManifestError::Damaged(format!(
        "{} has {found} instead of {expected} bytes with checksum {checksum}",
        name()
    )))
}

/// The contents of a list of tables: the tables of a depth, and what a game that is read back through them needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DepthTables {
    /// The tables, at most one for each shard.
    pub tables: Vec<Table>,
    /// Wells of the previous depth in which the loop rule changes the piece, in ascending order of their text.
    /// Empty if the run ignores the loop rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedPiece>,
}

/// A list of tables in the current format or an older one.
#[derive(Deserialize)]
#[serde(untagged)]
enum AnyDepthTables {
    Current(DepthTables),
    /// Before format 6 of the manifest, the list contained only the tables.
    Tables(Vec<Table>),
}

impl DepthTables {
    /// Parses a list of tables in the current format or an older one.
    ///
    /// # Errors
    /// Returns the error of the JSON parser.
    pub fn parse(bytes: &[u8]) -> Result<DepthTables, serde_json::Error> {
        Ok(match serde_json::from_slice(bytes)? {
            AnyDepthTables::Current(list) => list,
            AnyDepthTables::Tables(tables) => DepthTables {
                tables,
                changed: Vec::new(),
            },
        })
    }
}

/// Location and checksum of an object that lists the tables of a depth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableList {
    /// Key of the object, relative to the run's prefix.
    pub key: String,
    /// Number of shards into which the tables divide the depth.
    pub shards: u32,
    /// Size of the object.
    pub bytes: u64,
    /// Checksum of the object, in hexadecimal.
    pub checksum: String,
}

impl TableList {
    /// Reads the list from the object store and checks it.
    ///
    /// # Errors
    /// Returns [`ManifestError::Damaged`] if the list differs from the one that was written, and
    /// [`ManifestError::Object`] if the object store fails.
    pub async fn read(&self, objects: &Objects, run: &str) -> Result<DepthTables, ManifestError> {
        let key = format!("{RUNS}/{run}/{}", self.key);
        let (bytes, _) = objects.get(&key).await?;
        check(&bytes, self.bytes, &self.checksum, || key.clone())?;
        DepthTables::parse(&bytes)
            .map_err(|error| ManifestError::Damaged(format!("{key}: {error}")))
    }
}

/// Checks that `tables` can be the tables of a depth with `count` wells in `shards` shards: each table has an existing
/// shard, each shard has at most one table, and the tables contain `count` wells in total.
///
/// # Errors
/// Returns a description of the problem.
pub fn check_tables(tables: &[Table], shards: u32, count: u64) -> Result<(), String> {
    let mut seen = vec![false; shards as usize];
    for table in tables {
        match seen.get_mut(table.shard as usize) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => return Err(format!("shard {} has two tables", table.shard)),
            None => return Err(format!("there is no shard {}", table.shard)),
        }
    }
    let counts = tables.iter().map(|table| table.count);
    let found = counts.fold(0, u64::saturating_add);
    if found != count {
        return Err(format!("the tables have {found} wells instead of {count}"));
    }
    Ok(())
}
