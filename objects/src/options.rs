//! Settings for opening a store.

use crate::error::ObjectError;
use crate::random::Random;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// Minimum size of the parts of a file in S3, in bytes. The last part may be smaller.
const MIN_PART_BYTES: usize = 5 << 20;
/// Maximum size of the parts of a file in S3, in bytes. S3 accepts up to 5 GiB, but parts are held in memory.
const MAX_PART_BYTES: usize = 1 << 30;

/// Encryption of objects in S3.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Encryption {
    /// The default encryption of the bucket.
    #[default]
    Bucket,
    /// Encryption with keys that S3 manages (`AES256`).
    Aes256,
    /// Encryption with a key in AWS KMS (`aws:kms`).
    Kms {
        /// ID of the key. `None` selects the account's default key for S3.
        key_id: Option<String>,
    },
}

/// Error returned when parsing an [`Encryption`] fails.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown encryption {0:?}: use AES256, aws:kms or aws:kms:KEY")]
pub struct NotEncryption(String);

/// Parses `AES256`, `aws:kms` or `aws:kms:KEY`.
impl FromStr for Encryption {
    type Err = NotEncryption;

    fn from_str(text: &str) -> Result<Encryption, NotEncryption> {
        match (text, text.strip_prefix("aws:kms:")) {
            ("AES256", _) => Ok(Encryption::Aes256),
            ("aws:kms", _) => Ok(Encryption::Kms { key_id: None }),
            (_, Some(key)) if !key.is_empty() => Ok(Encryption::Kms {
                key_id: Some(key.to_owned()),
            }),
            _ => Err(NotEncryption(text.to_owned())),
        }
    }
}

/// Settings for opening a store. A folder uses none of them. A store in memory uses `timeout`, `max_attempts`,
/// `first_wait` and `random`.
///
/// Credentials are loaded from the usual AWS sources: environment, profile files, web identity, container, or machine.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address of a server other than AWS, such as `http://host:port`.
    pub endpoint: Option<String>,
    /// Region of the bucket. `None` selects the region from the environment, the profile or the machine's metadata
    /// service. If `endpoint` is set, `us-east-1` replaces the metadata service as the last source.
    pub region: Option<String>,
    /// Whether requests contain the bucket's name in the path instead of the host name. Most servers other than AWS
    /// require this.
    pub path_style: bool,
    /// Profile for credentials and region. `None` selects the profile named in the environment.
    pub profile: Option<String>,
    /// Credentials file in the format of `~/.aws/credentials`. If set, it is the only source of credentials.
    pub credentials_file: Option<PathBuf>,
    /// Encryption of objects.
    pub encryption: Encryption,
    /// Storage class of objects, such as `STANDARD_IA`. `None` selects the bucket's default.
    pub storage_class: Option<String>,
    /// Size of the parts of an upload, in bytes. A file that is larger than this size is uploaded in parts.
    pub part_bytes: usize,
    /// Maximum number of parts of a file that are uploaded concurrently.
    pub parallel_parts: usize,
    /// Maximum time to establish a connection.
    pub connect_timeout: Duration,
    /// Maximum duration of one attempt of an operation, and maximum time without data during a download.
    pub timeout: Duration,
    /// Maximum number of attempts per operation.
    pub max_attempts: u32,
    /// Maximum wait before the second attempt. The maximum doubles with each further attempt.
    pub first_wait: Duration,
    /// Source of random numbers for retry jitter, and for the marks by which writers recognize their own conditional
    /// writes. The AWS SDK uses a separate source for its retries.
    pub random: Random,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            endpoint: None,
            region: None,
            path_style: false,
            profile: None,
            credentials_file: None,
            encryption: Encryption::default(),
            storage_class: None,
            part_bytes: 16 << 20,
            parallel_parts: 4,
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(60),
            max_attempts: 6,
            first_wait: Duration::from_millis(500),
            random: Random::default(),
        }
    }
}

impl Options {
    /// Checks the settings that do not depend on the environment.
    pub(crate) fn check(&self) -> Result<(), ObjectError> {
        let wrong = |reason: &str| {
            Err(ObjectError::Options {
                reason: reason.to_owned(),
            })
        };
        if let Some(endpoint) = &self.endpoint {
            if endpoint.contains('@') {
                // The message omits the endpoint, which may contain a password.
                return wrong("the endpoint contains '@': remove the credentials from it");
            }
            if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
                return wrong(&format!(
                    "the endpoint '{endpoint}' must begin with http:// or https://"
                ));
            }
        }
        if !(MIN_PART_BYTES..=MAX_PART_BYTES).contains(&self.part_bytes) {
            return wrong(&format!(
                "parts of {} bytes are out of range: use 5 MiB to 1 GiB",
                self.part_bytes
            ));
        }
        if self.parallel_parts == 0 {
            return wrong("the number of parallel parts is 0: use 1 or more");
        }
        if self.max_attempts == 0 {
            return wrong("the number of attempts is 0: use 1 or more");
        }
        if self.connect_timeout.is_zero() || self.timeout.is_zero() {
            return wrong("a timeout is 0: use a longer timeout");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        assert!(Options::default().check().is_ok());
    }

    #[test]
    fn invalid_settings_are_refused_with_a_reason() {
        let base = Options::default;
        let some = |text: &str| Some(text.to_owned());
        for (options, word) in [
            (
                Options {
                    endpoint: some("localhost:9000"),
                    ..base()
                },
                "http://",
            ),
            (
                Options {
                    part_bytes: 1 << 20,
                    ..base()
                },
                "5 MiB",
            ),
            (
                Options {
                    part_bytes: 2 << 30,
                    ..base()
                },
                "1 GiB",
            ),
            (
                Options {
                    parallel_parts: 0,
                    ..base()
                },
                "parallel",
            ),
            (
                Options {
                    max_attempts: 0,
                    ..base()
                },
                "attempts",
            ),
            (
                Options {
                    timeout: Duration::ZERO,
                    ..base()
                },
                "timeout",
            ),
        ] {
            let message = options.check().unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn error_omits_password_in_endpoint() {
        let options = Options {
            endpoint: Some("http://me:secret@host".to_owned()),
            ..Options::default()
        };
        let message = options.check().unwrap_err().to_string();
        assert!(!message.contains("secret"), "{message}");
    }
}
