//! Finds transplants: wells that consist of the lower rows of one well and the upper rows of another one.
//!
//! The lowest rows of a long game change slowly. While they stay, the game uses the rows above, and most of what it can do
//! there does not depend on the rows below. But a training visits only some upper rows above each content of the lower rows,
//! because it moves on as soon as it can. So all combinations are tried, and those are kept that can be on cycles of
//! HATETRIS Mild.

use crate::graph::WellGraph;
use crate::{RoundProgress, Watch};
use hatebeam_game::{Children, Emulator, MAX_HEIGHT, Well};
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Maximum number of combinations for one number of lower rows. It bounds the memory to an estimated 0.3 GB. Numbers of rows with
/// more combinations are skipped.
const MAX_COMBINATIONS: usize = 1 << 21;

/// Number of wells that threads search between two reports of the progress.
const CHUNK: usize = 1 << 14;

/// Returns all transplants between the wells of the graph that can be on cycles, without duplicates and without wells of the
/// graph. Returns `None` if `watch` ends the round.
pub(crate) fn transplants(
    emulator: &Emulator,
    graph: &WellGraph,
    watch: &dyn Watch,
) -> Option<Vec<Well>> {
    let next: Vec<&[u32]> = (0..graph.len() as u32)
        .map(|well| graph.children(well, 0))
        .collect();
    let mut parts: Vec<Well> = on_cycles(&next)
        .map(|well| graph.well(well as u32))
        .collect();
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    let heights = 1..emulator.geometry().height();
    for rows in heights.clone() {
        let combined = combinations(&parts, rows);
        let next = successors(emulator, &combined, |searched| {
            watch.progress(RoundProgress {
                stage: rows,
                stages: heights.len(),
                searched,
                wells: combined.len(),
            });
            watch.is_cancelled()
        })?;
        let new = on_cycles(&next)
            .map(|well| combined[well])
            .filter(|well| graph.find(well).is_none() && known.insert(*well));
        let before = found.len();
        found.extend(new);
        parts.extend_from_slice(&found[before..]);
    }
    Some(found)
}

/// Returns all combinations of the lowest `rows` rows of one well with the other rows of another one, or nothing if there are
/// too many. The number of cells stays even, as in all wells that games reach in a well with an even number of columns.
fn combinations(wells: &[Well], rows: usize) -> Vec<Well> {
    let split = |well: &Well| {
        let (mut lower, mut upper) = (*well.rows(), *well.rows());
        lower[rows..].fill(0);
        upper[..rows].fill(0);
        (lower, upper)
    };
    let (lowers, uppers): (BTreeSet<_>, BTreeSet<_>) = wells.iter().map(split).unzip();
    if lowers.len() * uppers.len() > MAX_COMBINATIONS {
        return Vec::new();
    }
    let mut combined = Vec::new();
    for lower in &lowers {
        let cells = parity(lower);
        for upper in uppers.iter().filter(|upper| parity(upper) == cells) {
            combined.push(Well::from_rows(std::array::from_fn(|row| {
                lower[row] | upper[row]
            })));
        }
    }
    combined
}

fn parity(rows: &[u16; MAX_HEIGHT]) -> u32 {
    rows.iter().map(|row| row.count_ones()).sum::<u32>() % 2
}

/// Returns the children of each well by the piece of HATETRIS Mild, as indices of `wells`, or `None` if `stop` ends the
/// search. `stop` receives the number of wells searched.
fn successors(
    emulator: &Emulator,
    wells: &[Well],
    stop: impl Fn(usize) -> bool,
) -> Option<Vec<Vec<u32>>> {
    let index: HashMap<&Well, u32> = wells.iter().zip(0..).collect();
    let mut next = Vec::with_capacity(wells.len());
    for chunk in wells.chunks(CHUNK) {
        if stop(next.len()) {
            return None;
        }
        let lists = chunk.par_iter().map_init(Children::new, |children, well| {
            emulator.expand(well, children);
            let known = children.wells().iter().filter_map(|child| index.get(child));
            known.copied().collect::<Vec<u32>>()
        });
        next.par_extend(lists);
    }
    Some(next)
}

