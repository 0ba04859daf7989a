//! Games of dropped pieces and their results.

use super::{Agent, View};
use crate::{GameRecord, parallel::play_while};
use hatebeam_tetris::drop::{Action, DropGame, Generator, GeneratorKind};
use hatebeam_tetris::{Field, Rng};

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
    /// The field size and the piece set.
    pub game: DropGame,
    /// Kind of the piece generator.
    pub generator: GeneratorKind,
    /// Seed of the games. The seed and the number of a game select the game's random streams.
    pub seed: u64,
    /// Number of pieces after the current one that the agent knows. 0 counts as 1.
    pub previews: usize,
    /// Maximum number of pieces in a game.
    pub most_pieces: u64,
}

impl DropRun {
    /// Plays the game with the given number. The pieces depend on the settings and the number, but not on the agent, so
    /// that agents can be compared on the same pieces. The agent's random numbers come from a separate stream.
    pub fn play(&self, agent: &mut dyn Agent, number: u64) -> DropResult {
        let mut play = DropPlay::new(self, number);
        while play.step(&self.game, agent).is_some() {}
        play.result
    }
}

/// A game in progress.
#[derive(Clone, Debug)]
pub struct DropPlay {
    field: Field,
    current: usize,
    /// The known pieces after the current one; at least one.
    previews: Vec<usize>,
    generator: Generator,
    /// Source of the agent's random numbers.
    rng: Rng,
    most_pieces: u64,
    result: DropResult,
}

impl DropPlay {
    /// Starts the game with the given number. See [`DropRun::play`].
    pub fn new(run: &DropRun, number: u64) -> DropPlay {
        let pieces = run.game.set().len();
        let mut generator =
            Generator::new(run.generator, pieces, Rng::stream(run.seed, 2 * number));
        DropPlay {
            field: run.game.empty(),
            current: generator.draw(),
            previews: (0..run.previews.max(1)).map(|_| generator.draw()).collect(),
            generator,
            rng: Rng::stream(run.seed, 2 * number + 1),
            most_pieces: run.most_pieces,
            result: DropResult {
                lines: 0,
                pieces: 0,
                lost: false,
            },
        }
    }

    /// Lets the agent place the current piece. Returns the action, or `None` if the game is over. `game` must be
    /// [`DropRun::game`] of the run with which the game was started.
    pub fn step(&mut self, game: &DropGame, agent: &mut dyn Agent) -> Option<Action> {
        if self.result.lost || self.result.pieces >= self.most_pieces {
            return None;
        }
        let view = View {
            game,
            field: self.field,
            current: self.current,
            next: self.previews[0],
            later: &self.previews[1..],
        };
        let action = agent.choose(&view, &mut self.rng);
        let drop = game.drop(&self.field, self.current, action);
        self.result.lines += u64::from(drop.lines);
        self.result.pieces += 1;
        self.result.lost = drop.lost;
        self.field = drop.field;
        self.previews.push(self.generator.draw());
        self.current = self.previews.remove(0);
        Some(action)
    }

    /// Returns the field after the last move.
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Returns the index of the current piece.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Returns the index of the next piece.
    pub fn next(&self) -> usize {
        self.previews[0]
    }

    /// Returns the result so far.
    pub fn result(&self) -> DropResult {
        self.result
    }
}

/// Plays games 0 to `games − 1` of a series on `threads` threads, and calls `on_game` after each game. If it returns
/// `false`, no other game begins. Returns the results in the order of the game numbers.
pub fn play_games(
    run: &DropRun,
    agent: impl Fn() -> Box<dyn Agent> + Sync,
    games: usize,
    threads: usize,
    on_game: impl Fn() -> bool + Sync,
) -> Vec<DropResult> {
    let play = |agent: &mut Box<dyn Agent>, number| run.play(agent.as_mut(), number as u64);
    play_while(games, threads, agent, play, on_game)
}
