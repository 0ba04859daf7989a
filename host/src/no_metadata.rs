//! A replacement for the module `metadata` in builds without the feature `aws`.

use hatebeam_cost::Machine;
use std::convert::Infallible;

/// A client for the metadata service, which cannot exist in this build.
#[derive(Debug)]
pub struct Metadata(Infallible);

/// Returns `false`, because this build does not support the metadata service.
pub fn is_aws() -> bool {
    false
}

impl Metadata {
    /// Returns `None`, because this build does not support the metadata service.
    pub async fn find() -> Option<(Metadata, Machine)> {
        None
    }

    /// Waits until AWS announces that it will reclaim the machine. This method cannot be called in this build, because
    /// no [`Metadata`] exists.
    pub async fn reclaimed(&self) -> String {
        match self.0 {}
    }
}
