//! Finds the key presses for a game from a complete search.

use super::GameTree;
use hatebeam_game::{Enemy, Key, PathError, Well, play, replay_of_wells};
use thiserror::Error;

/// Error for a game that is invalid under the exact rules of the enemy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The enemy chooses a different piece, because a well repeats.
    #[error("the game is valid under HATETRIS Mild, but {0} chooses another piece")]
    OtherPiece(Enemy, #[source] PathError),
    /// The game does not reach its last well.
    #[error("the game reaches another well when it is played: this is a bug in hatebeam")]
    OtherWell,
}

impl GameTree {
    /// Returns the keys of the game through `wells`. If the next piece can end the game, the keys include that piece.
    ///
    /// # Errors
    /// Returns a [`ReplayError`] if the game does not reach its last well under the exact rules of the enemy.
    pub fn replay(&self, wells: &[Well]) -> Result<Vec<Key>, ReplayError> {
        let &GameTree {
            geometry,
            rules,
            enemy,
        } = self;
        let keys = replay_of_wells(geometry, rules, enemy, wells, true)
            .or_else(|_| replay_of_wells(geometry, rules, enemy, wells, false))
            .map_err(|error| ReplayError::OtherPiece(enemy, error))?;
        let record = play(geometry, rules, enemy, &keys);
        let reached = wells
            .len()
            .checked_sub(1)
            .and_then(|last| record.turns.get(last));
        if reached.map(|turn| &turn.well) != wells.last() {
            return Err(ReplayError::OtherWell);
        }
        Ok(keys)
    }
}
