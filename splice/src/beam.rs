//! The beam search for another way between two parts of a game.

use crate::estimate::{DEAD, Estimator, NO_PLACE, Rest};
use crate::graph::WellGraph;
use crate::marks::{Entered, Marks};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of paths kept per depth. Wider beams take longer and find as much only in few more parts.
const WIDTH: usize = 20;

/// Maximum number of kept paths that end with the same well.
const PATHS_PER_WELL: usize = 5;

/// A part of a game to be replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Place of the last well before the part.
    pub(crate) first: usize,
    /// Place of the first well after the part.
    pub(crate) next: usize,
    /// An odd random number, which orders paths of equal estimates.
    pub(crate) salt: u64,
}

/// Another way from one well of a game to another.
pub(crate) struct Detour {
    pub(crate) from: u32,
    /// The wells between.
    pub(crate) wells: Vec<u32>,
    pub(crate) to: u32,
}

/// The search for another way.
pub(crate) struct Beam<'a> {
    graph: &'a WellGraph,
    keys: &'a [u64],
    game: &'a [u32],
    part: Part,
    marks: Marks,
    rest: Rest,
    estimator: Estimator,
    /// The paths of each depth.
    depths: Vec<Vec<Path>>,
    entered: Entered,
    /// The longest game so far, its detour and the place of its well at the end of the detour.
    best: Option<(usize, Vec<u32>, usize)>,
}

/// The last well of a path, and the index of the path without it in the previous depth.
struct Path {
    well: u32,
    parent: u32,
}

struct Candidate {
    /// Number of wells from this well to the end of the game.
    wells: i64,
    signature: u64,
    path: Path,
}

impl<'a> Beam<'a> {
    pub(crate) fn new(graph: &'a WellGraph, keys: &'a [u64], game: &'a [u32], part: Part) -> Self {
        let wells = graph.len();
        let mut marks = Marks::new(wells);
        let mut rest = Rest {
            places: vec![NO_PLACE; wells],
            barred: vec![false; wells],
            length: game.len(),
        };
        // The pieces of the rest of the game depend on all wells before, so they are those of the whole game.
        let mut all = Marks::new(wells);
        for (place, &well) in game.iter().enumerate() {
            all.enter(graph, well);
            if place <= part.first {
                marks.enter(graph, well);
                rest.barred[well as usize] = true;
            }
            if place >= part.next {
                rest.places[well as usize] = place as u32;
                for &child in all.children(graph, well) {
                    rest.barred[child as usize] = true;
                }
            }
        }
        Beam {
            graph,
            keys,
            game,
            part,
            marks,
            rest,
            estimator: Estimator::new(wells),
            depths: vec![vec![Path {
                well: game[part.first],
                parent: 0,
            }]],
            entered: Entered::new(),
            best: None,
        }
    }

    /// Returns the way that makes the game longest, if any, or `None` if `cancel` becomes true.
    pub(crate) fn search(mut self, cancel: &AtomicBool) -> Option<Detour> {
        loop {
            if cancel.load(Ordering::Relaxed) {
                return None;
            }
            let mut candidates = Vec::new();
            for parent in 0..self.depths[self.depths.len() - 1].len() {
                self.extend(parent as u32, &mut candidates);
            }
            if candidates.is_empty() {
                break;
            }
            let next = self.choose(candidates);
            self.depths.push(next);
        }
        let (_, wells, joins) = self.best?;
        Some(Detour {
            from: self.game[self.part.first],
            wells,
            to: self.game[joins],
        })
    }

    /// Adds the continuations of a path to the candidates.
    fn extend(&mut self, parent: u32, candidates: &mut Vec<Candidate>) {
        self.marks.leave_all();
        let path = self.path(parent);
        for &well in &path {
            self.marks.enter_recent(self.graph, well);
        }
        let well = path.last().copied().unwrap_or(self.game[self.part.first]);
        for &child in self.marks.children(self.graph, well) {
            if let Some(remaining) = self.rest.remaining(child) {
                let total = self.part.first + 1 + path.len() + remaining as usize;
                if self.best.as_ref().is_none_or(|best| total > best.0) {
                    let joins = self.rest.places[child as usize] as usize;
                    self.best = Some((total, path.clone(), joins));
                }
                continue;
            }
            if !self.rest.is_free(child) {
                continue;
            }
            self.marks
                .enter_briefly(self.graph, child, &mut self.entered);
            let estimate =
                self.estimator
                    .estimate(self.graph, self.keys, &self.marks, &self.rest, child);
            self.marks.leave(&self.entered);
            if estimate.wells != DEAD {
                candidates.push(Candidate {
                    wells: estimate.wells,
                    signature: estimate.signature,
                    path: Path {
                        well: child,
                        parent,
                    },
                });
            }
        }
    }

    /// Returns the wells of a path of the last depth, without the first one.
    fn path(&self, index: u32) -> Vec<u32> {
        let mut at = index as usize;
        let mut wells: Vec<u32> = self.depths[1..]
            .iter()
            .rev()
            .map(|paths| {
                let path = &paths[at];
                at = path.parent as usize;
                path.well
            })
            .collect();
        wells.reverse();
        wells
    }

    /// Returns the paths to keep: those with the greatest estimates.
    fn choose(&self, mut candidates: Vec<Candidate>) -> Vec<Path> {
        let tie = |candidate: &Candidate| candidate.signature.wrapping_mul(self.part.salt);
        candidates.sort_by_key(|candidate| (-candidate.wells, tie(candidate)));
        let mut signatures = HashSet::new();
        let mut paths_of_well = HashMap::new();
        candidates.retain(|candidate| {
            let paths: &mut usize = paths_of_well.entry(candidate.path.well).or_default();
            let keep = *paths < PATHS_PER_WELL && signatures.insert(candidate.signature);
            *paths += usize::from(keep);
            keep
        });
        candidates.truncate(WIDTH);
        candidates
            .into_iter()
            .map(|candidate| candidate.path)
            .collect()
    }
}
