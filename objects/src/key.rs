//! Which keys there are.

use crate::error::ObjectError;

/// The longest key. S3 takes 1,024 bytes; what is left is for the prefix of the location.
pub const MAX_KEY_BYTES: usize = 900;
/// The longest name between two `/`: what file systems take.
pub const MAX_NAME_BYTES: usize = 255;

/// Checks a key: names joined by `/`, none of them empty or beginning with a dot, no backslash and
/// no control character.
///
/// The same rules hold for every kind of store, so that a run can be copied from one to another.
/// Names with a dot in front are the folder's own (and `.` and `..` among them).
///
/// # Errors
/// [`ObjectError::Key`].
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
        return Some("it has a backslash or a control character in it");
    }
    key.split('/').find_map(|name| match name {
        "" => Some("there is nothing before, after or between its slashes"),
        _ if name.starts_with('.') => Some("a name in it begins with a dot"),
        _ if name.len() > MAX_NAME_BYTES => Some("a name in it is longer than 255 bytes"),
        _ => None,
    })
}

/// Checks the name of what holds keys, with or without a slash behind it, and gives it without; the
/// empty one holds all.
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
    fn takes_keys_of_runs() {
        let longest = format!("{}/{}", "a".repeat(MAX_NAME_BYTES), "b".repeat(255));
        for key in ["manifest", "runs/17/depth-3/part 0.sst", "ä/名", &longest] {
            assert!(check_key(key).is_ok(), "{key}");
        }
    }

    #[test]
    fn refuses_what_leaves_the_folder_or_is_no_name() {
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
    fn a_prefix_may_end_with_a_slash_or_be_empty() {
        assert_eq!(check_prefix("").unwrap(), "");
        assert_eq!(check_prefix("a/b/").unwrap(), "a/b");
        assert_eq!(check_prefix("a/b").unwrap(), "a/b");
        assert!(check_prefix("/").is_err());
        assert!(check_prefix("a//").is_err());
        assert!(check_prefix("../a").is_err());
    }

    proptest! {
        #[test]
        fn a_key_taken_stays_below_the_folder(key in r"[a-c./\\\x00é ]{0,12}") {
            if check_key(&key).is_ok() {
                let path = Path::new("root").join(&key);
                let names: Vec<_> = path.components().collect();
                prop_assert!(names.iter().all(|name| matches!(name, Component::Normal(_))));
                prop_assert_eq!(names.len(), 2 + key.matches('/').count());
                prop_assert_eq!(path.to_str().unwrap(), format!("root/{key}"));
            }
        }

        #[test]
        fn names_joined_by_slashes_are_keys(names in prop::collection::vec("[a-zé][a-z0-9._ =-]{0,20}", 1..8)) {
            prop_assert!(check_key(&names.join("/")).is_ok());
        }

        #[test]
        fn no_key_makes_it_panic(key in any::<String>()) {
            let taken = check_key(&key).is_ok();
            prop_assert_eq!(taken, reason_against(&key).is_none());
            if taken {
                prop_assert!(!key.split('/').any(|name| name.is_empty() || name.starts_with('.')));
                prop_assert!(!key.contains(['\0', '\\']));
            }
        }
    }
}
