//! Finds transplants: wells that consist of the lower rows of one well and the upper rows of another one.
//!
//! A long game keeps its lowest rows, changes the rows above them rarely, and uses the rest of the well. What it can do in the rest
//! hardly depends on the rows below. But a training visits only some upper rows above each content of the lower rows, because it
//! moves on as soon as it can. So this module combines the lower rows of each well with the upper rows of each other one, for
//! several numbers of lower rows. It also puts each pair of rows with one gap each above the rows that the game keeps.
//!
//! The pieces decide which of these wells matter. A game must be able to reach them and to return from them. It must also be able
//! to stay: the first piece in a well is excluded only if it leads to a well of the game. So if it leads to no well of the
//! graph, the game ends there. In the graph of the game of 1,905 lines (18,005 wells), the game can reach 289,812 transplants and
//! return from them, but stay in only 32,577. Of the wells of the graph in which it can stay, at most 5,300 are on disjoint cycles
//! by the first two pieces, and with these transplants 8,677.

use crate::detours::FIRST_PIECES;
use crate::graph::{Lists, Move, WellGraph, pieces};
use crate::{RoundProgress, Watch};
use hatebeam_game::{Children, Emulator, MAX_HEIGHT, Well};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// Number of rows above the kept ones that are replaced by pairs of rows.
const PAIR: usize = 2;

/// Maximum number of adjacent empty cells in a row of a pair.
const LONGEST_GAP: usize = 5;

/// Maximum number of lower rows above the kept ones. With three instead of six, the 8,677 wells on disjoint cycles are 6,184.
const LOWER_ROWS: usize = 6;

/// Share of the wells of the game that must have the kept rows, in percent.
const KEPT: usize = 90;

/// Number of wells reached from the game at which the search ends. With 2²¹, the search ends too early in large graphs: it adds 401
/// wells to a graph of 198,371, and 115,583 with 2²⁴. The program then took 1.7 GB.
const MAX_REACHED: usize = 1 << 24;

/// Number of wells that threads search between two reports of the progress.
const CHUNK: usize = 1 << 13;

/// Returns the transplants that the game can reach, in which it can stay, and from which it can return, without wells of the graph.
/// Returns `None` if `watch` ends the search.
pub(crate) fn transplants(
    emulator: &Emulator,
    graph: &WellGraph,
    game: &[u32],
    watch: &dyn Watch,
) -> Option<Vec<Well>> {
    let parts = Parts::new(emulator, graph, game);
    let reached = reach(emulator, graph, game, &parts, watch)?;
    let useful = useful(reached.wells.len(), &reached.moves, game.len());
    let new = reached.wells.into_iter().zip(useful);
    let new = new.filter(|(well, useful)| *useful && graph.find(well).is_none());
    Some(new.map(|(well, _)| well).collect())
}

/// Wells that the game can reach. Those of the game come first.
struct Reached {
    wells: Vec<Well>,
    /// The moves between them, each with the well to which it leads.
    moves: Vec<(u32, Move)>,
}

/// Returns the wells that the game can reach by the first pieces, through transplants and wells of the graph.
fn reach(
    emulator: &Emulator,
    graph: &WellGraph,
    game: &[u32],
    parts: &Parts,
    watch: &dyn Watch,
) -> Option<Reached> {
    let mut wells: Vec<Well> = game.iter().map(|&well| graph.well(well)).collect();
    // Of two wells with equal hashes, the second one is missing.
    let mut index: HashMap<u64, u32> = wells.iter().map(Well::hash).zip(0..).collect();
    let mut moves = Vec::new();
    let mut searched = 0;
    while searched < wells.len() && wells.len() < MAX_REACHED {
        watch.progress(RoundProgress {
            stage: 1,
            stages: 1,
            searched,
            wells: wells.len(),
        });
        if watch.is_cancelled() {
            return None;
        }
        let end = wells.len().min(searched + CHUNK);
        let next = wells[searched..end]
            .par_iter()
            .map_init(Children::new, |children, well| {
                let mut next = Vec::new();
                for (rank, piece) in pieces(emulator, well)[..FIRST_PIECES].iter().enumerate() {
                    emulator.children(well, *piece, children);
                    let known = children.wells().iter();
                    let known = known.filter(|child| parts.contains(graph, child));
                    next.extend(known.map(|child| (rank, *child)));
                }
                next
            });
        let next: Vec<Vec<(usize, Well)>> = next.collect();
        for (origin, children) in (searched..).zip(next) {
            for (rank, child) in children {
                let place = *index.entry(child.hash()).or_insert_with(|| {
                    wells.push(child);
                    wells.len() as u32 - 1
                });
                moves.push((place, Move::new(origin, rank)));
            }
        }
        searched = end;
    }
    Some(Reached { wells, moves })
}

