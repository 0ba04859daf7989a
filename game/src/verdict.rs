//! Checks whether a replay is plausible as a game against a given enemy (the algorithm that chooses
//! the pieces).

use crate::game::{PADDING, Record, better_enemy};
use crate::rules::{Key, Rules};
use crate::well::Geometry;
use thiserror::Error;

/// Error for a replay that is not a plausible game.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplayFault {
    /// The keys seem to be from a game against another enemy.
    #[error(
        "the replay does not fit {}: the game {}, with a score of {}; it seems to be a game against \
         {}, with a score of {}{}",
        record.enemy,
        end(record),
        record.score,
        other.enemy,
        other.score,
        difference(record, other)
    )]
    WrongEnemy {
        /// The game against the given enemy.
        record: Box<Record>,
        /// The game against the other enemy.
        other: Box<Record>,
    },
    /// The replay ends while a piece is falling.
    #[error(
        "the replay is truncated: it ends {keys} keys into piece {piece}, and the game is not over"
    )]
    Truncated {
        /// Number of keys since the last lock.
        keys: usize,
        /// 1-based index of the piece.
        piece: usize,
    },
}

fn end(record: &Record) -> String {
    let keys = record.keys_used + record.keys_unused;
    if record.over {
        format!("is over after {} of {keys} keys", record.keys_used)
    } else {
        format!("is not over after all {keys} keys")
    }
}

fn difference(record: &Record, other: &Record) -> String {
    match record.first_difference(other) {
        Some(piece) => format!(" (the games differ from piece {piece})"),
        None => String::new(),
    }
}

impl Record {
    /// Checks that this game, the result of playing `keys`, is plausible.
    ///
    /// A finished game (see [`Record::is_finished`]) is always plausible. Any other game is rejected
    /// in two cases: the same keys clearly result in a better game against another enemy, or the
    /// replay ends while a piece is falling.
    ///
    /// # Errors
    /// Returns a [`ReplayFault`] if the game is not plausible.
    pub fn check(&self, geometry: Geometry, rules: Rules, keys: &[Key]) -> Result<(), ReplayFault> {
        if let Some(other) = better_enemy(geometry, rules, self, keys)
            && self.is_meant_for(&other)
        {
            return Err(ReplayFault::WrongEnemy {
                record: Box::new(self.clone()),
                other: Box::new(other),
            });
        }
        if self.keys_of_last_piece() > PADDING {
            return Err(ReplayFault::Truncated {
                keys: self.keys_of_last_piece(),
                piece: self.turns.len(),
            });
        }
        Ok(())
    }

    /// Returns the number of keys used since the last lock, or 0 if the game is over.
    pub fn keys_of_last_piece(&self) -> usize {
        match self.turns.last() {
            Some(turn) if !self.over => self.keys_used - turn.first_key,
            _ => 0,
        }
    }

    /// Returns whether the keys seem to be meant for the enemy of `other`. `other` must be a game with the
    /// same keys that has a higher score or is finished.
    ///
    /// This is the case if `other` is finished, if only `other`
    /// [stops cleanly](Record::stops_cleanly), or if this game leaves more keys unused than padding
    /// explains and `other` is not over.
    fn is_meant_for(&self, other: &Record) -> bool {
        other.is_finished()
            || self.keys_unused > PADDING && !other.over
            || !self.stops_cleanly() && other.stops_cleanly()
    }

    /// Returns whether the last key that is not padding ends the game or locks a piece.
    fn stops_cleanly(&self) -> bool {
        self.keys_unused <= PADDING && self.keys_of_last_piece() <= PADDING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enemy::Enemy;
    use crate::game::play;

    fn check(keys: &[Key]) -> Result<(), ReplayFault> {
        let (geometry, rules) = (Geometry::STANDARD, Rules::default());
        play(geometry, rules, Enemy::Hatetris, keys).check(geometry, rules, keys)
    }

    #[test]
    fn replay_may_stop_between_pieces_but_not_while_a_piece_falls() {
        assert_eq!(check(&[Key::Down; 18]), Ok(()));
        assert_eq!(check(&[Key::Down; 20]), Ok(()));
        let fault = check(&[Key::Down; 30]).unwrap_err();
        assert_eq!(fault, ReplayFault::Truncated { keys: 12, piece: 2 });
    }
}
