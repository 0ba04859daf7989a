//! Games by the exact rules, from wells that a search found by the rules of HATETRIS Mild.

use hatebeam_game::{
    Encoding, Enemy, Geometry, Key, PathError, Rules, Well, encode, play, replay_of_wells,
};

/// A game by the exact rules of HATETRIS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactGame {
    /// Number of lines cleared.
    pub lines: u32,
    /// Number of pieces given.
    pub pieces: usize,
    /// The replay in Base2048.
    pub replay: String,
}

/// Plays through the wells of a game in a standard well against HATETRIS, and ends the game if its last well permits
/// that. If the loop rule changes a piece, the game is cut before this piece.
///
/// # Errors
/// Returns a [`PathError`] if the list is empty or the first well is not live.
pub fn exact_game(wells: &[Well]) -> Result<ExactGame, PathError> {
    let keys = keys_of(wells)?;
    let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
    Ok(ExactGame {
        lines: record.score,
        pieces: record.turns.len(),
        replay: encode(&keys, Encoding::Base2048),
    })
}

fn keys_of(wells: &[Well]) -> Result<Vec<Key>, PathError> {
    let keys = |wells, end| {
        replay_of_wells(
            Geometry::STANDARD,
            Rules::default(),
            Enemy::Hatetris,
            wells,
            end,
        )
    };
    match keys(wells, true) {
        Err(PathError::NoEnd { .. }) => keys(wells, false),
        Err(PathError::NoPlacement { step, .. }) => keys(&wells[..step], false),
        keys => keys,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::PUBLIC_GAMES;

    #[test]
    fn wells_of_public_game_give_its_lines() {
        let wells = PUBLIC_GAMES[0].wells();
        let game = exact_game(&wells).unwrap();
        assert_eq!((game.lines, game.pieces), (148, wells.len()));
        let keys = Encoding::Base2048.decode(&game.replay).unwrap();
        let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
        assert!(record.over && record.score == 148);
    }

    #[test]
    fn game_is_cut_where_no_placement_continues() {
        let mut wells = PUBLIC_GAMES[0].wells();
        wells[100] = wells[150];
        assert_eq!(exact_game(&wells).unwrap().pieces, 100);
    }

    #[test]
    fn game_may_stop_before_its_end() {
        let wells = PUBLIC_GAMES[0].wells();
        assert_eq!(exact_game(&wells[..3]).unwrap().pieces, 3);
    }
}
