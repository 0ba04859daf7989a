//! Games that clients request: the best game of a run so far, or the game that leads through the best well of a depth
//! (the well with the most rows cleared).

use crate::read_back::GameReader;
use crate::request::RequestError;
use hatebeam_report::with_causes;
use hatebeam_runs::{Fetched, GameError, Manifest, ManifestError, ReadError};
use hatebeam_store::StoreError;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Maximum number of games that are read back at the same time. Reading a game back (finding its wells in the
/// run's tables) fetches tables from the object store, and occupies one core and some disk space.
const PARALLEL: usize = 2;
/// Maximum number of games that are being read back or wait for that.
const MAX_WAITING: usize = 32;
/// Maximum number of cached games. A game takes a few kilobytes.
const CACHE: usize = 256;
/// Maximum time for which a request waits for a game. Reading back continues after this time, so a repeated request
/// can get the game from the cache.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A game that was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Game {
    /// The replay, encoded in Base2048.
    pub replay: String,
    /// Number of rows cleared, which is the game's score.
    pub lines: u32,
    /// Number of pieces.
    pub pieces: u32,
    /// The depth whose best well the game leads through.
    pub depth: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GameKey {
    run: String,
    /// The requested depth; 0 for the best game so far.
    depth: u32,
    /// For a request for the best game, the last committed depth, since each new depth may contain a better game.
    /// Otherwise the requested depth.
    last: u32,
    /// Digest of this depth. It changes if the depth is searched again because a worker was faulty.
    digest: String,
}

/// A game reader with a cache of the games that were read most recently.
pub(crate) struct Games {
    reader: GameReader,
    /// The cached games, oldest first.
    cache: Mutex<VecDeque<(GameKey, Game)>>,
    reading: Semaphore,
    /// A permit is held until the game is read, even if the client no longer waits for it.
    waiting: Arc<Semaphore>,
}

impl Games {
    pub(crate) fn new(reader: GameReader) -> Arc<Games> {
        Arc::new(Games {
            reader,
            cache: Mutex::default(),
            reading: Semaphore::new(PARALLEL),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
        })
    }

    fn cache(&self) -> MutexGuard<'_, VecDeque<(GameKey, Game)>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: &GameKey) -> Option<Game> {
        let cache = self.cache();
        let (_, game) = cache.iter().find(|(known, _)| known == key)?;
        Some(game.clone())
    }

    fn keep(&self, key: GameKey, game: &Game) {
        let mut cache = self.cache();
        cache.retain(|(known, _)| *known != key);
        if cache.len() >= CACHE {
            cache.pop_front();
        }
        cache.push_back((key, game.clone()));
    }

    /// Returns the game that leads through the best well of a run's depth. For depth 0, returns the best game so far.
    pub(crate) async fn game(
        self: &Arc<Self>,
        manifest: Arc<Manifest>,
        depth: u32,
    ) -> Result<Game, RequestError> {
        let name = &manifest.name;
        let Some(last) = manifest.last().map(|last| last.record.depth) else {
            let reason = format!("run {name} has committed no depth yet: try again later");
            return Err(RequestError::State(reason));
        };
        if depth > last {
            let reason = format!("run {name} has reached depth {last} so far, not depth {depth}");
            return Err(RequestError::State(reason));
        }
        let is_best = depth == 0;
        if let Some(result) = manifest.result.as_ref().filter(|_| is_best) {
            return Ok(Game {
                replay: result.replay.clone(),
                lines: result.lines,
                pieces: result.pieces,
                depth: result.depth,
            });
        }
        let last = if is_best { last } else { depth };
        let digest = manifest.committed(last);
        let digest = digest.map_or_else(String::new, |depth| depth.record.digest.clone());
        let key = GameKey {
            run: name.clone(),
            depth,
            last,
            digest,
        };
        if let Some(game) = self.find(&key) {
            return Ok(game);
        }
        let waiting = Arc::clone(&self.waiting).try_acquire_owned();
        let waiting = waiting.map_err(|_| {
            let reason =
                format!("{MAX_WAITING} games are already being read back: try again later");
            RequestError::Busy(reason)
        })?;
        let games = Arc::clone(self);
        // Reading back runs in a separate task, so that it continues if the client disconnects or times out.
        let reading = self.reader.env.spawn(async move {
            let _waiting = waiting;
            games.read(manifest, key).await
        });
        match tokio::time::timeout(TIMEOUT, reading).await {
            Ok(Ok(game)) => game,
            Ok(Err(error)) => Err(RequestError::Internal(error.to_string())),
            Err(_) => Err(RequestError::Timeout(format!(
                "timed out after {} s while reading the game back: reading continues, try again later",
                TIMEOUT.as_secs()
            ))),
        }
    }

    async fn read(&self, manifest: Arc<Manifest>, key: GameKey) -> Result<Game, RequestError> {
        let turn = self.reading.acquire().await;
        let _turn = turn.map_err(|error| RequestError::Internal(error.to_string()))?;
        // Another client may have requested the same game while this request waited for its turn.
        if let Some(game) = self.find(&key) {
            return Ok(game);
        }
        let depth = (key.depth > 0).then_some(key.depth);
        let progress = Arc::default();
        let reading = self.reader.read(&manifest, depth, &progress);
        let read = reading.await.map_err(|error| describe(&manifest, &error))?;
        let Fetched { tables, bytes } = read.fetched;
        let depth = read.game.depth;
        tracing::info!(run = manifest.name, depth, tables, bytes, "read back game");
        let game = Game {
            replay: read.film.base2048,
            lines: read.game.score,
            pieces: read.game.wells.len() as u32,
            depth,
        };
        self.keep(key, &game);
        Ok(game)
    }
}

