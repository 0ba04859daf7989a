//! Errors of runs in the object store.

use crate::manifest::FORMAT;
use crate::spec::SpecError;
use hatebeam_objects::ObjectError;
use thiserror::Error;

/// An error of a manifest, or of an object that it names.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The object store failed. [`ManifestError::is_transient`] says whether a retry can help.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The contents are not what this program writes.
    #[error("the run is damaged: {0}")]
    Damaged(String),
    /// A later version of this program wrote the manifest.
    #[error(
        "the run has format {found}, and this program knows formats up to {FORMAT}: use the program that wrote it"
    )]
    Newer {
        /// Format of the manifest.
        found: u64,
    },
    /// Another coordinator has written the manifest since it was read.
    #[error("another coordinator has taken over run {run}")]
    Superseded {
        /// Name of the run.
        run: String,
    },
    /// The specification cannot be searched.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl ManifestError {
    /// Returns whether a retry can succeed: the object store is slow or unavailable.
    pub fn is_transient(&self) -> bool {
        match self {
            ManifestError::Object(error) => error.is_transient(),
            _ => false,
        }
    }

    /// Returns whether the object store has no such run.
    pub fn is_not_found(&self) -> bool {
        match self {
            ManifestError::Object(error) => error.is_not_found(),
            _ => false,
        }
    }
}
