//! Agents for the game of dropped pieces, in which an agent chooses a rotation and a column, and the piece then falls
//! straight down.
//!
//! To add an agent, write a file with its type and its implementation of [`Agent`], and add an entry to [`AGENTS`].

mod beam;
mod choice;
mod controller;
mod expectimax;
mod game;
mod heuristic;
mod random;
mod rollout;
mod two_piece;

pub use beam::Beam;
pub use choice::Choice;
pub use controller::{BCTS, Controller, ControllerWeights, DELLACHERIE, DT_10, DT_20, EL_TETRIS};
pub use expectimax::Expectimax;
pub use game::{DropPlay, DropResult, DropRun, play_games};
pub use heuristic::{Heuristic, PAPER_WEIGHTS, PaperWeights};
pub use random::RandomAgent;
pub use rollout::Rollout;
pub use two_piece::TwoPiece;

use hatebeam_tetris::drop::{Action, BCTS_NAMES, DropGame, PAPER_NAMES};
use hatebeam_tetris::{Field, Rng};
use thiserror::Error;

/// Information on which an agent bases a move.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The field size and the piece set.
    pub game: &'a DropGame,
    /// Current field.
    pub field: Field,
    /// Index of the current piece.
    pub current: usize,
    /// Index of the next piece.
    pub next: usize,
    /// Indices of the pieces after the next one, as far as they are known.
    pub later: &'a [usize],
}

/// A player of the game of dropped pieces.
pub trait Agent {
    /// Chooses an action for the current piece.
    fn choose(&mut self, view: &View<'_>, rng: &mut Rng) -> Action;
}

/// An agent that [`find_agent`] can find by its name.
#[derive(Clone, Copy)]
pub struct Registered {
    /// Name of the agent.
    pub name: &'static str,
    /// One-line description of the agent.
    pub description: &'static str,
    /// Names of the agent's weights.
    pub weight_names: &'static [&'static str],
    /// The agent's published weights, in the order of their names.
    pub weights: &'static [f64],
    make: fn(&[f64]) -> Box<dyn Agent>,
}

impl Registered {
    /// Creates the agent with weights in the order of [`Registered::weight_names`].
    ///
    /// # Panics
    /// Panics if the number of weights is wrong.
    pub fn with_weights(&self, weights: &[f64]) -> Box<dyn Agent> {
        assert_eq!(
            weights.len(),
            self.weights.len(),
            "there must be one value for each weight"
        );
        (self.make)(weights)
    }
}

/// The agents that [`find_agent`] can find.
pub const AGENTS: &[Registered] = &[
    Registered {
        name: "random",
        description: "random rotation, then random column",
        weight_names: &[],
        weights: &[],
        make: |_| Box::new(RandomAgent),
    },
    paper(
        "heuristic",
        "weighted sum of Brenman's six features",
        |weights| Box::new(Heuristic::new(fixed(weights))),
    ),
    paper(
        "rollout",
        "heuristic plus the mean of 50 random futures",
        |weights| Box::new(Rollout::new(Heuristic::new(fixed(weights)), 50, 5, 0.8)),
    ),
    paper(
        "two-piece",
        "heuristic applied to the field after both known pieces",
        |weights| Box::new(TwoPiece::new(Heuristic::new(fixed(weights)), false)),
    ),
    paper(
        "two-piece-all",
        "two-piece plus the best third move, averaged over all pieces",
        |weights| Box::new(TwoPiece::new(Heuristic::new(fixed(weights)), true)),
    ),
    controller("dellacherie", "Dellacherie's controller", &DELLACHERIE),
    controller("el-tetris", "El-Tetris's controller", &EL_TETRIS),
    controller("bcts", "BCTS by Thiery and Scherrer", &BCTS),
    controller("dt-10", "DT-10 by Gabillon et al.", &DT_10),
    controller("dt-20", "DT-20 by Gabillon et al.", &DT_20),
    Registered {
        name: "expectimax",
        description: "BCTS applied to both known pieces and every possible third piece",
        weight_names: &BCTS_NAMES,
        weights: &BCTS,
        make: |weights| Box::new(Expectimax::new(fixed(weights), 6, 3)),
    },
    Registered {
        name: "beam",
        description: "beam search with BCTS over all known pieces",
        weight_names: &BCTS_NAMES,
        weights: &BCTS,
        make: |weights| Box::new(Beam::new(fixed(weights), 30)),
    },
];

/// Returns an agent with the weights of Brenman's heuristic.
const fn paper(
    name: &'static str,
    description: &'static str,
    make: fn(&[f64]) -> Box<dyn Agent>,
) -> Registered {
    Registered {
        name,
        description,
        // The last feature, a lost game, has no weight.
        weight_names: PAPER_NAMES.as_slice().split_at(PAPER_WEIGHTS.len()).0,
        weights: &PAPER_WEIGHTS,
        make,
    }
}

/// Returns a one-piece controller.
const fn controller(
    name: &'static str,
    description: &'static str,
    weights: &'static ControllerWeights,
) -> Registered {
    Registered {
        name,
        description,
        weight_names: &BCTS_NAMES,
        weights,
        make: |weights| Box::new(Controller::new(fixed(weights))),
    }
}

fn fixed<const N: usize>(weights: &[f64]) -> [f64; N] {
    weights
        .try_into()
        .expect("`with_weights` checks the number of weights")
}

/// Error for an unknown agent name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{name}` is not an agent: use one of {known}")]
pub struct UnknownAgent {
    name: String,
    known: String,
}

/// Returns the agent with the given name.
pub fn find_agent(name: &str) -> Result<&'static Registered, UnknownAgent> {
    AGENTS
        .iter()
        .find(|agent| agent.name == name)
        .ok_or_else(|| UnknownAgent {
            name: name.to_owned(),
            known: AGENTS
                .iter()
                .map(|agent| agent.name)
                .collect::<Vec<_>>()
                .join(", "),
        })
}