/// Returns which of the wells a game can reach from one of the first `ends`, can stay in, and can return from, through such wells.
/// `moves` contains the moves between them, each with the well to which it leads.
fn useful(wells: usize, moves: &[(u32, Move)], ends: usize) -> Vec<bool> {
    let moves = moves.iter().map(|&(to, from)| (to as usize, from));
    let origins = Lists::grouped(wells, moves.clone());
    let next = moves.map(|(to, from)| (from.well(), Move::new(to, from.rank())));
    let next = Lists::grouped(wells, next);
    let mut useful = vec![true; wells];
    loop {
        let before = useful.clone();
        keep_staying(|well| origins.get(well), &mut useful);
        useful = connected(&origins, ends, &useful);
        useful = connected(&next, ends, &useful);
        if useful == before {
            return useful;
        }
    }
}

/// Removes wells in which the first piece leads to no well that is left, repeatedly. `origins` returns the moves that lead to a well.
pub(crate) fn keep_staying<'a>(origins: impl Fn(usize) -> &'a [Move], left: &mut [bool]) {
    let firsts = |well: usize| origins(well).iter().filter(|origin| origin.rank() == 0);
    let mut leading = vec![0_u32; left.len()];
    for well in (0..left.len()).filter(|well| left[*well]) {
        firsts(well).for_each(|origin| leading[origin.well()] += 1);
    }
    let ends = |well: &usize| leading[*well] == 0;
    let mut removed: Vec<usize> = (0..left.len()).filter(ends).collect();
    while let Some(well) = removed.pop() {
        if std::mem::take(&mut left[well]) {
            for origin in firsts(well) {
                leading[origin.well()] -= 1;
                if leading[origin.well()] == 0 {
                    removed.push(origin.well());
                }
            }
        }
    }
}

/// Returns which wells that are left are connected with one of the first `ends` wells by `moves`, through wells that are left.
fn connected(moves: &Lists<Move>, ends: usize, left: &[bool]) -> Vec<bool> {
    let mut connected = vec![false; left.len()];
    let mut waiting: Vec<usize> = (0..ends).filter(|well| left[*well]).collect();
    while let Some(well) = waiting.pop() {
        if !std::mem::replace(&mut connected[well], true) {
            let others = moves.get(well).iter().map(|other| other.well());
            waiting.extend(others.filter(|other| left[*other] && !connected[*other]));
        }
    }
    connected
}

/// The parts of which transplants consist.
struct Parts {
    /// The lowest rows that the game keeps.
    kept: Vec<u16>,
    splits: Vec<Split>,
}

/// The parts for one number of lower rows.
struct Split {
    rows: usize,
    /// Hashes of the lower rows and of the other rows.
    lowers: HashSet<u64>,
    uppers: HashSet<u64>,
}

impl Parts {
    fn new(emulator: &Emulator, graph: &WellGraph, game: &[u32]) -> Parts {
        let geometry = emulator.geometry();
        let middle = graph.well(game[game.len() / 2]);
        let keeps = |rows: &usize| {
            let same = |well: &&u32| graph.well(**well).rows()[..*rows] == middle.rows()[..*rows];
            game.iter().filter(same).count() * 100 >= game.len() * KEPT
        };
        let most = geometry.height().saturating_sub(PAIR + 1);
        let kept = (1..=most).take_while(keeps).last().unwrap_or(0);
        let kept = middle.rows()[..kept].to_vec();
        let wells = graph.wells().iter();
        let wells: Vec<&Well> = wells
            .filter(|well| well.rows().starts_with(&kept))
            .collect();
        let end = geometry.height().min(kept.len() + LOWER_ROWS + 1);
        let split = |rows| {
            let (lowers, uppers) = wells.iter().map(|well| split(well, rows)).unzip();
            Split {
                rows,
                lowers,
                uppers,
            }
        };
        let mut splits: Vec<Split> = (kept.len() + 1..end).map(split).collect();
        let paired = kept.len() + PAIR;
        if let Some(split) = splits.iter_mut().find(|split| split.rows == paired) {
            let pairs = pairs(geometry.width(), geometry.full_row(), kept.last());
            split.lowers.extend(pairs.into_iter().map(|pair| {
                let mut rows = [0; MAX_HEIGHT];
                rows[..kept.len()].copy_from_slice(&kept);
                rows[kept.len()..paired].copy_from_slice(&pair);
                Well::from_rows(rows).hash()
            }));
        }
        Parts { kept, splits }
    }

