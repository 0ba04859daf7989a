//! Garbage collection for runs in the object store. Garbage is tables (the stored wells of a depth) and lists of tables
//! that the run's manifest does not name.

use crate::manifest::{CommittedDepth, Manifest};
use crate::spec::LoopRule;
use crate::table::frontier_folder;
use hatebeam_objects::{ObjectError, Objects};
use std::collections::BTreeMap;

/// Folder of a run that contains the tables.
const FRONTIER_FOLDER: &str = "frontier";
/// Folder of a run that contains the lists of tables.
const LIST_FOLDER: &str = "tables";

/// Number and total size of the deleted objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Garbage {
    /// Number of objects.
    pub objects: u64,
    /// Total size of the objects, in bytes.
    pub bytes: u64,
}

/// Deletes the tables and lists of tables that the manifest does not name. They are left over from depths that
/// are not kept, and from failed epochs (periods with a fixed set of workers).
///
/// Call this function only for a run that has ended. During a search, tables exist before the manifest names
/// them.
///
/// # Errors
/// Returns an error if objects cannot be listed or deleted. A later call deletes the remaining objects.
pub async fn collect_garbage(
    objects: &Objects,
    manifest: &Manifest,
) -> Result<Garbage, ObjectError> {
    let prefix = manifest.prefix();
    let is_exact = manifest.spec.loops == LoopRule::Exact;
    let kept = epochs(manifest, |depth| depth.record.kept);
    // The list of a damaged depth contains the pieces that the loop rule changes, which a game across the depth needs.
    let listed = epochs(manifest, |depth| depth.record.kept || is_exact);
    let is_named = |key: &str, epochs: &BTreeMap<u32, u64>| match DepthObject::parse(key) {
        // Another coordinator has taken over the run and may need this object.
        Some(object) if object.epoch > manifest.epoch => true,
        Some(object) => epochs.get(&object.depth) == Some(&object.epoch),
        // This program did not write an object with such a key, so the object is kept.
        None => true,
    };
    let (mut garbage, mut keys) = (Garbage::default(), Vec::new());
    for (folder, epochs) in [(FRONTIER_FOLDER, kept), (LIST_FOLDER, listed)] {
        for entry in objects.list(&format!("{prefix}/{folder}")).await? {
            if !is_named(relative(&entry.key, &prefix), &epochs) {
                garbage.objects += 1;
                garbage.bytes += entry.bytes;
                keys.push(entry.key);
            }
        }
    }
    objects.delete_all(&keys).await?;
    Ok(garbage)
}

/// Deletes the tables of a depth that the manifest no longer keeps, except those of later epochs than its own: another
/// coordinator has taken over the run and may need them.
///
/// # Errors
/// Returns an error if objects cannot be listed or deleted. [`collect_garbage`] deletes the remaining objects.
pub async fn delete_tables(
    objects: &Objects,
    manifest: &Manifest,
    depth: u32,
) -> Result<(), ObjectError> {
    let prefix = manifest.prefix();
    let folder = format!("{prefix}/{}", frontier_folder(depth));
    let keys = objects.list(&folder).await?.into_iter();
    let is_own = |key: &String| {
        let object = DepthObject::parse(relative(key, &prefix));
        object.is_some_and(|object| object.epoch <= manifest.epoch)
    };
    let keys: Vec<String> = keys.map(|entry| entry.key).filter(is_own).collect();
    objects.delete_all(&keys).await
}

/// Returns a key without the run's prefix.
fn relative<'a>(key: &'a str, prefix: &str) -> &'a str {
    let rest = key.strip_prefix(prefix).unwrap_or(key);
    rest.trim_start_matches('/')
}

/// Deletes all objects of a run except the files of its best game. Returns the number of deleted objects.
///
/// Call this function only for a run that has ended.
///
/// # Errors
/// Returns an error if objects cannot be listed or deleted. A later call deletes the remaining objects.
pub async fn remove_run(objects: &Objects, manifest: &Manifest) -> Result<u64, ObjectError> {
    let prefix = manifest.prefix();
    let mut removed = 0;
    for folder in [FRONTIER_FOLDER, LIST_FOLDER] {
        removed += objects.delete_prefix(&format!("{prefix}/{folder}")).await?;
    }
    let replays = manifest.replays_prefix();
    let mut rest = objects.list(&prefix).await?;
    rest.retain(|entry| !entry.key.starts_with(&replays));
    // The manifest is deleted last, so that an interrupted removal can be repeated.
    rest.sort_by_key(|entry| entry.key.ends_with("/manifest.json"));
    for entry in rest {
        objects.delete(&entry.key).await?;
        removed += 1;
    }
    Ok(removed)
}

/// Returns the epoch of each selected depth. All tables of a depth have the same epoch as their list.
fn epochs(manifest: &Manifest, select: impl Fn(&CommittedDepth) -> bool) -> BTreeMap<u32, u64> {
    let selected = manifest.depths.iter().filter(|depth| select(depth));
    let lists = selected.filter_map(|depth| DepthObject::parse(&depth.tables.as_ref()?.key));
    lists.map(|list| (list.depth, list.epoch)).collect()
}

/// Depth and epoch in a key of the form `frontier/<depth>/<epoch>-<worker>` or `tables/<depth>-<epoch>.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DepthObject {
    depth: u32,
    epoch: u64,
}

impl DepthObject {
    fn parse(key: &str) -> Option<DepthObject> {
        let (depth, epoch) = if let Some(rest) = key.strip_prefix("frontier/") {
            let (depth, object) = rest.split_once('/')?;
            (depth, object.split_once('-')?.0)
        } else {
            let list = key.strip_prefix("tables/")?.strip_suffix(".json")?;
            list.split_once('-')?
        };
        Some(DepthObject {
            depth: depth.parse().ok()?,
            epoch: epoch.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_epoch_are_parsed_from_keys() {
        let expected = Some(DepthObject {
            depth: 12,
            epoch: 3,
        });
        for key in ["frontier/00012/3-w-0", "tables/00012-3.json"] {
            assert_eq!(DepthObject::parse(key), expected, "{key}");
        }
        for other in [
            "manifest.json",
            "replays/x.txt",
            "frontier/x/3-w",
            "frontier/00012/x-w",
            "tables/12.json",
        ] {
            assert_eq!(DepthObject::parse(other), None, "{other}");
        }
    }
}
