//! The file format of a network.
//!
//! A file contains, in this order:
//!
//! - the magic bytes;
//! - five 32-bit numbers: the format version, the architecture, the number of lanes (weights per feature), the number
//!   of features, and the length of the header;
//! - the header in UTF-8;
//! - the bias, the output weights and the rows of all features, as signed 16-bit numbers;
//! - the SHA-256 of everything before it.
//!
//! All numbers are little-endian.

use super::sum::ClearsRange;
use super::{
    BLOCK, Block, CLEARS_FEATURES, FEATURES, MAX_BLOCKS, Network, NetworkDigest, NetworkWeights,
};
use sha2::{Digest, Sha256};
use thiserror::Error;

const MAGIC: [u8; 8] = *b"hatenet\n";
/// Version of this format.
const VERSION: u32 = 1;
/// Number that identifies the definition of the features and the layers. Change it if the definition changes.
const ARCHITECTURE: u32 = 1;
/// Length of the digest at the end of the file.
const DIGEST_BYTES: usize = 32;
/// Maximum length of a header in bytes.
pub const MAX_HEADER_BYTES: usize = 1 << 20;
/// Maximum length of a file in bytes: magic bytes, five numbers, the longest header, the weights of the largest
/// network, and the digest.
pub const MAX_NETWORK_BYTES: usize =
    MAGIC.len() + 5 * 4 + MAX_HEADER_BYTES + 2 * weights(MAX_BLOCKS * BLOCK) + DIGEST_BYTES;

/// Error in a network or in its file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The file does not begin with the magic bytes.
    #[error("the file is not a network: make one with `hatebeam train`")]
    Magic,
    /// The file has an unsupported format version.
    #[error("network format {found} is not supported: this program reads format {VERSION}")]
    Version {
        /// Format version in the file.
        found: u32,
    },
    /// The network uses an unsupported definition of the features and layers.
    #[error("network architecture {found} is not supported: this program supports {ARCHITECTURE}")]
    Architecture {
        /// Architecture number in the file.
        found: u32,
    },
    /// The network has an unsupported number of lanes.
    #[error("a network must have 16 or 32 lanes, not {0}")]
    Lanes(usize),
    /// The network has an unsupported number of features.
    #[error("a network must have {FEATURES} features, not {0}")]
    Features(usize),
    /// The header is too long or is not UTF-8.
    #[error("the header of the network is not UTF-8 text of at most {MAX_HEADER_BYTES} bytes")]
    Header,
    /// The length of the file does not match the numbers in it.
    #[error("the network has {found} bytes instead of {expected}: copy the file again")]
    Length {
        /// Length that follows from the numbers in the file.
        expected: usize,
        /// Actual length of the file.
        found: usize,
    },
    /// A list of weights has the wrong length.
    #[error("a list of the network's weights has {found} weights instead of {expected}")]
    Weights {
        /// Expected number of weights.
        expected: usize,
        /// Actual number of weights.
        found: usize,
    },
    /// The digest at the end does not match, or the file ends before its header.
    #[error("the network is damaged or incomplete: copy the file again")]
    Digest,
}

fn blocks(lanes: usize) -> Result<usize, NetworkError> {
    let blocks = lanes / BLOCK;
    if blocks * BLOCK != lanes || !(1..=MAX_BLOCKS).contains(&blocks) {
        return Err(NetworkError::Lanes(lanes));
    }
    Ok(blocks)
}

/// Returns the total number of weights in a network: bias, output weights and rows.
const fn weights(lanes: usize) -> usize {
    (2 + FEATURES) * lanes
}

pub(super) fn encode(header: &str, network: &NetworkWeights) -> Result<Vec<u8>, NetworkError> {
    blocks(network.lanes)?;
    if header.len() > MAX_HEADER_BYTES {
        return Err(NetworkError::Header);
    }
    let lists = [
        (&network.bias, network.lanes),
        (&network.output, network.lanes),
        (&network.rows, FEATURES * network.lanes),
    ];
    for (list, expected) in lists {
        let found = list.len();
        if found != expected {
            return Err(NetworkError::Weights { expected, found });
        }
    }
    let mut bytes = MAGIC.to_vec();
    let numbers = [
        VERSION,
        ARCHITECTURE,
        network.lanes as u32,
        FEATURES as u32,
        header.len() as u32,
    ];
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend_from_slice(header.as_bytes());
    let all = lists.iter().flat_map(|(list, _)| list.iter());
    bytes.extend(all.flat_map(|weight| weight.to_le_bytes()));
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    Ok(bytes)
}

