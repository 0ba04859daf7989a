//! Complete search: the whole game tree of a small well, level by level.
//!
//! A level is the set of all wells that there can be after so many pieces. How many lines were cleared
//! on the way follows from a well's cells and the number of pieces, because cells are conserved: four
//! come with a piece, a row of them goes with a line. Wells alone are therefore enough, and the best
//! game of a level is the one with the fewest cells.
//!
//! **From a level to the next.** Threads expand the wells and gather the children, as numbers, in
//! buffers. A buffer that is full is sorted and stripped of repetitions; if that frees too little it is
//! put aside as a *run*. Then the runs of each range of numbers are merged into the next level. What is
//! put aside (`section`) is coded by differences, some three bytes a well, and lies in memory as far as
//! the limit allows and in a scratch file beyond. Memory is thus bounded whatever the level's size.
//!
//! **Back.** All levels are kept. From a well back to the empty one the emulator that runs backwards
//! names the wells it can come from, and the level before tells which there were.

mod key;
mod section;
#[cfg(test)]
mod tests;

use crate::node::ODD;
use hatebeam_game::{
    Backward, Children, Emulator, Enemy, Geometry, MAX_HEIGHT, Offer, Piece, Rules, Well,
};
use key::Key;
use section::{Section, Store};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use thiserror::Error;

/// The most cells of a well that is searched: far more than any machine could get to the end of.
pub const MAX_CELLS: usize = 128;
/// The least memory, in bytes: below it buffers are too small to be of use.
pub const MIN_MEMORY: u64 = 64 << 20;

/// The least that a thread has to gather, sort and merge in.
const LEAST_BUFFER_BYTES: u64 = 512 << 10;

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameTree {
    /// The size of the well.
    pub geometry: Geometry,
    /// The rules that vary.
    pub rules: Rules,
    /// Who chooses the pieces. HATETRIS is taken for HATETRIS Mild: its memory of wells is no part
    /// of a well.
    pub enemy: Enemy,
}

/// What a search may use.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Threads.
    pub threads: usize,
    /// Bytes of memory, at least [`MIN_MEMORY`].
    pub memory: u64,
    /// The folder for scratch files, which exist only while they are open.
    pub scratch: PathBuf,
}

/// How far a search is; other threads may look.
#[derive(Debug, Default)]
pub struct Progress {
    /// The level that is being made.
    pub level: AtomicU64,
    /// Wells of the level before, which are expanded for it.
    pub parents: AtomicU64,
    /// How many of them are done.
    pub expanded: AtomicU64,
}

/// The whole tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// The wells of each level, the first being that of the empty well; the last level that has any
    /// is the last of the list.
    pub levels: Vec<u64>,
    /// The most lines.
    pub best_lines: u32,
    /// A game with so many: its wells from the empty one on.
    pub best: Vec<Well>,
    /// A longest game.
    pub longest: Vec<Well>,
    /// Bytes that were put aside for all levels together.
    pub bytes: u64,
    /// The most bytes that scratch files had at a time.
    pub scratch_bytes: u64,
}

