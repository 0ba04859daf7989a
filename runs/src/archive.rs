//! A run in the object store, whose games are read back by look-ups.
//!
//! A look-up reads the tables that were fetched before. If one is missing, it names the table
//! ([`StoreError::MissingTables`]), and [`Archive::look_up`] fetches the table and continues the search. Look-ups do not
//! wait for the object store, so they run on any thread, and a simulation runs them as well.

use crate::error::ManifestError;
use crate::manifest::Manifest;
use crate::read_back::{BestGame, GameError, GameSearch, ReadableRun};
use crate::record::first_node;
use crate::show::ShowError;
use crate::spec::StartingPosition;
use crate::table::Table;
use bytes::Bytes;
use hatebeam_env::{Env, Panicked};
use hatebeam_game::{Emulator, Geometry};
use hatebeam_objects::Objects;
use hatebeam_report::Film;
use hatebeam_search::{DepthRecord, Node, NodeWell};
use hatebeam_store::{ColumnFamilies, Lookup, ShardTables, StoreError};
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;
use thiserror::Error;

/// The tables that an archive has fetched.
pub trait ArchiveTables: Send {
    /// Adds the table of a shard, as it is in the object store.
    ///
    /// # Errors
    /// Errors of writing and reading the table.
    fn add(&mut self, depth: u32, shard: u32, table: Bytes) -> Result<(), StoreError>;

    /// Returns the nodes of a depth with these wells, in the order of the wells.
    ///
    /// # Errors
    /// Errors of reading the tables.
    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError>;
}

/// Tables in RocksDB, in a folder that is deleted with this value.
#[derive(Debug)]
pub struct ScratchTables {
    tables: ShardTables,
    /// Deletes the folder when it is dropped.
    _folder: TempDir,
}

impl ScratchTables {
    /// Creates a folder for tables in `scratch`. This blocks.
    ///
    /// # Errors
    /// Errors of writing files.
    pub fn create(scratch: &Path, geometry: Geometry) -> Result<ScratchTables, StoreError> {
        let folder = tempfile::Builder::new()
            .prefix("hatebeam-archive-")
            .tempdir_in(scratch)
            .map_err(StoreError::io(scratch))?;
        let tables = folder.path().join("tables");
        Ok(ScratchTables {
            tables: ShardTables::create(&tables, geometry, ColumnFamilies::Shared)?,
            _folder: folder,
        })
    }
}

impl ArchiveTables for ScratchTables {
    fn add(&mut self, depth: u32, shard: u32, table: Bytes) -> Result<(), StoreError> {
        let path = self.tables.path(&format!("{depth}-{shard}.sst"));
        std::fs::write(&path, table).map_err(StoreError::io(&path))?;
        self.tables.ingest(depth, vec![path])
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        self.tables.multi_get(depth, wells)
    }
}

/// Why a game cannot be read back from the object store.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The object store failed, or an object is damaged. [`ReadError::is_transient`] says whether a retry can help.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The tables contain no such game.
    #[error(transparent)]
    Game(#[from] GameError),
    /// The game cannot be shown.
    #[error(transparent)]
    Show(#[from] ShowError),
    /// The exact rules give another score: a bug in this program.
    #[error("the game has {expected} lines, but {found} when it is played from its keys")]
    Score {
        /// Lines of the game that was read back.
        expected: u32,
        /// Lines of the game that was played.
        found: u32,
    },
    /// The look-ups panicked: a bug in this program.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> ReadError {
        ReadError::Game(error.into())
    }
}

impl ReadError {
    /// Returns whether a retry can succeed: the object store is slow or unavailable.
    pub fn is_transient(&self) -> bool {
        match self {
            ReadError::Manifest(error) => error.is_transient(),
            ReadError::Game(GameError::Store(error)) => error.is_transient(),
            _ => false,
        }
    }

    /// Returns whether the retention rule dropped tables that the game needs.
    pub fn is_dropped(&self) -> bool {
        matches!(self, ReadError::Game(error) if error.is_dropped())
    }
}

/// Number and size of the tables that an archive has fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Number of tables.
    pub tables: usize,
    /// Size of the tables.
    pub bytes: u64,
}

/// A table that was fetched, but is not in the [`ArchiveTables`] yet.
struct NewTable {
    depth: u32,
    shard: u32,
    bytes: Bytes,
}

/// A run in the object store.
pub struct Archive {
    objects: Objects,
    manifest: Manifest,
    records: Vec<DepthRecord>,
    emulator: Emulator,
    start: StartingPosition,
    first: Node,
    tables: Box<dyn ArchiveTables>,
    /// The tables of depths whose list was read.
    lists: BTreeMap<u32, Vec<Table>>,
    /// Shards (after depths) that were looked up: whether they have a table, which then is in `tables` or `new`.
    shards: BTreeMap<(u32, u32), bool>,
    new: Vec<NewTable>,
    fetched: Fetched,
}

impl Archive {
    /// Returns the archive of the run with this manifest. `tables` is empty.
    ///
    /// # Errors
    /// [`ManifestError::Spec`].
    pub fn open(
        objects: &Objects,
        manifest: Manifest,
        tables: Box<dyn ArchiveTables>,
    ) -> Result<Archive, ManifestError> {
        let start = manifest.spec.check()?;
        Ok(Archive {
            objects: objects.clone(),
            records: manifest.records().cloned().collect(),
            emulator: manifest.spec.emulator()?,
            first: first_node(&manifest.spec, &start)?,
            manifest,
            start,
            tables,
            lists: BTreeMap::new(),
            shards: BTreeMap::new(),
            new: Vec::new(),
            fetched: Fetched::default(),
        })
    }

