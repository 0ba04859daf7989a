//! The best game of a run, read back from the object store, and the files that are left there of it.

use hatebeam_objects::Objects;
use hatebeam_report::{Film, Format, date, known_stem, stem};
use hatebeam_runs::{Archive, GameResult, Manifest, ManifestError};
use hatebeam_runs::{BestGame, GameError, ShowError, best_game, game_through};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use thiserror::Error;

/// Why no game is read back.
#[derive(Debug, Error)]
pub(crate) enum ReadError {
    /// The object store, or the manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The wells do not lead to one.
    #[error(transparent)]
    Game(#[from] GameError),
    /// It cannot be shown.
    #[error(transparent)]
    Show(#[from] ShowError),
    /// The exact rules say otherwise: a fault of this program.
    #[error("the game has {expected} lines, and {found} when it is played from its keys")]
    Score {
        /// As it was read back.
        expected: u32,
        /// As it was played.
        found: u32,
    },
    /// The thread that read it ended before.
    #[error("reading it was broken off: {0}")]
    BrokenOff(String),
}

impl ReadError {
    /// In words, with what caused it.
    pub(crate) fn whole(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        text
    }
}

/// A game that was read back, and played from its keys.
pub(crate) struct ReadBack {
    pub(crate) game: BestGame,
    pub(crate) film: Film,
    /// Seconds that took.
    pub(crate) seconds: f64,
    /// Tables that were fetched for it, and their bytes.
    pub(crate) fetched: (usize, u64),
}

/// Reads a run's best game back, or the one through the best well of a depth; on a thread of its own, as
/// that takes look-ups without number.
pub(crate) async fn read_back(
    objects: &Objects,
    manifest: &Manifest,
    scratch: &Path,
    depth: Option<u32>,
) -> Result<ReadBack, ReadError> {
    let (objects, manifest, scratch) = (objects.clone(), manifest.clone(), scratch.to_owned());
    let runtime = tokio::runtime::Handle::current();
    let reading = tokio::task::spawn_blocking(move || {
        let _guard = runtime.enter();
        let started = Instant::now();
        let spec = manifest.spec.clone();
        let archive = Archive::open(&objects, manifest, &scratch)?;
        let game = match depth {
            None => best_game(&archive)?,
            Some(depth) => game_through(&archive, depth)?,
        };
        let film = spec.film(&game.keys)?;
        if film.score != game.score {
            let (expected, found) = (game.score, film.score);
            return Err(ReadError::Score { expected, found });
        }
        Ok(ReadBack {
            fetched: archive.fetched(),
            seconds: started.elapsed().as_secs_f64(),
            game,
            film,
        })
    });
    let read = reading.await;
    read.map_err(|error| ReadError::BrokenOff(error.to_string()))?
}

/// Puts the files of a run's best game into the object store; what the run came to. The replay must be
/// there; whatever else cannot be put is only missed.
pub(crate) async fn leave(
    objects: &Objects,
    manifest: &Manifest,
    read: ReadBack,
    now: SystemTime,
) -> Result<GameResult, ManifestError> {
    let prefix = manifest.prefix();
    let width = manifest.spec.width;
    let there = objects.list(&format!("{prefix}/replays")).await;
    let there = there.unwrap_or_else(|error| {
        tracing::warn!(%error, "whether there is a replay already is not known");
        Vec::new()
    });
    let names = there
        .iter()
        .filter_map(|entry| entry.key.rsplit('/').next());
    let stem =
        known_stem(&read.film, width, names).unwrap_or_else(|| stem(&read.film, width, &date(now)));
    let facts = manifest.facts()?;
    let ReadBack { film, game, .. } = read;
    let replay = film.base2048.clone();
    let texts = tokio::task::spawn_blocking(move || {
        Format::ALL.map(|format| (format, format.render(&film, &facts)))
    });
    let texts = texts
        .await
        .map_err(|error| ManifestError::Scratch(std::io::Error::other(error)))?;
    let mut files = Vec::new();
    for (format, text) in texts {
        let key = format!("replays/{stem}.{}", format.extension());
        match objects.put(&format!("{prefix}/{key}"), text.into()).await {
            Ok(()) => files.push(key),
            Err(error) if format != Format::Base2048 => {
                tracing::warn!(key, %error, "a file of the best game is not left");
            }
            Err(error) => return Err(error.into()),
        }
    }
    let since = now.duration_since(UNIX_EPOCH);
    Ok(GameResult {
        lines: game.score,
        pieces: game.wells.len() as u32,
        replay,
        lookups: game.lookups,
        seconds: read.seconds,
        depth: game.depth,
        ended_ms: since.map_or(0, |since| since.as_millis() as u64),
        files,
    })
}
