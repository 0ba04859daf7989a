//! Games by the exact rules, from wells that a search found by the rules of HATETRIS Mild.

use hatebeam_game::{
    Children, Emulator, Encoding, Enemy, EnemyState, Geometry, Key, PathError, Rules, Well, encode,
    play, replay_of_wells,
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

/// Returns whether each well of a game follows from the one before by the piece that HATETRIS gives, with the loop rule, and
/// whether every placement of the last piece ends the game.
pub(crate) fn is_exact(emulator: &Emulator, wells: &[Well]) -> bool {
    let mut enemy = EnemyState::new(Enemy::Hatetris);
    let mut children = Children::new();
    wells.iter().enumerate().all(|(pieces, well)| {
        let piece = enemy.next_piece(emulator, well, &mut children);
        emulator.children(well, piece, &mut children);
        match wells.get(pieces + 1) {
            Some(next) => children.wells().contains(next),
            None => children.wells().is_empty(),
        }
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
    fn exact_games_follow_the_loop_rule_to_their_end() {
        let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
        let wells = PUBLIC_GAMES[0].wells();
        assert!(is_exact(&emulator, &wells));
        assert!(!is_exact(&emulator, &wells[..wells.len() - 1]), "no end");
        let mut other = wells.clone();
        other[100] = other[150];
        assert!(!is_exact(&emulator, &other));
        // The loop rule changes nine pieces of this game.
        assert!(is_exact(&emulator, &PUBLIC_GAMES[7].wells()));
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
