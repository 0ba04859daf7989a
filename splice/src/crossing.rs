//! Crosses games: replaces a part of a game by a longer part of another game.
//!
//! Games of different searches are long in different parts. They have many wells in common, at which a game can change from one to
//! the other.

use crate::graph::WellGraph;
use crate::walk::{NO_PLACE, Walk};
use std::cmp::Reverse;

/// Maximum number of parts that [`cross`] tries, those with the largest gains. Without a limit, long games would take long.
const MAX_TRIES: usize = 200;

/// A part of another game that can replace a part of a game. Both begin with the same well and end with the same well.
#[derive(Clone, Copy)]
struct Part {
    gain: usize,
    /// Places of the first and the last well in the other game.
    other: [usize; 2],
}

/// Replaces parts of a game by longer parts of another one, the largest gain first, if the game stays valid and ends with the same
/// piece.
pub(crate) fn cross(graph: &WellGraph, game: &mut Vec<u32>, other: &[u32]) {
    let last = last_rank(graph, game);
    for part in parts(graph.len(), game, other).iter().take(MAX_TRIES) {
        let [begin, end] = part.other;
        let place = |well| game.iter().position(|known| *known == well);
        // Parts replaced before have moved the others or removed their ends.
        if let (Some(from), Some(to)) = (place(other[begin]), place(other[end]))
            && from < to
            && to - from < end - begin
        {
            let crossed = [&game[..from], &other[begin..end], &game[to..]].concat();
            if last_rank(graph, &crossed) == last {
                *game = crossed;
            }
        }
    }
}

/// Returns the rank of the piece that the enemy gives in the last well of a game, or `None` if the game is not valid.
fn last_rank(graph: &WellGraph, game: &[u32]) -> Option<u8> {
    Walk::new(graph, game, 0).ok()?.ranks().last().copied()
}

/// Returns the parts of another game that are longer than the parts of the game that they replace and repeat no other well of
/// it, the largest gain first. Each part differs from the one that it replaces after its first well and before its last one.
fn parts(wells: usize, game: &[u32], other: &[u32]) -> Vec<Part> {
    let mut places = vec![NO_PLACE; wells];
    for (place, &well) in game.iter().enumerate() {
        places[well as usize] = place as u32;
    }
    let place = |index: usize| {
        let place = places[*other.get(index)? as usize];
        (place != NO_PLACE).then_some(place as usize)
    };
    let leaves = |index: usize| place(index).filter(|at| place(index + 1) != Some(at + 1));
    let arrives = |index: usize| {
        place(index).filter(|at| place(index - 1).is_none_or(|before| before + 1 != *at))
    };
    let mut parts = Vec::new();
    for begin in 0..other.len() {
        let Some(from) = leaves(begin) else { continue };
        // The place of the last well of the game that the part contains so far.
        let mut last = from;
        for end in begin + 1..other.len() {
            let Some(at) = place(end) else { continue };
            // A part that contains an earlier well of the game would repeat it.
            if at <= from {
                break;
            }
            last = last.max(at);
            if last == at && arrives(end).is_some() && end - begin > at - from {
                parts.push(Part {
                    gain: (end - begin) - (at - from),
                    other: [begin, end],
                });
            }
        }
    }
    parts.sort_by_key(|part| (Reverse(part.gain), part.other));
    parts
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use hatebeam_game::{Children, Emulator, Enemy, EnemyState, Geometry, Rules, Well};
    use proptest::prelude::*;

    /// Plays random locks until the game is over or has 40 pieces.
    fn random_game(emulator: &Emulator, choices: &[u8]) -> Vec<Well> {
        let mut state = EnemyState::new(Enemy::Hatetris);
        let mut children = Children::new();
        let mut wells = vec![Well::EMPTY];
        for choice in choices.iter().cycle().take(40) {
            let well = wells[wells.len() - 1];
            let piece = state.next_piece(emulator, &well, &mut children);
            emulator.children(&well, piece, &mut children);
            match children.len() {
                0 => break,
                locks => wells.push(children.wells()[usize::from(*choice) % locks]),
            }
        }
        wells
    }

    /// Plays a random game for each list of choices, and returns the graph of their wells.
    pub(crate) fn random_games(
        width: usize,
        height: usize,
        choices: &[Vec<u8>],
    ) -> (WellGraph, Vec<Vec<Well>>) {
        let emulator = Emulator::new(Geometry::new(width, height).unwrap(), Rules::default());
        let games = choices.iter().map(|game| random_game(&emulator, game));
        let games: Vec<Vec<Well>> = games.collect();
        let graph = WellGraph::new(&emulator, games.iter().flatten().copied()).unwrap();
        (graph, games)
    }

    proptest! {
        /// Compares with replacing each part by each part that begins and ends with the same wells.
        #[test]
        fn no_longer_game_is_missed(
            choices in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..100), 2),
            height in 4..=8_usize,
        ) {
            let (graph, games) = random_games(4, height, &choices);
            let [game, other] = [&games[0], &games[1]].map(|wells| -> Vec<u32> {
                wells.iter().filter_map(|well| graph.find(well)).collect()
            });
            let last = last_rank(&graph, &game);
            prop_assume!(last.is_some() && last_rank(&graph, &other).is_some());
            let mut crossed = game.clone();
            // Replaced parts can make others valid.
            loop {
                let before = crossed.len();
                cross(&graph, &mut crossed, &other);
                if crossed.len() == before {
                    break;
                }
            }
            prop_assert!(crossed.len() >= game.len());
            prop_assert_eq!(last_rank(&graph, &crossed), last);
            for (begin, from) in places(&other, &crossed) {
                for (end, to) in places(&other, &crossed) {
                    if end > begin && to > from && end - begin > to - from {
                        let longer = [&crossed[..from], &other[begin..end], &crossed[to..]].concat();
                        let valid = last_rank(&graph, &longer) == last;
                        prop_assert!(!valid, "{longer:?} is longer than {crossed:?}");
                    }
                }
            }
        }
    }

    /// Returns the places of all wells that two games have in common, in both of them.
    fn places(other: &[u32], game: &[u32]) -> Vec<(usize, usize)> {
        let place = |well| game.iter().position(|known| known == well);
        let common = other.iter().enumerate();
        common
            .filter_map(|(index, well)| Some((index, place(well)?)))
            .collect()
    }
}
