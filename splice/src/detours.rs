//! Finds detours: ways through unknown wells that lead from a well of a graph to another one.
//!
//! The forward emulator searches three pieces from each well of the graph, and the backward emulator two pieces back
//! from each of them. Where both meet, there is a detour of at most five pieces. A well has some nineteen children and, on
//! average, 4.6 parents, so a search in both directions expands far fewer wells than one that only goes forward: some
//! eight hundred per well of the graph instead of hundreds of thousands.

use crate::graph::{WellGraph, pieces};
use crate::{RoundProgress, Watch};
use hatebeam_game::{Backward, Children, Emulator, Parent, Well};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// Number of pieces that the search goes forward. With four, and one piece back, a round takes five times as long and finds
/// as many wells.
const FORWARD: usize = 3;

/// Number of pieces that the search goes back. With three, a round takes seven times as long and finds a tenth more wells.
const BACK: u8 = 2;

/// Number of pieces by which a game can leave a well: the two that HATETRIS gives first.
pub(crate) const FIRST_PIECES: usize = 2;

/// Maximum number of wells whose distances are known. It bounds the memory to 0.6 GB. Graphs of some 160,000 wells reach it.
const MAX_DISTANCES: usize = 1 << 24;

/// Number of stages of a round: one for each piece of the search back, and the search for detours.
const STAGES: usize = BACK as usize + 1;

/// Number of wells that threads search between two reports of the progress.
const CHUNK: usize = 1 << 9;

/// For the hash of each known well, the number of pieces after which a game can be back in the graph. Two wells with equal
/// hashes would at most add wells that are on no detour.
type Distances = HashMap<u64, u8>;

/// Finds the detours of a graph that grows. The search back is repeated only for wells that were added since the previous round.
#[derive(Default)]
pub(crate) struct Detours {
    distances: Distances,
    /// Number of wells of the graph in the previous round.
    known: usize,
}

impl Detours {
    /// Returns the wells of all detours of at most five pieces, without duplicates. The first piece of a detour is one of the
    /// two that HATETRIS prefers, and the others are those of HATETRIS Mild. If more wells lead back to the graph than
    /// are remembered, some detours are missing. Returns `None` if `watch` ends the round; then the next round begins
    /// from scratch.
    pub(crate) fn round(
        &mut self,
        emulator: &Emulator,
        graph: &WellGraph,
        watch: &dyn Watch,
    ) -> Option<Vec<Well>> {
        let previous = std::mem::take(self);
        let added = &graph.wells()[previous.known..];
        let distances = lower(previous.distances, emulator, added, watch)?;
        // Detours that begin with wells known before matter, too: without them, rounds take half the time, but
        // 150 seconds give games of 2,791 instead of 2,891 pieces.
        let detours = search(emulator, &distances, graph.wells(), watch)?;
        *self = Detours {
            distances,
            known: graph.len(),
        };
        Some(detours)
    }
}

/// Returns the chunks of the wells that a stage of a round searches, and reports the progress before each of them. Returns
/// `None` instead of a chunk if `watch` ends the round.
fn chunks<'a>(
    wells: &'a [Well],
    stage: usize,
    watch: &'a dyn Watch,
) -> impl Iterator<Item = Option<&'a [Well]>> {
    wells.chunks(CHUNK).enumerate().map(move |(index, chunk)| {
        watch.progress(RoundProgress {
            stage,
            stages: STAGES,
            searched: index * CHUNK,
            wells: wells.len(),
        });
        (!watch.is_cancelled()).then_some(chunk)
    })
}

/// Adds wells to the graph: lowers the distances of all wells from which a game of HATETRIS Mild reaches one of them in at most
/// two pieces.
fn lower(
    mut distances: Distances,
    emulator: &Emulator,
    wells: &[Well],
    watch: &dyn Watch,
) -> Option<Distances> {
    distances.extend(wells.iter().map(|well| (well.hash(), 0)));
    let mut frontier = wells.to_vec();
    for distance in 1..=BACK {
        let mut next = Vec::new();
        for chunk in chunks(&frontier, usize::from(distance), watch) {
            let parents = |(backward, parents): &mut (Backward, Vec<Parent>), well| {
                backward.parents(well, parents);
                parents.iter().map(|parent| parent.well).collect()
            };
            let lists: Vec<Vec<Well>> = chunk?
                .par_iter()
                .map_init(|| (Backward::new(emulator), Vec::new()), parents)
                .collect();
            for well in lists.into_iter().flatten() {
                match distances.get(&well.hash()) {
                    Some(&known) if known <= distance => continue,
                    None if distances.len() >= MAX_DISTANCES => continue,
                    _ => distances.insert(well.hash(), distance),
                };
                if distance < BACK {
                    next.push(well);
                }
            }
        }
        frontier = next;
    }
    Some(distances)
}

/// Returns the wells of the detours that begin with one of `wells`.
fn search(
    emulator: &Emulator,
    distances: &Distances,
    wells: &[Well],
    watch: &dyn Watch,
) -> Option<Vec<Well>> {
    let (mut found, mut detours) = (HashSet::new(), Vec::new());
    for chunk in chunks(wells, STAGES, watch) {
        let lists: Vec<Vec<Well>> = chunk?
            .par_iter()
            .map_init(
                || Explorer::new(emulator, distances),
                |explorer, well| explorer.detours(well),
            )
            .collect();
        let wells = lists.into_iter().flatten();
        detours.extend(wells.filter(|well| found.insert(*well)));
    }
    Some(detours)
}

