//! Complete search: the whole game tree of a small well, level by level.
//!
//! Level `n` is the set of all wells that are possible after `n` pieces. The number of filled cells
//! and the number of pieces determine the number of lines cleared so far: each piece adds four cells,
//! and each cleared line removes the cells of one row. So a level stores only the wells, and the best
//! game of a level ends in the well with the fewest filled cells.
//!
//! **From one level to the next.** Threads expand the wells and collect the children, encoded as
//! integers, in buffers. When a buffer is full, it is sorted and duplicates are removed. If this
//! frees too little room, the buffer is written out as a sorted *run*. Finally, the threads merge the
//! runs into the next level, each range of values separately. Runs and levels are stored as
//! *sections*, which encode the differences between values in about three bytes per well. Sections
//! are kept in memory up to a limit and in scratch files beyond it, so that a level may be larger
//! than the memory.
//!
//! **Games.** All levels are kept. The game that leads to a well is reconstructed from its end: the
//! backward emulator finds the possible parents of a well, and the previous level contains at least
//! one of them.

mod gather;
mod key;
mod replay;
mod section;
#[cfg(test)]
mod tests;

pub use replay::ReplayError;

use crate::node::ODD;
use gather::Gatherer;
use hatebeam_game::{
    Backward, Children, Emulator, Enemy, Geometry, MAX_HEIGHT, Offer, Piece, Rules, Well,
};
use key::WellKey;
use section::{ScratchStore, Section};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use thiserror::Error;

/// Maximum number of cells in a well. The game trees of larger wells are far too large for any
/// machine.
pub const MAX_CELLS: usize = 128;
/// Minimum memory limit in bytes. With less memory, buffers are too small to be useful.
pub const MIN_MEMORY: u64 = 64 << 20;

/// Minimum total size in bytes of one thread's buffers.
const MIN_BUFFER_BYTES: u64 = 512 << 10;

/// A game tree to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameTree {
    /// Size of the well.
    pub geometry: Geometry,
    /// Variant of the rules.
    pub rules: Rules,
    /// The enemy, which chooses the pieces. HATETRIS is treated like HATETRIS Mild, because its
    /// loop rule (it avoids pieces that can repeat a well) depends on earlier wells, which a level
    /// does not record.
    pub enemy: Enemy,
}

/// Resources of a search.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Number of threads.
    pub threads: usize,
    /// Memory limit in bytes, at least [`MIN_MEMORY`].
    pub memory: u64,
    /// Folder for scratch files. The files have no names, and the system deletes them when the
    /// process ends.
    pub scratch: PathBuf,
}

/// Progress of a search, readable by other threads.
#[derive(Debug, Default)]
pub struct Progress {
    /// Index of the level that is being generated.
    pub level: AtomicU64,
    /// Number of wells in the previous level.
    pub parents: AtomicU64,
    /// Number of wells of the previous level that have been expanded.
    pub expanded: AtomicU64,
}

/// The result of a complete search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// Number of wells in each level. Level 0 contains the empty well. Empty levels are not listed.
    pub levels: Vec<u64>,
    /// Maximum number of lines that a game can clear.
    pub best_lines: u32,
    /// The wells of a shortest game that clears `best_lines` lines, starting with the empty well.
    pub best: Vec<Well>,
    /// The wells of a longest game.
    pub longest: Vec<Well>,
    /// Total size of all levels in bytes, as stored in sections.
    pub bytes: u64,
    /// Maximum number of bytes that were in scratch files at the same time.
    pub scratch_bytes: u64,
}

