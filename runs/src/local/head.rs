//! The specification and the result of a run, read without opening its store.

use super::result::parsed;
use super::{PersistedSpec, RunError, SearchResult};
use crate::spec::RunSpec;
use hatebeam_game::Emulator;
use hatebeam_search::{Evaluator, Fingerprint};
use hatebeam_store::StoredHead;
use std::path::Path;

/// The specification and the result of a run on one machine.
#[derive(Clone, Debug)]
pub struct RunHead {
    /// The specification.
    pub spec: RunSpec,
    /// The stored result, if the run has ended and this version can read the result. The search may have continued since.
    pub result: Option<SearchResult>,
}

impl RunHead {
    /// Reads the manifest of the run in `dir`. Changes nothing, whereas opening the run for writing converts a run with an
    /// older format.
    ///
    /// # Errors
    /// Returns [`RunError::Store`] if the manifest cannot be read, and [`RunError::UnreadableSpec`] if the specification in
    /// it cannot be parsed.
    pub fn read(dir: &Path) -> Result<RunHead, RunError> {
        let head = StoredHead::read(dir)?;
        Ok(RunHead {
            spec: PersistedSpec::parse(dir, &head.spec)?.search,
            result: head.result.as_ref().and_then(parsed),
        })
    }

    /// Checks that this program can search the run.
    ///
    /// # Errors
    /// Returns [`RunError::Spec`] if the run began with another search algorithm, and [`RunError::Evaluator`] if its
    /// evaluator is invalid or its network is not available.
    pub fn check_search(&self) -> Result<(), RunError> {
        check_search(&self.spec, &self.spec.emulator()?)
    }
}

/// Checks that this program has the search algorithm and the evaluator of a run.
pub(super) fn check_search(spec: &RunSpec, emulator: &Emulator) -> Result<(), RunError> {
    spec.check_search(&Fingerprint::current())?;
    Evaluator::new(emulator, &spec.evaluator)?;
    Ok(())
}
