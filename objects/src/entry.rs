//! Objects as callers see them: an entry of a list, a version, and the condition of a write.

use crate::checksum::Stored;
use std::fmt;

/// An opaque version of an object's bytes, for [`Condition::Is`]: S3's ETag, or length and checksum.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(String);

impl Version {
    /// Returns the version as text, which can be stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the version of these bytes outside S3. Equal bytes have equal versions, as they have equal ETags.
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

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The condition of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// No object has the key.
    Absent,
    /// The object has this version. An object that is changed and changed back has its old version again: put
    /// a growing number into the bytes to tell the two apart.
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
