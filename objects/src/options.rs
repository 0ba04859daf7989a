//! How a store is to be spoken to.

use crate::error::ObjectError;
use std::path::PathBuf;
use std::time::Duration;

/// The smallest part of a file that S3 takes, but for the last one.
pub const MIN_PART_BYTES: usize = 5 << 20;
/// The largest part: it is held in memory, and S3 takes none above 5 GiB.
pub const MAX_PART_BYTES: usize = 1 << 30;

/// How S3 encrypts what it keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Encryption {
    /// As the bucket is set up.
    #[default]
    Bucket,
    /// With keys of S3's own (`AES256`).
    Aes256,
    /// With a key kept in AWS KMS (`aws:kms`).
    Kms {
        /// Its id; none is the account's own key for S3.
        key_id: Option<String>,
    },
}

/// How a store is to be spoken to. A folder heeds none of it.
///
/// Credentials are no option: they come from where AWS's own tools look for them, which is the
/// environment, profiles in files, a web identity, the container or the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The address of a server other than AWS, as `http://host:port`.
    pub endpoint: Option<String>,
    /// The region; none is that of the environment, the profile or the machine, or `us-east-1` where
    /// there is an endpoint.
    pub region: Option<String>,
    /// Whether the bucket goes into the path and not into the host name; most servers other than
    /// AWS want that.
    pub path_style: bool,
    /// The profile whose credentials and region are used; none is that of the environment.
    pub profile: Option<String>,
    /// A file with credentials as `~/.aws/credentials` has them, which is then the only place where
    /// they are looked for.
    pub credentials_file: Option<PathBuf>,
    /// How objects are encrypted.
    pub encryption: Encryption,
    /// The storage class of objects, as `STANDARD_IA`; none is the bucket's.
    pub storage_class: Option<String>,
    /// Files longer than this are uploaded in parts of this many bytes.
    pub part_bytes: usize,
    /// How many parts of a file are under way at once.
    pub parallel_parts: usize,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long one try of an operation may take, and how long a body that is read may be silent.
    pub timeout: Duration,
    /// How often an operation is tried at most.
    pub max_attempts: u32,
    /// How long the wait before the second try is, about; each one after is twice as long.
    pub first_wait: Duration,
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
        }
    }
}

impl Options {
    /// Finds what cannot be meant.
    pub(crate) fn check(&self) -> Result<(), ObjectError> {
        let wrong = |reason: &str| {
            Err(ObjectError::Options {
                reason: reason.to_owned(),
            })
        };
        if let Some(endpoint) = &self.endpoint {
            if endpoint.contains('@') {
                // It is not repeated: a password may stand in it.
                return wrong("the endpoint has an '@' in it; credentials do not belong there");
            }
            if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
                return wrong(&format!(
                    "the endpoint '{endpoint}' begins with neither http:// nor https://"
                ));
            }
        }
        if !(MIN_PART_BYTES..=MAX_PART_BYTES).contains(&self.part_bytes) {
            return wrong(&format!(
                "parts of {} bytes: S3 takes 5 MiB and more, and 1 GiB is the most here",
                self.part_bytes
            ));
        }
        if self.parallel_parts == 0 {
            return wrong("no part of a file may be under way: give 1 or more parallel parts");
        }
        if self.max_attempts == 0 {
            return wrong("nothing may be tried: give 1 or more attempts");
        }
        if self.connect_timeout.is_zero() || self.timeout.is_zero() {
            return wrong("a timeout of nothing lets nothing succeed");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_fine() {
        assert!(Options::default().check().is_ok());
    }

    #[test]
    fn refuses_what_cannot_be_meant() {
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
    fn a_password_in_an_endpoint_is_not_repeated() {
        let options = Options {
            endpoint: Some("http://me:secret@host".to_owned()),
            ..Options::default()
        };
        let message = options.check().unwrap_err().to_string();
        assert!(!message.contains("secret"), "{message}");
    }
}
