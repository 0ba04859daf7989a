//! Read access to a run in the object store. A game is read back from its last well to its first: lookups in the tables of
//! each earlier depth find the game's well at that depth.
//!
//! A table contains the wells of one shard (a range of well hashes) at one depth (the number of pieces
//! placed). A lookup searches only tables that have been fetched. If it needs another table, it fails with an error
//! that names the table ([`StoreError::MissingTables`]). [`Archive::look_up`] then fetches the table and
//! resumes the lookup. A lookup itself never waits for the object store.

use crate::error::ManifestError;
use crate::manifest::Manifest;
use crate::past::{GamesWork, PastSearch, parents_of_all};
use crate::read_back::{BestGame, Contradiction, GameError, GameSearch, ReadableRun};
use crate::show::ShowError;
use crate::spec::{LoopRule, StartingPosition};
use crate::stored_run::{FoundNode, StoredRun};
use crate::table::{DepthTables, Table};
use bytes::Bytes;
use hatebeam_env::{Env, Panicked};
use hatebeam_game::{Emulator, Geometry};
use hatebeam_objects::Objects;
use hatebeam_report::Film;
use hatebeam_search::{DepthRecord, Frontier, Node, NodeWell, Past, ShardLayout, shard_starts};
use hatebeam_store::{Changes, Lookup, StoreError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// Storage for the tables that an archive has fetched.
pub trait ArchiveTables: Send + Sync {
    /// Adds the table of one shard at a depth. `table` contains the bytes of the table in the object store.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written or read.
    fn add(&mut self, depth: u32, shard: u32, table: Bytes) -> Result<(), StoreError>;

    /// Looks up `wells` at `depth` and returns their nodes (wells with scores) in the same order. The result for a well
    /// that is not in the tables is `None`.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read.
    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError>;

    /// Calls `visit` with each node in the tables of a depth.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read.
    fn visit(&self, depth: u32, visit: &mut dyn FnMut(&Node)) -> Result<(), StoreError>;
}

/// The reason why a game cannot be read back from the object store.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The object store failed, or an object is invalid. [`ReadError::is_transient`] returns whether a retry may succeed.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The tables of a depth cannot be fetched.
    #[error("cannot fetch the tables of depth {depth}")]
    Tables {
        /// The depth.
        depth: u32,
        /// The reason.
        source: ManifestError,
    },
    /// The game cannot be read back from the tables.
    #[error(transparent)]
    Game(#[from] GameError),
    /// The keys of the game cannot be played to create its film, which contains every key and well.
    #[error(transparent)]
    Show(#[from] ShowError),
    /// The keys of the game clear a different number of rows, which indicates a bug in this program.
    #[error("the game should clear {expected} lines, but clears {found} when its keys are played")]
    Score {
        /// Rows cleared when the game was read back.
        expected: u32,
        /// Rows cleared when the keys are played.
        found: u32,
    },
    /// The search was cancelled.
    #[error("the search for games was cancelled")]
    Cancelled,
    /// The lookup panicked, which indicates a bug in this program.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> ReadError {
        ReadError::Game(error.into())
    }
}

impl ReadError {
    /// Returns whether a retry may succeed because the object store was slow or unavailable.
    pub fn is_transient(&self) -> bool {
        match self {
            ReadError::Manifest(error) | ReadError::Tables { source: error, .. } => {
                error.is_transient()
            }
            ReadError::Game(GameError::Store(error)) => error.is_transient(),
            _ => false,
        }
    }

    /// Returns the depth whose missing or damaged tables caused this error, or `None` if the error has another cause.
    pub fn damaged_depth(&self) -> Option<u32> {
        match self {
            ReadError::Tables { depth, source } if source.is_damage() => Some(*depth),
            _ => None,
        }
    }

    /// Returns the contradiction between stored depths that caused this error, or `None` if the error has another cause.
    pub fn contradiction(&self) -> Option<Contradiction> {
        match self {
            ReadError::Game(error) => error.contradiction(),
            _ => None,
        }
    }

    /// Returns whether the retention rule has dropped tables that the game needs.
    pub fn is_dropped(&self) -> bool {
        matches!(self, ReadError::Game(error) if error.is_dropped())
    }
}

/// Number and total size of the tables that an archive has fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Number of tables.
    pub tables: usize,
    /// Total size of the tables, in bytes.
    pub bytes: u64,
}