    /// Returns whether a well is a transplant or a well of the graph.
    fn contains(&self, graph: &WellGraph, well: &Well) -> bool {
        let is_product = |known: &Split| {
            let (lower, upper) = split(well, known.rows);
            known.uppers.contains(&upper) && known.lowers.contains(&lower)
        };
        graph.find(well).is_some()
            || well.rows().starts_with(&self.kept) && self.splits.iter().any(is_product)
    }
}

/// Returns the hashes of the lowest `rows` rows of a well and of its other rows. The rest is zero.
fn split(well: &Well, rows: usize) -> (u64, u64) {
    let (mut lower, mut upper) = (*well.rows(), *well.rows());
    lower[rows..].fill(0);
    upper[..rows].fill(0);
    (Well::from_rows(lower).hash(), Well::from_rows(upper).hash())
}

/// Returns all pairs of rows with one gap each through which pieces can reach the row `below`.
fn pairs(width: usize, full: u16, below: Option<&u16>) -> Vec<[u16; PAIR]> {
    let gap = |cells: usize| (0..=width - cells).map(move |at| ((1 << cells) - 1) << at);
    let gaps: Vec<u16> = (1..=LONGEST_GAP.min(width - 1)).flat_map(gap).collect();
    let below = below.map_or(full, |row| !row & full);
    let lowers = gaps.iter().filter(|lower| below & **lower != 0);
    let pairs = lowers.flat_map(|lower| gaps.iter().map(move |upper| [*lower, *upper]));
    pairs
        .filter(|[lower, upper]| lower & upper != 0)
        .map(|pair| pair.map(|gap| full & !gap))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::wells_of;
    use hatebeam_game::{Geometry, Rules};
    use proptest::prelude::*;

    proptest! {
        /// Compares with the largest set in which each well has a next one by the first piece and is on a way between ends.
        #[test]
        fn useful_wells_are_reached_and_stay_and_return(
            moves in prop::collection::vec((0..12_usize, 0..2_usize, 0..12_usize), 0..40),
            ends in 1..4_usize,
        ) {
            let lists: Vec<(u32, Move)> = moves
                .iter()
                .map(|&(from, rank, to)| (to as u32, Move::new(from, rank)))
                .collect();
            let mut expected = [true; 12];
            for _ in 0..24 {
                let stays = |well| moves.iter().any(|&(from, rank, to)| {
                    from == well && rank == 0 && expected[to]
                });
                let staying: [bool; 12] = std::array::from_fn(|well| expected[well] && stays(well));
                let mut returns: [bool; 12] = std::array::from_fn(|well| well < ends && staying[well]);
                let mut reached = returns;
                for _ in 0..12 {
                    for &(from, _, to) in &moves {
                        returns[from] |= returns[to] && staying[from];
                        reached[to] |= reached[from] && staying[to];
                    }
                }
                expected = std::array::from_fn(|well| returns[well] && reached[well]);
            }
            prop_assert_eq!(useful(12, &lists, ends), expected);
        }
    }

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
    fn transplants_are_found() {
        let wells = wells_of(include_str!("../../examples/records/spliced-1253.txt"));
        let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
        let graph = WellGraph::new(&emulator, wells.iter().copied()).unwrap();
        let game: Vec<u32> = wells.iter().filter_map(|well| graph.find(well)).collect();
        assert!(transplants(&emulator, &graph, &game, &|| true).is_none());
        let found = transplants(&emulator, &graph, &game, &|| false).unwrap();
        assert!(found.len() > 100, "{}", found.len());
        assert!(found.iter().all(|well| graph.find(well).is_none()));
        let mut grown = graph.clone();
        grown.grow(&emulator, found.iter().copied());
        assert_eq!(grown.len(), found.len() + graph.len(), "none occurs twice");
        let all: HashSet<Well> = grown.wells().iter().copied().collect();
        for well in found.iter().step_by(found.len() / 20) {
            let first = grown.children(grown.find(well).unwrap(), 0);
            assert!(!first.is_empty());
            assert!(leads(&emulator, &all, well, |end| graph
                .find(end)
                .is_some()));
            assert!(leads(&emulator, &all, &Well::EMPTY, |end| end == well));
        }
    }
}
