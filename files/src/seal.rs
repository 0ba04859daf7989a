//! Digests at the end of files.

use sha2::{Digest, Sha256};

/// Number of bytes of a SHA-256 digest.
const DIGEST_BYTES: usize = 32;

/// Appends the SHA-256 digest of `bytes`.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    bytes
}

/// Returns the bytes before the digest that [`sealed`] appended, or `None` if the digest is missing or wrong.
pub fn unsealed(bytes: &[u8]) -> Option<&[u8]> {
    let (content, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
    (Sha256::digest(content)[..] == *digest).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_detected() {
        for content in [&b""[..], b"text"] {
            let whole = sealed(content.to_vec());
            assert_eq!(unsealed(&whole), Some(content));
            for at in 0..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 1;
                assert_eq!(unsealed(&damaged), None);
                assert_eq!(unsealed(&whole[..at]), None);
            }
        }
    }
}
