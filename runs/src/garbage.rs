//! What failed depths leave behind in the object store, and taking it away.

use crate::manifest::Manifest;
use hatebeam_objects::{ObjectError, Objects};
use std::collections::HashMap;

/// Removes the tables, and lists of tables, that the manifest does not lead to: of depths that were begun anew,
/// and of such as are not kept. Gives how many objects, and their bytes.
///
/// Only for a run that has ended: while it is searched, tables are there before the manifest names them.
///
/// # Errors
/// What listing and deleting may meet; what is left then is in nobody's way.
pub async fn collect_garbage(
    objects: &Objects,
    manifest: &Manifest,
) -> Result<(u64, u64), ObjectError> {
    let prefix = manifest.prefix();
    // All of a depth's tables are of the epoch that its list is of.
    let epochs: HashMap<u32, &str> = manifest
        .depths
        .iter()
        .filter(|depth| depth.record.kept)
        .filter_map(|depth| {
            let list = depth.tables.as_ref()?.key.strip_prefix("tables/")?;
            let (_, epoch) = list.strip_suffix(".json")?.split_once('-')?;
            Some((depth.record.depth, epoch))
        })
        .collect();
    let is_named = |key: &str| match place(key) {
        // Of a coordinator that has taken the run over.
        Some((_, epoch)) if epoch.parse().is_ok_and(|epoch: u64| epoch > manifest.epoch) => true,
        Some((depth, epoch)) => epochs.get(&depth).is_some_and(|named| *named == epoch),
        // It is nothing that this program writes.
        None => true,
    };
    let (mut count, mut bytes) = (0, 0);
    for folder in ["frontier", "tables"] {
        for entry in objects.list(&format!("{prefix}/{folder}")).await? {
            let key = entry.key.strip_prefix(&prefix).unwrap_or(&entry.key);
            if !is_named(key.trim_start_matches('/')) {
                objects.delete(&entry.key).await?;
                count += 1;
                bytes += entry.bytes;
            }
        }
    }
    Ok((count, bytes))
}

/// The depth and the epoch of `frontier/<depth>/<epoch>-<worker>` or `tables/<depth>-<epoch>.json`.
fn place(key: &str) -> Option<(u32, &str)> {
    let (depth, epoch) = if let Some(rest) = key.strip_prefix("frontier/") {
        let (depth, object) = rest.split_once('/')?;
        (depth, object.split_once('-')?.0)
    } else {
        let list = key.strip_prefix("tables/")?.strip_suffix(".json")?;
        list.split_once('-')?
    };
    Some((depth.parse().ok()?, epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_depth_and_epoch() {
        assert_eq!(place("frontier/00012/3-w-0"), Some((12, "3")));
        assert_eq!(place("tables/00012-3.json"), Some((12, "3")));
        for other in [
            "manifest.json",
            "replays/x.txt",
            "frontier/x/3-w",
            "tables/12.json",
        ] {
            assert_eq!(place(other), None, "{other}");
        }
    }
}
