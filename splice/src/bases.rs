//! Finds wells with other lower rows.
//!
//! A long game keeps its lowest rows, changes the two rows above them rarely, and uses the rest of the well. Most of what it
//! can do in the rest does not depend on these two rows. So this module tries all pairs of rows with one gap each below the upper rows
//! of all wells of the graph. The pieces decide which of these wells matter: those that the game can reach and from which it
//! can return to its wells. In the graph of the game of 1,811 lines (17,363 wells), there are 10,081 of them, found in 1.6 seconds
//! of a thread, and they raise the bound of the wells on disjoint cycles by the first two pieces from 5,038 to 7,420.

use crate::Watch;
use crate::detours::FIRST_PIECES;
use crate::graph::{WellGraph, pieces};
use hatebeam_game::{Children, Emulator, MAX_HEIGHT, Well};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// Number of rows that are replaced.
const ROWS: usize = 2;

/// Maximum number of adjacent empty cells in a row that is put into a well.
const LONGEST_GAP: usize = 5;

/// Share of the wells of the game that must have the rows below the replaced ones, in percent.
const KEPT: usize = 90;

/// Number of wells reached from the game at which the search ends. A well takes an estimated 200 bytes, so they take 0.2 GB.
const MAX_REACHED: usize = 1 << 20;

type Rows = [u16; MAX_HEIGHT];

/// Returns the wells that consist of the lowest rows that the game keeps, two rows with one gap each, and upper rows of a well of
/// the graph, if the game can reach them and return, without wells of the graph. Returns `None` if `watch` ends the search.
pub(crate) fn rebased(
    emulator: &Emulator,
    graph: &WellGraph,
    game: &[u32],
    watch: &dyn Watch,
) -> Option<Vec<Well>> {
    let bases = Bases::new(emulator, graph, game);
    let mut wells: Vec<Well> = game.iter().map(|&well| graph.well(well)).collect();
    let mut index: HashMap<Well, usize> = wells.iter().copied().zip(0..).collect();
    let mut origins = vec![Vec::new(); wells.len()];
    let mut searched = 0;
    while searched < wells.len() && wells.len() < MAX_REACHED {
        if watch.is_cancelled() {
            return None;
        }
        let next = wells[searched..]
            .par_iter()
            .map_init(Children::new, |children, well| {
                let mut next = Vec::new();
                for piece in pieces(emulator, well).into_iter().take(FIRST_PIECES) {
                    emulator.children(well, piece, children);
                    let known = children.wells().iter();
                    next.extend(known.filter(|child| bases.contains(graph, child)));
                }
                next
            });
        let next: Vec<Vec<Well>> = next.collect();
        let first = std::mem::replace(&mut searched, wells.len());
        for (origin, children) in (first..).zip(next) {
            for child in children {
                let place = *index.entry(child).or_insert_with(|| {
                    wells.push(child);
                    origins.push(Vec::new());
                    wells.len() - 1
                });
                origins[place].push(origin);
            }
        }
    }
    let returns = leading_to(&origins, game.len());
    let new = wells.into_iter().zip(returns);
    let new = new.filter(|(well, returns)| *returns && graph.find(well).is_none());
    Some(new.map(|(well, _)| well).collect())
}

/// Returns, for each well, whether a way leads to one of the first `ends` wells. `origins` contains the wells before each well.
fn leading_to(origins: &[Vec<usize>], ends: usize) -> Vec<bool> {
    let mut leading: Vec<bool> = (0..origins.len()).map(|well| well < ends).collect();
    let mut waiting: Vec<usize> = (0..ends).collect();
    while let Some(well) = waiting.pop() {
        for &origin in &origins[well] {
            if !std::mem::replace(&mut leading[origin], true) {
                waiting.push(origin);
            }
        }
    }
    leading
}

/// The parts of which wells can consist.
struct Bases {
    /// The lowest rows that the game keeps.
    kept: Vec<u16>,
    /// The pairs of rows above them.
    pairs: HashSet<[u16; ROWS]>,
    /// The rows above these. All others are zero.
    uppers: HashSet<Rows>,
}

