//! Table of all boards that can occur in a perfect clear from the empty field.
//!
//! Searches do not need the table. With the table, they skip boards that cannot be cleared.

mod build;
mod filter;

pub(super) use filter::BoardFilter;

use hatebeam_tetris::srs::{
    DropMode, KickTable, LowField, LowFieldError, LowPlacements, MAX_LOW_ROWS, WIDTH,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::{self, BufRead, Read};
use thiserror::Error;

/// First line of a table file. The number is the version of the format.
const MAGIC: &str = "hatebeam-pc-table 1\n";
/// Maximum size of a table's lists in bytes.
const MAX_BYTES: usize = 256 << 20;

/// Description of a table, stored as JSON in the second line of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableHeader {
    /// Number of rows to clear.
    pub lines: usize,
    /// Name of the kick table.
    pub kicks: String,
    /// Name of the drop mode.
    pub drop: String,
    /// Number of boards after each number of pieces, starting with no pieces.
    pub counts: Vec<usize>,
    /// Length in bytes of each list of boards. There is one list for each number of pieces.
    bytes: Vec<usize>,
    /// SHA-256 digest of all lists, in hexadecimal.
    pub sha256: String,
}

impl TableHeader {
    /// Returns whether the number of rows is in range, and there is a list for each number of pieces.
    fn has_valid_lengths(&self) -> bool {
        (1..=MAX_LOW_ROWS).contains(&self.lines)
            && self.counts.len() == self.lines * WIDTH / 4 + 1
            && self.bytes.len() == self.counts.len()
    }
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
    /// The file is not a table, or its format has another version.
    #[error("not a table of perfect clears in format version 1: make one with `hatebeam pc table`")]
    Version,
    /// The lists are longer than any table that `hatebeam pc table` makes.
    #[error(
        "the table has {0} bytes of boards, more than the maximum of {MAX_BYTES}: make it again with `hatebeam pc table`"
    )]
    Size(usize),
    /// The header is invalid, or the lists do not match it.
    #[error("the table is damaged: make it again with `hatebeam pc table`")]
    Damaged,
    /// The table was made for other rules.
    #[error(
        "the table is for the kick table {kicks} and {drop} drops: make one for other rules with `hatebeam pc table`"
    )]
    Rules {
        /// Name of the file's kick table.
        kicks: String,
        /// Name of the file's drop mode.
        drop: String,
    },
}

/// All boards that can be reached from the empty field and can be cleared.
#[derive(Clone, Debug)]
pub struct BoardTable {
    header: TableHeader,
    lists: Vec<u8>,
}

impl BoardTable {
    /// Enumerates all boards. `kicks` is the name of the kick table `table`. Calls `progress` with a description of
    /// each step.
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

    /// Reads a table and checks its lists against its header.
    pub fn read(input: impl Read) -> Result<BoardTable, TableError> {
        let mut input = io::BufReader::new(input);
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
        let sum = |sum: usize, &bytes: &usize| sum.saturating_add(bytes);
        let size = header.bytes.iter().fold(0, sum);
        if size > MAX_BYTES {
            return Err(TableError::Size(size));
        }
        let mut lists = Vec::new();
        // A file that is too long has at least one byte more.
        input.take(size as u64 + 1).read_to_end(&mut lists)?;
        let is_valid =
            header.has_valid_lengths() && lists.len() == size && digest(&lists) == header.sha256;
        let table = BoardTable { header, lists };
        if is_valid && (0..table.header.counts.len()).all(|layer| table.is_valid_layer(layer)) {
            Ok(table)
        } else {
            Err(TableError::Damaged)
        }
    }

    /// Returns whether the list of boards after `layer` pieces has the number of boards that the header gives, and each of
    /// these boards lies within the rows to clear and consists of `layer` pieces or is the cleared field.
    fn is_valid_layer(&self, layer: usize) -> bool {
        let cells = self.header.lines * WIDTH;
        // Pieces never fill one or three rows, but tables for these numbers of rows contain the cleared field, too.
        let cleared = (1 << cells) - 1;
        let is_valid = |board: u64| {
            board == cleared || board < cleared && board.count_ones() as usize == 4 * layer
        };
        let mut count = 0;
        self.boards(layer).inspect(|_| count += 1).all(is_valid)
            && count == self.header.counts[layer]
    }

    /// Returns the [`packed`] boards after `layer` pieces, in ascending order.
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
        let lines = self.header.lines;
        if field.rows() > lines {
            return false;
        }
        let pieces = (WIDTH * lines - field.empty_cells() as usize) / 4;
        let packed = packed(field, lines);
        pieces < self.header.counts.len()
            && self
                .boards(pieces)
                .take_while(|&board| board <= packed)
                .last()
                == Some(packed)
    }

    /// Returns a filter that contains all boards of the table.
    pub(super) fn filter(&self) -> BoardFilter {
        let counts = &self.header.counts;
        let boards = |left| {
            let placed = counts.len().checked_sub(left + 1);
            placed.map_or(0, |placed| counts[placed])
        };
        let mut filter = BoardFilter::new(boards);
        for layer in 0..counts.len() {
            for board in self.boards(layer) {
                filter.insert(&unpacked(board, self.header.lines));
            }
        }
        filter
    }
}

/// A full row of a packed board.
const FULL: u64 = (1 << WIDTH) - 1;

/// Packs a field into rows of ten bits. The floor is in the lowest bits, and cleared rows become full rows at the
/// floor.
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
    format!("{:x}", Sha256::digest(lists))
}

/// Appends a number in bytes of seven bits each, the lowest bits first. The highest bit of a byte is set if another
/// byte follows.
fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number that [`write_number`] wrote, and removes it from the front of `list`.
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
