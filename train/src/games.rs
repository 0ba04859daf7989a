//! Public games of HATETRIS that a recipe can list.
//!
//! Their replays are published at <https://qntm.org/hatetris> and in the tests of HATETRIS.

use crate::recipe::{GameRecipe, RecipeError};
use hatebeam_game::{Encoding, Enemy, Geometry, Rules, Well, play};

/// A published game.
pub struct PublicGame {
    /// Name of the game in recipes: the player, followed by the number of lines cleared.
    pub name: &'static str,
    /// The replay, encoded in Base2048.
    pub replay: &'static str,
}

macro_rules! public_games {
    ($($name:literal),* $(,)?) => {
        [$(PublicGame {
            name: $name,
            replay: include_str!(concat!("../../examples/games/", $name, ".txt")),
        }),*]
    };
}

/// The public games that are built into the program.
pub const PUBLIC_GAMES: [PublicGame; 8] = public_games![
    "david-and-felipe-148",
    "david-and-felipe-152",
    "tim-157",
    "tim-232",
    "knewjade-289",
    "david-and-felipe-302",
    "david-and-felipe-366",
    "david-and-felipe-3711",
];

impl PublicGame {
    /// Returns the well before each piece, beginning with the empty well.
    pub fn wells(&self) -> Vec<Well> {
        let keys = Encoding::Base2048.decode(self.replay.trim());
        let keys = keys.expect("built-in replays are valid");
        let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
        record.wells().collect()
    }
}

/// A well from a public game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GameWell {
    pub(crate) well: Well,
    /// Number of pieces that the player placed after reaching this well.
    pub(crate) pieces: usize,
}

/// Returns the wells that a recipe selects from public games.
///
/// # Errors
/// Returns [`RecipeError::Game`] if no built-in game has one of the names.
pub(crate) fn wells_of(recipe: &[GameRecipe]) -> Result<Vec<GameWell>, RecipeError> {
    let mut all = Vec::new();
    for game in recipe {
        let public = PUBLIC_GAMES.iter().find(|public| public.name == game.name);
        let public = public.ok_or_else(|| RecipeError::Game(game.name.clone()))?;
        let wells = public.wells();
        let first = game.pieces.unwrap_or(wells.len());
        all.extend(
            (1..=wells.len())
                .rev()
                .zip(&wells)
                .take(first)
                .map(|(pieces, &well)| GameWell { well, pieces }),
        );
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_games_clear_number_of_lines_in_their_names() {
        for game in &PUBLIC_GAMES {
            let keys = Encoding::Base2048.decode(game.replay.trim()).unwrap();
            let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
            assert!(record.over, "{}", game.name);
            assert!(
                game.name.ends_with(&format!("-{}", record.score)),
                "{}",
                game.name
            );
            assert_eq!(game.wells().len(), record.turns.len());
        }
    }

    #[test]
    fn wells_record_number_of_remaining_pieces() {
        let game = |pieces| GameRecipe {
            name: "david-and-felipe-3711".to_owned(),
            pieces,
        };
        let wells = wells_of(&[game(Some(100)), game(None)]).unwrap();
        assert_eq!(wells.len(), 100 + 9309);
        assert_eq!(wells[0].well, Well::EMPTY);
        let pieces = [wells[0], wells[99], wells[100], wells[9408]].map(|well| well.pieces);
        assert_eq!(pieces, [9309, 9210, 9309, 1]);
    }
}