/// Error of a complete search.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SolveError {
    /// The enemy's piece depends on more than the well and the number of pieces.
    #[error(
        "cannot search games against {0}, which remembers earlier wells: use hatetris, mild, lovetris or burgiel"
    )]
    Enemy(Enemy),
    /// The well is too large.
    #[error("a well of {cells} cells is too large: the limit is {MAX_CELLS} cells")]
    TooLarge {
        /// Number of cells.
        cells: usize,
    },
    /// The memory limit is too low.
    #[error("a memory limit of {0} bytes is too low: at least {MIN_MEMORY} bytes are needed")]
    Memory(u64),
    /// The game can continue forever.
    #[error(
        "the game can continue forever: the wells after {later} pieces are the same as after {earlier}"
    )]
    Endless {
        /// The first of two levels with the same wells.
        earlier: usize,
        /// The second of these levels.
        later: usize,
    },
    /// The search was cancelled.
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
        /// Number of bytes in all scratch files, including bytes that could not be written.
        bytes: u64,
    },
    /// A scratch file cannot be created, written or read.
    #[error("cannot use the scratch folder {}", folder.display())]
    Scratch {
        /// The folder.
        folder: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
}

/// Searches the whole game tree, starting with the empty well. Calls `on_level` with the index and the
/// number of wells of each level.
///
/// # Errors
/// Returns a [`SolveError`] if the search is not supported, a resource is insufficient, the game
/// can continue forever, or the search is cancelled.
pub fn solve(
    game: GameTree,
    resources: &Resources,
    cancel: &AtomicBool,
    progress: &Progress,
    on_level: &mut dyn FnMut(usize, u64),
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
        store: ScratchStore::new(&resources.scratch, resources.memory / 2),
        buffer_bytes: (resources.memory / 2 / threads as u64).max(MIN_BUFFER_BYTES),
    };
    match cells {
        0..=64 => search.run::<u64>(on_level),
        65..=MAX_CELLS => search.run::<u128>(on_level),
        _ => Err(SolveError::TooLarge { cells }),
    }
}

struct Level<K> {
    /// The sections in ascending order.
    sections: Vec<Section<K>>,
    count: u64,
    best: BestWell<K>,
    digest: u64,
}

/// The well with the fewest filled cells in a level. Ties are broken by the smallest key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BestWell<K> {
    cells: u32,
    key: K,
}

impl<K: WellKey> BestWell<K> {
    /// A value that is greater than any well's value.
    const NONE: BestWell<K> = BestWell {
        cells: u32::MAX,
        key: K::ZERO,
    };
}

impl<K: WellKey> Level<K> {
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

    /// Returns the section index and the block index of each block in the level.
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
    store: ScratchStore,
    /// Total size in bytes of each thread's buffers.
    buffer_bytes: u64,
}

