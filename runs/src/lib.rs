//! A run of the beam search as data: its [specification](RunSpec), [manifest](Manifest), records, limits and
//! results; the search from depth to depth on one machine ([`Run`]); and reading its best game back
//! ([`best_game`]).

#[cfg(feature = "objects")]
mod archive;
#[cfg(feature = "objects")]
mod garbage;
#[cfg(feature = "objects")]
mod manifest;
mod progress;
mod read_back;
mod repair;
mod results;
mod run;
mod spec;
mod summary;

#[cfg(feature = "objects")]
pub use archive::Archive;
#[cfg(feature = "objects")]
pub use garbage::collect_garbage;
#[cfg(feature = "objects")]
pub use manifest::{
    Depth, Expected, Manifest, ManifestError, Outcome, RUNS, State, Table, VersionedManifest,
    first_node, first_record, list_manifests,
};
pub use progress::{ProgressEstimator, Projection, likely_depths};
pub use read_back::{
    BestGame, GameError, GameTo, ReadableRun, best_game, bring_to_end, game_through, game_to,
};
pub use results::ShowError;
pub use run::{End, Keep, MAX_GAP, Observer, Run, RunError, Settings, record};
pub use spec::{MAX_WIDTH, RunSpec, SpecError, Start, StartingPosition, WellSpec};
pub use summary::FrontierSummary;
