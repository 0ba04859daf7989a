//! Search for better ends of games. An end of a game consists of all pieces from a given piece to the last one. A better
//! end clears more rows.

use crate::read_back::{GameError, bring_to_end};
use hatebeam_game::{Emulator, Enemy, Key, PathError, Record, Well, play, replay_of_wells};
use hatebeam_search::endgame::{Endgame, EndgameLimits};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use thiserror::Error;

/// The reason why a search for a better end failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EndgameError {
    /// The search found wells, but the game through them cannot be brought to its end.
    #[error(transparent)]
    Game(#[from] GameError),
    /// HATETRIS gives a different piece if a well is repeated. The search does not apply this rule, so it may find a
    /// game that is not valid.
    #[error("the best game is not valid: HATETRIS gives a different piece when a well is repeated")]
    Changed(#[source] PathError),
    /// The game is not over.
    #[error("the replay is not a finished game against HATETRIS: it ends with piece {0} falling")]
    NotOver(usize),
    /// The game does not have a piece with this number.
    #[error("there is no piece {piece}: the replay has pieces 1 to {pieces}")]
    NoPiece {
        /// The requested number, counted from 1.
        piece: usize,
        /// Number of pieces in the game.
        pieces: usize,
    },
}

/// A search for better ends of games.
pub struct EndSearch<'a> {
    /// The emulator of the game's geometry and rules.
    pub emulator: &'a Emulator,
    /// The endgame search. It keeps its transposition table, which speeds up later searches.
    pub endgame: Endgame,
    /// Stops the search when set to true.
    pub cancel: &'a AtomicBool,
    /// Maximum number of wells to expand in all searches together.
    pub nodes: Option<u64>,
    /// Time at which the search stops.
    pub deadline: Option<Instant>,
}

/// A game with the best end that was found.
#[derive(Clone, Debug)]
pub struct BestEnd {
    /// Number of rows cleared.
    pub score: u32,
    /// Keys of the game.
    pub keys: Vec<Key>,
    /// Number of the earliest piece that the search tried to replace. The game's first piece has number 1.
    pub from: usize,
    /// Number of the earliest piece from which the end is proven to be the best, or `None` if there is no proof.
    pub proven_from: Option<usize>,
    /// Whether a better game was rejected because HATETRIS changes one of its pieces.
    pub changed: bool,
}

impl EndSearch<'_> {
    fn limits(&self) -> EndgameLimits {
        let used = self.endgame.nodes();
        EndgameLimits {
            nodes: self.nodes.map(|nodes| nodes.saturating_sub(used)),
            deadline: self.deadline,
        }
    }

    /// Searches for the best game that starts in `well`. The piece that is placed in `well` has number 1.
    ///
    /// # Errors
    /// Returns [`EndgameError::Game`] if the game cannot be brought to its end, and [`EndgameError::Changed`]
    /// if HATETRIS changes one of its pieces.
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

    /// Searches for the best end of the finished game `record`, whose keys are `keys`.
    ///
    /// If `from_piece` is given, replaces only that piece and the pieces after it. Otherwise, starts with the
    /// last piece and moves back one piece at a time. The search stops when a limit is reached or a piece cannot
    /// be searched completely. Before each piece, calls `continues` with the piece number and the best score so
    /// far. A return value of `false` stops the search.
    ///
    /// # Errors
    /// Returns [`EndgameError::NotOver`] if the game is not finished, [`EndgameError::NoPiece`] if it has no
    /// piece `from_piece`, and [`EndgameError::Game`] if a found game cannot be brought to its end.
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
            // The search for an earlier piece includes this search, so it would be incomplete too.
            if !found.proven {
                break;
            }
            best.proven_from = Some(piece);
        }
        Ok(best)
    }

    /// Plays a game by the exact rules, and stores it in `best` if it clears more rows. If HATETRIS changes
    /// one of its pieces, only sets `best.changed`.
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
