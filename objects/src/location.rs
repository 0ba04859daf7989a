//! Parser for the location of an object store, which is the path of a folder or `s3://bucket/prefix`.

use crate::error::ObjectError;
use crate::key::check_key;
use std::path::PathBuf;

/// Maximum length of the prefix, in bytes. A prefix, a slash and a key of maximum length fit into the 1,024 bytes that
/// S3 allows.
const MAX_PREFIX_BYTES: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    Folder(PathBuf),
    /// A bucket and the prefix of all keys in it. The prefix is empty or ends with a slash.
    S3 {
        bucket: String,
        prefix: String,
    },
}

impl Location {
    pub(crate) fn parse(text: &str) -> Result<Location, ObjectError> {
        let wrong = |location: &str, reason: &str| {
            Err(ObjectError::Location {
                location: location.to_owned(),
                reason: reason.to_owned(),
            })
        };
        if text.is_empty() {
            return wrong(text, "it is empty: use a folder or s3://bucket/prefix");
        }
        if text.contains('\0') {
            return wrong("", "it contains a NUL character");
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Location::Folder(PathBuf::from(text)));
        };
        if rest.contains('@') {
            // The message omits the location, which may contain a password.
            return wrong(scheme, "it contains '@': remove the credentials from it");
        }
        if scheme != "s3" {
            return wrong(text, "it is neither a folder nor s3://bucket/prefix");
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_bucket(bucket) {
            let reason = "a bucket name must have 3 to 63 lower-case letters, digits, dots and hyphens, \
                          and must begin and end with a letter or digit";
            return wrong(text, reason);
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        if prefix.is_empty() {
            return Ok(Location::S3 {
                bucket: bucket.to_owned(),
                prefix: String::new(),
            });
        }
        if prefix.len() > MAX_PREFIX_BYTES {
            return wrong(text, "its prefix is longer than 120 bytes");
        }
        if let Err(ObjectError::Key { reason, .. }) = check_key(prefix) {
            return wrong(text, &format!("its prefix is invalid: {reason}"));
        }
        Ok(Location::S3 {
            bucket: bucket.to_owned(),
            prefix: format!("{prefix}/"),
        })
    }
}

fn is_bucket(name: &str) -> bool {
    let at_ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (3..=63).contains(&name.len())
        && name.chars().all(|c| at_ends(c) || c == '.' || c == '-')
        && name.starts_with(at_ends)
        && name.ends_with(at_ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s3(bucket: &str, prefix: &str) -> Location {
        Location::S3 {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        }
    }

    #[test]
    fn valid_locations_are_parsed() {
        for (text, location) in [
            ("runs", Location::Folder("runs".into())),
            ("/mnt/all/runs", Location::Folder("/mnt/all/runs".into())),
            ("s3://bucket", s3("bucket", "")),
            ("s3://bucket/", s3("bucket", "")),
            (
                "s3://my.bucket-1/hatetris/runs",
                s3("my.bucket-1", "hatetris/runs/"),
            ),
            ("s3://bucket/runs/", s3("bucket", "runs/")),
        ] {
            assert_eq!(Location::parse(text).unwrap(), location, "{text}");
        }
    }

    #[test]
    fn invalid_locations_are_refused_with_a_reason() {
        let long = format!("s3://bucket/{}", "a".repeat(121));
        for (text, word) in [
            ("", "empty"),
            ("s3://", "bucket"),
            ("s3:///runs", "bucket"),
            ("s3://Bucket/runs", "lower-case letters"),
            ("s3://bucket//runs", "slashes"),
            ("s3://bucket/../runs", "dot"),
            (&long, "120"),
            ("gs://bucket/runs", "neither a folder nor s3://"),
            ("file:///runs", "neither a folder"),
        ] {
            let message = Location::parse(text).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn error_omits_password_in_location() {
        let message = Location::parse("s3://key:secret@bucket")
            .unwrap_err()
            .to_string();
        assert!(!message.contains("secret"), "{message}");
    }
}
