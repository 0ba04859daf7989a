//! A run of the beam search as data: its [specification](RunSpec), [manifest](Manifest), records, limits and
//! results; the search from depth to depth on one machine ([`Run`]); and reading its best game back
//! ([`best_game`]).

#[cfg(feature = "objects")]
mod archive;
mod game;
#[cfg(feature = "objects")]
mod manifest;
mod mend;
mod pace;
mod part;
mod results;
mod run;
mod spec;
#[cfg(feature = "objects")]
mod sweep;

#[cfg(feature = "objects")]
pub use archive::Archive;
pub use game::{
    BestGame, GameError, GameTo, Searched, best_game, bring_to_end, game_through, game_to,
};
#[cfg(feature = "objects")]
pub use manifest::{
    Depth, Expected, Kept, Manifest, ManifestError, Outcome, RUNS, State, Table, first_node,
    first_record, list_manifests,
};
pub use pace::{Pace, Projection, likely_depths};
pub use part::Part;
pub use results::ShowError;
pub use run::{End, Keep, MAX_GAP, Observer, Run, RunError, Settings, record};
pub use spec::{MAX_WIDTH, RunSpec, SpecError, Springboard, Start, WellSpec};
#[cfg(feature = "objects")]
pub use sweep::sweep;