impl Bases {
    fn new(emulator: &Emulator, graph: &WellGraph, game: &[u32]) -> Bases {
        let geometry = emulator.geometry();
        let full = geometry.full_row();
        let middle = graph.well(game[game.len() / 2]);
        let keeps = |rows: &usize| {
            let same = |well: &&u32| graph.well(**well).rows()[..*rows] == middle.rows()[..*rows];
            game.iter().filter(same).count() * 100 >= game.len() * KEPT
        };
        let most = geometry.height().saturating_sub(ROWS + 1);
        let rows = (1..=most).take_while(keeps).last().unwrap_or(0);
        let kept = middle.rows()[..rows].to_vec();
        let width = geometry.width();
        let gap = |cells: usize| (0..=width - cells).map(move |at| ((1 << cells) - 1) << at);
        let gaps: Vec<u16> = (1..=LONGEST_GAP.min(width - 1)).flat_map(gap).collect();
        // Pieces reach the lower gap only through the upper one.
        let below = kept.last().map_or(full, |row| !row & full);
        let pairs = gaps
            .iter()
            .filter(|lower| below & **lower != 0)
            .flat_map(|lower| gaps.iter().map(move |upper| [*lower, *upper]))
            .filter(|[lower, upper]| lower & upper != 0)
            .map(|pair| pair.map(|gap| full & !gap));
        let based = graph
            .wells()
            .iter()
            .filter(|well| well.rows().starts_with(&kept));
        Bases {
            pairs: pairs.collect(),
            uppers: based.map(|well| above(well, rows + ROWS)).collect(),
            kept,
        }
    }

    /// Returns whether a well consists of these parts, or is a well of the graph.
    fn contains(&self, graph: &WellGraph, well: &Well) -> bool {
        let rows = self.kept.len();
        let pair = std::array::from_fn(|row| well.rows()[rows + row]);
        graph.find(well).is_some()
            || well.rows().starts_with(&self.kept)
                && self.pairs.contains(&pair)
                && self.uppers.contains(&above(well, rows + ROWS))
    }
}

/// Returns the rows of a well with those below `row` set to zero.
fn above(well: &Well, row: usize) -> Rows {
    let mut rows = *well.rows();
    rows[..row].fill(0);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Enemy, Geometry, Rules, decode, play};

    /// Returns whether a game can go from `well` to a well for which `is_end` returns true, through `wells`.
    fn leads(
        emulator: &Emulator,
        wells: &HashSet<Well>,
        well: &Well,
        is_end: impl Fn(&Well) -> bool,
    ) -> bool {
        let (mut waiting, mut seen) = (vec![*well], HashSet::new());
        let mut children = Children::new();
        while let Some(well) = waiting.pop() {
            for piece in pieces(emulator, &well).into_iter().take(FIRST_PIECES) {
                emulator.children(&well, piece, &mut children);
                for child in children.wells() {
                    if is_end(child) {
                        return true;
                    }
                    if wells.contains(child) && seen.insert(*child) {
                        waiting.push(*child);
                    }
                }
            }
        }
        false
    }

    /// Narrow wells have no such wells, so this test uses a long game.
    #[test]
    fn other_lower_rows_are_found() {
        let replay = include_str!("../../examples/records/spliced-1253.txt");
        let (keys, _) = decode(replay.trim()).unwrap();
        let (geometry, rules) = (Geometry::STANDARD, Rules::default());
        let emulator = Emulator::new(geometry, rules);
        let record = play(geometry, rules, Enemy::Hatetris, &keys);
        let graph = WellGraph::new(&emulator, record.wells()).unwrap();
        let game: Vec<u32> = record
            .wells()
            .filter_map(|well| graph.find(&well))
            .collect();
        assert!(rebased(&emulator, &graph, &game, &|| true).is_none());
        let found = rebased(&emulator, &graph, &game, &|| false).unwrap();
        assert!(found.len() > 100, "{}", found.len());
        assert!(found.iter().all(|well| graph.find(well).is_none()));
        let all: HashSet<Well> = found.iter().chain(graph.wells()).copied().collect();
        assert_eq!(all.len(), found.len() + graph.len());
        for well in found.iter().step_by(found.len() / 20) {
            assert!(leads(&emulator, &all, well, |end| graph
                .find(end)
                .is_some()));
            assert!(leads(&emulator, &all, &Well::EMPTY, |end| end == well));
        }
    }
}
