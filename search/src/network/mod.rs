//! A small network that judges wells, learned by `hatebeam train`.
//!
//! The input is a list of active [features](inputs), about a hundred of 46,851. Each feature has a row of
//! [lanes](Network::lanes) numbers; the rows of the active features are added. Lane 0 of the sum goes
//! straight to the output. The other lanes are clamped to ±1 and multiplied by output weights. The
//! value is `ln(1 + T/8)`, where `T` is the number of pieces that a beam would still place.
//!
//! All numbers are 16-bit integers in units of 1/1024. Sums of rows wrap around, so they do not depend
//! on the order of additions, and every processor computes the same value.

mod file;
mod inputs;
mod registry;
mod sum;

pub use file::{MAX_HEADER_BYTES, MAX_NETWORK_BYTES, NetworkError};
pub(crate) use inputs::{Active, list};
pub use inputs::{FEATURES, FeatureLister};
pub(crate) use sum::Memory;

use hatebeam_game::SimdLevel;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// Units of a weight in 1.
pub const WEIGHT_ONE: i16 = 1024;
/// Units of a value in 1.
pub const VALUE_ONE: i32 = 1 << 20;
/// Lanes in a block, which is one AVX2 register.
pub(crate) const BLOCK: usize = 16;
/// Greatest number of blocks per feature.
const MAX_BLOCKS: usize = 2;

/// Sixteen lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
struct Block([i16; BLOCK]);

impl Block {
    const ZERO: Block = Block([0; BLOCK]);
}

/// SHA-256 of a network's file without its last 32 bytes, which repeat it. Identifies the network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NetworkDigest(pub [u8; 32]);

impl fmt::Display for NetworkDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Error for a digest that is not 64 lower-case hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the digest of a network has 64 lower-case hex digits, unlike {0:?}")]
pub struct NetworkDigestError(String);

impl TryFrom<String> for NetworkDigest {
    type Error = NetworkDigestError;

    fn try_from(text: String) -> Result<NetworkDigest, NetworkDigestError> {
        let digit = |letter: u8| match letter {
            b'0'..=b'9' => Some(letter - b'0'),
            b'a'..=b'f' => Some(letter - b'a' + 10),
            _ => None,
        };
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes = pairs
            .iter()
            .map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?));
        let bytes: Option<Vec<u8>> = bytes.collect();
        let bytes = bytes.filter(|_| rest.is_empty());
        match bytes.and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => Ok(NetworkDigest(bytes)),
            None => Err(NetworkDigestError(text)),
        }
    }
}

impl From<NetworkDigest> for String {
    fn from(digest: NetworkDigest) -> String {
        digest.to_string()
    }
}

impl fmt::Debug for NetworkDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NetworkDigest({self})")
    }
}

/// The weights of a network before they are packed into a [`Network`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkWeights {
    /// Number of lanes: 16 or 32.
    pub lanes: usize,
    /// The sum before any feature is added, by lane.
    pub bias: Vec<i16>,
    /// The factor of each lane in the value. Lane 0 usually has 1.
    pub output: Vec<i16>,
    /// The rows of all [`FEATURES`] features, one after the other.
    pub rows: Vec<i16>,
}

/// A network with its file's header.
pub struct Network {
    header: String,
    digest: NetworkDigest,
    blocks: usize,
    bias: [Block; MAX_BLOCKS],
    output: [Block; MAX_BLOCKS],
    /// The blocks of all features, one feature after the other.
    rows: Vec<Block>,
}

impl Network {
    /// Packs weights. `header` says how the network was made; it is a part of the network's identity.
    ///
    /// # Errors
    /// [`NetworkError`] if the number of lanes is not supported, a list of weights has another length,
    /// or the header is too long.
    pub fn new(header: &str, weights: &NetworkWeights) -> Result<Network, NetworkError> {
        let bytes = file::encode(header, weights)?;
        Network::decode(&bytes)
    }

    /// Text that says how the network was made, usually JSON.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Identity of the network.
    pub fn digest(&self) -> NetworkDigest {
        self.digest
    }

    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.blocks * BLOCK
    }

    /// The value of a well with these active features, in units of 1/[`VALUE_ONE`]. `memory` belongs
    /// to this network.
    #[inline]
    pub(crate) fn value(&self, level: SimdLevel, memory: &mut Memory, active: &Active) -> i32 {
        match self.blocks {
            1 => sum::value::<1>(level, self, memory, active),
            _ => sum::value::<2>(level, self, memory, active),
        }
    }

    /// The row of a feature.
    #[inline(always)]
    fn row<const BLOCKS: usize>(&self, feature: u32) -> &[Block; BLOCKS] {
        &self.rows.as_chunks::<BLOCKS>().0[feature as usize]
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("digest", &self.digest)
            .field("lanes", &self.lanes())
            .finish_non_exhaustive()
    }
}