/// A table that has been fetched but is not in the [`ArchiveTables`] yet.
struct NewTable {
    depth: u32,
    shard: u32,
    bytes: Bytes,
}

/// The list of the tables of a depth.
#[derive(Default)]
struct List {
    tables: Vec<Table>,
    changes: Arc<Changes>,
}

impl List {
    /// Returns the number of tables and wells in the list.
    fn len(&self) -> usize {
        self.tables.len() + self.changes.len()
    }
}

/// Number of tables and wells in lists that an archive keeps in memory, some 10 to 60 MB.
const MAX_LISTED: usize = 1 << 18;

/// Nodes that lookups have found, by depth and well.
type FoundNodes = BTreeMap<(u32, NodeWell), FoundNode>;

/// A run in the object store, open for lookups.
pub struct Archive {
    objects: Objects,
    run: StoredRun,
    tables: Box<dyn ArchiveTables>,
    /// All nodes that lookups have found. `None` if they are not needed.
    found: Option<Mutex<FoundNodes>>,
    /// Lists of tables, by depth. A list is added when it has been read, and removed if there are too many.
    lists: BTreeMap<u32, List>,
    max_listed: usize,
    /// Whether a shard has a table, by depth and shard. An entry is added when the table has been fetched or is known not to
    /// exist.
    shards: BTreeMap<(u32, u32), bool>,
    new: Vec<NewTable>,
    fetched: Fetched,
}

impl Archive {
    /// Opens the run that `manifest` describes. `tables` must be empty.
    ///
    /// # Errors
    /// Returns [`ManifestError::Spec`] if the specification is invalid.
    pub fn open(
        objects: &Objects,
        manifest: Manifest,
        tables: Box<dyn ArchiveTables>,
    ) -> Result<Archive, ManifestError> {
        Ok(Archive {
            objects: objects.clone(),
            run: StoredRun::new(manifest)?,
            tables,
            found: Some(Mutex::default()),
            lists: BTreeMap::new(),
            max_listed: MAX_LISTED,
            shards: BTreeMap::new(),
            new: Vec::new(),
            fetched: Fetched::default(),
        })
    }

    /// Limits the number of tables and wells in the lists that stay in memory.
    #[must_use]
    pub fn with_max_listed(self, max_listed: usize) -> Archive {
        Archive { max_listed, ..self }
    }

    /// Returns the layout that divided a depth into its tables.
    fn layout(&self, depth: u32) -> ShardLayout {
        let committed = self.run.manifest.committed(depth);
        let list = committed.and_then(|committed| committed.tables.as_ref());
        list.map_or_else(
            || self.run.manifest.layout(),
            |list| self.run.manifest.layout_of(list),
        )
    }

    /// Returns the number and total size of the tables fetched so far.
    pub fn fetched(&self) -> Fetched {
        self.fetched
    }

    /// Calls `look` repeatedly until it returns a result or an error other than missing tables. Between the calls, fetches
    /// the missing tables. Each call of `look` should resume the work of the previous call, as [`GameSearch::resume`] does.
    ///
    /// # Errors
    /// Returns any error from `look` except missing tables, [`ReadError::Tables`] if a table cannot be
    /// fetched, and [`ReadError::Panicked`] if `look` panics.
    pub async fn look_up<T, F>(self, env: &Env, mut look: F) -> Result<(Archive, T), ReadError>
    where
        T: Send + 'static,
        F: FnMut(&Archive) -> Result<T, ReadError> + Send + 'static,
    {
        let mut archive = self;
        loop {
            let work = move || {
                let found = archive.add_new().and_then(|()| look(&archive));
                (archive, look, found)
            };
            let found;
            (archive, look, found) = env.run_blocking(work).await?;
            match found {
                Err(ReadError::Game(GameError::Store(StoreError::MissingTables {
                    depth,
                    shards,
                }))) => {
                    let fetched = archive.fetch(depth, &shards).await;
                    fetched.map_err(|source| ReadError::Tables { depth, source })?;
                }
                found => return Ok((archive, found?)),
            }
        }
    }

