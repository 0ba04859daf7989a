//! The contents of a store in memory, and the operations on them.

use super::{Memory, STORE};
use crate::entry::{Condition, Entry, Version};
use crate::error::ObjectError;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, Range};

#[derive(Clone)]
struct Object {
    bytes: Bytes,
    /// Mark of the write that stored this object, or `None` if that write was unconditional.
    mark: Option<String>,
}

/// A change to an object.
#[derive(Clone)]
struct Change {
    key: String,
    /// The object before the change, or `None` if the key did not exist.
    before: Option<Object>,
}

#[derive(Clone, Default)]
pub(super) struct Contents {
    objects: BTreeMap<String, Object>,
    /// The most recent changes, at most [`Memory::HISTORY`], oldest first.
    history: VecDeque<Change>,
    ignores_conditions: bool,
}

impl Contents {
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the contents as they were before the last `changes` changes.
    pub(super) fn before_changes(&self, changes: usize) -> Contents {
        let mut earlier = self.clone();
        for _ in 0..changes {
            let Some(change) = earlier.history.pop_back() else {
                break;
            };
            match change.before {
                Some(object) => earlier.objects.insert(change.key, object),
                None => earlier.objects.remove(&change.key),
            };
        }
        earlier
    }

    /// Runs an operation without checking the conditions of writes.
    pub(super) fn ignoring_conditions<T>(&mut self, apply: impl FnOnce(&mut Contents) -> T) -> T {
        self.ignores_conditions = true;
        let applied = apply(self);
        self.ignores_conditions = false;
        applied
    }

    fn change(&mut self, key: &str, object: Option<Object>) {
        let before = match object {
            Some(object) => self.objects.insert(key.to_owned(), object),
            None => self.objects.remove(key),
        };
        if self.history.len() == Memory::HISTORY {
            self.history.pop_front();
        }
        let key = key.to_owned();
        self.history.push_back(Change { key, before });
    }

    fn object(&self, key: &str) -> Result<&Object, ObjectError> {
        self.objects.get(key).ok_or_else(|| ObjectError::NotFound {
            store: STORE.to_owned(),
            key: key.to_owned(),
        })
    }

    pub(super) fn put(&mut self, key: &str, bytes: &Bytes) {
        let bytes = bytes.clone();
        self.change(key, Some(Object { bytes, mark: None }));
    }

    pub(super) fn put_if(
        &mut self,
        key: &str,
        bytes: &Bytes,
        condition: &Condition,
        mark: &str,
    ) -> Result<Version, ObjectError> {
        let found = self.objects.get(key);
        let holds = match condition {
            Condition::Absent => found.is_none(),
            Condition::Is(version) => {
                found.is_some_and(|object| Version::of(&object.bytes) == *version)
            }
        };
        if !holds && !self.ignores_conditions {
            return Err(ObjectError::Changed {
                store: STORE.to_owned(),
                key: key.to_owned(),
            });
        }
        let (bytes, mark) = (bytes.clone(), Some(mark.to_owned()));
        let version = Version::of(&bytes);
        self.change(key, Some(Object { bytes, mark }));
        Ok(version)
    }

    /// Returns the version of an object if its mark equals `mark`.
    pub(super) fn version_with_mark(&self, key: &str, mark: &str) -> Option<Version> {
        let object = self.objects.get(key)?;
        let is_own = object.mark.as_deref() == Some(mark);
        is_own.then(|| Version::of(&object.bytes))
    }

    pub(super) fn get(&self, key: &str) -> Result<(Bytes, Version), ObjectError> {
        let bytes = self.object(key)?.bytes.clone();
        let version = Version::of(&bytes);
        Ok((bytes, version))
    }

    pub(super) fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, ObjectError> {
        let bytes = &self.object(key)?.bytes;
        let length = bytes.len() as u64;
        if range.start >= length {
            return Err(ObjectError::OutOfRange {
                store: STORE.to_owned(),
                key: key.to_owned(),
                start: range.start,
            });
        }
        Ok(bytes.slice(range.start as usize..range.end.min(length) as usize))
    }

    pub(super) fn size(&self, key: &str) -> Result<u64, ObjectError> {
        Ok(self.object(key)?.bytes.len() as u64)
    }

    pub(super) fn delete(&mut self, key: &str) {
        if self.objects.contains_key(key) {
            self.change(key, None);
        }
    }

    /// Returns the objects below a prefix, each with its key and the part of the key after the prefix.
    fn below<'a>(&'a self, prefix: &str) -> impl Iterator<Item = (&'a str, &'a str, &'a Object)> {
        let start = match prefix {
            "" => String::new(),
            _ => format!("{prefix}/"),
        };
        let from = (Bound::Included(start.as_str()), Bound::Unbounded);
        let objects = self.objects.range::<str, _>(from);
        objects.map_while(move |(key, object)| Some((&**key, key.strip_prefix(&start)?, object)))
    }

    pub(super) fn list(&self, prefix: &str) -> Vec<Entry> {
        let entry = |(key, _, object): (&str, &str, &Object)| Entry {
            key: key.to_owned(),
            bytes: object.bytes.len() as u64,
        };
        self.below(prefix).map(entry).collect()
    }

    pub(super) fn list_dirs(&self, prefix: &str) -> Vec<String> {
        let mut names: Vec<String> = self
            .below(prefix)
            .filter_map(|(_, rest, _)| Some(rest.split_once('/')?.0.to_owned()))
            .collect();
        // The key `a-b/1` sorts before `a/1`, but the name `a` sorts before `a-b`.
        names.sort_unstable();
        names.dedup();
        names
    }
}
