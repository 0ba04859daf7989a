//! Agents for the game of dropped pieces.
//!
//! To add an agent, write a file with its type and its implementation of [`Agent`], and add an entry to [`AGENTS`].

mod choice;
mod controller;
mod expectimax;
mod game;
mod heuristic;
mod random;
mod rollout;
mod two_piece;

pub use choice::Choice;
pub use controller::{BCTS, Controller, ControllerWeights, DELLACHERIE, DT_10, DT_20, EL_TETRIS};
pub use expectimax::Expectimax;
pub use game::{DropPlay, DropResult, DropRun, play_games};
pub use heuristic::{Form, Heuristic, PAPER_WEIGHTS, PaperWeights};
pub use random::RandomAgent;
pub use rollout::Rollout;
pub use two_piece::TwoPiece;

use hatebeam_tetris::drop::{Action, DropGame};
use hatebeam_tetris::{Field, Rng};
use thiserror::Error;

/// The information that an agent has before a move.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Size of the field, and set of pieces.
    pub game: &'a DropGame,
    /// Current field.
    pub field: Field,
    /// Index of the piece to place.
    pub current: usize,
    /// Index of the piece after the current one.
    pub next: usize,
}

/// An agent that chooses actions.
pub trait Agent {
    /// Chooses an action for the current piece.
    fn choose(&mut self, view: &View<'_>, rng: &mut Rng) -> Action;
}

/// An agent that can be created by name.
#[derive(Clone, Copy)]
pub struct Registered {
    /// Name of the agent.
    pub name: &'static str,
    /// One-line description of the agent.
    pub description: &'static str,
    /// Function that creates the agent.
    pub make: fn() -> Box<dyn Agent>,
}

/// The agents that [`find_agent`] can find.
pub const AGENTS: &[Registered] = &[
    register(
        "random",
        "a uniform rotation, then a uniform column",
        || Box::new(RandomAgent),
    ),
    register(
        "heuristic",
        "greatest value of Brenman's six features",
        || Box::new(Heuristic::published()),
    ),
    register(
        "rollout",
        "heuristic plus the mean of 50 random futures",
        || Box::new(Rollout::published()),
    ),
    register("two-piece", "heuristic after both known pieces", || {
        Box::new(TwoPiece::published(false))
    }),
    register(
        "two-piece-all",
        "two-piece plus the mean over all third pieces",
        || Box::new(TwoPiece::published(true)),
    ),
    register("dellacherie", "Dellacherie's controller", || {
        Box::new(Controller::new(DELLACHERIE))
    }),
    register("el-tetris", "El-Tetris's controller", || {
        Box::new(Controller::new(EL_TETRIS))
    }),
    register("bcts", "BCTS by Thiery and Scherrer", || {
        Box::new(Controller::new(BCTS))
    }),
    register("dt-10", "DT-10 by Gabillon et al.", || {
        Box::new(Controller::new(DT_10))
    }),
    register("dt-20", "DT-20 by Gabillon et al.", || {
        Box::new(Controller::new(DT_20))
    }),
    register(
        "expectimax",
        "BCTS after both known pieces and every third piece",
        || Box::new(Expectimax::new(BCTS, 6, 3)),
    ),
];

const fn register(
    name: &'static str,
    description: &'static str,
    make: fn() -> Box<dyn Agent>,
) -> Registered {
    Registered {
        name,
        description,
        make,
    }
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
