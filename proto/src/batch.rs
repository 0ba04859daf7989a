//! Encoding of the batches of children (candidate wells for the next depth) that one worker sends to another.
//!
//! A batch begins with a flag (8 bits; 0: uncompressed, 1: LZ4) and the number of children (32 bits). Four columns
//! follow: the scores (32 bits each), the rows cleared (16 bits each), the hints (8 bits each) and the packed wells. With
//! LZ4, the columns are compressed as one block. All integers are little-endian. A hint is the low byte of the hash of
//! the child's parent. Columns compress better than one record per child, because the values in a column resemble one
//! another.

use hatebeam_game::Geometry;
use hatebeam_search::{MAX_LINES, Node, NodeWell};
use std::time::Duration;
use thiserror::Error;

/// Number of children that a sender collects for a batch. Without compression, such a batch has about 110 kB.
pub const BATCH_CHILDREN: usize = 4096;
/// Maximum number of batches that one sender queues for one receiver.
pub const QUEUED_BATCHES: usize = 4;
/// Interval at which a receiver sends its floors (the lowest scores, with tie-breaks, that it still accepts). The
/// floors rise while children arrive. A sender with recent floors sends fewer children that the receiver would drop.
pub const FLOOR_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of children in a batch.
pub const MAX_CHILDREN: usize = 16_384;
/// Size of the header: the flag and the number of children.
const HEAD: usize = 5;
/// Size of a child without its well, in bytes.
const BESIDE_WELL: usize = 7;
/// Maximum size of a batch for any geometry, in bytes.
pub const MAX_BYTES: usize = HEAD + MAX_CHILDREN * (BESIDE_WELL + hatebeam_search::WELL_BYTES);

const RAW: u8 = 0;
const LZ4: u8 = 1;

/// The reason why a batch is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchError {
    /// The header is incomplete, or the number of data bytes does not match the number of children.
    #[error("the batch has {found} bytes instead of {expected}")]
    Length {
        /// The expected number of bytes.
        expected: usize,
        /// The actual number of bytes.
        found: usize,
    },
    /// The batch contains too many children.
    #[error("the batch has {0} children: at most {MAX_CHILDREN} are allowed")]
    TooMany(usize),
    /// The flag is unknown.
    #[error("the batch has the unknown flag {0}")]
    Flag(u8),
    /// The LZ4 data cannot be decompressed.
    #[error("the batch cannot be decompressed")]
    Damaged,
    /// The child at this index has an invalid well, or an impossible number of rows cleared.
    #[error("child {0} of the batch has an invalid well")]
    Well(usize),
}

/// Packs the first [`MAX_CHILDREN`] of `nodes`. If `compress` is true, applies LZ4 if that makes the batch smaller.
pub fn pack(geometry: Geometry, nodes: &[Node], compress: bool) -> Vec<u8> {
    let nodes = &nodes[..nodes.len().min(MAX_CHILDREN)];
    let packed = geometry.packed_len();
    let mut columns = Vec::with_capacity(nodes.len() * (BESIDE_WELL + packed));
    nodes
        .iter()
        .for_each(|node| columns.extend(node.score.to_le_bytes()));
    nodes
        .iter()
        .for_each(|node| columns.extend(node.lines.to_le_bytes()));
    nodes.iter().for_each(|node| columns.push(node.hint));
    nodes
        .iter()
        .for_each(|node| columns.extend(&node.well.0[..packed]));
    let mut flag = RAW;
    if compress {
        let smaller = lz4_flex::block::compress(&columns);
        if smaller.len() < columns.len() {
            columns = smaller;
            flag = LZ4;
        }
    }
    let mut batch = Vec::with_capacity(HEAD + columns.len());
    batch.push(flag);
    batch.extend((nodes.len() as u32).to_le_bytes());
    batch.extend(columns);
    batch
}

/// Unpacks children into `nodes`, replacing its contents, and checks every well.
///
/// # Errors
/// Returns a [`BatchError`] if the batch is invalid. In this case, `nodes` is empty.
pub fn unpack(geometry: Geometry, batch: &[u8], nodes: &mut Vec<Node>) -> Result<(), BatchError> {
    nodes.clear();
    let unpacked = unpack_into(geometry, batch, nodes);
    if unpacked.is_err() {
        nodes.clear();
    }
    unpacked
}

