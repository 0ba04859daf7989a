//! Reads games back from the object store, and stores the files of a run's best game there. Reading a game back means
//! looking up its wells, from the last to the first, in the run's tables (files that contain the wells of each depth).

use hatebeam_env::Env;
use hatebeam_game::{Geometry, Well};
use hatebeam_objects::{ObjectError, Objects};
use hatebeam_report::{FileSink, GameFile, GameFiles, date, save_files};
use hatebeam_runs::{
    Archive, ArchiveTables, CommittedDepth, GameResult, Manifest, ManifestError, REPLAYS, ReadBack,
    ReadError, ScratchTables, SpecError, Table, check_parent, read_game,
};
use hatebeam_search::{Digest, NodeWell};
use hatebeam_store::StoreError;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, UNIX_EPOCH};

type OpenTables = dyn Fn(Geometry) -> Result<Box<dyn ArchiveTables>, StoreError> + Send + Sync;

/// A source of the temporary tables that hold a run's wells while a game is read back.
#[derive(Clone)]
pub struct TableSource(Arc<OpenTables>);

impl TableSource {
    /// Creates a source that opens tables with `open`, which may block.
    pub fn new(
        open: impl Fn(Geometry) -> Result<Box<dyn ArchiveTables>, StoreError> + Send + Sync + 'static,
    ) -> TableSource {
        TableSource(Arc::new(open))
    }

    /// Creates a source that stores tables in new folders below `dir`.
    pub fn scratch(dir: PathBuf) -> TableSource {
        TableSource::new(move |geometry| {
            let tables = ScratchTables::create(&dir, geometry)?;
            Ok(Box::new(tables))
        })
    }
}

impl fmt::Debug for TableSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TableSource").finish_non_exhaustive()
    }
}

/// The wells that a table contains.
#[derive(Clone, Copy, Debug, Default)]
struct FoundWells {
    count: u64,
    digest: Digest,
}

#[derive(Clone, Debug)]
pub(crate) struct GameReader {
    pub(crate) env: Env,
    pub(crate) objects: Objects,
    pub(crate) tables: TableSource,
}

impl GameReader {
    /// Reads back a game to the well at this depth that has the most rows cleared. If `depth` is `None`, reads back the
    /// run's best game. Sets `progress` to each depth that reading back reaches.
    pub(crate) async fn read(
        &self,
        manifest: &Manifest,
        depth: Option<u32>,
        progress: &Arc<AtomicU32>,
    ) -> Result<ReadBack, ReadError> {
        let archive = self.open(manifest).await?;
        read_game(&self.env, archive, depth, progress).await
    }

    async fn open(&self, manifest: &Manifest) -> Result<Archive, ReadError> {
        let geometry = geometry_of(manifest)?;
        let TableSource(open) = self.tables.clone();
        let tables = self.env.run_blocking(move || open(geometry)).await??;
        Ok(Archive::open(&self.objects, manifest.clone(), tables)?)
    }

    /// Checks that a well of a depth after the first one has a parent.
    pub(crate) async fn check_parent(
        &self,
        manifest: &Manifest,
        depth: u32,
        well: &str,
    ) -> Result<(), ReadError> {
        let geometry = geometry_of(manifest)?;
        // A well that is not one of this run is in no table.
        let Ok(well) = Well::from_hex(geometry, well) else {
            return Ok(());
        };
        let archive = self.open(manifest).await?;
        let well = NodeWell::pack(geometry, &well);
        check_parent(&self.env, archive, depth, well).await
    }

