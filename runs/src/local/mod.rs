//! A run on one machine, stored in a folder.

mod commit;
mod conclude;
mod head;
mod past;
mod removal;
mod repair;
mod result;
mod rules;
mod search;
mod state_folder;

pub use commit::GroupLimits;
pub use conclude::{ConcludeError, SearchEnd};
pub use head::RunHead;
pub use removal::{copy_replays, remove_run_folder};
pub use result::{SaveError, SearchResult, result_of};
pub use search::{Observer, Settings};
pub use state_folder::{FindError, StateFolder};

use crate::read_back::ReadableRun;
use crate::record::first_node;
use crate::retention::Retention;
use crate::spec::{LoopRule, RunSpec, SpecError, StartingPosition};
use hatebeam_files::remove_temporaries;
use hatebeam_game::Emulator;
use hatebeam_search::{Evaluator, EvaluatorError, Frontier, ShardLayout};
use hatebeam_store::{RunStore, StoreError, StoredHead};
use rules::{RetentionChange, RetentionRules};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use thiserror::Error;

/// Name of the folder for the files of the best game, inside a run's folder.
pub const REPLAYS: &str = "replays";

/// Error that occurs when opening, searching or repairing a run on one machine.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The specification is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The weights of the evaluator are invalid, or its network is not available.
    #[error(transparent)]
    Evaluator(#[from] EvaluatorError),
    /// The store of the run failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder contains a run with another specification.
    #[error("the run in {dir} has another specification: {theirs} instead of {ours}")]
    OtherSpec {
        /// The folder.
        dir: String,
        /// Specification of the run in the folder.
        theirs: String,
        /// Requested specification.
        ours: String,
    },
    /// The specification of the run in the folder cannot be parsed.
    #[error("cannot read the specification of the run in {dir}")]
    UnreadableSpec {
        /// The folder.
        dir: String,
        /// The parse error.
        source: serde_json::Error,
    },
}

/// A run on one machine, open for searching or reading.
#[derive(Debug)]
pub struct Run {
    spec: RunSpec,
    start: StartingPosition,
    emulator: Emulator,
    /// The retention rule for a search, which stores it in `rules`.
    keep: Retention,
    rules: RetentionRules,
    store: RunStore,
}

/// The part of the folder's manifest that the store does not interpret.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PersistedSpec {
    search: RunSpec,
    /// The retention rule with which the run was created.
    keep: Retention,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keep_changes: Vec<RetentionChange>,
}

impl PersistedSpec {
    fn parse(dir: &Path, stored: &Value) -> Result<PersistedSpec, RunError> {
        serde_json::from_value(stored.clone()).map_err(|source| unreadable(dir, source))
    }

    fn to_value(&self, dir: &Path) -> Result<Value, RunError> {
        serde_json::to_value(self).map_err(|source| unreadable(dir, source))
    }

    fn rules(&self) -> RetentionRules {
        RetentionRules {
            created: self.keep,
            changes: self.keep_changes.clone(),
        }
    }
}

impl Run {
    /// Opens the run in `dir`, or creates one if the folder has no run. `keep` is a new retention rule, which a search
    /// stores with the run; the default for a new run is [`RunSpec::default_keep`].
    ///
    /// # Errors
    /// Returns [`RunError::Spec`] or [`RunError::Evaluator`] if the specification is invalid or its network is not
    /// available, [`RunError::OtherSpec`] or [`RunError::UnreadableSpec`] if the folder contains a run with another
    /// specification, [`SpecError::Keep`] if the retention rule drops tables that the search needs, and
    /// [`RunError::Store`] if the store cannot be opened.
    pub fn open_or_create(
        dir: &Path,
        spec: &RunSpec,
        keep: Option<Retention>,
    ) -> Result<Run, RunError> {
        spec.check()?;
        Evaluator::new(&spec.emulator()?, &spec.evaluator)?;
        let new_keep = keep.unwrap_or_else(|| spec.default_keep());
        spec.check_keep(new_keep)?;
        // The specification is compared first, because opening the store converts a run with an older format.
        match RunHead::read(dir) {
            Err(RunError::Store(StoreError::NoRun { .. })) => {
                let persisted = PersistedSpec {
                    search: spec.clone(),
                    keep: new_keep,
                    keep_changes: Vec::new(),
                };
                let persisted = persisted.to_value(dir)?;
                let store = RunStore::create(dir, spec.emulator()?.geometry(), &persisted)?;
                Run::of_store(store, keep)
            }
            Ok(head) if head.spec != *spec => Err(RunError::OtherSpec {
                dir: dir.display().to_string(),
                theirs: serde_json::to_string(&head.spec).unwrap_or_default(),
                ours: serde_json::to_string(spec).unwrap_or_default(),
            }),
            head => head.and_then(|_| Run::open(dir, keep)),
        }
    }