impl Search<'_> {
    fn run<K: WellKey>(
        &self,
        on_level: &mut dyn FnMut(usize, u64),
    ) -> Result<Solution, SolveError> {
        let geometry = self.game.geometry;
        let mut first = self.store.writer();
        let root = K::pack(geometry, &Well::EMPTY);
        first.push(root).map_err(self.scratch_error())?;
        let mut levels = vec![Level {
            sections: vec![first.finish().map_err(self.scratch_error())?],
            count: 1,
            best: BestWell {
                cells: 0,
                key: root,
            },
            digest: mix(root),
        }];
        on_level(0, 1);
        // Burgiel gives S and Z in turn. So two levels are equivalent only if they contain the same wells
        // and their piece counts are both even or both odd.
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
            on_level(number + 1, next.count);
            levels.push(next);
        }
        let lines = |level: usize| {
            (4 * level as u32).saturating_sub(levels[level].best.cells) / geometry.width() as u32
        };
        let last = levels.len() - 1;
        // Choose the shortest of the best games, but not the game without pieces, which has no
        // replay.
        let best = (last.min(1)..=last)
            .max_by_key(|&level| (lines(level), std::cmp::Reverse(level)))
            .unwrap_or(0);
        Ok(Solution {
            best_lines: lines(best),
            best: self.game_to(&levels, best)?,
            longest: self.game_to(&levels, last)?,
            levels: levels.iter().map(|level| level.count).collect(),
            bytes: levels.iter().map(Level::bytes).sum(),
            scratch_bytes: self.store.max_on_disk(),
        })
    }

    /// Returns a function that converts an I/O error of a scratch file into a [`SolveError`].
    fn scratch_error(&self) -> impl Fn(io::Error) -> SolveError + '_ {
        |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => SolveError::Full {
                folder: self.scratch.to_owned(),
                bytes: self.store.max_on_disk(),
            },
            _ => SolveError::Scratch {
                folder: self.scratch.to_owned(),
                source,
            },
        }
    }

    /// Returns the piece given in all wells of a level, or `None` if it depends on the well.
    fn piece(&self, level: usize) -> Option<Piece> {
        match self.game.enemy {
            Enemy::Lovetris => Some(Piece::I),
            Enemy::Burgiel => Some([Piece::S, Piece::Z][level % 2]),
            _ => None,
        }
    }

    fn next<K: WellKey>(&self, level: &Level<K>, number: usize) -> Result<Level<K>, SolveError> {
        self.progress.expanded.store(0, Ordering::Relaxed);
        self.progress.parents.store(level.count, Ordering::Relaxed);
        self.progress
            .level
            .store(number as u64 + 1, Ordering::Relaxed);
        // Sections take up to half of the memory. Each thread uses an equal share of the other half,
        // first to collect children and then to merge. Sorting may need as much memory as the
        // buffer itself, so a buffer takes half of this share.
        let room = self.buffer_bytes / 2 / size_of::<K>() as u64;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        // Children differ from their parents mostly in the upper rows, which are in the lowest bits
        // of a key. So ranges that divide the parents evenly also divide the children approximately
        // evenly.
        let starts = range_starts(level, 8 * self.threads);
        let runs: Mutex<Vec<Vec<Section<K>>>> = Mutex::new(Vec::new());
        let blocks = level.blocks();
        let next = AtomicUsize::new(0);
        self.on_threads(|| {
            let mut gatherer = Gatherer::new(self, &starts, &runs, room);
            let mut keys = Vec::new();
            while let Some(&(section, block)) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.check_cancelled()?;
                level.sections[section]
                    .decode(block, &mut keys)
                    .map_err(self.scratch_error())?;
                gatherer.expand(&keys, self.piece(number))?;
                let done = keys.len() as u64;
                self.progress.expanded.fetch_add(done, Ordering::Relaxed);
            }
            gatherer.finish()
        })?;
        let runs = into_inner(runs);
        self.merge(&runs, starts.len() + 1, room)
    }

    fn check_cancelled(&self) -> Result<(), SolveError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(SolveError::Cancelled);
        }
        Ok(())
    }

    /// Runs `work` on all threads, including the calling thread, and returns the first error.
    fn on_threads(
        &self,
        work: impl Fn() -> Result<(), SolveError> + Sync,
    ) -> Result<(), SolveError> {
        std::thread::scope(|scope| {
            let helpers: Vec<_> = (1..self.threads).map(|_| scope.spawn(&work)).collect();
            let mut result = work();
            for helper in helpers {
                let other = helper
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                result = result.and(other);
            }
            result
        })
    }

    /// Merges the runs into a level, range by range.
    fn merge<K: WellKey>(
        &self,
        runs: &[Vec<Section<K>>],
        ranges: usize,
        room: usize,
    ) -> Result<Level<K>, SolveError> {
        let results: Vec<Mutex<Option<Merged<K>>>> =
            (0..ranges).map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        self.on_threads(|| {
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
            best: BestWell::NONE,
            digest: 0,
        };
        for merged in results.into_iter().filter_map(into_inner) {
            level.count += merged.section.count();
            level.digest = level.digest.wrapping_add(merged.digest);
            level.best = level.best.min(merged.best);
            if merged.section.count() > 0 {
                level.sections.push(merged.section);
            }
        }
        Ok(level)
    }

    fn merge_range<K: WellKey>(
        &self,
        parts: &[&Section<K>],
        room: usize,
    ) -> Result<Merged<K>, SolveError> {
        let total: u64 = parts.iter().map(|part| part.count()).sum();
        // Each pass merges about as many keys as fit into the buffer. Quantiles of the blocks'
        // first keys separate the passes.
        let passes = total.div_ceil(room as u64).max(1) as usize;
        let mut samples: Vec<K> = parts.iter().flat_map(|part| part.firsts()).collect();
        samples.sort_unstable();
        let start_of = |pass: usize| samples.get(pass * samples.len() / passes).copied();
        let mut writer = self.store.writer();
        let mut best = BestWell::NONE;
        let mut digest = 0u64;
        let mut keys: Vec<K> = Vec::new();
        for pass in 0..passes {
            self.check_cancelled()?;
            let from = if pass == 0 { None } else { start_of(pass) };
            let to = if pass + 1 == passes {
                None
            } else {
                start_of(pass + 1)
            };
            keys.clear();
            for part in parts {
                part.append(from, to, &mut keys)
                    .map_err(self.scratch_error())?;
            }
            // The standard library's stable sort detects the ascending parts and merges them.
            keys.sort();
            keys.dedup();
            for &key in &keys {
                writer.push(key).map_err(self.scratch_error())?;
                digest = digest.wrapping_add(mix(key));
                let cells = key.filled();
                best = best.min(BestWell { cells, key });
            }
        }
        Ok(Merged {
            section: writer.finish().map_err(self.scratch_error())?,
            best,
            digest,
        })
    }

    /// Finds a game that leads to the best well of a level.
    fn game_to<K: WellKey>(
        &self,
        levels: &[Level<K>],
        level: usize,
    ) -> Result<Vec<Well>, SolveError> {
        let geometry = self.game.geometry;
        let mut backward = Backward::new(&self.emulator);
        let mut parents = Vec::new();
        let mut well = levels[level].best.key.unpack(geometry);
        let mut wells = vec![well];
        let mut children = Children::new();
        for before in (0..level).rev() {
            backward.parents_by(&well, Offer::of(self.game.enemy), &mut parents);
            let mut found = None;
            for parent in &parents {
                if !levels[before]
                    .contains(K::pack(geometry, &parent.well))
                    .map_err(self.scratch_error())?
                {
                    continue;
                }
                // `parents_by` allows every piece that the enemy may give at any level. If the enemy
                // gives only one piece at this level, it must lead to the well.
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
                let text = "a well has no parent in the previous level";
                return Err(self.scratch_error()(io::Error::other(text)));
            };
            well = parent;
            wells.push(well);
        }
        wells.reverse();
        Ok(wells)
    }
}

