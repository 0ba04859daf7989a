//! The file `manifest.json`, which describes a run.

use crate::error::StoreError;
use hatebeam_files::write_whole;
use hatebeam_game::Geometry;
use hatebeam_search::NodeWell;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;

/// Format number of the runs that this version writes. This version can also read the older formats:
///
/// - Format 4 is the same, but the specification never changes.
/// - Format 3 is the same as format 4, but its records have no field `changed`.
/// - In format 2, each depth has its own line in `depths.jsonl` and its own tables. Format 3 also allows
///   several depths to share a line and a table.
/// - Format 1 is the same as format 2, except that the record fields `best_eval`, `median_eval`, `worst_eval` and
///   `best_lines` have the names `best_score`, `median_score`, `worst_score` and `best_game_score`.
pub const FORMAT: u64 = 5;

/// Name of the file in a run's folder that describes the run.
pub const MANIFEST: &str = "manifest.json";

#[derive(Serialize, Deserialize, Clone, Copy)]
struct Size {
    width: usize,
    height: usize,
}

#[derive(Serialize, Deserialize, Clone)]
pub(super) struct Manifest {
    format: u64,
    geometry: Size,
    pub(super) spec: Value,
    pub(super) result: Option<Value>,
}

impl Manifest {
    pub(super) fn new(geometry: Geometry, spec: &Value) -> Result<Manifest, StoreError> {
        let (width, height) = (geometry.width(), geometry.height());
        if !NodeWell::fits(geometry) {
            return Err(StoreError::DoesNotFit { width, height });
        }
        Ok(Manifest {
            format: FORMAT,
            geometry: Size { width, height },
            spec: spec.clone(),
            result: None,
        })
    }

    /// Changes the format number to [`FORMAT`]. Call this method before appending records in the
    /// current format to a run with an older format.
    pub(super) fn upgrade(&mut self, dir: &Path) -> Result<(), StoreError> {
        if self.format == FORMAT {
            return Ok(());
        }
        self.format = FORMAT;
        self.write(dir)
    }

    pub(super) fn read(dir: &Path) -> Result<(Manifest, Geometry), StoreError> {
        let path = dir.join(MANIFEST);
        let text = fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => StoreError::NoRun {
                dir: dir.to_path_buf(),
            },
            _ => StoreError::io(&path)(error),
        })?;
        let damaged = |reason: String| StoreError::Damaged {
            path: path.clone(),
            reason,
        };
        // Check the format first, because the other fields may have a different meaning in another
        // format.
        let value: Value =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        let found = value
            .get("format")
            .and_then(Value::as_u64)
            .ok_or_else(|| damaged("the format number is missing".to_owned()))?;
        if found > FORMAT {
            return Err(StoreError::Newer {
                found,
                known: FORMAT,
            });
        }
        let manifest: Manifest =
            serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
        let Size { width, height } = manifest.geometry;
        let geometry = Geometry::new(width, height).map_err(|error| damaged(error.to_string()))?;
        if !NodeWell::fits(geometry) {
            return Err(StoreError::DoesNotFit { width, height });
        }
        Ok((manifest, geometry))
    }

    pub(super) fn write(&self, dir: &Path) -> Result<(), StoreError> {
        let path = dir.join(MANIFEST);
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| StoreError::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        text.push(b'\n');
        write_whole(&path, &text).map_err(StoreError::io(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = r#"{
  "format": 5,
  "geometry": {
    "width": 10,
    "height": 16
  },
  "spec": {
    "keep": "all"
  },
  "result": null
}
"#;

    #[test]
    fn manifest_has_documented_format() {
        let dir = tempfile::tempdir().unwrap();
        let spec = json!({ "keep": "all" });
        let manifest = Manifest::new(Geometry::STANDARD, &spec).unwrap();
        manifest.write(dir.path()).unwrap();
        let path = dir.path().join(MANIFEST);
        assert_eq!(fs::read_to_string(path).unwrap(), TEXT);
        let (read, geometry) = Manifest::read(dir.path()).unwrap();
        assert_eq!((read.spec, read.result), (spec, None));
        assert_eq!(geometry, Geometry::STANDARD);
    }
}
