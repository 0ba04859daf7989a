//! List entries, versions, and conditions for writes.

use crate::checksum::Stored;

/// An opaque version of an object's bytes, for use in [`Condition::Is`]. In S3, the version is the ETag. In other
/// stores, it consists of the length and the checksum.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(String);

impl Version {
    /// Returns the version as text, which can be stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Computes the version of the given bytes for stores other than S3.
    pub(crate) fn of(bytes: &[u8]) -> Version {
        let Stored { bytes, checksum } = Stored::of(bytes);
        Version(format!("{bytes}-{checksum}"))
    }
}

impl From<String> for Version {
    fn from(text: String) -> Version {
        Version(text)
    }
}

/// The condition of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// No object with the key exists.
    Absent,
    /// The object has this version. Equal bytes have equal versions: if an object is changed and then changed back, its
    /// old version is valid again. To prevent this, include an increasing number in the bytes.
    Is(Version),
}

/// An object in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The length in bytes.
    pub bytes: u64,
}
