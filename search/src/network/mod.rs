//! A small network that evaluates wells, trained by `hatebeam train`.
//!
//! The input is a list of active [features](inputs): about a hundred of the 46,851 features are active in a well. Each
//! feature has a row of weights with one number per [lane](Network::lanes), and the rows of the active features are
//! added up. All lanes of the sum except lane 0 are clamped to ±1. Each lane is then multiplied by its output weight,
//! and the sum of these products is the value of the well. The value approximates `ln(1 + T/8)`, where `T` is the
//! number of pieces that a beam search can still place.
//!
//! All weights are 16-bit integers in units of 1/1024. Sums of rows wrap around, so they do not depend
//! on the order of additions, and every processor computes the same value.

mod file;
mod inputs;
mod registry;
mod sum;

pub use file::{MAX_HEADER_BYTES, MAX_NETWORK_BYTES, NetworkError};
pub use inputs::{CLEARS_FEATURES, FEATURES, FeatureLister};
pub(crate) use inputs::{Described, RowInputs};
use sum::{ClearsRange, Memory};

use hatebeam_game::{Clears, SimdLevel};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The integer that represents a weight of 1.
pub const WEIGHT_ONE: i16 = 1024;
/// The integer that represents a value of 1.
pub const VALUE_ONE: i32 = 1 << 20;
/// Number of lanes in a block. A block fills one AVX2 register.
pub(crate) const BLOCK: usize = 16;
/// Maximum number of blocks per feature.
const MAX_BLOCKS: usize = 2;

/// The weights of 16 lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
struct Block([i16; BLOCK]);

impl Block {
    const ZERO: Block = Block([0; BLOCK]);
}

/// The SHA-256 digest that identifies a network. It is at the end of the network's file and covers all bytes before it.
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
#[error("network digest {0:?} is not 64 lower-case hex digits")]
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
    /// Number of lanes, which is 16 or 32.
    pub lanes: usize,
    /// The initial value of each lane. The rows of the active features are added to it.
    pub bias: Vec<i16>,
    /// The output weight of each lane. Lane 0 usually has the weight 1.
    pub output: Vec<i16>,
    /// The rows of weights of all [`FEATURES`] features, one after the other.
    pub rows: Vec<i16>,
}

/// A network, with the header of its file.
pub struct Network {
    header: String,
    digest: NetworkDigest,
    blocks: usize,
    bias: [Block; MAX_BLOCKS],
    output: [Block; MAX_BLOCKS],
    /// The blocks of all features, one feature after the other.
    rows: Vec<Block>,
    /// Whether the value depends on the pieces that can clear lines.
    sees_clears: bool,
    /// The effect of the pieces that can clear lines, or `None` if it has no useful bound.
    clears_range: Option<ClearsRange>,
}

impl Network {
    /// Creates a network. `header` describes how the network was made, and is covered by the digest.
    ///
    /// # Errors
    /// Returns [`NetworkError`] if the number of lanes is not supported, a list of weights has the wrong
    /// length, or the header is too long.
    pub fn new(header: &str, weights: &NetworkWeights) -> Result<Network, NetworkError> {
        let bytes = file::encode(header, weights)?;
        Network::decode(&bytes)
    }

    /// Returns the text that describes how the network was made, usually JSON.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Returns the digest that identifies the network.
    pub fn digest(&self) -> NetworkDigest {
        self.digest
    }

    /// Returns the number of lanes.
    pub fn lanes(&self) -> usize {
        self.blocks * BLOCK
    }

    /// Returns whether the value of a well depends on the pieces that can clear lines: whether one of the
    /// [`CLEARS_FEATURES`] has a weight.
    pub fn sees_clears(&self) -> bool {
        self.sees_clears
    }

    /// Returns the row of a feature.
    #[inline(always)]
    fn row<const BLOCKS: usize>(&self, feature: u32) -> &[Block; BLOCKS] {
        &self.rows.as_chunks::<BLOCKS>().0[feature as usize]
    }

    /// Returns the row of a feature. The number of blocks need not be known at compile time.
    fn blocks_of(&self, feature: u32) -> &[Block] {
        &self.rows[feature as usize * self.blocks..][..self.blocks]
    }
}

/// A network and its cache of sums. Each network needs its own cache, because the sums depend on the weights.
pub(crate) struct NetworkScorer {
    network: Arc<Network>,
    memory: Memory,
    /// The sum of weights for the well passed to [`NetworkScorer::begin`].
    sum: [Block; MAX_BLOCKS],
}

impl NetworkScorer {
    pub(crate) fn new(network: Arc<Network>) -> NetworkScorer {
        NetworkScorer {
            memory: Memory::new(&network),
            sum: [Block::ZERO; MAX_BLOCKS],
            network,
        }
    }

    /// Returns whether the value of a well depends on the pieces that can clear lines.
    pub(crate) fn sees_clears(&self) -> bool {
        self.network.sees_clears
    }

    /// Adds up the weights of a well's features, and returns an upper bound of its value. The bound holds for any pieces
    /// that can clear lines, which take longer to find than the bound.
    #[inline]
    pub(crate) fn begin(&mut self, level: SimdLevel, well: &Described<'_>) -> i32 {
        let (network, memory) = (&*self.network, &mut self.memory);
        let [first, _] = &mut self.sum;
        match network.blocks {
            1 => sum::begin(level, network, memory, well, std::array::from_mut(first)),
            _ => sum::begin(level, network, memory, well, &mut self.sum),
        }
    }

    /// Returns the value of the well passed to [`NetworkScorer::begin`], as a multiple of 1/[`VALUE_ONE`]. `clears` are
    /// the pieces that can clear lines in this well.
    #[inline]
    pub(crate) fn finish(&self, level: SimdLevel, clears: Clears) -> i32 {
        let (network, [first, second]) = (&*self.network, self.sum);
        match network.blocks {
            1 => sum::value(level, network, [first], clears),
            _ => sum::value(level, network, [first, second], clears),
        }
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