    /// Opens the run in `dir`. `keep` is a new retention rule, which a search stores with the run: it then applies to the
    /// last committed depth and all later ones. Does not check whether this program can search the run;
    /// [`RunHead::check_search`] does.
    ///
    /// # Errors
    /// Returns [`RunError::Store`] if the store cannot be opened, with [`StoreError::NoRun`] if the folder contains no run.
    /// Returns [`RunError::Spec`] or [`RunError::UnreadableSpec`] if the run's specification is invalid.
    pub fn open(dir: &Path, keep: Option<Retention>) -> Result<Run, RunError> {
        // A run that is refused is not opened, because opening the store converts a run with an older format.
        let persisted = PersistedSpec::parse(dir, &StoredHead::read(dir)?.spec)?;
        persisted.search.check()?;
        let keep_now = keep.unwrap_or_else(|| persisted.rules().current());
        persisted.search.check_keep(keep_now)?;
        let run = Run::of_store(RunStore::open(dir)?, keep)?;
        // The run is locked, so no other process is writing these files.
        let replays = dir.join(REPLAYS);
        if replays.is_dir()
            && let Err(error) = remove_temporaries(&replays)
        {
            tracing::warn!(path = %replays.display(), %error, "cannot remove unfinished files");
        }
        Ok(run)
    }

    /// Opens the run in `dir` for reading only. Another process may search the run at the same time.
    ///
    /// # Errors
    /// Returns the same errors as [`Run::open`].
    pub fn open_read_only(dir: &Path) -> Result<Run, RunError> {
        Run::of_store(RunStore::open_read_only(dir)?, None)
    }

    fn of_store(store: RunStore, keep: Option<Retention>) -> Result<Run, RunError> {
        let persisted = PersistedSpec::parse(store.dir(), store.spec())?;
        let rules = persisted.rules();
        let keep = keep.unwrap_or_else(|| rules.current());
        persisted.search.check_keep(keep)?;
        Ok(Run {
            start: persisted.search.check()?,
            emulator: persisted.search.emulator()?,
            spec: persisted.search,
            keep,
            rules,
            store,
        })
    }

    /// Returns the retention rule for new depths.
    pub fn keep(&self) -> Retention {
        self.keep
    }

    /// Returns the retention rule that was in force when the search committed a depth.
    pub fn keep_at(&self, depth: u32) -> Retention {
        self.rules.at(depth)
    }

    /// Stores the retention rule with the run. From now on, it applies to the last committed depth and all later ones.
    fn store_keep(&mut self) -> Result<(), RunError> {
        let Some(last) = self.store.depths().last() else {
            return Ok(());
        };
        let mut rules = self.rules.clone();
        rules.change(last.depth, self.keep);
        if rules == self.rules {
            return Ok(());
        }
        let persisted = PersistedSpec {
            search: self.spec.clone(),
            keep: rules.created,
            keep_changes: rules.changes.clone(),
        };
        let persisted = persisted.to_value(self.store.dir())?;
        self.store.set_spec(persisted)?;
        self.rules = rules;
        Ok(())
    }

    /// Returns the specification.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Returns the store of the run.
    pub fn store(&self) -> &RunStore {
        &self.store
    }

    /// Returns the maximum number of rows cleared by any game so far.
    pub fn best_lines(&self) -> u32 {
        let records = self.store.depths().iter();
        let lines = records.map(|record| record.best_lines).max();
        lines.map_or(0, u32::from)
    }

    /// Returns the layout that divides a frontier into shards.
    fn layout(&self) -> ShardLayout {
        ShardLayout::local(usize::try_from(self.spec.width).unwrap_or(usize::MAX))
    }

    /// Returns the frontier with which the search begins.
    fn first(&self) -> Result<Frontier, SpecError> {
        let node = first_node(&self.spec, &self.start)?;
        Ok(Frontier::new(self.start.depth(), [node], self.layout()))
    }
}

impl ReadableRun for Run {
    type Store = RunStore;

    fn store(&self) -> &RunStore {
        &self.store
    }

    fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    fn start(&self) -> &StartingPosition {
        &self.start
    }

    fn loops(&self) -> LoopRule {
        self.spec.loops
    }
}

fn unreadable(dir: &Path, source: serde_json::Error) -> RunError {
    RunError::UnreadableSpec {
        dir: dir.display().to_string(),
        source,
    }
}
