//! The graph of the wells of games.

use crate::SpliceError;
use hatebeam_game::{Children, Emulator, Piece, Well};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// Maximum number of wells in a graph. A well takes some 500 bytes, so a full graph takes 0.5 GB.
pub const MAX_WELLS: usize = 1_000_000;

/// Number of pieces.
pub(crate) const PIECES: usize = Piece::ALL.len();

/// Number of pieces by which a detour can leave a well: the two that HATETRIS gives first.
const DETOUR_PIECES: usize = 2;

/// Wells, and which of them each piece leads to.
#[derive(Clone, Debug)]
pub(crate) struct WellGraph {
    wells: Vec<Well>,
    index: HashMap<Well, u32>,
    /// The children of each well by each piece, in the order in which HATETRIS prefers the pieces there.
    children: Lists<u32>,
    /// The moves that lead to each well.
    origins: Lists<Move>,
}

/// A well, and the rank of one of its pieces: the number of pieces that HATETRIS prefers to it there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move(u32);

/// Lists in one vector.
#[derive(Clone, Debug)]
struct Lists<T> {
    /// For each list, the end of its part of `items`.
    ends: Vec<u32>,
    items: Vec<T>,
}

impl WellGraph {
    /// Creates the graph of the wells of `games`, and of detours between them. Each of the `rounds` adds the detours of
    /// one or two wells that lead from a well of the graph to another one. A detour begins with one of the two pieces
    /// that HATETRIS prefers in the first well, and continues with the pieces of HATETRIS Mild.
    ///
    /// # Errors
    /// Returns [`SpliceError::TooManyWells`].
    pub(crate) fn new(
        emulator: &Emulator,
        games: &[Vec<Well>],
        rounds: usize,
    ) -> Result<WellGraph, SpliceError> {
        let mut wells = Vec::new();
        let mut index = HashMap::new();
        add(&mut wells, &mut index, games.iter().flatten().copied())?;
        for _ in 0..rounds {
            let found: Vec<Vec<Well>> = wells
                .par_iter()
                .map_init(
                    || Explorer::new(emulator),
                    |explorer, well| explorer.detours(&index, well),
                )
                .collect();
            add(&mut wells, &mut index, found.into_iter().flatten())?;
        }
        let children: Vec<[Vec<u32>; PIECES]> = wells
            .par_iter()
            .map_init(Children::new, |children, well| {
                pieces(emulator, well).map(|piece| {
                    emulator.children(well, piece, children);
                    let known = children.wells().iter().filter_map(|child| index.get(child));
                    let mut known: Vec<u32> = known.copied().collect();
                    known.sort_unstable();
                    known
                })
            })
            .collect();
        let children = Lists::new(children.iter().flatten().map(Vec::as_slice));
        let origins = origins(&children, wells.len());
        Ok(WellGraph {
            wells,
            index,
            children,
            origins,
        })
    }

    /// Returns the number of wells.
    pub(crate) fn len(&self) -> usize {
        self.wells.len()
    }

    pub(crate) fn well(&self, index: u32) -> Well {
        self.wells[index as usize]
    }

    pub(crate) fn find(&self, well: &Well) -> Option<u32> {
        self.index.get(well).copied()
    }

    /// Returns the children of a well by the piece with this rank.
    pub(crate) fn children(&self, well: u32, rank: usize) -> &[u32] {
        self.children.get(well as usize * PIECES + rank)
    }

    /// Returns the moves that lead to a well.
    pub(crate) fn origins(&self, well: u32) -> &[Move] {
        self.origins.get(well as usize)
    }
}

impl Move {
    pub(crate) fn well(self) -> usize {
        self.0 as usize / PIECES
    }

    pub(crate) fn rank(self) -> usize {
        self.0 as usize % PIECES
    }
}

impl<T: Copy> Lists<T> {
    fn new<'a>(lists: impl Iterator<Item = &'a [T]>) -> Lists<T>
    where
        T: 'a,
    {
        let (mut ends, mut items) = (Vec::new(), Vec::new());
        for list in lists {
            items.extend_from_slice(list);
            ends.push(items.len() as u32);
        }
        Lists { ends, items }
    }

    fn get(&self, list: usize) -> &[T] {
        let begin = list.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[begin as usize..self.ends[list] as usize]
    }
}

/// Finds detours.
struct Explorer<'a> {
    emulator: &'a Emulator,
    children: Children,
    grandchildren: Children,
    last: Children,
    found: HashSet<Well>,
}

impl Explorer<'_> {
    fn new(emulator: &Emulator) -> Explorer<'_> {
        Explorer {
            emulator,
            children: Children::new(),
            grandchildren: Children::new(),
            last: Children::new(),
            found: HashSet::new(),
        }
    }

    /// Returns the wells of all detours of one or two wells that begin with `well`.
    fn detours(&mut self, index: &HashMap<Well, u32>, well: &Well) -> Vec<Well> {
        self.found.clear();
        let mut detours = Vec::new();
        for piece in pieces(self.emulator, well).into_iter().take(DETOUR_PIECES) {
            self.emulator.children(well, piece, &mut self.children);
            for child in self.children.wells() {
                if index.contains_key(child) || !self.found.insert(*child) {
                    continue;
                }
                let before = detours.len();
                self.emulator.expand(child, &mut self.grandchildren);
                let mut returns = false;
                for grandchild in self.grandchildren.wells() {
                    if index.contains_key(grandchild) {
                        returns = true;
                        continue;
                    }
                    self.emulator.expand(grandchild, &mut self.last);
                    if self
                        .last
                        .wells()
                        .iter()
                        .any(|last| index.contains_key(last))
                    {
                        detours.push(*grandchild);
                    }
                }
                if returns || detours.len() > before {
                    detours.push(*child);
                }
            }
        }
        detours
    }
}

/// Returns the pieces in the order in which HATETRIS prefers them in a well.
fn pieces(emulator: &Emulator, well: &Well) -> [Piece; PIECES] {
    let ratings = emulator.ratings(well);
    let mut pieces = Piece::ALL;
    pieces.sort_by_key(|piece| ratings[piece.index()]); // stable: S Z O I L J T break ties
    pieces
}

/// Adds wells that are not known yet.
fn add(
    wells: &mut Vec<Well>,
    index: &mut HashMap<Well, u32>,
    new: impl Iterator<Item = Well>,
) -> Result<(), SpliceError> {
    for well in new {
        if index.contains_key(&well) {
            continue;
        }
        if wells.len() == MAX_WELLS {
            return Err(SpliceError::TooManyWells);
        }
        index.insert(well, wells.len() as u32);
        wells.push(well);
    }
    Ok(())
}

/// Returns the moves that lead to each well.
fn origins(children: &Lists<u32>, wells: usize) -> Lists<Move> {
    let mut origins = vec![Vec::new(); wells];
    for list in 0..children.ends.len() {
        for &child in children.get(list) {
            origins[child as usize].push(Move(list as u32));
        }
    }
    Lists::new(origins.iter().map(Vec::as_slice))
}
