//! Games of dropped pieces and their results.

use super::{Agent, View};
use crate::{GameRecord, play_numbered};
use hatebeam_tetris::Rng;
use hatebeam_tetris::drop::{DropGame, Generator, GeneratorKind};

/// Result of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropResult {
    /// Number of rows cleared.
    pub lines: u64,
    /// Number of pieces placed.
    pub pieces: u64,
    /// Whether the game was lost. If not, it stopped at the maximum number of pieces.
    pub lost: bool,
}

impl From<DropResult> for GameRecord {
    fn from(result: DropResult) -> GameRecord {
        GameRecord {
            score: result.lines,
            lines: result.lines,
            pieces: result.pieces,
            is_complete: !result.lost,
        }
    }
}

/// Settings of a series of games.
#[derive(Clone, Debug)]
pub struct DropRun {
    /// Size of the field, and set of pieces.
    pub game: DropGame,
    /// Kind of the piece generator.
    pub generator: GeneratorKind,
    /// Seed of all games. The seed and the number of a game select its random streams.
    pub seed: u64,
    /// Maximum number of pieces in a game.
    pub most_pieces: u64,
}

impl DropRun {
    /// Plays the game with the given number. The pieces depend on the game's settings and its number but not on the
    /// agent, so different agents can be compared on the same pieces. The agent's random numbers come from a separate
    /// stream.
    pub fn play(&self, agent: &mut dyn Agent, number: u64) -> DropResult {
        let pieces = self.game.set().len();
        let mut generator =
            Generator::new(self.generator, pieces, Rng::stream(self.seed, 2 * number));
        let mut rng = Rng::stream(self.seed, 2 * number + 1);
        let mut view = View {
            game: &self.game,
            field: self.game.empty(),
            current: generator.draw(),
            next: generator.draw(),
        };
        let mut result = DropResult {
            lines: 0,
            pieces: 0,
            lost: false,
        };
        while !result.lost && result.pieces < self.most_pieces {
            let action = agent.choose(&view, &mut rng);
            let drop = self.game.drop(&view.field, view.current, action);
            result.lines += u64::from(drop.lines);
            result.pieces += 1;
            result.lost = drop.lost;
            view.field = drop.field;
            view.current = view.next;
            view.next = generator.draw();
        }
        result
    }
}

/// Plays games 0 to `games − 1` of a series on `threads` threads, and calls `on_game` after each game. Returns the
/// results in the order of the game numbers.
pub fn play_games(
    run: &DropRun,
    agent: impl Fn() -> Box<dyn Agent> + Sync,
    games: usize,
    threads: usize,
    on_game: impl Fn() + Sync,
) -> Vec<DropResult> {
    play_numbered(games, threads, agent, |agent, number| {
        let result = run.play(agent.as_mut(), number as u64);
        on_game();
        result
    })
}