/// Why a tree was not searched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SolveError {
    /// The enemy gives pieces that depend on more than the well and the number of pieces.
    #[error("{0} remembers wells: only hatetris, mild, lovetris and burgiel can be searched")]
    Enemy(Enemy),
    /// The well is too large.
    #[error("a well of {cells} cells is too large: at most {MAX_CELLS} can be searched")]
    TooLarge {
        /// Its cells.
        cells: usize,
    },
    /// Too little memory.
    #[error("{0} bytes of memory are too few: at least {MIN_MEMORY} are needed")]
    Memory(u64),
    /// The game need not end.
    #[error(
        "the game need not end: after {later} pieces there are the same wells as after {earlier}"
    )]
    Endless {
        /// The level that comes back.
        earlier: usize,
        /// The level it comes back as.
        later: usize,
    },
    /// It was told to stop.
    #[error("interrupted")]
    Cancelled,
    /// The disk is full.
    #[error(
        "the scratch folder {} is full: the search needs more than {bytes} bytes there",
        folder.display()
    )]
    Full {
        /// The folder.
        folder: PathBuf,
        /// Bytes of all scratch files at that time, and of what was to be added.
        bytes: u64,
    },
    /// A scratch file could not be made, written or read.
    #[error("the scratch folder {}", folder.display())]
    Scratch {
        /// The folder.
        folder: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

/// Searches the whole tree from the empty well on. `told` is called with the number of each level and
/// its wells.
///
/// # Errors
/// [`SolveError`].
pub fn solve(
    game: GameTree,
    resources: &Resources,
    cancel: &AtomicBool,
    progress: &Progress,
    told: &mut dyn FnMut(usize, u64),
) -> Result<Solution, SolveError> {
    if game.enemy == Enemy::Brzustowski {
        return Err(SolveError::Enemy(game.enemy));
    }
    if resources.memory < MIN_MEMORY {
        return Err(SolveError::Memory(resources.memory));
    }
    let cells = game.geometry.width() * game.geometry.height();
    let threads = resources.threads.clamp(1, 1 << 10);
    let search = Search {
        game,
        emulator: Emulator::new(game.geometry, game.rules),
        threads,
        scratch: &resources.scratch,
        cancel,
        progress,
        store: Store::new(&resources.scratch, resources.memory / 2),
        buffer_bytes: (resources.memory / 2 / threads as u64).max(LEAST_BUFFER_BYTES),
    };
    match cells {
        0..=64 => search.run::<u64>(told),
        65..=MAX_CELLS => search.run::<u128>(told),
        _ => Err(SolveError::TooLarge { cells }),
    }
}

/// One level.
struct Level<K> {
    /// Ascending, and ascending inside.
    sections: Vec<Section<K>>,
    count: u64,
    /// The fewest cells of a well, and the first well that has so few.
    fewest: (u32, K),
    digest: u64,
}

impl<K: Key> Level<K> {
    fn contains(&self, key: K) -> io::Result<bool> {
        let after = self
            .sections
            .partition_point(|section| section.first() <= Some(key));
        match after.checked_sub(1) {
            Some(at) => self.sections[at].contains(key),
            None => Ok(false),
        }
    }

    fn bytes(&self) -> u64 {
        self.sections.iter().map(Section::bytes).sum()
    }

    /// Blocks to be expanded, as section and block.
    fn blocks(&self) -> Vec<(usize, usize)> {
        let of = |(at, section): (usize, &Section<K>)| (0..section.blocks()).map(move |b| (at, b));
        self.sections.iter().enumerate().flat_map(of).collect()
    }
}

struct Search<'a> {
    game: GameTree,
    emulator: Emulator,
    threads: usize,
    scratch: &'a Path,
    cancel: &'a AtomicBool,
    progress: &'a Progress,
    store: Store,
    /// What each thread has to gather, sort and merge in.
    buffer_bytes: u64,
}