/// Searches the detours that begin with one well.
struct Explorer<'a> {
    emulator: &'a Emulator,
    distances: &'a Distances,
    /// Buffers for the children at each depth.
    children: Vec<Children>,
    found: HashSet<Well>,
    detours: Vec<Well>,
}

impl Explorer<'_> {
    fn new<'a>(emulator: &'a Emulator, distances: &'a Distances) -> Explorer<'a> {
        Explorer {
            emulator,
            distances,
            children: vec![Children::new(); FORWARD + usize::from(BACK)],
            found: HashSet::new(),
            detours: Vec::new(),
        }
    }

    /// Returns the wells of the detours that begin with `well`.
    fn detours(&mut self, well: &Well) -> Vec<Well> {
        self.found.clear();
        let mut children = Children::new();
        for piece in pieces(self.emulator, well).into_iter().take(FIRST_PIECES) {
            self.emulator.children(well, piece, &mut children);
            for child in children.wells() {
                self.leads_back(child, 1);
            }
        }
        std::mem::take(&mut self.detours)
    }

    /// Returns whether detours go through a well that was reached after `depth` pieces, and adds their wells.
    fn leads_back(&mut self, well: &Well, depth: usize) -> bool {
        let distance = self.distances.get(&well.hash()).copied();
        match distance {
            Some(0) => return true,
            None if depth == FORWARD => return false,
            _ => {}
        }
        let mut children = std::mem::take(&mut self.children[depth]);
        self.emulator.expand(well, &mut children);
        let mut leads_back = false;
        for child in children.wells() {
            leads_back |= match distance {
                // From here on, only the shortest ways count.
                Some(distance) => {
                    self.distances.get(&child.hash()) == Some(&(distance - 1))
                        && self.leads_back(child, depth + 1)
                }
                None => self.leads_back(child, depth + 1),
            };
        }
        self.children[depth] = children;
        if leads_back && self.found.insert(*well) {
            self.detours.push(*well);
        }
        leads_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Geometry, Rules};

    /// Random games in a narrow well, in which many ways lead back.
    fn graph(emulator: &Emulator) -> WellGraph {
        let mut wells = Vec::new();
        let mut children = Children::new();
        for game in 0..20_usize {
            let mut well = Well::EMPTY;
            for piece in 0..12_usize {
                wells.push(well);
                emulator.expand(&well, &mut children);
                let Some(next) = children
                    .wells()
                    .get((game * 7 + piece * 3) % children.len().max(1))
                else {
                    break;
                };
                well = *next;
            }
        }
        WellGraph::new(emulator, wells).unwrap()
    }

    /// Adds the wells of all ways of at most `pieces` pieces that lead from `well` to a well of the graph, and returns whether
    /// there is one.
    fn ways(
        emulator: &Emulator,
        graph: &WellGraph,
        well: &Well,
        pieces: u8,
        on_ways: &mut HashSet<Well>,
    ) -> bool {
        if graph.find(well).is_some() {
            return true;
        }
        if pieces == 0 {
            return false;
        }
        let mut children = Children::new();
        emulator.expand(well, &mut children);
        let mut any = false;
        for child in children.wells() {
            any |= ways(emulator, graph, child, pieces - 1, on_ways);
        }
        if any {
            on_ways.insert(*well);
        }
        any
    }

    #[test]
    fn detours_are_ways_back_and_none_of_one_well_is_missing() {
        let emulator = Emulator::new(Geometry::new(6, 8).unwrap(), Rules::default());
        let graph = graph(&emulator);
        let found = Detours::default().round(&emulator, &graph, &|| false);
        let found = found.unwrap();
        let found_set: HashSet<Well> = found.iter().copied().collect();
        assert_eq!(found.len(), found_set.len());
        assert!(found.iter().all(|well| graph.find(well).is_none()));
        let (mut on_ways, mut single) = (HashSet::new(), HashSet::new());
        let mut children = Children::new();
        for well in graph.wells() {
            for piece in pieces(&emulator, well).into_iter().take(FIRST_PIECES) {
                emulator.children(well, piece, &mut children);
                for child in children.wells() {
                    ways(
                        &emulator,
                        &graph,
                        child,
                        FORWARD as u8 + BACK - 1,
                        &mut on_ways,
                    );
                    ways(&emulator, &graph, child, 1, &mut single);
                }
            }
        }
        assert!(
            single.len() > 10 && found.len() > single.len(),
            "{} {}",
            single.len(),
            found.len()
        );
        assert!(found_set.is_subset(&on_ways));
        assert!(single.is_subset(&found_set));
    }

    #[test]
    fn distances_of_a_graph_that_grew_are_those_of_a_new_one() {
        let emulator = Emulator::new(Geometry::new(6, 8).unwrap(), Rules::default());
        let mut graph = graph(&emulator);
        let mut rounds = Detours::default();
        for _ in 0..2 {
            let found = rounds.round(&emulator, &graph, &|| false).unwrap();
            assert!(!found.is_empty());
            graph.grow(&emulator, found);
        }
        let mut once = Detours::default();
        once.round(&emulator, &graph, &|| false).unwrap();
        assert!(once.distances.values().any(|&distance| distance == BACK));
        rounds.round(&emulator, &graph, &|| false).unwrap();
        assert_eq!(rounds.distances, once.distances);

        // A cancelled round leaves nothing that the next one relies on.
        let mut cancelled = Detours { known: 1, ..once };
        assert!(cancelled.round(&emulator, &graph, &|| true).is_none());
        cancelled.round(&emulator, &graph, &|| false).unwrap();
        assert_eq!(cancelled.distances, rounds.distances);
    }
}
