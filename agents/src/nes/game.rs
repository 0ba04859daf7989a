//! Games of Nintendo Tetris and their results.

use super::{Search, View};
use crate::{Statistics, play_numbered};
use hatebeam_tetris::Piece;
use hatebeam_tetris::nes::{ArticleSets, Board, MAXOUT, Placement, Rows, Score};

/// Start and end of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameRules {
    /// Rows of the board.
    pub rows: Rows,
    /// Level at the start.
    pub start_level: u32,
    /// The game stops at the first moment with at least this many lines.
    pub stop_lines: u32,
}

impl GameRules {
    /// The rules of the published results: 20 rows, start at level 19, stop at 230 lines (level 29).
    pub const ARTICLE: GameRules = GameRules {
        rows: Rows::Twenty,
        start_level: 19,
        stop_lines: 230,
    };
}

/// Result of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameResult {
    /// Score, lines and level.
    pub score: Score,
    /// Number of pieces placed.
    pub moves: u32,
    /// Whether the game reached its last line. If not, a piece could not spawn or the pieces ran out.
    pub complete: bool,
}

/// One move of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The piece.
    pub piece: Piece,
    /// Its placement.
    pub placement: Placement,
    /// Lines cleared.
    pub lines: u8,
    /// Points after the move.
    pub points: u32,
}

/// Plays a game on a list of pieces. The last piece is only a preview.
pub fn play(search: &mut dyn Search, pieces: &[Piece], rules: &GameRules) -> GameResult {
    play_traced(search, pieces, rules, |_| true)
}

/// Plays a game and calls `trace` after each move; the game stops when it returns `false`.
pub fn play_traced(
    search: &mut dyn Search,
    pieces: &[Piece],
    rules: &GameRules,
    mut trace: impl FnMut(&Move) -> bool,
) -> GameResult {
    let mut board = Board::empty(rules.rows);
    let mut result = GameResult {
        score: Score::new(rules.start_level),
        moves: 0,
        complete: false,
    };
    for pair in pieces.windows(2) {
        let view = View {
            board,
            current: pair[0],
            next: pair[1],
        };
        if !board.spawns(view.current) {
            break;
        }
        let placement = search.choose(&view);
        let locked = board.lock(view.current, placement);
        board = locked.board;
        result.score.add(locked.lines);
        result.moves += 1;
        result.complete = result.score.lines >= rules.stop_lines;
        let record = Move {
            piece: view.current,
            placement,
            lines: locked.lines,
            points: result.score.points,
        };
        if !trace(&record) || result.complete {
            break;
        }
    }
    result
}

/// Plays the published piece sets of a seed: `games` games, on `threads` threads.
pub fn article_games<S: Search>(
    seed: u32,
    games: usize,
    threads: usize,
    rules: &GameRules,
    search: impl Fn() -> S + Sync,
) -> Vec<GameResult> {
    let mut sets = ArticleSets::new(seed);
    let sets: Vec<Vec<Piece>> = (0..games).map(|_| sets.game()).collect();
    play_numbered(games, threads, search, |search, number| {
        play(search, &sets[number], rules)
    })
}

/// Summary of many games.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Statistics of the points.
    pub points: Statistics,
    /// Number of games with at least 999,999 points.
    pub maxouts: usize,
    /// Number of games that reached their last line.
    pub complete: usize,
    /// Number of pieces placed in all games.
    pub moves: u64,
}

impl Summary {
    /// Summarizes results. Returns `None` without any.
    pub fn of(results: &[GameResult]) -> Option<Summary> {
        Some(Summary {
            points: Statistics::of(results.iter().map(|result| f64::from(result.score.points)))?,
            maxouts: results
                .iter()
                .filter(|result| result.score.points >= MAXOUT)
                .count(),
            complete: results.iter().filter(|result| result.complete).count(),
            moves: results.iter().map(|result| u64::from(result.moves)).sum(),
        })
    }

    /// Share of games with at least 999,999 points.
    pub fn maxout_share(&self) -> f64 {
        self.maxouts as f64 / self.points.count as f64
    }
}