impl Search<'_> {
    fn run<K: Key>(&self, told: &mut dyn FnMut(usize, u64)) -> Result<Solution, SolveError> {
        let geometry = self.game.geometry;
        let mut first = self.store.writer().map_err(self.scratch())?;
        let root = K::pack(geometry, &Well::EMPTY);
        first.push(root).map_err(self.scratch())?;
        let mut levels = vec![Level {
            sections: vec![first.finish().map_err(self.scratch())?],
            count: 1,
            fewest: (0, root),
            digest: mix(root),
        }];
        told(0, 1);
        // Which piece comes may hang on the number of pieces: two levels are the same only if that
        // agrees, too.
        let mut seen: HashMap<(u64, u64, bool), usize> = HashMap::new();
        let is_odd = |level: usize| self.game.enemy == Enemy::Burgiel && level % 2 == 1;
        while let Some(last) = levels.last() {
            let number = levels.len() - 1;
            if let Some(earlier) = seen.insert((last.count, last.digest, is_odd(number)), number) {
                return Err(SolveError::Endless {
                    earlier,
                    later: number,
                });
            }
            let next = self.next(last, number)?;
            if next.count == 0 {
                break;
            }
            told(number + 1, next.count);
            levels.push(next);
        }
        let score = |level: usize| {
            (4 * level as u32).saturating_sub(levels[level].fewest.0) / geometry.width() as u32
        };
        let last = levels.len() - 1;
        // Of games with the same score the shortest that has any pieces: no keys are no replay.
        let best = (last.min(1)..=last)
            .max_by_key(|&level| (score(level), std::cmp::Reverse(level)))
            .unwrap_or(0);
        Ok(Solution {
            best_lines: score(best),
            best: self.way_to(&levels, best)?,
            longest: self.way_to(&levels, last)?,
            levels: levels.iter().map(|level| level.count).collect(),
            bytes: levels.iter().map(Level::bytes).sum(),
            scratch_bytes: self.store.most_on_disk(),
        })
    }

    fn scratch(&self) -> impl Fn(io::Error) -> SolveError + '_ {
        |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => SolveError::Full {
                folder: self.scratch.to_owned(),
                bytes: self.store.most_on_disk(),
            },
            _ => SolveError::Scratch {
                folder: self.scratch.to_owned(),
                source,
            },
        }
    }

    /// The piece that comes into the wells of a level, where it does not hang on the well.
    fn piece(&self, level: usize) -> Option<Piece> {
        match self.game.enemy {
            Enemy::Lovetris => Some(Piece::I),
            Enemy::Burgiel => Some([Piece::S, Piece::Z][level % 2]),
            _ => None,
        }
    }

    fn next<K: Key>(&self, level: &Level<K>, number: usize) -> Result<Level<K>, SolveError> {
        self.progress.expanded.store(0, Ordering::Relaxed);
        self.progress.parents.store(level.count, Ordering::Relaxed);
        self.progress
            .level
            .store(number as u64 + 1, Ordering::Relaxed);
        let threads = self.threads;
        // Half of the memory is for what was put aside. Of the rest each thread has a part, first as
        // a buffer, then to merge in: sorting takes up to as much again.
        let room = self.buffer_bytes / 2 / size_of::<K>() as u64;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        // Children differ from their parents in the upper rows, which count least: the ranges of the
        // parents are good ranges for them.
        let cuts = cuts(level, 8 * threads);
        let runs: Mutex<Vec<Vec<Section<K>>>> = Mutex::new(Vec::new());
        let blocks = level.blocks();
        let next = AtomicUsize::new(0);
        self.on_threads(threads, || {
            let mut gatherer = Gatherer::new(self, &cuts, &runs, room);
            let mut keys = Vec::new();
            while let Some(&(section, block)) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.check_cancelled()?;
                level.sections[section]
                    .decode(block, &mut keys)
                    .map_err(self.scratch())?;
                gatherer.expand(&keys, self.piece(number))?;
                let done = keys.len() as u64;
                self.progress.expanded.fetch_add(done, Ordering::Relaxed);
            }
            gatherer.finish()
        })?;
        let runs = into_inner(runs);
        self.merge(&runs, cuts.len() + 1, room, threads)
    }

    fn check_cancelled(&self) -> Result<(), SolveError> {
        match self.cancel.load(Ordering::Relaxed) {
            true => Err(SolveError::Cancelled),
            false => Ok(()),
        }
    }

    /// Runs `work` on so many threads; the first error is given.
    fn on_threads(
        &self,
        threads: usize,
        work: impl Fn() -> Result<(), SolveError> + Sync,
    ) -> Result<(), SolveError> {
        std::thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
            let mut result = work();
            for helper in helpers {
                let theirs = helper
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                result = result.and(theirs);
            }
            result
        })
    }

    /// Merges the runs range by range.
    fn merge<K: Key>(
        &self,
        runs: &[Vec<Section<K>>],
        ranges: usize,
        room: usize,
        threads: usize,
    ) -> Result<Level<K>, SolveError> {
        let results: Vec<Mutex<Option<Merged<K>>>> =
            (0..ranges).map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        self.on_threads(threads, || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(result) = results.get(at) else {
                    return Ok(());
                };
                let parts: Vec<&Section<K>> = runs.iter().map(|run| &run[at]).collect();
                let merged = self.merge_range(&parts, room)?;
                *result.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(merged);
            }
        })?;
        let mut level = Level {
            sections: Vec::new(),
            count: 0,
            fewest: (u32::MAX, K::LEAST),
            digest: 0,
        };
        for merged in results.into_iter().filter_map(into_inner) {
            level.count += merged.section.count();
            level.digest = level.digest.wrapping_add(merged.digest);
            level.fewest = level.fewest.min(merged.fewest);
            if merged.section.count() > 0 {
                level.sections.push(merged.section);
            }
        }
        Ok(level)
    }

    fn merge_range<K: Key>(
        &self,
        parts: &[&Section<K>],
        room: usize,
    ) -> Result<Merged<K>, SolveError> {
        let total: u64 = parts.iter().map(|part| part.count()).sum();
        // As much as there is room for at a time, cut at the quantiles of the blocks' first keys.
        let times = total.div_ceil(room as u64).max(1) as usize;
        let mut samples: Vec<K> = parts.iter().flat_map(|part| part.firsts()).collect();
        samples.sort_unstable();
        let cut = |at: usize| samples.get(at * samples.len() / times).copied();
        let mut writer = self.store.writer().map_err(self.scratch())?;
        let mut merged = (u32::MAX, K::LEAST);
        let mut digest = 0u64;
        let mut keys: Vec<K> = Vec::new();
        for time in 0..times {
            self.check_cancelled()?;
            let from = if time == 0 { None } else { cut(time) };
            let to = if time + 1 == times {
                None
            } else {
                cut(time + 1)
            };
            keys.clear();
            for part in parts {
                part.append(from, to, &mut keys).map_err(self.scratch())?;
            }
            // Several ascending parts: this sort finds and merges them.
            keys.sort();
            keys.dedup();
            for &key in &keys {
                writer.push(key).map_err(self.scratch())?;
                digest = digest.wrapping_add(mix(key));
                merged = merged.min((key.filled(), key));
            }
        }
        Ok(Merged {
            section: writer.finish().map_err(self.scratch())?,
            fewest: merged,
            digest,
        })
    }

    /// A game to the well with the fewest cells of a level.
    fn way_to<K: Key>(&self, levels: &[Level<K>], level: usize) -> Result<Vec<Well>, SolveError> {
        let geometry = self.game.geometry;
        let mut backward = Backward::new(&self.emulator);
        let mut parents = Vec::new();
        let mut well = levels[level].fewest.1.unpack(geometry);
        let mut wells = vec![well];
        let mut children = Children::new();
        for before in (0..level).rev() {
            backward.parents_by(&well, Offer::of(self.game.enemy), &mut parents);
            let mut found = None;
            for parent in &parents {
                if !levels[before]
                    .contains(K::pack(geometry, &parent.well))
                    .map_err(self.scratch())?
                {
                    continue;
                }
                // The pieces an enemy may offer are not always the one that comes now.
                if let Some(piece) = self.piece(before) {
                    self.emulator.children(&parent.well, piece, &mut children);
                    if !children.wells().contains(&well) {
                        continue;
                    }
                }
                found = Some(parent.well);
                break;
            }
            let Some(parent) = found else {
                let text = "a well of a level has no parent in the level before";
                return Err(self.scratch()(io::Error::other(text)));
            };
            well = parent;
            wells.push(well);
        }
        wells.reverse();
        Ok(wells)
    }
}

