//! Reading the best game of a run back from the object store, and storing its files there.

use hatebeam_env::Env;
use hatebeam_objects::{ObjectError, Objects};
use hatebeam_report::{FileSink, GameFile, GameFiles, date, save_files};
use hatebeam_runs::{
    Archive, GameResult, Manifest, ManifestError, ReadBack, ReadError, ScratchTables, SpecError,
    read_game,
};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Reads a run's best game back, or the game through the best well of a depth.
pub(crate) async fn read_back(
    objects: &Objects,
    manifest: &Manifest,
    scratch: &Path,
    depth: Option<u32>,
) -> Result<ReadBack, ReadError> {
    let env = Env::system();
    let geometry = manifest.spec.well.geometry().map_err(SpecError::from);
    let geometry = geometry.map_err(ManifestError::from)?;
    let scratch = scratch.to_owned();
    let tables = env.run_blocking(move || ScratchTables::create(&scratch, geometry));
    let tables = Box::new(tables.await??);
    let archive = Archive::open(objects, manifest.clone(), tables)?;
    read_game(&env, archive, depth).await
}

/// Returns the error with its causes.
pub(crate) fn with_causes(error: &ReadError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// A folder of an object store.
struct ObjectSink {
    objects: Objects,
    folder: String,
}

impl FileSink for ObjectSink {
    type Error = ObjectError;

    async fn save(&mut self, file: &GameFile) -> Result<(), ObjectError> {
        let key = format!("{}/{}", self.folder, file.name);
        self.objects.put(&key, file.text.clone().into()).await
    }

    fn skip(&mut self, file: &GameFile, error: ObjectError) {
        tracing::warn!(name = file.name, %error, "skipped a file of the best game");
    }
}

/// Stores the files of a run's best game, and returns the result of the run. The replay must be stored; other files that
/// cannot be stored are skipped.
pub(crate) async fn leave(
    objects: &Objects,
    manifest: &Manifest,
    read: ReadBack,
    now: SystemTime,
) -> Result<GameResult, ManifestError> {
    let folder = format!("{}/replays", manifest.prefix());
    let existing = objects.list(&folder).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot list the replays of an earlier end");
        Vec::new()
    });
    let names: Vec<String> = existing
        .iter()
        .filter_map(|entry| entry.key.rsplit('/').next().map(str::to_owned))
        .collect();
    let ReadBack { game, film, .. } = read;
    let replay = film.base2048.clone();
    let facts = manifest.facts()?;
    let env = Env::system();
    let rendering = env.run_blocking(move || {
        let existing = names.iter().map(String::as_str);
        GameFiles::new(film, facts, existing, &date(now)).all()
    });
    let files = rendering.await;
    let files =
        files.map_err(|error| ManifestError::Scratch(std::io::Error::other(error.to_string())))?;
    let objects = objects.clone();
    let stored = save_files(&files, &mut ObjectSink { objects, folder }).await?;
    let since = now.duration_since(UNIX_EPOCH);
    Ok(GameResult {
        lines: game.score,
        pieces: game.wells.len() as u32,
        replay,
        lookups: game.lookups,
        seconds: read.seconds,
        depth: game.depth,
        ended_ms: since.map_or(0, |since| since.as_millis() as u64),
        files: stored
            .iter()
            .map(|name| format!("replays/{name}"))
            .collect(),
    })
}