fn describe(manifest: &Manifest, error: &ReadError) -> RequestError {
    let reason = with_causes(error);
    if error.is_dropped() {
        let Manifest { name, keep, .. } = manifest;
        return RequestError::State(format!(
            "the game of run {name} cannot be read back, because --keep {keep} deletes tables that it needs: {reason}"
        ));
    }
    if error.is_transient() {
        return RequestError::Unavailable(reason);
    }
    match error {
        ReadError::Game(GameError::Store(StoreError::NoDepth { .. }) | GameError::Nothing) => {
            RequestError::State(reason)
        }
        // A retry may succeed: the tables may have been deleted while they were read, and this machine's disk may
        // have free space later.
        ReadError::Manifest(ManifestError::Object(_))
        | ReadError::Game(GameError::Store(
            StoreError::DamagedDepth { .. } | StoreError::Io { .. } | StoreError::DiskFull { .. },
        )) => RequestError::Unavailable(reason),
        _ => RequestError::Internal(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_back::TableSource;
    use crate::tests::support::{direct, manifest};
    use hatebeam_env::Env;
    use hatebeam_objects::Memory;
    use hatebeam_runs::{GameResult, Retention};

    fn games(dir: &tempfile::TempDir) -> Arc<Games> {
        Games::new(GameReader {
            env: Env::system(),
            objects: direct(&Memory::new()),
            tables: TableSource::scratch(dir.path().to_owned()),
        })
    }

    fn key(depth: u32, last: u32) -> GameKey {
        GameKey {
            run: "r".to_owned(),
            depth,
            last,
            digest: String::new(),
        }
    }

    #[tokio::test]
    async fn request_for_an_unavailable_game_fails_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let games = games(&dir);
        for (depths, depth, words) in [
            (0, 0, "has committed no depth yet"),
            (3, 9, "has reached depth 2"),
            (9, 7, "--keep last deletes"),
        ] {
            let mut manifest = manifest("r", depths);
            manifest.keep = Retention::Last;
            for depth in &mut manifest.depths {
                depth.record.kept = depth.record.depth + 1 == depths;
            }
            let error = games.game(Arc::new(manifest), depth).await.unwrap_err();
            assert!(matches!(error, RequestError::State(_)), "{error:?}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn abandoned_requests_count_until_their_games_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let games = games(&dir);
        let manifest = Arc::new(manifest("r", MAX_WAITING as u32 + 2));
        let turns = games.reading.acquire_many(PARALLEL as u32).await.unwrap();
        for depth in 1..=MAX_WAITING as u32 {
            let request = games.game(Arc::clone(&manifest), depth);
            let abandoned = tokio::time::timeout(Duration::from_secs(1), request).await;
            assert!(abandoned.is_err());
        }
        let depth = MAX_WAITING as u32 + 1;
        let refused = games.game(Arc::clone(&manifest), depth).await;
        assert!(matches!(refused, Err(RequestError::Busy(_))), "{refused:?}");
        drop(turns);
        let all = games.waiting.acquire_many(MAX_WAITING as u32).await;
        assert!(all.is_ok());
    }

    #[tokio::test]
    async fn full_cache_evicts_the_oldest_game() {
        let dir = tempfile::tempdir().unwrap();
        let games = games(&dir);
        let manifest = manifest("r", 1);
        let oldest = GameKey {
            digest: manifest.depths[0].record.digest.clone(),
            ..key(0, 0)
        };
        let first = games.game(Arc::new(manifest), 0).await.unwrap();
        assert!(first.pieces > 0 && !first.replay.is_empty());
        assert!(games.find(&oldest).is_some());
        for depth in 0..CACHE as u32 {
            games.keep(key(depth, 1), &first);
        }
        assert_eq!(games.cache().len(), CACHE);
        assert!(games.find(&oldest).is_none());
    }

    #[tokio::test]
    async fn best_game_of_an_ended_run_comes_from_its_manifest() {
        let dir = tempfile::tempdir().unwrap();
        let mut ended = manifest("r", 3);
        ended.result = Some(GameResult {
            lines: 9,
            pieces: 40,
            replay: "x".to_owned(),
            lookups: 1,
            seconds: 0.0,
            depth: 30,
            ended_ms: 0,
            files: Vec::new(),
            parted_at: None,
        });
        let expected = Game {
            replay: "x".to_owned(),
            lines: 9,
            pieces: 40,
            depth: 30,
        };
        assert_eq!(games(&dir).game(Arc::new(ended), 0).await, Ok(expected));
    }
}
