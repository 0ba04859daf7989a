//! What the object store says of a run: `runs/<name>/manifest.json`.
//!
//! The manifest is written by the coordinator alone, each time on the condition that it is still the one
//! that was written before: of two coordinators, one finds that it is not, and stops. It names the list of
//! a depth's tables (`tables/<depth>-<epoch>.json`), which names the tables, each with its length and
//! checksum. An object that no manifest leads to does not count.

use crate::run::{Keep, record};
use crate::spec::{RunSpec, SpecError, StartingPosition};
use bytes::Bytes;
use hatebeam_cost::{Budget, StoppedBy, UsageLedger};
use hatebeam_objects::{Condition, ObjectError, Objects, Stored, Version};
use hatebeam_report::{End, Facts};
use hatebeam_search::{Frontier, MAX_SHARDS, Node, NodeWell, ShardLayout};
use hatebeam_store::DepthRecord;
use serde::{Deserialize, Serialize};
use std::path::Path;
use thiserror::Error;

/// Where runs are below the store's root.
pub const RUNS: &str = "runs";
/// The format of manifests that this version writes.
const FORMAT: u64 = 2;

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It waits for its turn.
    Queued,
    /// It is searched, or would be if there were a coordinator.
    Running,
    /// It has come to its end, and its best game was read back.
    Finished,
    /// Somebody stopped it.
    Cancelled,
    /// It cannot go on.
    Failed,
}

/// The table of one shard at one depth: some of an object's bytes. A worker's tables of a depth make one
/// object, since an object store charges by the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The shard.
    pub shard: u32,
    /// The object's key below the run's prefix.
    pub key: String,
    /// Where in the object it begins.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Their checksum, CRC-64/NVME in hex.
    pub checksum: String,
    /// Wells.
    pub count: u64,
    /// The digest of the nodes in hex.
    pub digest: String,
}

impl Table {
    /// Brings it into a file, whole or not at all.
    ///
    /// # Errors
    /// [`ManifestError::Damaged`] if it is not what was written; what reading and writing may meet.
    pub async fn fetch(
        &self,
        objects: &Objects,
        run: &str,
        path: &Path,
    ) -> Result<(), ManifestError> {
        let end = self.offset.saturating_add(self.bytes);
        let key = format!("{RUNS}/{run}/{}", self.key);
        let bytes = objects.get_range(&key, self.offset..end).await?;
        let found = Stored::of(&bytes);
        if found.bytes != self.bytes || found.checksum.to_string() != self.checksum {
            return Err(ManifestError::Damaged(format!(
                "{key} is not what was written: from byte {} there are {found}",
                self.offset
            )));
        }
        let path = path.to_path_buf();
        let written = tokio::task::spawn_blocking(move || std::fs::write(&path, &bytes));
        let written = written.await.map_err(std::io::Error::other);
        written.flatten().map_err(ManifestError::Scratch)
    }
}

/// Where the list of a depth's tables is, and what it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The key below the run's prefix.
    pub key: String,
    /// Its bytes.
    pub bytes: u64,
    /// Their checksum in hex.
    pub checksum: String,
}

/// A committed depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Depth {
    /// What there is to say of it; `kept` says whether its tables are still there.
    pub record: DepthRecord,
    /// Children that went from one worker to another.
    pub sent: u64,
    /// The bytes that took.
    pub sent_bytes: u64,
    /// The list of its tables; none for the run's first depth, whose one well the specification names.
    pub tables: Option<Expected>,
    /// Millionths of a dollar that were spent from the depth before to this one.
    #[serde(default)]
    pub cost_micros: u64,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Lines of the best game.
    pub score: u32,
    /// Its pieces.
    pub pieces: u32,
    /// The game in Base2048.
    pub replay: String,
    /// Look-ups it took to read it back.
    pub lookups: u64,
    /// Seconds that took.
    pub seconds: f64,
    /// The depth whose best well it leads through; 0 in manifests of before this was said.
    #[serde(default)]
    pub depth: u32,
    /// When, in milliseconds since 1970; 0 in manifests of before this was said.
    #[serde(default)]
    pub ended_ms: u64,
    /// The files of the game: keys below the run's prefix.
    #[serde(default)]
    pub files: Vec<String>,
}

/// What the object store says of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Of what is written here.
    pub format: u64,
    /// The run's name.
    pub name: String,
    /// What is searched.
    pub spec: RunSpec,
    /// Which depths' tables stay.
    pub keep: Keep,
    /// How many shards a frontier has.
    pub shards: u32,
    /// The depth at which to stop.
    pub max_depth: Option<u32>,
    /// Milliseconds since 1970.
    pub submitted_ms: u64,
    /// How it stands.
    pub state: State,
    /// Why it failed, or what else there is to say.
    pub note: String,
    /// Grows with every crew that takes up the work; what an earlier one does is not heeded.
    pub epoch: u64,
    /// The coordinator that wrote this: its name and a random part.
    pub coordinator: String,
    /// Seconds that were worked on it.
    pub seconds: f64,
    /// The committed depths, ascending without a gap.
    pub depths: Vec<Depth>,
    /// What it came to.
    pub outcome: Option<Outcome>,
    /// What it may take at most.
    #[serde(default)]
    pub budget: Budget,
    /// What it has taken.
    #[serde(default, rename = "bill")]
    pub ledger: UsageLedger,
    /// What ended it before its time, if something did.
    #[serde(default)]
    pub stopped_by: Option<StoppedBy>,
    /// Somebody wants it stopped; it is open until whoever searches it has done so.
    #[serde(default)]
    pub stop_requested: bool,
}

