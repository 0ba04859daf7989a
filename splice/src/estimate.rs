//! Estimates how long a game can be if it continues with a well.
//!
//! The estimate is the length of a longest walk to the rest of the game through wells that are still free, where a
//! strongly connected component counts as a fixed share of its wells. A walk that is a valid game can be shorter, because
//! the wells that it enters exclude pieces, and longer than this share. Components are found by Tarjan's algorithm.

use crate::graph::WellGraph;
use crate::marks::Marks;

/// Share of the wells of a component that a walk enters, in tenths. Shares from 0.15 to 0.9 gave games of similar length.
const COMPONENT_SHARE: i64 = 3;

/// Maximum number of wells that one estimate visits, which bounds its time to some 100 µs.
const MAX_VISITED: u32 = 5000;

/// Place of a well that is not in the game.
pub(crate) const NO_PLACE: u32 = u32::MAX;

/// An estimate of wells whose component is not complete.
const OPEN: i64 = i64::MIN;

/// An estimate of wells from which the rest of the game cannot be reached.
pub(crate) const DEAD: i64 = -1;

/// The free wells, and where the game continues.
pub(crate) struct Rest {
    /// For each well, its place in the rest of the game, or [`NO_PLACE`].
    pub(crate) places: Vec<u32>,
    /// Wells that must not be entered, because they would exclude a piece of the rest of the game.
    pub(crate) barred: Vec<bool>,
    /// Number of wells of the game.
    pub(crate) length: usize,
}

/// The estimate for a well.
#[derive(Clone, Copy)]
pub(crate) struct Estimate {
    /// Number of wells from this well to the end of the game, or [`DEAD`].
    pub(crate) wells: i64,
    /// Identifies the wells that were visited and their pieces. Two paths with equal signatures have the same future.
    pub(crate) signature: u64,
}

/// Buffers for estimates.
pub(crate) struct Estimator {
    stamps: Vec<u32>,
    stamp: u32,
    order: Vec<u32>,
    low: Vec<u32>,
    estimates: Vec<i64>,
    /// The visited wells whose component is not complete.
    open: Vec<u32>,
    /// The wells on the current path of the depth-first search, each with the number of children that were followed.
    path: Vec<(u32, u32)>,
    visited: u32,
}

impl Estimator {
    pub(crate) fn new(wells: usize) -> Estimator {
        Estimator {
            stamps: vec![0; wells],
            stamp: 0,
            order: vec![0; wells],
            low: vec![0; wells],
            estimates: vec![0; wells],
            open: Vec::new(),
            path: Vec::new(),
            visited: 0,
        }
    }

    /// Estimates a well that was entered.
    pub(crate) fn estimate(
        &mut self,
        graph: &WellGraph,
        keys: &[u64],
        marks: &Marks,
        rest: &Rest,
        well: u32,
    ) -> Estimate {
        self.stamp += 1;
        self.visited = 0;
        self.open.clear();
        self.path.clear();
        let key = |well: u32| keys[well as usize].rotate_left(marks.rank(well) as u32);
        let mut signature = keys[well as usize].wrapping_mul(3);
        self.visit(well);
        signature ^= key(well);
        while let Some((at, followed)) = self.path.last_mut() {
            let at = *at;
            let child = marks.children(graph, at).get(*followed as usize);
            *followed += 1;
            let Some(&child) = child.filter(|_| self.visited < MAX_VISITED) else {
                self.path.pop();
                if self.low[at as usize] == self.order[at as usize] {
                    self.close(graph, marks, rest, at);
                }
                if let Some(&(parent, _)) = self.path.last() {
                    self.lower(parent, self.low[at as usize]);
                }
                continue;
            };
            if !rest.is_free(child) {
                continue;
            }
            if self.stamps[child as usize] != self.stamp {
                self.visit(child);
                signature ^= key(child);
            } else if self.estimates[child as usize] == OPEN {
                self.lower(at, self.order[child as usize]);
            }
        }
        Estimate {
            wells: self.estimates[well as usize],
            signature,
        }
    }

    fn visit(&mut self, well: u32) {
        let at = well as usize;
        self.stamps[at] = self.stamp;
        self.order[at] = self.visited;
        self.low[at] = self.visited;
        self.estimates[at] = OPEN;
        self.visited += 1;
        self.open.push(well);
        self.path.push((well, 0));
    }

    fn lower(&mut self, well: u32, order: u32) {
        let low = &mut self.low[well as usize];
        *low = order.min(*low);
    }

    /// Gives the wells of the component that begins with `first` their estimate.
    fn close(&mut self, graph: &WellGraph, marks: &Marks, rest: &Rest, first: u32) {
        let begin = self.open.iter().rposition(|&well| well == first);
        let component = self.open.split_off(begin.expect("the first well is open"));
        let mut best = DEAD;
        for &well in &component {
            for &child in marks.children(graph, well) {
                best = best.max(match rest.remaining(child) {
                    Some(remaining) => remaining,
                    None if self.stamps[child as usize] == self.stamp => {
                        self.estimates[child as usize]
                    }
                    None => DEAD,
                });
            }
        }
        let own = 1 + (component.len() as i64 - 1) * COMPONENT_SHARE / 10;
        for well in component {
            self.estimates[well as usize] = if best == DEAD { DEAD } else { best + own };
        }
    }
}

impl Rest {
    /// Returns whether a path may enter a well that is not in the rest of the game.
    pub(crate) fn is_free(&self, well: u32) -> bool {
        self.places[well as usize] == NO_PLACE && !self.barred[well as usize]
    }

    /// Returns the number of wells from this well to the end of the game, or `None` if it is not in the rest.
    pub(crate) fn remaining(&self, well: u32) -> Option<i64> {
        let place = self.places[well as usize];
        (place != NO_PLACE).then(|| self.length as i64 - i64::from(place))
    }
}