struct Merged<K> {
    section: Section<K>,
    fewest: (u32, K),
    digest: u64,
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner())
}

/// A hash to add up.
fn mix<K: Key>(key: K) -> u64 {
    let bits = key.bits();
    let product = u128::from(bits as u64 ^ ODD[0]) * u128::from((bits >> 64) as u64 ^ ODD[1]);
    let folded = product as u64 ^ (product >> 64) as u64;
    (folded ^ folded >> 29).wrapping_mul(ODD[2])
}

/// The first keys of all ranges but the first.
fn cuts<K: Key>(level: &Level<K>, ranges: usize) -> Vec<K> {
    let firsts: Vec<K> = level.sections.iter().flat_map(Section::firsts).collect();
    let mut cuts: Vec<K> = (1..ranges.min(firsts.len()))
        .map(|at| firsts[at * firsts.len() / ranges.min(firsts.len())])
        .collect();
    cuts.dedup();
    cuts
}

/// Wells that were met lately, a power of two: half a megabyte or one, for a core's own cache.
const LATELY: usize = 1 << 16;

/// One thread's part of an expansion.
struct Gatherer<'a, 'b, K> {
    search: &'a Search<'b>,
    cuts: &'a [K],
    runs: &'a Mutex<Vec<Vec<Section<K>>>>,
    children: Children,
    keys: Vec<K>,
    room: usize,
    lately: Vec<K>,
}

