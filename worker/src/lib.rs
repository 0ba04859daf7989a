//! A run of the beam search: what is searched ([`RunSpec`]), the search from depth to depth with every
//! frontier committed ([`Run`]), and the best game, read back and played through the exact rules
//! ([`best_game`]).
//!
//! Who asked, and how it looks to him, is not known here: an [`Observer`] is told.

#[cfg(feature = "cluster")]
pub mod cluster;
mod game;
mod mend;
mod pace;
mod part;
mod results;
mod run;
mod spec;

pub use game::{
    BestGame, GameError, GameTo, Searched, best_game, bring_to_end, game_through, game_to,
};
pub use pace::{Pace, Projection, likely_depths};
pub use part::Part;
pub use results::ShowError;
pub use run::{End, Keep, MAX_GAP, Observer, Run, RunError, Settings};
pub use spec::{MAX_WIDTH, RunSpec, SpecError, Springboard, Start, WellSpec};
