//! The entries of a frontier (the wells kept at one depth).

use hatebeam_game::{Geometry, PackedWell, Well, WellError};
use std::fmt;

/// Size of a packed well in a [`Node`], in bytes. Each cell takes one bit, so wells of up to 160 cells
/// fit, such as 10 × 16.
pub const WELL_BYTES: usize = 20;

/// Odd constants for hashing, with irregular bit patterns.
pub(crate) const ODD: [u64; 4] = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
];

/// Returns the exclusive or of the two halves of the 128-bit product of `a` and `b`.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Maximum number of lines of a [`Node`]. A search must end before a depth in which a game could clear more. The next
/// number marks the free slots of a search's tables.
pub const MAX_LINES: u16 = u16::MAX - 1;

/// A well of at most 160 cells in its packed form ([`Well::pack`]), padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct NodeWell(pub [u8; WELL_BYTES]);

impl NodeWell {
    /// Returns whether wells of this geometry fit into a `NodeWell`.
    pub fn fits(geometry: Geometry) -> bool {
        geometry.packed_len() <= WELL_BYTES
    }

    /// Packs a well. Its geometry must [fit](NodeWell::fits).
    #[inline]
    pub fn pack(geometry: Geometry, well: &Well) -> NodeWell {
        let packed: PackedWell = well.pack(geometry);
        let mut bytes = [0; WELL_BYTES];
        bytes[..geometry.packed_len()].copy_from_slice(packed.as_bytes());
        NodeWell(bytes)
    }

    /// Returns a 64-bit hash of the packed form. The hash is the same on every machine. Its upper half
    /// selects the part of the frontier (the shard) that contains the well, and its lower half breaks
    /// ties between equal scores.
    #[inline]
    pub fn hash(&self) -> u64 {
        let [a, b, c] = self.words();
        fold(fold(a ^ ODD[0], b ^ ODD[1]) ^ ODD[2], c ^ ODD[3])
    }

    /// Returns the bytes as little-endian words. The upper half of the last word is zero.
    #[inline]
    fn words(&self) -> [u64; 3] {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| self.0[at + i]));
        [word(0), word(8), word(12) >> 32]
    }

    /// Unpacks and checks the well.
    ///
    /// # Errors
    /// Returns a [`WellError`] if the bytes are not a valid well of this geometry.
    #[inline]
    pub fn unpack(&self, geometry: Geometry) -> Result<Well, WellError> {
        Well::unpack(geometry, &self.0[..geometry.packed_len()])
    }
}

impl fmt::Debug for NodeWell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeWell({:02x?})", self.0)
    }
}

/// An entry of a frontier. Its size is 28 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Node {
    /// The evaluator's score. Greater is better.
    pub score: i32,
    /// The well.
    pub well: NodeWell,
    /// Number of lines cleared since the start of the game, including lines cleared before the
    /// search's first well, at most [`MAX_LINES`].
    pub lines: u16,
    /// The parent hint: the lowest byte of a parent's [`Well::hash`]. A well has few parents, so one
    /// byte nearly always identifies a parent that was in the previous frontier.
    pub hint: u8,
}

const _: () = assert!(size_of::<Node>() == 28);

impl Node {
    /// Returns the node of the well with which a search begins. `lines` is the number of lines cleared
    /// before.
    pub fn first(geometry: Geometry, well: &Well, lines: u16) -> Node {
        Node {
            score: 0,
            well: NodeWell::pack(geometry, well),
            lines,
            hint: 0,
        }
    }
}

/// A digest of a set of nodes: the sum, modulo 2^128, of a 128-bit hash of each node over all of its
/// fields. It depends neither on the order of the nodes nor on their division into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Digest(pub u128);

impl Digest {
    /// Adds a node.
    #[inline]
    pub fn add(&mut self, node: &Node) {
        let [a, b, c] = node.well.words();
        let rest = c | u64::from(node.score as u32) << 32;
        let more = u64::from(node.lines) << 8 | u64::from(node.hint);
        let low = fold(a ^ ODD[0], b ^ ODD[1]);
        let high = fold(rest ^ ODD[2], more ^ ODD[3]);
        let first = fold(low ^ ODD[2], high ^ ODD[0]);
        let second = fold(low ^ ODD[1], high.rotate_left(29) ^ ODD[3]);
        self.0 = self
            .0
            .wrapping_add(u128::from(first) << 64 | u128::from(second));
    }

    /// Returns the digest of `nodes`.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Digest {
        let mut digest = Digest::default();
        for node in nodes {
            digest.add(node);
        }
        digest
    }

    /// Adds the digest of another part of the set.
    pub fn join(&mut self, other: Digest) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl std::str::FromStr for Digest {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Digest, Self::Err> {
        u128::from_str_radix(text, 16).map(Digest)
    }
}
