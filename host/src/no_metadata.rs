//! The metadata service in a build without AWS: there is none.

use hatebeam_cost::Machine;
use std::convert::Infallible;

/// The metadata service, which this build cannot ask.
#[derive(Debug)]
pub struct Metadata(Infallible);

/// Returns whether this machine can have a metadata service.
pub fn is_aws() -> bool {
    false
}

impl Metadata {
    /// Returns the service and the machine that it describes.
    pub async fn find() -> Option<(Metadata, Machine)> {
        None
    }

    /// Waits until the machine is about to be reclaimed, and returns the reason.
    pub async fn reclaimed(&self) -> String {
        match self.0 {}
    }
}