/// The bytes of a file that have not been read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    fn block(&mut self) -> Option<Block> {
        let (pairs, _) = self.take(2 * BLOCK)?.as_chunks::<2>();
        let mut block = Block::ZERO;
        for (weight, &pair) in block.0.iter_mut().zip(pairs) {
            *weight = i16::from_le_bytes(pair);
        }
        Some(block)
    }
}

impl Network {
    /// Reads a network from the bytes of its file.
    ///
    /// # Errors
    /// Returns [`NetworkError`] if the bytes are not a network, are damaged, or have an unsupported version,
    /// architecture or size.
    pub fn decode(bytes: &[u8]) -> Result<Network, NetworkError> {
        let mut reader = Reader(bytes);
        if reader.take(MAGIC.len()) != Some(&MAGIC) {
            return Err(NetworkError::Magic);
        }
        let mut number = || reader.number().ok_or(NetworkError::Digest);
        let version = number()?;
        if version != VERSION {
            return Err(NetworkError::Version { found: version });
        }
        let architecture = number()?;
        if architecture != ARCHITECTURE {
            return Err(NetworkError::Architecture {
                found: architecture,
            });
        }
        let lanes = number()? as usize;
        let blocks = blocks(lanes)?;
        let features = number()? as usize;
        if features != FEATURES {
            return Err(NetworkError::Features(features));
        }
        let header_bytes = number()? as usize;
        if header_bytes > MAX_HEADER_BYTES {
            return Err(NetworkError::Header);
        }
        let head = bytes.len() - reader.0.len() + header_bytes;
        let expected = head + 2 * weights(lanes) + DIGEST_BYTES;
        let found = bytes.len();
        if found != expected {
            return Err(NetworkError::Length { expected, found });
        }
        let digest: [u8; DIGEST_BYTES] = Sha256::digest(&bytes[..expected - DIGEST_BYTES]).into();
        if digest != bytes[expected - DIGEST_BYTES..] {
            return Err(NetworkError::Digest);
        }
        let header = reader.take(header_bytes).unwrap_or_default();
        let header = String::from_utf8(header.to_vec()).map_err(|_| NetworkError::Header)?;
        let mut block = || reader.block().ok_or(NetworkError::Digest);
        let mut network = Network {
            header,
            digest: NetworkDigest(digest),
            blocks,
            bias: [Block::ZERO; MAX_BLOCKS],
            output: [Block::ZERO; MAX_BLOCKS],
            rows: Vec::new(),
            sees_clears: false,
            clears_range: None,
        };
        for to in &mut network.bias[..blocks] {
            *to = block()?;
        }
        for to in &mut network.output[..blocks] {
            *to = block()?;
        }
        network.rows = (0..FEATURES * blocks)
            .map(|_| block())
            .collect::<Result<_, _>>()?;
        let mut clears = CLEARS_FEATURES.map(|feature| network.blocks_of(feature as u32));
        network.sees_clears = clears.any(|row| row.iter().any(|block| *block != Block::ZERO));
        network.clears_range = ClearsRange::new(&network);
        Ok(network)
    }

    /// Returns a copy of the weights.
    pub fn weights(&self) -> NetworkWeights {
        let list = |blocks: &[Block]| blocks.iter().flat_map(|block| block.0).collect();
        NetworkWeights {
            lanes: self.lanes(),
            bias: list(&self.bias[..self.blocks]),
            output: list(&self.output[..self.blocks]),
            rows: list(&self.rows),
        }
    }

    /// Returns the bytes of the network's file.
    pub fn encode(&self) -> Vec<u8> {
        let weights = self.weights();
        encode(&self.header, &weights).expect("the weights of a network have the right lengths")
    }
}