/// What a manifest meets.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The object store refused.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// It cannot be what was written.
    #[error("the manifest is damaged: {0}")]
    Damaged(String),
    /// A later version of this program wrote it.
    #[error("the run has format {found}; this program knows formats up to {FORMAT}")]
    Newer {
        /// The format.
        found: u64,
    },
    /// Another coordinator has written it since.
    #[error("another coordinator has taken over run {run}")]
    Superseded {
        /// The run.
        run: String,
    },
    /// A file of this machine cannot be written.
    #[error("a scratch file")]
    Scratch(#[source] std::io::Error),
    /// The specification cannot be searched.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Manifest {
    /// Of a run that waits for its turn.
    pub fn new(
        name: String,
        spec: RunSpec,
        keep: Keep,
        shards: u32,
        submitted_ms: u64,
    ) -> Manifest {
        Manifest {
            format: FORMAT,
            name,
            spec,
            keep,
            shards,
            max_depth: None,
            submitted_ms,
            state: State::Queued,
            note: String::new(),
            epoch: 0,
            coordinator: String::new(),
            seconds: 0.0,
            depths: Vec::new(),
            outcome: None,
            budget: Budget::default(),
            ledger: UsageLedger::default(),
            stopped_by: None,
            stop_requested: false,
        }
    }

    /// Where all of the run is.
    pub fn prefix(&self) -> String {
        format!("{RUNS}/{}", self.name)
    }

    /// How a frontier is divided.
    pub fn layout(&self) -> ShardLayout {
        let width = usize::try_from(self.spec.width).unwrap_or(usize::MAX);
        ShardLayout::new(width, self.shards as usize)
    }

    /// The last committed depth that can be searched on from.
    pub fn last(&self) -> Option<&Depth> {
        self.depths.last()
    }

    /// Bytes of the tables that are there.
    pub fn stored_bytes(&self) -> u64 {
        self.depths.iter().map(|depth| depth.record.bytes).sum()
    }

    /// What has ended it, or would now: `over`, or the limit that it has reached.
    pub fn ended_by(&self) -> &'static str {
        let depth = self.last().map(|last| last.record.depth);
        if let Some(limit) = self.stopped_by {
            return limit.name();
        }
        match self.max_depth {
            Some(max) if depth >= Some(max) => "max-depth",
            _ => "over",
        }
    }

    /// What there is to say of it.
    ///
    /// # Errors
    /// [`SpecError::Geometry`].
    pub fn facts(&self, end: End) -> Result<Facts, SpecError> {
        let records = self.depths.iter().map(|depth| &depth.record);
        self.spec.facts(&self.name, records, end)
    }

    fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let damaged = |error: serde_json::Error| ManifestError::Damaged(error.to_string());
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(damaged)?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(found) if found > FORMAT => return Err(ManifestError::Newer { found }),
            Some(_) => {}
            None => return Err(ManifestError::Damaged("it names no format".to_owned())),
        }
        let mut manifest: Manifest = serde_json::from_value(value).map_err(damaged)?;
        // As such it is written, if it is.
        manifest.format = FORMAT;
        manifest.spec.check()?;
        if !(1..=MAX_SHARDS).contains(&(manifest.shards as usize)) {
            return Err(ManifestError::Damaged(format!(
                "it has {} shards",
                manifest.shards
            )));
        }
        let ascending = manifest
            .depths
            .windows(2)
            .all(|pair| pair[0].record.depth.checked_add(1) == Some(pair[1].record.depth));
        if !ascending {
            return Err(ManifestError::Damaged("a depth is missing".to_owned()));
        }
        Ok(manifest)
    }

    /// The tables of a committed depth.
    ///
    /// # Errors
    /// What reading the list may meet; [`ManifestError::Damaged`].
    pub async fn tables(
        &self,
        objects: &Objects,
        depth: &Depth,
    ) -> Result<Vec<Table>, ManifestError> {
        let Some(expected) = &depth.tables else {
            return Ok(Vec::new());
        };
        let key = format!("{}/{}", self.prefix(), expected.key);
        let (bytes, _) = objects.get(&key).await?;
        let found = Stored::of(&bytes);
        if found.bytes != expected.bytes || found.checksum.to_string() != expected.checksum {
            return Err(ManifestError::Damaged(format!(
                "{key} is not what was written"
            )));
        }
        let tables: Vec<Table> = serde_json::from_slice(&bytes)
            .map_err(|error| ManifestError::Damaged(format!("{key}: {error}")))?;
        match self.check_tables(&tables, depth.record.count) {
            Ok(()) => Ok(tables),
            Err(reason) => Err(ManifestError::Damaged(format!("{key}: {reason}"))),
        }
    }

    /// Whether these can be the tables of a depth that has so many wells.
    ///
    /// # Errors
    /// In words, why they cannot.
    pub fn check_tables(&self, tables: &[Table], count: u64) -> Result<(), String> {
        let mut seen = vec![false; self.shards as usize];
        for table in tables {
            match seen.get_mut(table.shard as usize) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => return Err(format!("shard {} has two tables", table.shard)),
                None => return Err(format!("there is no shard {}", table.shard)),
            }
        }
        let found = tables
            .iter()
            .fold(0u64, |sum, table| sum.saturating_add(table.count));
        match found == count {
            true => Ok(()),
            false => Err(format!("the tables have {found} wells, the depth {count}")),
        }
    }
}