    /// Returns an error that names those tables of these shards that have not been fetched yet, if there are any.
    fn require(&self, depth: u32, shards: impl Iterator<Item = u32>) -> Result<(), StoreError> {
        let is_missing = |shard: &u32| !self.shards.contains_key(&(depth, *shard));
        let shards: Vec<u32> = shards.filter(is_missing).collect();
        match shards.is_empty() {
            true => Ok(()),
            false => Err(StoreError::MissingTables { depth, shards }),
        }
    }

    /// Like [`Archive::require`], for all shards of a depth.
    fn require_all(&self, depth: u32) -> Result<(), StoreError> {
        self.require(depth, 0..self.layout(depth).shards() as u32)
    }

    /// Returns all nodes of a depth after the first one.
    fn nodes(&self, depth: u32) -> Result<Vec<Node>, StoreError> {
        self.require_all(depth)?;
        let mut nodes = Vec::new();
        self.tables.visit(depth, &mut |node| nodes.push(*node))?;
        Ok(nodes)
    }

    /// Returns the parents of nodes at a depth.
    fn parents(
        &self,
        depth: u32,
        nodes: &[Node],
        work: &GamesWork,
    ) -> Result<Vec<Node>, ReadError> {
        let before = depth - 1;
        if nodes.len() > MANY_NODES && before > self.run.start.depth() {
            self.require_all(before)?;
        }
        let parents = parents_of_all(self, &self.run.emulator, depth, nodes, work)?;
        match work.cancel.load(Ordering::Relaxed) {
            true => Err(ReadError::Cancelled),
            false => Ok(parents),
        }
    }

    /// Remembers the nodes that a lookup at `depth` has found, with the pieces that the loop rule changes in their wells. The
    /// search for a game needs the list of the next depth before it looks up wells, so the list is there.
    fn note_found(&self, depth: u32, nodes: &[Option<Node>]) {
        let Some(found) = &self.found else {
            return;
        };
        // The list of a depth names wells of the previous depth.
        let next = self.lists.get(&(depth + 1));
        let mut found = lock(found);
        for node in nodes.iter().flatten() {
            let changed = next.and_then(|list| list.changes.piece(self.geometry(), &node.well));
            let noted = found.entry((depth, node.well));
            let noted = noted.or_insert_with(|| FoundNode::new(depth, node));
            noted.changed = noted.changed.or(changed);
        }
    }

    /// Returns the nodes that lookups have found, with the pieces that the loop rule changes in their wells.
    fn found_nodes(&self) -> Vec<FoundNode> {
        let found = self.found.as_ref();
        found.map_or_else(Vec::new, |found| lock(found).values().copied().collect())
    }

    /// Adds the newly fetched tables to `tables`, where lookups find them. A table that cannot be decoded is damaged, although
    /// its checksum is right.
    fn add_new(&mut self) -> Result<(), ReadError> {
        for NewTable {
            depth,
            shard,
            bytes,
        } in self.new.drain(..)
        {
            let added = self.tables.add(depth, shard, bytes);
            added.map_err(|error| match error.is_damage() {
                true => ReadError::Tables {
                    depth,
                    source: ManifestError::Damaged(error.to_string()),
                },
                false => error.into(),
            })?;
        }
        Ok(())
    }