/// Returns the wells that are left after wells without a next or without a previous well are removed repeatedly: all wells on
/// cycles and on ways between cycles. `next` contains the next wells of each well.
fn on_cycles<L: AsRef<[u32]>>(next: &[L]) -> impl Iterator<Item = usize> {
    let mut previous = vec![Vec::new(); next.len()];
    for (well, next) in next.iter().enumerate() {
        for &child in next.as_ref() {
            previous[child as usize].push(well as u32);
        }
    }
    let mut leading: Vec<usize> = next.iter().map(|next| next.as_ref().len()).collect();
    let mut coming: Vec<usize> = previous.iter().map(Vec::len).collect();
    let ends = |well: &usize| leading[*well] == 0 || coming[*well] == 0;
    let mut removed: Vec<usize> = (0..next.len()).filter(ends).collect();
    let mut left = vec![true; next.len()];
    for &well in &removed {
        left[well] = false;
    }
    while let Some(well) = removed.pop() {
        let children = next[well].as_ref().iter().map(|&child| (child, true));
        let parents = previous[well].iter().map(|&parent| (parent, false));
        for (other, is_child) in children.chain(parents) {
            let other = other as usize;
            let count = if is_child {
                &mut coming[other]
            } else {
                &mut leading[other]
            };
            *count -= 1;
            if *count == 0 && std::mem::take(&mut left[other]) {
                removed.push(other);
            }
        }
    }
    left.into_iter()
        .enumerate()
        .filter_map(|(well, left)| left.then_some(well))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Geometry, Rules};
    use proptest::prelude::*;

    proptest! {
        /// A well is left if walks of as many moves as there are wells lead from it and to it: they contain a cycle.
        #[test]
        fn wells_on_long_walks_are_left(
            moves in prop::collection::vec((0..12_u32, 0..12_u32), 0..30),
        ) {
            let lists = |reverse: bool| {
                let mut lists = vec![Vec::new(); 12];
                for &(from, to) in &moves {
                    let (from, to) = if reverse { (to, from) } else { (from, to) };
                    lists[from as usize].push(to);
                }
                lists
            };
            let has_walk = |lists: &[Vec<u32>]| {
                (0..12).fold(vec![true; 12], |walks, _| {
                    let continues = |next: &Vec<u32>| next.iter().any(|&well| walks[well as usize]);
                    lists.iter().map(continues).collect()
                })
            };
            let (forward, back) = (has_walk(&lists(false)), has_walk(&lists(true)));
            let expected: Vec<usize> = (0..12).filter(|&well| forward[well] && back[well]).collect();
            prop_assert_eq!(on_cycles(&lists(false)).collect::<Vec<_>>(), expected);
        }
    }

    /// A graph of all wells that follow one another in a narrow well up to a number of pieces, without every third well.
    fn graph(emulator: &Emulator, pieces: usize) -> WellGraph {
        let (mut wells, mut children) = (vec![Well::EMPTY], Children::new());
        let (mut frontier, mut known) = (wells.clone(), HashSet::from([Well::EMPTY]));
        for _ in 0..pieces {
            let mut next = Vec::new();
            for well in &frontier {
                emulator.expand(well, &mut children);
                next.extend(
                    children
                        .wells()
                        .iter()
                        .filter(|child| known.insert(**child)),
                );
            }
            wells.extend(
                next.iter()
                    .copied()
                    .enumerate()
                    .filter_map(|(index, well)| (index % 3 != 2).then_some(well)),
            );
            frontier = next;
        }
        WellGraph::new(emulator, wells).unwrap()
    }

    #[test]
    fn transplants_are_new_and_have_next_and_previous_wells() {
        let emulator = Emulator::new(Geometry::new(4, 8).unwrap(), Rules::default());
        let mut graph = graph(&emulator, 6);
        let wells = graph.wells().to_vec();
        let found = transplants(&emulator, &graph, &|| false).unwrap();
        assert!(found.len() > 100, "{} of {}", found.len(), wells.len());
        assert!(found.iter().all(|well| !wells.contains(well)));
        graph.grow(&emulator, found.iter().copied());
        assert_eq!(graph.len(), wells.len() + found.len(), "none occurs twice");
        for well in &found {
            let index = graph.find(well).unwrap();
            assert!(!graph.children(index, 0).is_empty());
            assert!(graph.origins(index).iter().any(|origin| origin.rank() == 0));
        }
        assert!(transplants(&emulator, &graph, &|| true).is_none());
    }
}
