//! Data types of beam-search runs, and the search of a run on one machine.
//!
//! This crate contains the [specification](RunSpec), [manifest](Manifest), records, limits and results of a
//! run. [`Run`] searches a run depth by depth on one machine. [`best_game`] finds the best game of a run with
//! lookups in the run's stored tables.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(feature = "objects")]
mod archive;
mod end;
mod endgame;
#[cfg(feature = "objects")]
mod error;
mod game_result;
#[cfg(feature = "objects")]
mod garbage;
#[cfg(feature = "objects")]
mod lease;
mod limits;
mod local;
#[cfg(feature = "objects")]
mod manifest;
#[cfg(feature = "objects")]
mod memory;
mod names;
mod needs;
#[cfg(feature = "objects")]
mod networks;
mod past;
mod progress;
mod read_back;
mod record;
mod retention;
#[cfg(feature = "objects")]
mod scratch;
mod show;
mod spec;
#[cfg(feature = "objects")]
mod stored_run;
mod summary;
#[cfg(feature = "objects")]
mod table;
#[cfg(feature = "objects")]
mod versioned;
mod weights;

#[cfg(feature = "objects")]
pub use archive::{
    Archive, ArchiveTables, Fetched, FrontierAt, FrontierGames, ReadBack, ReadError, check_parent,
    read_game, read_games,
};
pub use end::{EndReason, RunState, end_in_words};
pub use endgame::{BestEnd, EndSearch, EndgameError};
#[cfg(feature = "objects")]
pub use error::ManifestError;
pub use game_result::GameResult;
#[cfg(feature = "objects")]
pub use garbage::{Garbage, collect_garbage, delete_tables, remove_run};
#[cfg(feature = "objects")]
pub use lease::{LEASE, coordinator_uri, lease_id};
pub use limits::{Limits, Usage, UsedShare, may_exceed_max_lines, seconds_of_hours};
pub use local::{
    ConcludeError, FindError, GroupLimits, Observer, REPLAYS, Run, RunError, RunHead, SaveError,
    SearchEnd, SearchResult, Settings, StateFolder, copy_replays, remove_run_folder, result_of,
};
#[cfg(feature = "objects")]
pub use manifest::{CommittedDepth, Manifest, RUNS};
#[cfg(feature = "objects")]
pub use memory::{MemoryArchive, decode_nodes, encode_nodes};
pub use names::{NameError, find_by_name};
pub use needs::{
    MEMORY_OF_LOOPS_PER_WELL, disk_needed, max_width, memory_needed, memory_of_loops,
    memory_of_quiescence,
};
#[cfg(feature = "objects")]
pub use networks::{fetch_network, store_network};
pub use past::GamesWork;
pub use progress::{ProgressEstimator, Projection, likely_depths};
pub use read_back::{
    BestGame, Contradiction, GameError, GameSearch, GameTo, ReadableRun, best_game, game_to,
    path_search, resume_path,
};
pub use record::{DepthWork, first_node, first_record, record_of};
pub use retention::{MAX_GAP, NotRetention, Retention};
#[cfg(feature = "objects")]
pub use scratch::ScratchTables;
pub use show::ShowError;
pub use spec::{LoopRule, MAX_WIDTH, RunSpec, SpecError, Start, StartingPosition, WellSpec};
#[cfg(feature = "objects")]
pub use stored_run::{FoundNode, VerifiedGame, verify_game};
pub use summary::{CellBalance, FrontierSummary, SummaryError};
#[cfg(feature = "objects")]
pub use table::{DepthTables, Table, TableList, check_tables, frontier_key};
#[cfg(feature = "objects")]
pub use versioned::{ListedRun, VersionedManifest, list_manifests};
pub use weights::{NamedWeights, WeightsError, WeightsFile};