    /// Fetches the list of a depth's tables and the tables of these shards. A shard without wells has no table.
    async fn fetch(&mut self, depth: u32, shards: &[u32]) -> Result<(), ManifestError> {
        if !self.lists.contains_key(&depth) {
            let list = self.read_list(depth).await?;
            self.lists.insert(depth, list);
            self.remove_lists(depth);
        }
        let list = self.lists.get(&depth);
        let list = list.map_or(&[][..], |list| &list.tables);
        for &shard in shards {
            let table = list.iter().find(|table| table.shard == shard);
            if let Some(table) = table {
                let bytes = table.read(&self.objects, &self.run.manifest.name).await?;
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

    /// Reads the list of a depth's tables.
    async fn read_list(&self, depth: u32) -> Result<List, ManifestError> {
        let manifest = &self.run.manifest;
        let Some(committed) = manifest.committed(depth) else {
            return Ok(List::default());
        };
        let DepthTables { tables, changed } = match manifest.tables(&self.objects, committed).await
        {
            // The depth was marked as not kept because its list is damaged. A game is then found without its
            // changed pieces, and cannot be played if it needs one of them.
            Err(error) if error.is_damage() && !committed.record.kept => DepthTables::default(),
            list => list?,
        };
        Ok(List {
            tables,
            changes: Arc::new(Changes::new(self.geometry(), &changed)),
        })
    }

    /// Removes lists until those that remain are small enough, or only that of `depth` and another one. A search descends, so
    /// it needs those of the greatest depths last. It reads a list again if it needs it nevertheless.
    fn remove_lists(&mut self, depth: u32) {
        let mut listed: usize = self.lists.values().map(List::len).sum();
        while listed > self.max_listed && self.lists.len() > 2 {
            let others = self.lists.keys().rev();
            let Some(last) = others.copied().find(|&other| other != depth) else {
                return;
            };
            let removed = self.lists.remove(&last);
            listed -= removed.map_or(0, |list| list.len());
        }
    }
}

fn lock(found: &Mutex<FoundNodes>) -> MutexGuard<'_, FoundNodes> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lookup for Archive {
    fn geometry(&self) -> Geometry {
        self.run.emulator.geometry()
    }

    fn depths(&self) -> &[DepthRecord] {
        &self.run.records
    }

    fn changes(&self, depth: u32) -> Result<Arc<Changes>, StoreError> {
        if self.run.manifest.spec.loops == LoopRule::Ignore {
            return Ok(Arc::default());
        }
        match self.lists.get(&depth) {
            Some(list) => Ok(Arc::clone(&list.changes)),
            None => Err(StoreError::MissingTables {
                depth,
                shards: Vec::new(),
            }),
        }
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        if let Some(nodes) = self.run.without_tables(depth, wells)? {
            self.note_found(depth, &nodes);
            return Ok(nodes);
        }
        let layout = self.layout(depth);
        // Indices into `wells`, grouped by shard.
        let mut by_shard: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, well) in wells.iter().enumerate() {
            let shard = layout.shard_of(well) as u32;
            by_shard.entry(shard).or_default().push(index);
        }
        self.require(depth, by_shard.keys().copied())?;
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
        self.note_found(depth, &nodes);
        Ok(nodes)
    }
}

impl ReadableRun for Archive {
    type Store = Archive;

    fn store(&self) -> &Archive {
        self
    }

    fn emulator(&self) -> &Emulator {
        &self.run.emulator
    }

    fn start(&self) -> &StartingPosition {
        &self.run.start
    }