/// A manifest and the version it has in the object store.
#[derive(Debug)]
pub struct VersionedManifest {
    objects: Objects,
    /// Whether the store honours conditions on writes.
    conditional: bool,
    version: Option<Version>,
    /// What stands there.
    pub manifest: Manifest,
}

impl VersionedManifest {
    fn key(name: &str) -> String {
        format!("{RUNS}/{name}/manifest.json")
    }

    /// Reads a run's manifest.
    ///
    /// # Errors
    /// [`ObjectError::NotFound`] inside if there is no such run.
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
    /// [`ManifestError::Superseded`] if there is one.
    pub async fn create(
        objects: &Objects,
        manifest: Manifest,
        conditional: bool,
    ) -> Result<VersionedManifest, ManifestError> {
        let mut kept = VersionedManifest {
            objects: objects.clone(),
            conditional,
            version: None,
            manifest,
        };
        kept.save().await?;
        Ok(kept)
    }

    /// Writes the manifest over the one that was read or written last.
    ///
    /// # Errors
    /// [`ManifestError::Superseded`] if that is not the one that stands there.
    pub async fn save(&mut self) -> Result<(), ManifestError> {
        let key = VersionedManifest::key(&self.manifest.name);
        let text = serde_json::to_vec(&self.manifest)
            .map_err(|error| ManifestError::Damaged(error.to_string()))?;
        if !self.conditional {
            self.objects.put(&key, Bytes::from(text)).await?;
            return Ok(());
        }
        let condition = match &self.version {
            Some(version) => Condition::Is(version.clone()),
            None => Condition::Absent,
        };
        match self
            .objects
            .put_if(&key, Bytes::from(text), &condition)
            .await
        {
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

    /// Writes the list of a depth's tables, which the manifest then is to name.
    ///
    /// # Errors
    /// What writing an object may meet.
    pub async fn put_tables(
        &self,
        depth: u32,
        tables: &[Table],
    ) -> Result<Expected, ManifestError> {
        let text = serde_json::to_vec(tables)
            .map_err(|error| ManifestError::Damaged(error.to_string()))?;
        let key = format!("tables/{depth:05}-{}.json", self.manifest.epoch);
        let stored = Stored::of(&text);
        let whole = format!("{}/{key}", self.manifest.prefix());
        self.objects.put(&whole, Bytes::from(text)).await?;
        Ok(Expected {
            key,
            bytes: stored.bytes,
            checksum: stored.checksum.to_string(),
        })
    }
}

/// The manifests of all runs in a store, and what is wrong with those that cannot be read.
///
/// # Errors
/// What listing may meet.
pub async fn list_manifests(
    objects: &Objects,
    conditional: bool,
) -> Result<Vec<(String, Result<VersionedManifest, ManifestError>)>, ManifestError> {
    let mut all = Vec::new();
    for name in objects.list_dirs(RUNS).await? {
        match VersionedManifest::load(objects, &name, conditional).await {
            Err(ManifestError::Object(error)) if error.is_not_found() => {}
            kept => all.push((name, kept)),
        }
    }
    Ok(all)
}

/// The node that a search begins with.
/// # Errors
/// [`SpecError::Geometry`].
pub fn first_node(spec: &RunSpec, start: &StartingPosition) -> Result<Node, SpecError> {
    Ok(Node {
        score: 0,
        well: NodeWell::pack(spec.well.geometry()?, start.well()),
        lines: start.lines,
        hint: 0,
    })
}

/// The record of a run's first depth.
///
/// # Errors
/// [`SpecError`] if there is none.
pub fn first_record(spec: &RunSpec) -> Result<DepthRecord, SpecError> {
    let start = spec.check()?;
    let frontier = Frontier::new(
        start.depth(),
        [first_node(spec, &start)?],
        ShardLayout::new(1, 1),
    );
    Ok(record(spec.well.geometry()?, &frontier, 0, 0.0))
}
