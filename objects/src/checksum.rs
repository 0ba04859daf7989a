//! What is known of an object's bytes without having them.

use crc_fast::{CrcAlgorithm, Digest};
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// A checksum of an object's bytes: CRC-64/NVME.
///
/// It guards against disks, memory and networks, not against an enemy, who could as well write
/// another manifest. Tens of gigabytes a second go through it, where SHA-256 does one or two and
/// would be what an upload waits for; its 64 bits miss one damaged object in 2⁶⁴, where those of a
/// CRC-32 would miss one in four thousand million. S3 keeps the same sum of its own objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Checksum(pub u64);

impl Checksum {
    /// The checksum of some bytes.
    pub fn of(bytes: &[u8]) -> Checksum {
        Checksum(crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Checksum {
    type Err = ParseIntError;

    /// Reads what `Display` writes: hex digits.
    fn from_str(text: &str) -> Result<Checksum, ParseIntError> {
        u64::from_str_radix(text, 16).map(Checksum)
    }
}

/// What was stored: to be kept in a manifest and asked for at reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stored {
    /// How many bytes.
    pub bytes: u64,
    /// Their checksum.
    pub checksum: Checksum,
}

impl Stored {
    /// What some bytes are stored as.
    pub fn of(bytes: &[u8]) -> Stored {
        Stored {
            bytes: bytes.len() as u64,
            checksum: Checksum::of(bytes),
        }
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes with checksum {}", self.bytes, self.checksum)
    }
}

/// Computes a [`Stored`] while bytes go by.
pub(crate) struct Summing {
    bytes: u64,
    digest: Digest,
}

impl Summing {
    pub(crate) fn new() -> Summing {
        Summing {
            bytes: 0,
            digest: Digest::new(CrcAlgorithm::Crc64Nvme),
        }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.digest.update(bytes);
    }

    pub(crate) fn stored(&self) -> Stored {
        Stored {
            bytes: self.bytes,
            checksum: Checksum(self.digest.finalize()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Manifests keep these values: they are fixed for ever.
    #[test]
    fn checksums_are_those_of_crc64_nvme() {
        assert_eq!(Checksum::of(b"123456789"), Checksum(0xae8b_1486_0a79_9888));
        assert_eq!(Checksum::of(b""), Checksum(0));
    }

    #[test]
    fn sums_in_pieces_as_at_once() {
        let bytes: Vec<u8> = (0..100_000u32)
            .map(|n| (n.wrapping_mul(n) >> 3) as u8)
            .collect();
        let mut summing = Summing::new();
        for piece in bytes.chunks(777) {
            summing.add(piece);
        }
        assert_eq!(summing.stored(), Stored::of(&bytes));
    }

    #[test]
    fn reads_what_it_writes() {
        let sum = Checksum::of(b"hatetris");
        assert_eq!(sum.to_string().parse(), Ok(sum));
        assert!("not hex".parse::<Checksum>().is_err());
    }
}
