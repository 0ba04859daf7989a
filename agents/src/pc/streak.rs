//! Games of consecutive perfect clears, piece by piece.

use super::{MAX_UNSEEN, PcError, PcFinder, PcPosition, best_move, cell_numbers};
use crate::{GameRecord, parallel::play_while};
use hatebeam_tetris::srs::{Bag, LowField, LowFieldError};
use hatebeam_tetris::{Piece, Rng};

/// A game in which the player clears the field again and again. Each perfect clear starts from an empty field, with the
/// pieces that the player has not placed yet.
#[derive(Clone, Debug)]
pub struct PcStreak {
    rows: usize,
    position: PcPosition,
    clears: usize,
    placed: usize,
}

impl PcStreak {
    /// Creates a game from the position before its first move. `rows` is the number of rows of every later clear.
    pub fn new(position: PcPosition, rows: usize) -> Result<PcStreak, PcError> {
        // Refuses a number of rows that whole pieces cannot fill.
        empty_field(rows)?;
        Ok(PcStreak {
            rows,
            position,
            clears: 0,
            placed: 0,
        })
    }

    /// Returns the current position.
    pub fn position(&self) -> &PcPosition {
        &self.position
    }

    /// Returns the number of perfect clears so far.
    pub fn clears(&self) -> usize {
        self.clears
    }

    /// Returns the number of pieces placed so far.
    pub fn placed(&self) -> usize {
        self.placed
    }

    /// Appends a piece that the player sees now.
    pub fn reveal(&mut self, piece: Piece) -> Result<(), PcError> {
        let position = &mut self.position;
        position.bag = position.bag.take(piece).ok_or(PcError::Impossible(piece))?;
        position.seen.push(piece);
        Ok(())
    }

    /// Places the first or the second seen piece, and returns whether the placement clears the field. The number of a
    /// cell is column + 10 · row.
    pub fn place(
        &mut self,
        piece: Piece,
        cells: &[usize],
        finder: &PcFinder,
    ) -> Result<bool, PcError> {
        let position = &mut self.position;
        let index = position.seen.iter().take(2).position(|&seen| seen == piece);
        let found = finder.placement(&position.field, piece, cells);
        let (Some(index), Some(placement)) = (index, found) else {
            return Err(PcError::Placement);
        };
        position.seen.remove(index);
        position.field = position.field.put(placement);
        self.placed += 1;
        let is_clear = position.field.is_clear();
        if is_clear {
            self.clears += 1;
            position.field = empty_field(self.rows).expect("`new` checks the number of rows");
        }
        position.pieces_in_all = position.field.pieces_left() + 1;
        Ok(is_clear)
    }
}

/// Returns an empty field of `rows` rows, or an error if whole pieces cannot fill it.
fn empty_field(rows: usize) -> Result<LowField, LowFieldError> {
    let empty = LowField::empty(rows)?;
    LowField::of(&empty.to_field(), rows)
}

/// Rules of games that the computer plays. The player has a hold slot, which is empty at first.
#[derive(Clone, Copy, Debug)]
pub struct StreakRules {
    field: LowField,
    previews: usize,
    clears: usize,
}

impl StreakRules {
    /// Creates the rules of games that end after `clears` perfect clears of `rows` rows. The player sees `previews`
    /// pieces after the current piece.
    pub fn new(rows: usize, previews: usize, clears: usize) -> Result<StreakRules, PcError> {
        let field = empty_field(rows)?;
        let least = field.pieces_left().saturating_sub(MAX_UNSEEN);
        if previews < least {
            return Err(PcError::Previews { previews, least });
        }
        Ok(StreakRules {
            field,
            previews,
            clears,
        })
    }

    /// Plays a game with pieces from bags. Every move has the best adaptive chance of the next perfect clear. The game
    /// also ends when the next perfect clear is impossible.
    pub fn play(&self, finder: &PcFinder, mut rng: Rng) -> Result<GameRecord, PcError> {
        let start = PcPosition {
            field: self.field,
            seen: Vec::new(),
            bag: Bag::FULL,
            pieces_in_all: self.field.pieces_left() + 1,
        };
        let mut game = PcStreak::new(start, self.field.rows())?;
        let mut is_holding = false;
        while game.clears < self.clears {
            while game.position.seen.len() < self.previews + 1 + usize::from(is_holding) {
                let mut bag = game.position.bag;
                game.reveal(bag.draw(&mut rng))?;
            }
            let best = best_move(&game.position, finder, 1, |_| ())?;
            let Some(best) = best.filter(|best| best.adaptive.count > 0) else {
                break;
            };
            // The player holds the first piece to place the second one.
            is_holding |= game.position.seen[0] != best.placement.piece;
            let cells = cell_numbers(best.placement);
            game.place(best.placement.piece, &cells, finder)?;
        }
        Ok(GameRecord {
            score: game.clears as u64,
            lines: (game.clears * self.field.rows()) as u64,
            pieces: game.placed as u64,
            is_complete: game.clears == self.clears,
        })
    }

    /// Plays the games 0 to `games − 1` of a seed on `threads` threads, and calls `on_game` after each game. If it
    /// returns `false`, no other game begins. Returns the results in the order of the game numbers.
    pub fn play_games(
        &self,
        finder: &PcFinder,
        seed: u64,
        games: usize,
        threads: usize,
        on_game: impl Fn() -> bool + Sync,
    ) -> Result<Vec<GameRecord>, PcError> {
        let play = |(): &mut (), number: usize| self.play(finder, Rng::stream(seed, number as u64));
        play_while(games, threads, || (), play, on_game)
            .into_iter()
            .collect()
    }
}