    /// Returns what was fetched so far.
    pub fn fetched(&self) -> Fetched {
        self.fetched
    }

    /// Calls `look` until it does not miss a table any more, and fetches the tables that it misses in between. `look`
    /// should continue where it stopped, like [`GameSearch::resume`].
    ///
    /// # Errors
    /// The errors of `look`, except for missing tables; [`ReadError::Manifest`] and [`ReadError::Panicked`].
    pub async fn look_up<T, F>(self, env: &Env, mut look: F) -> Result<(Archive, T), ReadError>
    where
        T: Send + 'static,
        F: FnMut(&Archive) -> Result<T, ReadError> + Send + 'static,
    {
        let mut archive = self;
        loop {
            let work = move || {
                let found = match archive.add_new() {
                    Ok(()) => look(&archive),
                    Err(error) => Err(error.into()),
                };
                (archive, look, found)
            };
            let found;
            (archive, look, found) = env.run_blocking(work).await?;
            match found {
                Err(ReadError::Game(GameError::Store(StoreError::MissingTables {
                    depth,
                    shards,
                }))) => archive.fetch(depth, &shards).await?,
                found => return Ok((archive, found?)),
            }
        }
    }

    /// Moves fetched tables to where look-ups find them.
    fn add_new(&mut self) -> Result<(), StoreError> {
        for table in self.new.drain(..) {
            self.tables.add(table.depth, table.shard, table.bytes)?;
        }
        Ok(())
    }

    /// Fetches the tables of these shards, as far as they have any wells.
    async fn fetch(&mut self, depth: u32, shards: &[u32]) -> Result<(), ManifestError> {
        if !self.lists.contains_key(&depth) {
            let mut depths = self.manifest.depths.iter();
            let committed = depths.find(|committed| committed.record.depth == depth);
            let list = match committed {
                Some(committed) => self.manifest.tables(&self.objects, committed).await?,
                None => Vec::new(),
            };
            self.lists.insert(depth, list);
        }
        let list = self.lists.get(&depth).map_or(&[][..], Vec::as_slice);
        for &shard in shards {
            let table = list.iter().find(|table| table.shard == shard);
            if let Some(table) = table {
                let bytes = table.read(&self.objects, &self.manifest.name).await?;
                self.fetched.tables += 1;
                self.fetched.bytes += table.bytes;
                self.new.push(NewTable {
                    depth,
                    shard,
                    bytes,
                });
            }
            self.shards.insert((depth, shard), table.is_some());
        }
        Ok(())
    }
}

impl Lookup for Archive {
    fn geometry(&self) -> Geometry {
        self.emulator.geometry()
    }

    fn depths(&self) -> &[DepthRecord] {
        &self.records
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        let record = self.records.iter().find(|record| record.depth == depth);
        match record {
            None => return Err(StoreError::NoDepth { depth }),
            Some(record) if !record.kept => return Err(StoreError::Dropped { depth }),
            Some(_) => {}
        }
        if depth == self.start.depth() {
            let is_first = |well: &NodeWell| (*well == self.first.well).then_some(self.first);
            return Ok(wells.iter().map(is_first).collect());
        }
        let layout = self.manifest.layout();
        // The positions of the wells, by the shard that they belong to.
        let mut by_shard: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, well) in wells.iter().enumerate() {
            let shard = layout.shard_of(well) as u32;
            by_shard.entry(shard).or_default().push(index);
        }
        let is_missing = |shard: &u32| !self.shards.contains_key(&(depth, *shard));
        let missing: Vec<u32> = by_shard.keys().copied().filter(is_missing).collect();
        if !missing.is_empty() {
            return Err(StoreError::MissingTables {
                depth,
                shards: missing,
            });
        }
        let mut nodes = vec![None; wells.len()];
        for (shard, indices) in by_shard {
            if self.shards.get(&(depth, shard)) != Some(&true) {
                continue;
            }
            let wanted: Vec<NodeWell> = indices.iter().map(|&index| wells[index]).collect();
            let found = self.tables.multi_get(depth, &wanted)?;
            for (index, node) in indices.into_iter().zip(found) {
                nodes[index] = node;
            }
        }
        Ok(nodes)
    }
}

impl ReadableRun for Archive {
    type Store = Archive;

    fn store(&self) -> &Archive {
        self
    }

    fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    fn start(&self) -> &StartingPosition {
        &self.start
    }
}

/// A game that was read back from the object store and played from its keys.
#[derive(Debug)]
pub struct ReadBack {
    /// The game.
    pub game: BestGame,
    /// The game as a film.
    pub film: Film,
    /// The tables that were fetched for it.
    pub fetched: Fetched,
    /// Seconds that reading it back took.
    pub seconds: f64,
}

/// Reads back the best game of a run, or the one through the best well of a depth.
///
/// # Errors
/// [`ReadError`].
pub async fn read_game(
    env: &Env,
    archive: Archive,
    depth: Option<u32>,
) -> Result<ReadBack, ReadError> {
    let began = env.now();
    let mut search = match depth {
        None => GameSearch::best(&archive),
        Some(depth) => GameSearch::through(&archive, depth)?,
    };
    let look = move |archive: &Archive| {
        let game = search.resume(archive)?;
        let film = archive.manifest.spec.film(&game.keys)?;
        if film.score != game.score {
            let (expected, found) = (game.score, film.score);
            return Err(ReadError::Score { expected, found });
        }
        Ok((game, film))
    };
    let (archive, (game, film)) = archive.look_up(env, look).await?;
    Ok(ReadBack {
        game,
        film,
        fetched: archive.fetched(),
        seconds: (env.now() - began).as_secs_f64(),
    })
}