fn unpack_into(geometry: Geometry, batch: &[u8], nodes: &mut Vec<Node>) -> Result<(), BatchError> {
    let short = || BatchError::Length {
        expected: HEAD,
        found: batch.len(),
    };
    let (&flag, rest) = batch.split_first().ok_or_else(short)?;
    let (count, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let count = u32::from_le_bytes(*count) as usize;
    if count > MAX_CHILDREN {
        return Err(BatchError::TooMany(count));
    }
    let packed = geometry.packed_len();
    let expected = count * (BESIDE_WELL + packed);
    let mut room;
    let columns = match flag {
        RAW => rest,
        LZ4 => {
            room = vec![0; expected];
            let found = lz4_flex::block::decompress_into(rest, &mut room)
                .map_err(|_| BatchError::Damaged)?;
            &room[..found]
        }
        other => return Err(BatchError::Flag(other)),
    };
    if columns.len() != expected {
        return Err(BatchError::Length {
            expected,
            found: columns.len(),
        });
    }
    let (scores, rest) = columns.split_at(4 * count);
    let (lines, rest) = rest.split_at(2 * count);
    let (hints, wells) = rest.split_at(count);
    let scores = scores.chunks_exact(4);
    let lines = lines.chunks_exact(2);
    let wells = wells.chunks_exact(packed);
    for (((score, lines), &hint), bytes) in scores.zip(lines).zip(hints).zip(wells) {
        let mut well = NodeWell::default();
        well.0[..packed].copy_from_slice(bytes);
        let lines = u16::from_le_bytes([lines[0], lines[1]]);
        // Candidate tables, the hash tables for children, mark free slots with a greater number.
        if lines > MAX_LINES || well.unpack(geometry).is_err() {
            return Err(BatchError::Well(nodes.len()));
        }
        nodes.push(Node {
            score: i32::from_le_bytes([score[0], score[1], score[2], score[3]]),
            well,
            lines,
            hint,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Children, Emulator, Rules, Well};

    fn nodes(count: usize) -> Vec<Node> {
        let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
        let mut children = Children::new();
        let mut wells = vec![Well::EMPTY];
        for at in 0.. {
            if wells.len() >= count {
                break;
            }
            emulator.expand(&wells[at].clone(), &mut children);
            wells.extend_from_slice(children.wells());
        }
        let node = |(at, well): (usize, &Well)| Node {
            score: at as i32 * 7919 - 100_000,
            well: NodeWell::pack(Geometry::STANDARD, well),
            lines: (at % 17) as u16,
            hint: at as u8,
        };
        wells.iter().take(count).enumerate().map(node).collect()
    }

    #[test]
    fn unpack_returns_the_packed_children() {
        for count in [0, 1, 1000, MAX_CHILDREN] {
            for compress in [false, true] {
                let nodes = nodes(count);
                let batch = pack(Geometry::STANDARD, &nodes, compress);
                assert!(batch.len() <= HEAD + count * 27);
                let mut back = Vec::new();
                unpack(Geometry::STANDARD, &batch, &mut back).unwrap();
                assert_eq!(back, nodes);
            }
        }
    }

    /// Returns a geometry of 8 columns by 3 rows and two children in it.
    fn two_nodes() -> (Geometry, [Node; 2]) {
        let geometry = Geometry::new(8, 3).unwrap();
        let node = |score, hex, lines, hint| Node {
            score,
            well: NodeWell::pack(geometry, &Well::from_hex(geometry, hex).unwrap()),
            lines,
            hint,
        };
        let nodes = [node(-2, "018003", 0x0102, 0xab), node(7, "000001", 3, 4)];
        (geometry, nodes)
    }

    #[test]
    fn batch_has_documented_format() {
        let (geometry, nodes) = two_nodes();
        let expected = [
            &[0][..],                  // not compressed
            &[2, 0, 0, 0],             // number of children
            &[0xfe, 0xff, 0xff, 0xff], // scores
            &[7, 0, 0, 0],
            &[2, 1], // lines
            &[3, 0],
            &[0xab, 4],          // hints
            &[0x03, 0x80, 0x01], // wells
            &[0x01, 0x00, 0x00],
        ];
        assert_eq!(pack(geometry, &nodes, false), expected.concat());
    }

    /// The compressor may change, but batches of earlier compressors must remain readable.
    #[test]
    fn compressed_batch_has_documented_format() {
        let (geometry, nodes) = two_nodes();
        let plain = pack(geometry, &nodes, false);
        // An LZ4 block of 20 literals.
        let expected = [&[1, 2, 0, 0, 0, 0xf0, 5][..], &plain[HEAD..]].concat();
        let mut back = Vec::new();
        unpack(geometry, &expected, &mut back).unwrap();
        assert_eq!(back, nodes);
    }

    #[test]
    fn invalid_batches_are_refused() {
        let good = pack(Geometry::STANDARD, &nodes(100), false);
        let mut back = Vec::new();
        let mut refused = |batch: &[u8]| {
            let error = unpack(Geometry::STANDARD, batch, &mut back).unwrap_err();
            assert!(back.is_empty());
            error
        };
        for end in 0..good.len() {
            assert!(matches!(refused(&good[..end]), BatchError::Length { .. }));
        }
        let mut other = good.clone();
        other[0] = 9;
        assert_eq!(refused(&other), BatchError::Flag(9));
        let mut other = good.clone();
        other[1..5].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(refused(&other), BatchError::TooMany(u32::MAX as usize));
        let mut other = good.clone();
        let full_rows = HEAD + 100 * BESIDE_WELL;
        other[full_rows..full_rows + 20].fill(0xff);
        assert_eq!(refused(&other), BatchError::Well(0));
    }
}
