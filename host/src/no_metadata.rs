//! Replacement for the metadata service in a build without the feature `aws`.

use hatebeam_cost::Machine;
use std::convert::Infallible;

/// The metadata service, which is never available in this build.
#[derive(Debug)]
pub struct Metadata(Infallible);

/// Returns whether this machine may have a metadata service, which is always `false` in this build.
pub fn is_aws() -> bool {
    false
}

impl Metadata {
    /// Returns `None`, because this build has no metadata service.
    pub async fn find() -> Option<(Metadata, Machine)> {
        None
    }

    /// Waits until AWS announces that it will reclaim the machine. Never called, because no [`Metadata`] exists in this
    /// build.
    pub async fn reclaimed(&self) -> String {
        match self.0 {}
    }
}