    /// Reads tables of a depth from the object store, and checks their checksums, their numbers of wells and their digests.
    /// If this process cannot store the tables, for example because its disk is full, checks only the checksums.
    pub(crate) async fn check_wells(
        &self,
        manifest: &Manifest,
        depth: &CommittedDepth,
        tables: &[&Table],
    ) -> Result<(), ManifestError> {
        let geometry = geometry_of(manifest)?;
        let stored = depth.tables.as_ref();
        let layout = stored.map_or(manifest.layout(), |list| manifest.layout_of(list));
        let depth = depth.record.depth;
        let TableSource(open) = self.tables.clone();
        let mut scratch = self.in_background(move || open(geometry)).await?;
        for table in tables {
            let bytes = table.read(&self.objects, &manifest.name).await?;
            let Some(mut into) = scratch else {
                continue;
            };
            let shard = table.shard;
            let adding = move || into.add(depth, shard, bytes).map(|()| into);
            scratch = self.in_background(adding).await?;
        }
        let Some(scratch) = scratch else {
            return Ok(());
        };
        let counting = move || {
            let mut found: BTreeMap<u32, FoundWells> = BTreeMap::new();
            scratch.visit(depth, &mut |node| {
                let wells = found.entry(layout.shard_of(&node.well) as u32).or_default();
                wells.count += 1;
                wells.digest.add(node);
            })?;
            Ok(found)
        };
        let Some(found) = self.in_background(counting).await? else {
            return Ok(());
        };
        let is_wrong = |table: &&&Table| {
            let wells = found.get(&table.shard).copied().unwrap_or_default();
            wells.count != table.count || wells.digest.to_string() != table.digest
        };
        tables.iter().find(is_wrong).map_or(Ok(()), |table| {
            Err(ManifestError::Damaged(format!(
                "the table of shard {} in {} contains other wells than its list says",
                table.shard, table.key
            )))
        })
    }

    /// Does work with tables on another thread. Returns `None` if this process cannot do it, and an error if the tables are
    /// damaged.
    async fn in_background<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<Option<T>, ManifestError> {
        let reason = match self.env.run_blocking(work).await {
            Ok(Ok(done)) => return Ok(Some(done)),
            Ok(Err(error)) if error.is_damage() => {
                return Err(ManifestError::Damaged(error.to_string()));
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(error = reason, "cannot check the wells of tables");
        Ok(None)
    }

    /// Stores the files of a run's best game, and returns the run's result. Returns an error if the replay cannot be
    /// stored, but skips other files that cannot be stored.
    pub(crate) async fn store_files(
        &self,
        manifest: &Manifest,
        read: ReadBack,
    ) -> Result<GameResult, ReadError> {
        let ended_ms = self.env.wall_ms();
        let folder = format!("{}/{REPLAYS}", manifest.prefix());
        let names = self.existing_files(&folder).await;
        let ReadBack { game, film, .. } = read;
        let replay = film.base2048.clone();
        let facts = manifest.facts().map_err(ManifestError::from)?;
        let rendering = self.env.run_blocking(move || {
            let names = names.iter().map(String::as_str);
            let now = UNIX_EPOCH + Duration::from_millis(ended_ms);
            GameFiles::new(film, facts, names, &date(now)).all()
        });
        let files = rendering.await?;
        let objects = self.objects.clone();
        let stored = save_files(&files, &mut ObjectSink { objects, folder }).await;
        let stored = stored.map_err(ManifestError::from)?;
        Ok(GameResult {
            lines: game.score,
            pieces: game.wells.len() as u32,
            replay,
            lookups: game.lookups,
            seconds: read.seconds,
            depth: game.depth,
            ended_ms,
            parted_at: game.parted_at,
            files: stored
                .iter()
                .map(|name| format!("{REPLAYS}/{name}"))
                .collect(),
        })
    }

    /// Returns the names of the files in a folder, or an empty list if the folder cannot be listed.
    async fn existing_files(&self, folder: &str) -> Vec<String> {
        let existing = self.objects.list(folder).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot list existing replays");
            Vec::new()
        });
        let names = existing
            .iter()
            .filter_map(|entry| entry.key.rsplit('/').next());
        names.map(str::to_owned).collect()
    }
}

fn geometry_of(manifest: &Manifest) -> Result<Geometry, ManifestError> {
    Ok(manifest.spec.well.geometry().map_err(SpecError::from)?)
}

struct ObjectSink {
    objects: Objects,
    folder: String,
}

impl FileSink for ObjectSink {
    type Error = ObjectError;

    async fn save(&mut self, file: &GameFile) -> Result<(), ObjectError> {
        let key = format!("{}/{}", self.folder, file.name);
        self.objects.put(&key, file.text.clone().into()).await
    }

    fn skip(&mut self, file: &GameFile, error: ObjectError) {
        tracing::warn!(name = file.name, %error, "skipped file of the best game: cannot store it");
    }
}