impl<'a, 'b, K: Key> Gatherer<'a, 'b, K> {
    fn new(
        search: &'a Search<'b>,
        cuts: &'a [K],
        runs: &'a Mutex<Vec<Vec<Section<K>>>>,
        room: usize,
    ) -> Self {
        Gatherer {
            search,
            cuts,
            runs,
            children: Children::new(),
            keys: Vec::new(),
            room,
            // No well is full of cells, so that this is none.
            lately: vec![K::NONE; LATELY],
        }
    }

    fn expand(&mut self, parents: &[K], piece: Option<Piece>) -> Result<(), SolveError> {
        let geometry = self.search.game.geometry;
        for parent in parents {
            let well = parent.unpack(geometry);
            match piece {
                None => {
                    self.search.emulator.expand(&well, &mut self.children);
                }
                Some(piece) => self
                    .search
                    .emulator
                    .children(&well, piece, &mut self.children),
            }
            for child in self.children.wells() {
                let key = K::pack(geometry, child);
                let met = &mut self.lately[mix(key) as usize % LATELY];
                if *met != key {
                    *met = key;
                    self.keys.push(key);
                }
            }
            if self.keys.len() + 256 > self.room {
                self.make_room()?;
            }
        }
        Ok(())
    }

    fn make_room(&mut self) -> Result<(), SolveError> {
        self.keys.sort_unstable();
        self.keys.dedup();
        match self.keys.len() > self.room / 2 {
            true => self.put_aside(),
            false => Ok(()),
        }
    }

    fn put_aside(&mut self) -> Result<(), SolveError> {
        let mut sections = Vec::with_capacity(self.cuts.len() + 1);
        let mut rest = self.keys.as_slice();
        for cut in self.cuts.iter().map(Some).chain([None]) {
            let end = cut.map_or(rest.len(), |cut| rest.partition_point(|key| key < cut));
            let (part, after) = rest.split_at(end);
            let mut writer = self.search.store.writer().map_err(self.search.scratch())?;
            for &key in part {
                writer.push(key).map_err(self.search.scratch())?;
            }
            sections.push(writer.finish().map_err(self.search.scratch())?);
            rest = after;
        }
        self.keys.clear();
        self.runs
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
            .push(sections);
        Ok(())
    }

    fn finish(mut self) -> Result<(), SolveError> {
        self.keys.sort_unstable();
        self.keys.dedup();
        self.put_aside()
    }
}

/// The rows of a well from its number, whose lowest bits are the top row.
fn rows_of(geometry: Geometry, mut bits: u128) -> Well {
    let mut rows = [0; MAX_HEIGHT];
    for row in rows[..geometry.height()].iter_mut().rev() {
        *row = bits as u16 & geometry.full_row();
        bits >>= geometry.width();
    }
    Well::from_rows(rows)
}

/// Whether a folder can hold scratch files.
///
/// # Errors
/// [`SolveError::Scratch`].
pub fn check_scratch(folder: &Path) -> Result<(), SolveError> {
    tempfile::tempfile_in(folder)
        .map(drop)
        .map_err(|source| SolveError::Scratch {
            folder: folder.to_owned(),
            source,
        })
}
