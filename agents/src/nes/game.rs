//! Games of Nintendo Tetris and their results.

use super::{Search, View};
use crate::{GameRecord, parallel::play_while};
use hatebeam_tetris::Piece;
use hatebeam_tetris::nes::{Board, Placement, Rows, Score, Transitions};

/// Board, start level, end, gravity and piece probabilities of a game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GameRules {
    /// Rule set for the number of rows on the board.
    pub rows: Rows,
    /// Level at the start of the game.
    pub start_level: u32,
    /// Number of cleared rows after which the game stops.
    pub stop_lines: u32,
    /// Whether pieces fall at the speed of the level. See [`Board::with_gravity`].
    pub gravity: bool,
    /// Probabilities with which searches expect unknown pieces.
    pub transitions: &'static Transitions,
}

impl GameRules {
    /// Rules of the games in the article that published the searches: 20 rows, start at level 19, stop after 230
    /// cleared rows (level 29), no gravity.
    pub const ARTICLE: GameRules = GameRules {
        rows: Rows::Twenty,
        start_level: 19,
        stop_lines: 230,
        gravity: false,
        transitions: Transitions::ARTICLE,
    };
}

/// Result of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameResult {
    /// Score, rows cleared and level.
    pub score: Score,
    /// Number of pieces placed.
    pub moves: u32,
    /// Whether the game cleared at least [`GameRules::stop_lines`] rows. If not, a piece could not spawn, or no pieces
    /// were left.
    pub complete: bool,
}

impl From<GameResult> for GameRecord {
    fn from(result: GameResult) -> GameRecord {
        GameRecord {
            score: u64::from(result.score.points),
            lines: u64::from(result.score.lines),
            pieces: u64::from(result.moves),
            is_complete: result.complete,
        }
    }
}

/// Plays a game with a list of pieces. The last piece is only a preview and is never placed.
pub fn play(search: &mut dyn Search, pieces: &[Piece], rules: &GameRules) -> GameResult {
    let mut play = Play::new(rules);
    for pair in pieces.windows(2) {
        if play.step(search, pair[0], pair[1]).is_none() {
            break;
        }
    }
    play.result
}

/// A game in progress.
#[derive(Clone, Debug)]
pub struct Play {
    board: Board,
    rules: GameRules,
    result: GameResult,
}

impl Play {
    /// Starts a game on an empty board.
    pub fn new(rules: &GameRules) -> Play {
        Play {
            board: Board::empty(rules.rows),
            rules: *rules,
            result: GameResult {
                score: Score::new(rules.start_level),
                moves: 0,
                complete: false,
            },
        }
    }

    /// Lets the search place a piece. Returns its placement, or `None` if the game is complete or the piece cannot spawn.
    pub fn step(
        &mut self,
        search: &mut dyn Search,
        current: Piece,
        next: Piece,
    ) -> Option<Placement> {
        if self.result.complete || !self.board.spawns(current) {
            return None;
        }
        if self.rules.gravity {
            self.board = self.board.with_gravity(self.result.score.level);
        }
        let view = View {
            board: self.board,
            current,
            next,
            transitions: self.rules.transitions,
        };
        let placement = search.choose(&view);
        let locked = self.board.lock(current, placement);
        self.board = locked.board;
        let result = &mut self.result;
        result.score.add(locked.lines);
        result.moves += 1;
        result.complete = result.score.lines >= self.rules.stop_lines;
        Some(placement)
    }

    /// Returns the board after the last move.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Returns the result so far.
    pub fn result(&self) -> GameResult {
        self.result
    }
}

/// Plays a game for each list of pieces on `threads` threads, and calls `on_game` after each game. If it returns
/// `false`, no other game begins. Returns the results in the order of the lists.
pub fn play_sets<S: Search>(
    sets: &[Vec<Piece>],
    threads: usize,
    rules: &GameRules,
    search: impl Fn() -> S + Sync,
    on_game: impl Fn() -> bool + Sync,
) -> Vec<GameResult> {
    let play = |search: &mut S, number: usize| play(search, &sets[number], rules);
    play_while(sets.len(), threads, search, play, on_game)
}
