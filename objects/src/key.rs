//! Rules for object keys.

use crate::error::ObjectError;

/// Maximum length of a key, in bytes. S3 allows 1,024 bytes; the difference is reserved for the store's prefix in the
/// bucket.
const MAX_KEY_BYTES: usize = 900;
/// Maximum length of each name in a key, in bytes. Common file systems have the same limit.
const MAX_NAME_BYTES: usize = 255;

/// Checks a key, which must consist of names joined by `/`. A name must not be empty or begin with a dot. The key must
/// not contain a backslash or a control character.
///
/// The rules are the same for every kind of store, so that objects can be copied between stores. Names that begin with
/// a dot are reserved: they include `.`, `..`, and the names of the store's own files in a folder.
///
/// # Errors
/// Returns [`ObjectError::Key`] if the key is invalid.
pub fn check_key(key: &str) -> Result<(), ObjectError> {
    match reason_against(key) {
        None => Ok(()),
        Some(reason) => Err(ObjectError::Key {
            key: key.to_owned(),
            reason,
        }),
    }
}

fn reason_against(key: &str) -> Option<&'static str> {
    if key.is_empty() {
        return Some("it is empty");
    }
    if key.len() > MAX_KEY_BYTES {
        return Some("it is longer than 900 bytes");
    }
    if key.chars().any(|c| c == '\\' || c.is_control()) {
        return Some("it contains a backslash or a control character");
    }
    key.split('/').find_map(|name| match name {
        "" => Some("it begins or ends with a slash, or contains consecutive slashes"),
        _ if name.starts_with('.') => Some("a name between slashes begins with a dot"),
        _ if name.len() > MAX_NAME_BYTES => Some("a name between slashes is longer than 255 bytes"),
        _ => None,
    })
}

/// Checks a prefix, which may be empty or end with a slash, and returns it without that slash.
pub(crate) fn check_prefix(prefix: &str) -> Result<&str, ObjectError> {
    let name = prefix.strip_suffix('/').unwrap_or(prefix);
    if !prefix.is_empty() {
        check_key(name)?;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    #[test]
    fn valid_keys_are_accepted() {
        let longest = format!("{}/{}", "a".repeat(MAX_NAME_BYTES), "b".repeat(255));
        for key in ["manifest", "runs/17/depth-3/part 0.sst", "ä/名", &longest] {
            assert!(check_key(key).is_ok(), "{key}");
        }
    }

    #[test]
    fn invalid_keys_are_refused() {
        let long_name = "a".repeat(MAX_NAME_BYTES + 1);
        let long_key = "ab/".repeat(MAX_KEY_BYTES / 3) + "c";
        for key in [
            "",
            "/",
            "/etc/passwd",
            "a//b",
            "a/",
            "..",
            "a/../b",
            "a/.",
            ".lock",
            "a\\b",
            "a\0b",
            "a\nb",
            &long_name,
            &long_key,
        ] {
            let error = check_key(key).unwrap_err();
            assert!(matches!(error, ObjectError::Key { .. }), "{key}");
        }
    }

    #[test]
    fn prefix_may_end_with_a_slash_or_be_empty() {
        assert_eq!(check_prefix("").unwrap(), "");
        assert_eq!(check_prefix("a/b/").unwrap(), "a/b");
        assert_eq!(check_prefix("a/b").unwrap(), "a/b");
        assert!(check_prefix("/").is_err());
        assert!(check_prefix("a//").is_err());
        assert!(check_prefix("../a").is_err());
    }

    proptest! {
        #[test]
        fn path_of_valid_key_is_below_the_folder(key in r"[a-c./\\\x00é ]{0,12}") {
            if check_key(&key).is_ok() {
                let path = Path::new("root").join(&key);
                let names: Vec<_> = path.components().collect();
                prop_assert!(names.iter().all(|name| matches!(name, Component::Normal(_))));
                prop_assert_eq!(names.len(), 2 + key.matches('/').count());
                prop_assert_eq!(path.to_str().unwrap(), format!("root/{key}"));
            }
        }

        #[test]
        fn names_joined_by_slashes_are_valid(names in prop::collection::vec("[a-zé][a-z0-9._ =-]{0,20}", 1..8)) {
            prop_assert!(check_key(&names.join("/")).is_ok());
        }

        #[test]
        fn accepted_keys_have_no_invalid_names(key in any::<String>()) {
            let accepted = check_key(&key).is_ok();
            prop_assert_eq!(accepted, reason_against(&key).is_none());
            if accepted {
                prop_assert!(!key.split('/').any(|name| name.is_empty() || name.starts_with('.')));
                prop_assert!(!key.contains(['\0', '\\']));
            }
        }
    }
}
