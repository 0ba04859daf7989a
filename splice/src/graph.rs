//! The graph of the wells of games.

use crate::SpliceError;
use hatebeam_game::{Children, Emulator, Piece, Well};
use rayon::prelude::*;
use std::collections::HashMap;

/// Maximum number of wells in a graph. A well takes some 500 bytes, so a full graph takes 0.5 GB.
pub const MAX_WELLS: usize = 1_000_000;

/// Number of pieces.
pub(crate) const PIECES: usize = Piece::ALL.len();

/// Wells, and which of them each piece leads to.
#[derive(Clone, Debug, Default)]
pub(crate) struct WellGraph {
    wells: Vec<Well>,
    index: HashMap<Well, u32>,
    /// The children of each well by each piece, in the order in which HATETRIS prefers the pieces there: those by the first piece
    /// of all wells, those by the second one, and so on. Searches need few others than the first ones, which fit into a cache.
    children: Lists<u32>,
    /// The moves that lead to each well, in the order of their ranks.
    origins: Lists<Move>,
}

/// A well, and the rank of one of its pieces: the number of pieces that HATETRIS prefers to it there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Move(u32);

/// Lists in one vector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists<T> {
    /// For each list, the end of its part of `items`.
    ends: Vec<u32>,
    items: Vec<T>,
}

impl WellGraph {
    /// Creates the graph of these wells. Wells that occur several times count once.
    ///
    /// # Errors
    /// Returns [`SpliceError::TooManyWells`].
    pub(crate) fn new(
        emulator: &Emulator,
        wells: impl IntoIterator<Item = Well>,
    ) -> Result<WellGraph, SpliceError> {
        let mut graph = WellGraph::default();
        if graph.add(wells) {
            return Err(SpliceError::TooManyWells);
        }
        graph.connect(emulator);
        Ok(graph)
    }

    /// Adds wells until the graph is full, and finds the moves between all wells. The indices of the other wells stay the
    /// same. Returns whether some wells did not fit.
    pub(crate) fn grow(
        &mut self,
        emulator: &Emulator,
        wells: impl IntoIterator<Item = Well>,
    ) -> bool {
        let is_full = self.add(wells);
        self.connect(emulator);
        is_full
    }

    /// Removes wells, and returns the new index of each other well.
    pub(crate) fn retain(&mut self, emulator: &Emulator, keep: &[bool]) -> HashMap<u32, u32> {
        let old = std::mem::take(&mut self.wells);
        self.index.clear();
        let kept = (0..).zip(old).zip(keep).filter(|(_, keep)| **keep);
        let (kept, wells): (Vec<u32>, Vec<Well>) = kept.map(|(well, _)| well).unzip();
        self.grow(emulator, wells);
        kept.into_iter().zip(0..).collect()
    }

    /// Returns the number of wells.
    pub(crate) fn len(&self) -> usize {
        self.wells.len()
    }

    pub(crate) fn wells(&self) -> &[Well] {
        &self.wells
    }

    pub(crate) fn well(&self, index: u32) -> Well {
        self.wells[index as usize]
    }

    pub(crate) fn find(&self, well: &Well) -> Option<u32> {
        self.index.get(well).copied()
    }

    /// Returns the children of a well by the piece with this rank.
    pub(crate) fn children(&self, well: u32, rank: usize) -> &[u32] {
        self.children.get(rank * self.wells.len() + well as usize)
    }

    /// Returns the moves that lead to a well, in the order of their ranks.
    pub(crate) fn origins(&self, well: u32) -> &[Move] {
        self.origins.get(well as usize)
    }

    /// Adds wells that are not in the graph yet. Returns whether some did not fit.
    fn add(&mut self, wells: impl IntoIterator<Item = Well>) -> bool {
        for well in wells {
            if self.index.contains_key(&well) {
                continue;
            }
            if self.wells.len() == MAX_WELLS {
                return true;
            }
            self.index.insert(well, self.wells.len() as u32);
            self.wells.push(well);
        }
        false
    }

    /// Finds the moves between all wells.
    fn connect(&mut self, emulator: &Emulator) {
        let index = &self.index;
        let wells = self.wells.par_iter();
        let children: Vec<[Vec<u32>; PIECES]> = wells
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
        let lists = (0..PIECES).flat_map(|rank| children.iter().map(move |lists| &*lists[rank]));
        self.children = Lists::new(lists);
        let wells = self.wells.len();
        let moves = (0..PIECES).flat_map(|rank| (0..wells).map(move |well| (well, rank)));
        let moves = moves.flat_map(|(well, rank)| {
            let children = self.children(well as u32, rank).iter();
            children.map(move |&child| (child as usize, Move::new(well, rank)))
        });
        self.origins = Lists::grouped(self.wells.len(), moves);
    }
}

impl Move {
    pub(crate) fn new(well: usize, rank: usize) -> Move {
        Move((well * PIECES + rank) as u32)
    }

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

    /// Creates lists from their items, each with the number of its list.
    pub(crate) fn grouped(lists: usize, items: impl Iterator<Item = (usize, T)> + Clone) -> Lists<T>
    where
        T: Default,
    {
        let mut ends = vec![0; lists + 1];
        items.clone().for_each(|(list, _)| ends[list + 1] += 1);
        for list in 1..=lists {
            ends[list] += ends[list - 1];
        }
        // `ends[list]` is the place of the next item of the list, and its end when all items are in place.
        let mut grouped = vec![T::default(); ends[lists] as usize];
        for (list, item) in items {
            grouped[ends[list] as usize] = item;
            ends[list] += 1;
        }
        ends.pop();
        Lists {
            ends,
            items: grouped,
        }
    }

    pub(crate) fn get(&self, list: usize) -> &[T] {
        let begin = list.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[begin as usize..self.ends[list] as usize]
    }
}

/// Returns the pieces in the order in which HATETRIS prefers them in a well.
pub(crate) fn pieces(emulator: &Emulator, well: &Well) -> [Piece; PIECES] {
    let ratings = emulator.ratings(well);
    let mut pieces = Piece::ALL;
    pieces.sort_by_key(|piece| ratings[piece.index()]); // stable: S Z O I L J T break ties
    pieces
}
