//! Conditional writes of run manifests.

use crate::error::ManifestError;
use crate::manifest::{Manifest, RUNS};
use crate::table::{DepthTables, TableList};
use bytes::Bytes;
use hatebeam_objects::{Condition, Objects, Stored, Version};

/// A manifest and its version in the object store.
///
/// If the store supports conditional writes, each write requires that the store still has this version. If two
/// coordinators then write the same manifest, one of them gets [`ManifestError::Superseded`]. Without conditional
/// writes, each write replaces the manifest in the store.
#[derive(Debug)]
pub struct VersionedManifest {
    objects: Objects,
    /// Whether the store supports conditional writes.
    conditional: bool,
    version: Option<Version>,
    /// The manifest. To change it in the store, modify this field and call [`VersionedManifest::save`].
    pub manifest: Manifest,
}

impl VersionedManifest {
    fn key(name: &str) -> String {
        format!("{RUNS}/{name}/manifest.json")
    }

    /// Reads a run's manifest.
    ///
    /// # Errors
    /// Returns a [`ManifestError`] if the manifest cannot be read. If the run does not exist,
    /// [`ManifestError::is_not_found`] returns true.
    pub async fn load(
        objects: &Objects,
        name: &str,
        conditional: bool,
    ) -> Result<VersionedManifest, ManifestError> {
        let (bytes, version) = objects.get(&VersionedManifest::key(name)).await?;
        Ok(VersionedManifest {
            objects: objects.clone(),
            conditional,
            version: Some(version),
            manifest: Manifest::parse(&bytes)?,
        })
    }

    /// Writes the manifest of a new run.
    ///
    /// # Errors
    /// Returns [`ManifestError::Superseded`] if the run already exists. If `conditional` is false, another writer can still
    /// overwrite the manifest at the same moment. Returns another error if the object store fails.
    pub async fn create(
        objects: &Objects,
        manifest: Manifest,
        conditional: bool,
    ) -> Result<VersionedManifest, ManifestError> {
        if !conditional {
            match objects.get(&VersionedManifest::key(&manifest.name)).await {
                Ok(_) => return Err(ManifestError::Superseded { run: manifest.name }),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut created = VersionedManifest {
            objects: objects.clone(),
            conditional,
            version: None,
            manifest,
        };
        created.save().await?;
        Ok(created)
    }

    /// Writes the manifest. With conditional writes, it replaces only the version that was last read or written.
    /// Otherwise, it replaces any version.
    ///
    /// # Errors
    /// Returns [`ManifestError::Superseded`] if the store supports conditional writes and contains another version.
    /// Returns another error if the object store fails.
    pub async fn save(&mut self) -> Result<(), ManifestError> {
        let key = VersionedManifest::key(&self.manifest.name);
        let text = Bytes::from(to_json(&self.manifest)?);
        if !self.conditional {
            self.objects.put(&key, text).await?;
            return Ok(());
        }
        let condition = match &self.version {
            Some(version) => Condition::Is(version.clone()),
            None => Condition::Absent,
        };
        match self.objects.put_if(&key, text, &condition).await {
            Ok(version) => {
                self.version = Some(version);
                Ok(())
            }
            Err(error) if error.is_changed() => Err(ManifestError::Superseded {
                run: self.manifest.name.clone(),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the list of a depth's tables. The list takes effect when a saved manifest names it.
    ///
    /// # Errors
    /// Returns an error if the object store fails.
    pub async fn put_tables(
        &self,
        depth: u32,
        tables: &DepthTables,
    ) -> Result<TableList, ManifestError> {
        let text = to_json(tables)?;
        let key = format!("tables/{depth:05}-{}.json", self.manifest.epoch);
        let stored = Stored::of(&text);
        let whole = format!("{}/{key}", self.manifest.prefix());
        self.objects.put(&whole, Bytes::from(text)).await?;
        Ok(TableList {
            key,
            shards: self.manifest.shards,
            bytes: stored.bytes,
            checksum: stored.checksum.to_string(),
        })
    }
}

fn to_json(value: &impl serde::Serialize) -> Result<Vec<u8>, ManifestError> {
    serde_json::to_vec(value).map_err(|error| ManifestError::Damaged(error.to_string()))
}

/// A run in the object store.
#[derive(Debug)]
pub struct ListedRun {
    /// Name of the run.
    pub name: String,
    /// The manifest, or the error that prevented reading it.
    pub manifest: Result<VersionedManifest, ManifestError>,
}

/// Lists the runs in an object store.
///
/// # Errors
/// Returns [`ManifestError::Object`] if the runs cannot be listed.
pub async fn list_manifests(
    objects: &Objects,
    conditional: bool,
) -> Result<Vec<ListedRun>, ManifestError> {
    let mut runs = Vec::new();
    for name in objects.list_dirs(RUNS).await? {
        let manifest = VersionedManifest::load(objects, &name, conditional).await;
        // A run whose removal was interrupted may have a folder without a manifest.
        if !matches!(&manifest, Err(error) if error.is_not_found()) {
            runs.push(ListedRun { name, manifest });
        }
    }
    Ok(runs)
}
