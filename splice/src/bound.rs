//! An upper bound for the length of games in a graph.
//!
//! A game visits each well at most once. With a move from its last well to its first one, it is a cycle, so it has at most
//! as many pieces as there are wells on disjoint cycles. The maximum number of these wells is the value of an assignment
//! problem: each well gets one of its next wells, or itself if it is on no cycle, and no well is given twice. An auction
//! approximates it: wells bid for their next wells, and each bid raises a price. At any prices, the solution of the dual problem
//! is an upper bound. In a graph of 53,389 wells this takes 0.13 seconds.

use crate::graph::WellGraph;

/// Value of a next well, in units of the prices.
pub(crate) const VALUE: i64 = 1 << 20;

/// Number of times that the auction is repeated. Each time, the increment of the prices is a quarter of the one before, so the
/// last one is 2⁻¹⁶ of the value.
const REPEATS: u32 = 8;

/// The auction ends when the bound exceeds the number of wells on the cycles found by at most this part of it: 1 / 500.
const TOLERANCE: usize = 500;

/// Maximum number of bids, as a multiple of the number of wells. It limits the time; the bound is valid nevertheless.
const BIDS: usize = 1000;

/// Marker for a well that is given to no well.
const NONE: u32 = u32::MAX;

/// Result of [`bound`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Number of wells on the disjoint cycles that were found.
    pub(crate) found: usize,
    /// Maximum number of wells on disjoint cycles, or a little more.
    pub(crate) most: usize,
}

/// Returns the number of wells on disjoint cycles and an upper bound for it. `next` returns the next wells of a well.
/// Each well can also be the last one of a game, so `first`, the first well of all games, is a next well of all wells.
pub(crate) fn bound<'a>(
    graph: &'a WellGraph,
    first: u32,
    next: impl Fn(u32) -> &'a [u32],
) -> Bound {
    let next = |well| next(well).iter().map(|&next| (next, VALUE));
    Auction::new(graph.len(), first, next).solve()
}

/// An auction of next wells.
pub(crate) struct Auction<F> {
    first: u32,
    /// Returns the next wells of a well and their values.
    next: F,
    /// For each well, its price.
    prices: Vec<i64>,
    /// Number of bids left.
    bids: usize,
}

/// What a well can gain: the value of a well that it gets, minus the price.
struct Offer {
    well: u32,
    gain: i64,
    /// Gain by the second-best well.
    second: i64,
}

impl<F: Fn(u32) -> I, I: Iterator<Item = (u32, i64)>> Auction<F> {
    /// Creates an auction without bids.
    pub(crate) fn new(wells: usize, first: u32, next: F) -> Auction<F> {
        Auction {
            first,
            next,
            prices: vec![0; wells],
            bids: BIDS * wells,
        }
    }

    /// Repeats the auction until it is exact enough.
    pub(crate) fn solve(&mut self) -> Bound {
        let mut bound = Bound {
            found: 0,
            most: self.prices.len(),
        };
        for repeat in 1..=REPEATS {
            bound.found = bound.found.max(self.run(VALUE >> (2 * repeat)));
            bound.most = bound.most.min(self.dual());
            if bound.most - bound.found <= bound.found / TOLERANCE || self.bids == 0 {
                break;
            }
        }
        bound
    }

    /// Returns by how much each next well of a well is worse for it than the best one.
    pub(crate) fn losses(&self, well: u32) -> impl Iterator<Item = (u32, i64)> {
        let best = self.best(well).gain;
        (self.next)(well)
            .map(move |(next, value)| (next, best + self.prices[next as usize] - value))
    }

