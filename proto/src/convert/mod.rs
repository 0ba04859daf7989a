//! Conversions between the generated types and the [messages](crate::messages).
//!
//! Messages convert into generated types without failure. The other direction fails with a [`MessageError`] that
//! names the field. Texts for people are cut to their longest length and never refused.

mod answers;
mod exchange;
mod orders;
mod session;
mod state;

use crate::v1;
use hatebeam_runs::Table;
use hatebeam_search::{NodeWell, WELL_BYTES};
use thiserror::Error;

/// Characters of the longest reason to leave.
pub const MAX_REASON: usize = 200;
/// Characters of the longest reason of a failure.
pub const MAX_FAILURE: usize = 1000;

/// A field of a message that cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid message: {field}: {reason}")]
pub struct MessageError {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl MessageError {
    fn new(field: &'static str, reason: impl ToString) -> MessageError {
        MessageError {
            field,
            reason: reason.to_string(),
        }
    }

    fn missing(field: &'static str) -> MessageError {
        MessageError::new(field, "missing")
    }
}

fn cut(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// Reads a table. Whether it fits the run is for the caller to check.
fn read_table(table: v1::Table) -> Table {
    Table {
        shard: table.shard,
        key: table.key,
        offset: table.offset,
        bytes: table.bytes,
        checksum: table.checksum,
        count: table.count,
        digest: table.digest,
    }
}

impl From<Table> for v1::Table {
    fn from(table: Table) -> v1::Table {
        v1::Table {
            shard: table.shard,
            key: table.key,
            offset: table.offset,
            bytes: table.bytes,
            checksum: table.checksum,
            count: table.count,
            digest: table.digest,
        }
    }
}

fn pack_wells(wells: &[NodeWell]) -> Vec<u8> {
    wells.iter().flat_map(|well| well.0).collect()
}

fn unpack_wells(field: &'static str, bytes: &[u8]) -> Result<Vec<NodeWell>, MessageError> {
    let (wells, rest) = bytes.as_chunks::<WELL_BYTES>();
    if !rest.is_empty() {
        return Err(MessageError::new(field, "the last well is cut off"));
    }
    Ok(wells.iter().copied().map(NodeWell).collect())
}