/// The result of merging one range of the runs.
struct Merged<K> {
    section: Section<K>,
    best: BestWell<K>,
    digest: u64,
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner())
}

/// Returns a hash of a well. The digest of a level is the sum of the hashes of its wells.
fn mix<K: WellKey>(key: K) -> u64 {
    let bits = key.bits();
    let product = u128::from(bits as u64 ^ ODD[0]) * u128::from((bits >> 64) as u64 ^ ODD[1]);
    let folded = product as u64 ^ (product >> 64) as u64;
    (folded ^ folded >> 29).wrapping_mul(ODD[2])
}

/// Returns the first key of each range except the first range.
fn range_starts<K: WellKey>(level: &Level<K>, ranges: usize) -> Vec<K> {
    let firsts: Vec<K> = level.sections.iter().flat_map(Section::firsts).collect();
    let mut starts: Vec<K> = (1..ranges.min(firsts.len()))
        .map(|at| firsts[at * firsts.len() / ranges.min(firsts.len())])
        .collect();
    starts.dedup();
    starts
}

/// Decodes a well. The top row is in the lowest bits.
fn well_of(geometry: Geometry, mut bits: u128) -> Well {
    let mut rows = [0; MAX_HEIGHT];
    for row in rows[..geometry.height()].iter_mut().rev() {
        *row = bits as u16 & geometry.full_row();
        bits >>= geometry.width();
    }
    Well::from_rows(rows)
}

/// Checks that scratch files can be created in a folder.
///
/// # Errors
/// Returns [`SolveError::Scratch`] if no scratch file can be created.
pub fn check_scratch(folder: &Path) -> Result<(), SolveError> {
    tempfile::tempfile_in(folder)
        .map(drop)
        .map_err(|source| SolveError::Scratch {
            folder: folder.to_owned(),
            source,
        })
}
