//! A search that stores its journal and its result in a folder.

use crate::journal::{Journal, Measured};
use crate::parameter::Parameter;
use crate::search::{Evaluation, SearchError, Settings, search};
use hatebeam_files::write_whole;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the journal in the folder.
const JOURNAL: &str = "journal.jsonl";
/// Name of the file with the best weights.
const WEIGHTS: &str = "weights.toml";

/// The weights to tune, and the function that measures their value.
pub trait Objective: Sync {
    /// Returns the weights to tune.
    fn parameters(&self) -> &[Parameter];

    /// Returns the settings on which the values depend. A journal is used only if its settings are equal, so that
    /// values from different measurements are never mixed.
    fn description(&self) -> Value;

    /// Returns whether each round is another series of games, so that measuring again makes a value more accurate. If
    /// not, only round 0 is measured.
    fn has_rounds(&self) -> bool;

    /// Measures the value of the given weights, or returns `None` to interrupt the search. The result depends only on
    /// the weights and the round. The games of a round are the same for all weights.
    fn measure(&self, weights: &[f64], round: usize) -> Option<Measured>;

    /// Returns the contents of `weights.toml` for the best weights.
    fn weights_file(&self, best: &Evaluation) -> String;
}

/// Searches for the best weights and stores them in a folder, which is created if it does not exist. The file
/// `journal.jsonl` contains all measured values, so an interrupted search can resume. The file `weights.toml` contains
/// the best weights. Successive searches with different methods can use the same folder.
///
/// Returns the best weights and the path of their file.
///
/// # Errors
/// Returns a [`SearchError`] if the journal cannot be opened, [`search`] ends early, or a file cannot be written.
pub fn tune(
    folder: &Path,
    objective: &dyn Objective,
    settings: &Settings,
    on_value: &(dyn Fn(&Evaluation) + Sync),
) -> Result<(Evaluation, PathBuf), SearchError> {
    let file = folder.join(WEIGHTS);
    let failed = |error| SearchError::File(folder.to_owned(), error);
    fs::create_dir_all(folder).map_err(failed)?;
    let parameters = objective.parameters();
    let journal = Journal::open(&folder.join(JOURNAL), parameters, objective.description())?;
    let measure = |weights: &[f64], round: usize| objective.measure(weights, round);
    let has_rounds = objective.has_rounds();
    let outcome = search(
        parameters, settings, journal, has_rounds, &measure, on_value,
    );
    if let Some(best) = &outcome.best {
        write_whole(&file, objective.weights_file(best).as_bytes())
            .map_err(|error| SearchError::File(file.clone(), error))?;
    }
    Ok((outcome.into_best()?, file))
}
