//! The table of all boards on the way to a perfect clear.
//!
//! The searches work without the table. With it they skip boards that no pieces can clear.

mod build;
mod filter;

pub(super) use filter::BoardFilter;

use hatebeam_tetris::srs::{DropMode, KickTable, LowField, LowFieldError, LowPlacements};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::{self, BufRead, Read};
use thiserror::Error;

/// First line of a table. The number is the version of the format.
const MAGIC: &str = "hatebeam-pc-table 1\n";
/// Maximum size of a table in bytes.
const MAX_BYTES: usize = 256 << 20;

/// Description of a table, which is its second line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableHeader {
    /// Number of rows to clear.
    pub lines: usize,
    /// Name of the kick table.
    pub kicks: String,
    /// Name of the drop mode.
    pub drop: String,
    /// Number of boards after each number of pieces.
    pub counts: Vec<usize>,
    /// Number of bytes of each of these lists.
    bytes: Vec<usize>,
    /// SHA-256 of the lists.
    pub sha256: String,
}

/// Error for a table that cannot be built or read.
#[derive(Debug, Error)]
pub enum TableError {
    /// The number of rows is out of range.
    #[error(transparent)]
    Lines(#[from] LowFieldError),
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not a table, or has another version.
    #[error("not a table of version 1: make one with `hatebeam pc table`")]
    Version,
    /// The contents do not have the length or digest of the header.
    #[error("the table is damaged: make it again with `hatebeam pc table`")]
    Damaged,
    /// The table was made for other rules.
    #[error(
        "the table is for kicks {kicks} and {drop} drops: make one for these rules with `hatebeam pc table`"
    )]
    Rules {
        /// Kick table of the file.
        kicks: String,
        /// Drop mode of the file.
        drop: String,
    },
}

/// All boards that can be reached from the empty field and that can be cleared.
#[derive(Clone, Debug)]
pub struct BoardTable {
    header: TableHeader,
    lists: Vec<u8>,
}

impl BoardTable {
    /// Enumerates all boards. `kicks` is the name of the kick table. Calls `progress` with a description of each step.
    pub fn build(
        lines: usize,
        kicks: &str,
        table: &KickTable,
        drop: DropMode,
        threads: usize,
        progress: impl FnMut(&str),
    ) -> Result<BoardTable, TableError> {
        let placements = LowPlacements::new(table, drop);
        let layers = build::layers(lines, &placements, threads, progress)?;
        let mut lists = Vec::new();
        let (mut counts, mut bytes) = (Vec::new(), Vec::new());
        for layer in &layers {
            let start = lists.len();
            let mut boards: Vec<u64> = layer
                .iter()
                .map(|&key| packed(&LowField::from_key(key), lines))
                .collect();
            boards.sort_unstable();
            let mut last = 0;
            for board in boards {
                write_number(board - last, &mut lists);
                last = board;
            }
            counts.push(layer.len());
            bytes.push(lists.len() - start);
        }
        Ok(BoardTable {
            header: TableHeader {
                lines,
                kicks: kicks.to_owned(),
                drop: drop.name().to_owned(),
                counts,
                bytes,
                sha256: digest(&lists),
            },
            lists,
        })
    }

    /// Returns the description of the table.
    pub fn header(&self) -> &TableHeader {
        &self.header
    }

    /// Returns an error if the table was made for other rules.
    pub fn check_rules(&self, kicks: &str, drop: DropMode) -> Result<(), TableError> {
        if self.header.kicks == kicks && self.header.drop == drop.name() {
            return Ok(());
        }
        Err(TableError::Rules {
            kicks: self.header.kicks.clone(),
            drop: self.header.drop.clone(),
        })
    }

    /// Returns the contents of the table's file.
    pub fn bytes(&self) -> Vec<u8> {
        let header = serde_json::to_string(&self.header);
        let header = header.expect("strings and numbers can be written as JSON");
        [MAGIC.as_bytes(), header.as_bytes(), b"\n", &self.lists].concat()
    }