    /// Gives each well another well or itself, and returns the value of all wells on cycles, which is their number if each is worth
    /// [`VALUE`]. Returns 0 if no bids are left.
    fn run(&mut self, increment: i64) -> usize {
        let wells = self.prices.len();
        let mut owners = vec![NONE; wells];
        let mut bidders: Vec<u32> = (0..wells as u32).collect();
        while let Some(bidder) = bidders.pop() {
            if self.bids == 0 {
                return 0;
            }
            self.bids -= 1;
            let offer = self.best(bidder);
            self.prices[offer.well as usize] += offer.gain - offer.second + increment;
            let outbid = std::mem::replace(&mut owners[offer.well as usize], bidder);
            if outbid != NONE {
                bidders.push(outbid);
            }
        }
        let on_cycle = |&(well, &owner): &(u32, &u32)| owner != well || well == self.first;
        let given = (0..).zip(&owners).filter(on_cycle);
        let total: i64 = given.map(|(well, &owner)| self.value(owner, well)).sum();
        (total.max(0) / VALUE) as usize
    }

    /// Returns the value of a next well for a well.
    fn value(&self, well: u32, next: u32) -> i64 {
        if next == self.first {
            return VALUE;
        }
        let moves = (self.next)(well).filter(|(other, _)| *other == next);
        moves.map(|(_, value)| value).max().unwrap_or_default()
    }

    /// Returns the best offer for a well.
    fn best(&self, bidder: u32) -> Offer {
        let mut best = Offer {
            well: bidder,
            gain: -self.prices[bidder as usize],
            second: i64::MIN,
        };
        // In narrow wells, a piece can leave the same well.
        let others = (self.next)(bidder).filter(|(well, _)| *well != bidder);
        for (well, value) in others.chain([(self.first, VALUE)]) {
            let gain = value - self.prices[well as usize];
            if gain > best.gain {
                best = Offer {
                    well,
                    gain,
                    second: best.gain,
                };
            } else {
                best.second = best.second.max(gain);
            }
        }
        best
    }

    /// Returns the upper bound that the prices give: no assignment is worth more than all prices and the best gain of each well
    /// at these prices.
    fn dual(&self) -> usize {
        let gains = (0..self.prices.len() as u32).map(|well| self.best(well).gain);
        let total = self.prices.iter().sum::<i64>() + gains.sum::<i64>();
        (total / VALUE) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Children, Emulator, Geometry, Rules, Well};
    use proptest::prelude::*;

    /// The graph of random wells that follow one another in a narrow well.
    fn graph(choices: &[u8], wells: usize) -> WellGraph {
        let emulator = Emulator::new(Geometry::new(4, 6).unwrap(), Rules::default());
        let mut known = vec![Well::EMPTY];
        let mut children = Children::new();
        for choice in choices {
            let from = known[usize::from(*choice) % known.len()];
            emulator.expand(&from, &mut children);
            for child in children.wells() {
                if known.len() < wells && !known.contains(child) {
                    known.push(*child);
                }
            }
        }
        WellGraph::new(&emulator, known).unwrap()
    }

    /// Returns the number of wells of the longest path from the last well of `path`.
    fn longest(graph: &WellGraph, path: &mut Vec<u32>) -> usize {
        let mut most = path.len();
        for &next in graph.children(path[path.len() - 1], 0) {
            if !path.contains(&next) {
                path.push(next);
                most = most.max(longest(graph, path));
                path.pop();
            }
        }
        most
    }

    proptest! {
        #[test]
        fn no_game_is_longer(choices: Vec<u8>, wells in 1_usize..24) {
            let graph = graph(&choices, wells);
            let bound = bound(&graph, 0, |well| graph.children(well, 0));
            prop_assert_eq!(bound.found, bound.most, "so few wells need no tolerance");
            let longest = longest(&graph, &mut vec![0]);
            prop_assert!(longest <= bound.most, "{} {:?}", longest, bound);
        }
    }

    #[test]
    fn bounds_of_known_graphs() {
        let empty = graph(&[], 1);
        let one = Bound { found: 1, most: 1 };
        assert_eq!(bound(&empty, 0, |_| &[]), one);
        // The children of one well: a game can visit one of them.
        let star = graph(&[0], 20);
        assert!(star.len() > 5);
        let two = Bound { found: 2, most: 2 };
        assert_eq!(bound(&star, 0, |well| star.children(well, 0)), two);
    }
}
