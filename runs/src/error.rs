//! Errors of runs in an object store.

use crate::manifest::FORMAT;
use crate::spec::SpecError;
use hatebeam_objects::ObjectError;
use thiserror::Error;

/// Error that occurs when reading or writing a manifest, or an object to which a manifest refers.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// An operation on the object store failed. [`ManifestError::is_transient`] returns whether a retry may succeed.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The stored contents are invalid.
    #[error("the run is damaged: {0}")]
    Damaged(String),
    /// A newer version of this program wrote the manifest.
    #[error(
        "the run has format {found}, but this program supports formats up to {FORMAT}: use the version that wrote it"
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
    /// The specification is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The network of a run is missing or damaged.
    #[error(
        "cannot use the network {key} in the object store: {reason}; to store it again, submit the run with `--evaluator FILE`"
    )]
    Network {
        /// Key of the network.
        key: String,
        /// The reason why the object cannot be used.
        reason: String,
    },
}

impl ManifestError {
    /// Returns whether a retry may succeed because the object store was slow or unavailable.
    pub fn is_transient(&self) -> bool {
        matches!(self, ManifestError::Object(error) if error.is_transient())
    }

    /// Returns whether an object is missing or damaged. A retry cannot succeed in this case.
    pub fn is_damage(&self) -> bool {
        match self {
            ManifestError::Damaged(_) | ManifestError::Network { .. } => true,
            ManifestError::Object(error) => matches!(
                error,
                ObjectError::NotFound { .. }
                    | ObjectError::Damaged { .. }
                    | ObjectError::OutOfRange { .. }
            ),
            _ => false,
        }
    }

    /// Returns whether the stored contents can never be read by this program: they are missing, damaged, or in a newer
    /// format. Otherwise, the object may be intact, but the object store failed.
    pub fn is_unreadable(&self) -> bool {
        self.is_damage() || matches!(self, ManifestError::Newer { .. } | ManifestError::Spec(_))
    }

    /// Returns whether the error means that an object does not exist. If the object is a manifest, its run does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, ManifestError::Object(error) if error.is_not_found())
    }
}