    /// Reads a table and checks its digest.
    pub fn read(input: impl Read) -> Result<BoardTable, TableError> {
        let mut input = io::BufReader::new(input.take(MAX_BYTES as u64));
        let mut line = String::new();
        (&mut input)
            .take(MAGIC.len() as u64)
            .read_line(&mut line)
            .map_err(|_| TableError::Version)?;
        if line != MAGIC {
            return Err(TableError::Version);
        }
        line.clear();
        (&mut input)
            .take(1 << 12)
            .read_line(&mut line)
            .map_err(|_| TableError::Damaged)?;
        let header: TableHeader = serde_json::from_str(&line).map_err(|_| TableError::Damaged)?;
        let mut lists = Vec::new();
        input.read_to_end(&mut lists)?;
        let is_complete = header
            .bytes
            .iter()
            .try_fold(0usize, |sum, &bytes| sum.checked_add(bytes))
            == Some(lists.len());
        if !is_complete
            || header.bytes.len() != header.counts.len()
            || digest(&lists) != header.sha256
        {
            return Err(TableError::Damaged);
        }
        let table = BoardTable { header, lists };
        for layer in 0..table.header.counts.len() {
            if table.boards(layer).count() != table.header.counts[layer] {
                return Err(TableError::Damaged);
            }
        }
        Ok(table)
    }

    /// Returns the packed boards after a number of pieces, in ascending order.
    fn boards(&self, layer: usize) -> impl Iterator<Item = u64> + '_ {
        let start: usize = self.header.bytes[..layer].iter().sum();
        let mut list = &self.lists[start..start + self.header.bytes[layer]];
        let mut last = 0u64;
        std::iter::from_fn(move || {
            if list.is_empty() {
                return None;
            }
            last = last.wrapping_add(read_number(&mut list));
            Some(last)
        })
    }

    /// Returns whether the table contains a field.
    pub fn contains(&self, field: &LowField) -> bool {
        let Some(cleared) = self.header.lines.checked_sub(field.rows()) else {
            return false;
        };
        let whole = (10 * cleared as u32 + field.rows() as u32 * 10 - field.empty_cells()) / 4;
        let packed = packed(field, self.header.lines);
        (whole as usize) < self.header.counts.len()
            && self
                .boards(whole as usize)
                .take_while(|&board| board <= packed)
                .last()
                == Some(packed)
    }

    /// Returns a filter of the boards.
    pub(super) fn filter(&self) -> BoardFilter {
        let mut filter = BoardFilter::new(self.header.counts.iter().sum());
        for layer in 0..self.header.counts.len() {
            for board in self.boards(layer) {
                filter.insert(unpacked(board, self.header.lines).key());
            }
        }
        filter
    }
}

/// Number of columns.
const WIDTH: usize = hatebeam_tetris::srs::WIDTH;
/// A full row of a packed board.
const FULL: u64 = (1 << WIDTH) - 1;

/// Returns a board as rows of ten bits, the floor first. Rows that have been cleared are full rows at the floor.
fn packed(field: &LowField, lines: usize) -> u64 {
    let cleared = lines - field.rows();
    field.row_bits() << (WIDTH * cleared) | ((1 << (WIDTH * cleared)) - 1)
}

/// Returns the field of a packed board.
fn unpacked(mut board: u64, lines: usize) -> LowField {
    let mut rows = lines;
    while rows > 0 && board & FULL == FULL {
        board >>= WIDTH;
        rows -= 1;
    }
    LowField::from_row_bits(board, rows)
}

fn digest(lists: &[u8]) -> String {
    let digest = Sha256::digest(lists);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Appends a number in groups of seven bits, the lowest first. The highest bit of a byte marks that more follow.
fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Removes a number from the front of a list.
fn read_number(list: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = list.split_first() {
        *list = rest;
        number |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 || shift > 56 {
            break;
        }
    }
    number
}