    fn loops(&self) -> LoopRule {
        self.run.manifest.spec.loops
    }
}

/// Number of nodes from which all tables of a depth are fetched at once.
const MANY_NODES: usize = 16;

/// A frontier to which games lead.
#[derive(Clone, Copy, Debug)]
pub struct FrontierAt {
    /// The depth.
    pub depth: u32,
    /// The division into shards, which determines the order of the wells.
    pub layout: ShardLayout,
}

/// The games that lead to a frontier.
#[derive(Clone, Debug)]
pub struct FrontierGames {
    /// The games. The wells of the frontier are ordered by shard, and within a shard by packed well.
    pub past: Past,
    /// For each shard, the index of its first well in the frontier.
    pub starts: Vec<u32>,
}

impl FrontierGames {
    /// Returns the game that leads to the start of a search.
    pub fn of_start(
        geometry: Geometry,
        start: &StartingPosition,
        layout: ShardLayout,
    ) -> FrontierGames {
        let past = Past::new(geometry, &start.wells);
        let shard = past.newest().first().map(|well| layout.shard_of(well));
        let wells = (0..layout.shards()).map(|at| usize::from(Some(at) == shard));
        FrontierGames {
            starts: shard_starts(wells),
            past,
        }
    }
}

/// Finds the games that lead to a frontier after the first depth. `held` are the games that lead to another frontier of the
/// run: the search ends where all games are known.
///
/// # Errors
/// Returns a [`ReadError`] if tables cannot be fetched or do not contain a parent, or if the search is cancelled.
pub async fn read_games(
    env: &Env,
    mut archive: Archive,
    frontier: FrontierAt,
    held: Option<Arc<Past>>,
    work: &GamesWork,
) -> Result<FrontierGames, ReadError> {
    // There can be many nodes, and no game is read back.
    archive.found = None;
    let work = work.clone();
    let FrontierAt { depth, layout } = frontier;
    let mut begun: Option<(PastSearch, Vec<u32>)> = None;
    let look = move |archive: &Archive| {
        let (mut search, starts) = match begun.take() {
            Some(begun) => begun,
            None => {
                let frontier = Frontier::new(depth, archive.nodes(depth)?, layout);
                let starts = shard_starts(frontier.shards.iter().map(Vec::len));
                (PastSearch::new(depth, frontier.shards.concat()), starts)
            }
        };
        let start = &archive.run.start;
        let known = loop {
            let held = held.as_deref();
            if let Some(past) = held.and_then(|held| held.rewound(search.depth(), &search.wells()))
            {
                break past;
            }
            if search.depth() == start.depth() {
                break Past::new(archive.run.emulator.geometry(), &start.wells);
            }
            match archive.parents(search.depth(), search.nodes(), &work) {
                Ok(parents) => search.add(&parents),
                Err(error) => {
                    begun = Some((search, starts));
                    return Err(error);
                }
            }
        };
        let past = search.after(known);
        Ok(FrontierGames { past, starts })
    };
    let (_, games) = archive.look_up(env, look).await?;
    Ok(games)
}

/// Checks that a well of a depth after the first one has a parent. Does nothing if the depth does not contain the well.
///
/// # Errors
/// Returns a [`ReadError`] if the well has no parent (see [`ReadError::contradiction`]), or if tables cannot be fetched.
pub async fn check_parent(
    env: &Env,
    archive: Archive,
    depth: u32,
    well: NodeWell,
) -> Result<(), ReadError> {
    let look = move |archive: &Archive| match archive.get(depth, &well)? {
        Some(node) => archive
            .parents(depth, &[node], &GamesWork::new(1))
            .map(|_| ()),
        None => Ok(()),
    };
    archive.look_up(env, look).await?;
    Ok(())
}

/// A game that was read back from the object store and verified by playing its keys.
#[derive(Debug)]
pub struct ReadBack {
    /// The game.
    pub game: BestGame,
    /// Every key and well of the game.
    pub film: Film,
    /// The nodes that the lookups have found, with the changed pieces in their wells. [`verify_game`](crate::verify_game)
    /// finds the same game from them.
    pub nodes: Vec<FoundNode>,
    /// Number and size of the tables that were fetched for the game.
    pub fetched: Fetched,
    /// Time spent reading the game back, in seconds.
    pub seconds: f64,
}

/// Reads back the best game of a run. If `depth` is given, reads back the game through the best well at that depth instead.
/// Sets `progress` to each depth that the search reaches on its way from the end of the game to the start.
///
/// # Errors
/// Returns a [`ReadError`] if the game cannot be read back, or if its keys clear a different number of rows.
pub async fn read_game(
    env: &Env,
    archive: Archive,
    depth: Option<u32>,
    progress: &Arc<AtomicU32>,
) -> Result<ReadBack, ReadError> {
    let began = env.now();
    let search = match depth {
        None => GameSearch::best(&archive),
        Some(depth) => GameSearch::through(&archive, depth)?,
    };
    let mut search = search.with_progress(progress);
    let look = move |archive: &Archive| {
        let game = search.resume(archive)?;
        let film = archive.run.film(&game)?;
        Ok((game, film))
    };
    let (archive, (game, film)) = archive.look_up(env, look).await?;
    Ok(ReadBack {
        game,
        film,
        fetched: archive.fetched(),
        nodes: archive.found_nodes(),
        seconds: (env.now() - began).as_secs_f64(),
    })
}
