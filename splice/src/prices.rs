//! Finds the wells of a graph that can matter for long games.
//!
//! Most wells of a graph that has grown for long are on no long game, but the walks visit them. An auction of next wells (`bound`)
//! gives each well a price: how much longer games can be because of it. A move loses the difference between what the best next
//! well of its well gains at these prices and what its own one gains. So a game that is nearly as long as the bound has moves
//! that lose little. In the auction, a second piece is worth less than a first one, because a game needs a visited well for each
//! second piece.

use crate::bound::{Auction, VALUE};
use crate::graph::WellGraph;
use crate::transplants::keep_staying;

/// Values of moves by the first and the second piece. With these, the 15,534 wells on disjoint cycles in a graph of
/// 112,797 wells are 12,674, and 945 of their moves are second pieces instead of 1,875.
const VALUES: [i64; 2] = [VALUE, -4 * VALUE];

/// Maximum loss of a move that can matter. Of a graph of 313,954 wells with a bound of 18,199, this one leaves 164,242 with a bound of
/// 15,779, and half of it 64,429 with a bound of 12,159. With eight threads, 540 seconds in the first of these made a game of 5,210
/// pieces one of 5,330, and 225 more seconds 5,405. In the second one, a game of 4,655 pieces had 5,195 after 216 seconds, and no more
/// after 540. Without removed wells, the game of 5,330 pieces did not get longer in 225 seconds.
const MAX_LOSS: i64 = 8 * VALUE;

/// Returns which wells have moves with small losses to them and from them, to and from other such wells.
pub(crate) fn valuable(graph: &WellGraph, first: u32) -> Vec<bool> {
    let mut staying = vec![true; graph.len()];
    keep_staying(|well| graph.origins(well as u32), &mut staying);
    let staying = &staying;
    let next = |well: u32| {
        let ranks = (0..).zip(VALUES).filter(move |_| staying[well as usize]);
        ranks.flat_map(move |(rank, value)| {
            let next = graph.children(well, rank).iter();
            let next = next.filter(|next| staying[**next as usize]);
            next.map(move |&next| (next, value))
        })
    };
    let mut auction = Auction::new(graph.len(), first, next);
    auction.solve();
    let good = |well| {
        let moves = auction.losses(well);
        let good = moves.filter(|(_, loss)| *loss <= MAX_LOSS);
        good.map(|(next, _)| next).collect()
    };
    let good: Vec<Vec<u32>> = (0..graph.len() as u32).map(good).collect();
    on_cycles(&good)
}

/// Returns which wells are left after wells without a next or without a previous well are removed repeatedly: all wells on
/// cycles and on ways between cycles. `next` contains the next wells of each well.
fn on_cycles(next: &[Vec<u32>]) -> Vec<bool> {
    let mut previous = vec![Vec::new(); next.len()];
    for (well, next) in (0..).zip(next) {
        for &child in next {
            previous[child as usize].push(well);
        }
    }
    let mut leading: Vec<usize> = next.iter().map(Vec::len).collect();
    let mut coming: Vec<usize> = previous.iter().map(Vec::len).collect();
    let ends = |well: &usize| leading[*well] == 0 || coming[*well] == 0;
    let mut removed: Vec<usize> = (0..next.len()).filter(ends).collect();
    let mut left = vec![true; next.len()];
    while let Some(well) = removed.pop() {
        if !std::mem::take(&mut left[well]) {
            continue;
        }
        for (others, counts) in [(&next[well], &mut coming), (&previous[well], &mut leading)] {
            for &other in others {
                counts[other as usize] -= 1;
                if counts[other as usize] == 0 {
                    removed.push(other as usize);
                }
            }
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::bound;
    use crate::tests::wells_of;
    use hatebeam_game::{Children, Emulator, Geometry, Rules, Well};
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
            let expected: Vec<bool> = (0..12).map(|well| forward[well] && back[well]).collect();
            prop_assert_eq!(on_cycles(&lists(false)), expected);
        }
    }

    /// The wells of a life and all their children: most children lead nowhere.
    #[test]
    fn wells_without_value_are_removed() {
        let wells = wells_of(include_str!("../../examples/records/spliced-1253.txt"));
        let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
        let mut children = Children::new();
        let children = wells.iter().flat_map(|well| {
            emulator.expand(well, &mut children);
            children.wells().to_vec()
        });
        let graph = WellGraph::new(&emulator, children.chain(wells.iter().copied())).unwrap();
        let first = graph.find(&Well::EMPTY).unwrap();
        let left = valuable(&graph, first);
        let count = left.iter().filter(|left| **left).count();
        assert!(count * 10 < graph.len(), "{count} of {}", graph.len());
        let next = |keep: &[bool]| -> Vec<Vec<u32>> {
            let moves = |well| [0, 1].map(|rank| graph.children(well, rank)).concat();
            let wells = (0..graph.len() as u32).map(|well| (keep[well as usize], moves(well)));
            let kept = wells.map(|(kept, moves)| if kept { moves } else { Vec::new() });
            kept.map(|moves| {
                moves
                    .into_iter()
                    .filter(|next| keep[*next as usize])
                    .collect()
            })
            .collect()
        };
        let most = |keep: &[bool]| {
            let next = next(keep);
            bound(&graph, first, |well| &next[well as usize]).found
        };
        let [all, kept] = [vec![true; graph.len()], left].map(|keep| most(&keep));
        assert!(kept * 10 > all * 7, "{kept} of {all} wells on cycles");
    }
}
