//! Object lengths and checksums.

use crc_fast::{CrcAlgorithm, Digest};
use std::fmt;

/// CRC-64/NVME checksum of an object's bytes.
///
/// The checksum detects faults of disks, memory and networks. It does not protect against an attacker. The program
/// computes it at tens of gigabytes per second, but would compute SHA-256 at only one or two gigabytes per second,
/// which would limit uploads. On average, the checksum misses one damaged object in 2⁶⁴, whereas a CRC-32 misses one in
/// 2³². S3 supports the same checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Checksum(pub u64);

impl Checksum {
    /// Computes the checksum of the given bytes.
    pub fn of(bytes: &[u8]) -> Checksum {
        Checksum(crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Length and checksum of an object. A reader that knows them can detect damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stored {
    /// Length in bytes.
    pub bytes: u64,
    /// The checksum.
    pub checksum: Checksum,
}

impl Stored {
    /// Computes the length and checksum of the given bytes.
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

/// Computes a [`Stored`] incrementally.
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

    // Persisted formats contain checksums, so the algorithm must never change.
    #[test]
    fn checksum_is_crc64_nvme() {
        assert_eq!(Checksum::of(b"123456789"), Checksum(0xae8b_1486_0a79_9888));
        assert_eq!(Checksum::of(b""), Checksum(0));
    }

    #[test]
    fn incremental_result_equals_result_for_all_bytes() {
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
    fn checksum_is_formatted_as_16_hex_digits() {
        let sum = Checksum(0x0e8b_1486_0a79_9888);
        assert_eq!(sum.to_string(), "0e8b14860a799888");
    }
}
