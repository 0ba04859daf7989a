//! The files that a run leaves of its best game: in the folder `replays` of its own, under the names that they
//! would have in an object store.

use crate::output;
use crate::runs::scores;
use anyhow::Context;
use hatebeam_report::{Film, Format, date, known_stem, stem};
use hatebeam_runs::{BestGame, EndReason, Run, end_in_words};
use hatebeam_store::write_whole;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The folder of such files in a run's own.
pub(crate) const REPLAYS: &str = "replays";

/// Writes the files of a run's best game, the replay first. The replay must be written; what else cannot be is
/// only missed.
pub(super) fn keep_game(
    run: &Run,
    name: &str,
    game: &BestGame,
    end: EndReason,
) -> anyhow::Result<Vec<PathBuf>> {
    let folder = run.store().dir().join(REPLAYS);
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot keep replays in {}", folder.display()))?;
    let film = run.spec().film(&game.keys)?;
    let depths = run.store().depths().to_vec();
    let mut facts = run.spec().facts(name, depths, end_in_words(Some(end)))?;
    facts.scores = scores(run);
    let stem = stem_in(&folder, &film, facts.width);
    let mut files = Vec::new();
    for format in Format::ALL {
        let path = folder.join(format!("{stem}.{}", format.extension()));
        match write_whole(&path, format.render(&film, &facts).as_bytes()) {
            Ok(()) => files.push(path),
            Err(error) if format != Format::Base2048 => {
                output::warn(format_args!(
                    "a file of the best game is not written: {error}"
                ));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(files)
}

/// What the files are called; as before, if they are there.
fn stem_in(folder: &Path, film: &Film, width: u64) -> String {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    known_stem(film, width, names.iter().map(String::as_str))
        .unwrap_or_else(|| stem(film, width, &date(SystemTime::now())))
}
