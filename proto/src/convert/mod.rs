//! Conversions between the generated Protobuf types and the plain [messages](crate::messages).
//!
//! Converting a message to its generated type never fails. If the reverse conversion fails, its [`MessageError`]
//! names the invalid field. A human-readable text that is too long is truncated instead of refused.

mod answers;
mod exchange;
mod orders;
mod session;
mod state;

use crate::v1;
use hatebeam_game::Piece;
use hatebeam_runs::Table;
use hatebeam_search::{NodeWell, WELL_BYTES};
use thiserror::Error;

/// Maximum length of a worker's reason for leaving the cluster, in characters.
pub const MAX_REASON: usize = 200;
/// Maximum length of a reason for a failure, in characters.
pub const MAX_FAILURE: usize = 1000;

/// An error caused by a missing or invalid field.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid message: {field}: {reason}")]
pub struct MessageError {
    /// Name of the field.
    pub field: &'static str,
    /// Description of the problem.
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

/// Returns the beginning of a text from another machine. Control characters become spaces, because commands print such
/// texts on terminals.
fn cut(text: &str, characters: usize) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(characters).map(printable).collect()
}

/// Converts the description of a table. Does not check that the table belongs to the run.
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

/// Returns the indices of pieces in the order of [`Piece::ALL`].
fn pack_pieces(pieces: impl IntoIterator<Item = Piece>) -> Vec<u8> {
    let pieces = pieces.into_iter();
    pieces.map(|piece| piece.index() as u8).collect()
}

fn unpack_pieces(field: &'static str, bytes: &[u8]) -> Result<Vec<Piece>, MessageError> {
    let piece = |&index: &u8| Piece::ALL.get(usize::from(index)).copied();
    let pieces: Option<Vec<Piece>> = bytes.iter().map(piece).collect();
    pieces.ok_or_else(|| MessageError::new(field, "a piece must have an index of 0 to 6"))
}

fn pack_wells(wells: &[NodeWell]) -> Vec<u8> {
    wells.iter().flat_map(|well| well.0).collect()
}

fn unpack_wells(field: &'static str, bytes: &[u8]) -> Result<Vec<NodeWell>, MessageError> {
    let (wells, rest) = bytes.as_chunks::<WELL_BYTES>();
    if !rest.is_empty() {
        return Err(MessageError::new(field, "the last well is incomplete"));
    }
    Ok(wells.iter().copied().map(NodeWell).collect())
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn cut_limits_characters_and_replaces_control_characters() {
        assert_eq!(cut("größer", 3), "grö");
        assert_eq!(cut("a\u{1b}]52;c;x\u{7}\nb\u{9b}", 100), "a ]52;c;x  b ");
    }
}
