//! Better ends for a game: its last pieces, searched completely.

use crate::read_back::{GameError, bring_to_end};
use hatebeam_game::{Emulator, Enemy, Key, PathError, Record, Well, play, replay_of_wells};
use hatebeam_search::endgame::{Endgame, EndgameLimits};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use thiserror::Error;

/// Why an end cannot be searched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EndgameError {
    /// The game cannot be brought to its end.
    #[error(transparent)]
    Game(#[from] GameError),
    /// The best game does not hold against HATETRIS.
    #[error("HATETRIS changes a piece of the best game, because a well comes back")]
    Changed(#[source] PathError),
    /// The game is not over.
    #[error("the replay is not a finished game against HATETRIS: it ends with piece {0} falling")]
    NotOver(usize),
    /// The game has no such piece.
    #[error("no piece {piece}: the replay has pieces 1 to {pieces}")]
    NoPiece {
        /// The piece.
        piece: usize,
        /// Number of pieces.
        pieces: usize,
    },
}

/// A search for better ends.
pub struct EndSearch<'a> {
    /// The emulator.
    pub emulator: &'a Emulator,
    /// The search, whose table speeds up later searches.
    pub endgame: Endgame,
    /// Stops the search.
    pub cancel: &'a AtomicBool,
    /// Maximum number of wells to expand.
    pub nodes: Option<u64>,
    /// Time at which the search stops.
    pub deadline: Option<Instant>,
}

/// A game with the best end that was found.
#[derive(Clone, Debug)]
pub struct BestEnd {
    /// Its lines.
    pub score: u32,
    /// Its keys.
    pub keys: Vec<Key>,
    /// The earliest piece searched from.
    pub from: usize,
    /// The first piece from which the game is proven best.
    pub proven_from: Option<usize>,
    /// Whether a better game was found that HATETRIS changes.
    pub changed: bool,
}

impl EndSearch<'_> {
    /// Returns the limits that are left.
    fn limits(&self) -> EndgameLimits {
        let used = self.endgame.nodes();
        EndgameLimits {
            nodes: self.nodes.map(|nodes| nodes.saturating_sub(used)),
            deadline: self.deadline,
        }
    }

    /// Returns the best game from a well. The well counts as piece 1.
    ///
    /// # Errors
    /// [`EndgameError::Game`] and [`EndgameError::Changed`].
    pub fn from_well(&mut self, well: Well) -> Result<BestEnd, EndgameError> {
        let limits = self.limits();
        let found = self.endgame.search(&well, &limits, self.cancel);
        let mut wells = vec![well];
        wells.extend(found.wells);
        bring_to_end(self.emulator, &mut wells)?;
        let keys = self.keys(&wells).map_err(EndgameError::Changed)?;
        Ok(BestEnd {
            score: found.lines,
            keys,
            from: 1,
            proven_from: found.proven.then_some(1),
            changed: false,
        })
    }

    /// Returns the best game that begins like `record`, which has these keys: with other pieces from `from_piece` on, or
    /// from an earlier and earlier piece until a limit is reached. Before each piece, `continues` gets its number and the
    /// best score so far, and can stop the search.
    ///
    /// # Errors
    /// [`EndgameError::NotOver`], [`EndgameError::NoPiece`] and [`EndgameError::Game`].
    pub fn from_game(
        &mut self,
        record: &Record,
        keys: &[Key],
        from_piece: Option<usize>,
        continues: &mut dyn FnMut(usize, u32) -> bool,
    ) -> Result<BestEnd, EndgameError> {
        let pieces = record.turns.len();
        if !record.over {
            return Err(EndgameError::NotOver(pieces));
        }
        let range = match from_piece {
            Some(piece) if (1..=pieces).contains(&piece) => piece..=piece,
            Some(piece) => return Err(EndgameError::NoPiece { piece, pieces }),
            None => 1..=pieces,
        };
        let mut best = BestEnd {
            score: record.score,
            keys: keys.to_vec(),
            from: pieces,
            proven_from: None,
            changed: false,
        };
        for piece in range.rev() {
            let used_up = self
                .nodes
                .is_some_and(|limit| self.endgame.nodes() >= limit);
            if used_up || !continues(piece, best.score) {
                break;
            }
            best.from = piece;
            let turn = &record.turns[piece - 1];
            let limits = self.limits();
            let found = self.endgame.search(&turn.well, &limits, self.cancel);
            if turn.score + found.lines > best.score {
                let wells = record.wells().take(piece).chain(found.wells);
                self.take_better(&mut best, wells.collect())?;
            }
            // A proof for a piece is a proof for all later pieces.
            if !found.proven {
                break;
            }
            best.proven_from = Some(piece);
        }
        Ok(best)
    }

    /// Plays a game by the exact rules, and takes it if it is better.
    fn take_better(&self, best: &mut BestEnd, mut wells: Vec<Well>) -> Result<(), EndgameError> {
        bring_to_end(self.emulator, &mut wells)?;
        let Ok(keys) = self.keys(&wells) else {
            best.changed = true;
            return Ok(());
        };
        let (geometry, rules) = (self.emulator.geometry(), self.emulator.rules());
        let score = play(geometry, rules, Enemy::Hatetris, &keys).score;
        if score > best.score {
            (best.score, best.keys) = (score, keys);
        }
        Ok(())
    }

    fn keys(&self, wells: &[Well]) -> Result<Vec<Key>, PathError> {
        let (geometry, rules) = (self.emulator.geometry(), self.emulator.rules());
        replay_of_wells(geometry, rules, Enemy::Hatetris, wells, true)
    }
}
