//! Games that clients ask for while a run is searched, or of any of its depths.

use crate::results::{read_back, with_causes};
use hatebeam_objects::Objects;
use hatebeam_proto::v1;
use hatebeam_runs::{GameError, Manifest, ManifestError, ReadError};
use hatebeam_store::StoreError;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tonic::Status;

/// Games that are read back at a time: each fetches tables from the object store, and takes a core and disk.
const AT_A_TIME: usize = 2;
/// Clients that wait for one at most.
const WAITING: usize = 32;
/// Games that are kept: some kilobytes each.
const KEPT: usize = 256;
/// How long a client waits; the game is read on, so that it is there when he asks again.
const DEADLINE: Duration = Duration::from_secs(120);

/// Of which run and depth a game is, and for the best so far, as of which depth.
type Key = (String, u32, u32);

/// Reads games back, and keeps the last ones.
pub(crate) struct Games {
    objects: Objects,
    scratch: PathBuf,
    /// The last ones asked for, the newest last.
    kept: Mutex<VecDeque<(Key, v1::GameResponse)>>,
    reading: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Games {
    pub(crate) fn new(objects: Objects, scratch: PathBuf) -> Arc<Games> {
        Arc::new(Games {
            objects,
            scratch,
            kept: Mutex::default(),
            reading: Arc::new(Semaphore::new(AT_A_TIME)),
            waiting: Semaphore::new(WAITING),
        })
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<(Key, v1::GameResponse)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: &Key) -> Option<v1::GameResponse> {
        let kept = self.kept();
        let found = kept.iter().find(|(known, _)| known == key);
        found.map(|(_, game)| game.clone())
    }

    fn keep(&self, key: Key, game: &v1::GameResponse) {
        let mut kept = self.kept();
        kept.retain(|(known, _)| *known != key);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((key, game.clone()));
    }

    /// The game through the best well of a depth of a run; the best of all so far if it is 0.
    pub(crate) async fn game(
        self: &Arc<Self>,
        manifest: Arc<Manifest>,
        depth: u32,
    ) -> Result<v1::GameResponse, Status> {
        let Some(last) = manifest.last().map(|last| last.record.depth) else {
            return Err(Status::failed_precondition(format!(
                "run {} has no depth yet",
                manifest.name
            )));
        };
        if depth > last {
            return Err(Status::failed_precondition(format!(
                "run {} has come to depth {last}, and not to depth {depth} yet",
                manifest.name
            )));
        }
        let is_best = depth == 0;
        if let Some(result) = manifest.result.as_ref().filter(|_| is_best) {
            return Ok(v1::GameResponse {
                replay: result.replay.clone(),
                score: result.lines,
                pieces: result.pieces,
                depth: result.depth,
            });
        }
        // What a depth's best well is does not change; which depth has the best, with each that comes.
        let key = (manifest.name.clone(), depth, if is_best { last } else { 0 });
        if let Some(game) = self.find(&key) {
            return Ok(game);
        }
        let _waits = self.waiting.try_acquire().map_err(|_| {
            Status::resource_exhausted(format!("{WAITING} clients wait for games already"))
        })?;
        let games = Arc::clone(self);
        // On a task of its own: who goes away, or is too late, does not have it begun anew.
        let reading = tokio::spawn(async move { games.read(manifest, depth, key).await });
        match tokio::time::timeout(DEADLINE, reading).await {
            Ok(Ok(game)) => game,
            Ok(Err(error)) => Err(Status::internal(error.to_string())),
            Err(_) => Err(Status::deadline_exceeded(format!(
                "the game is not read back within {} s; ask again: it is worked on",
                DEADLINE.as_secs()
            ))),
        }
    }

    async fn read(
        &self,
        manifest: Arc<Manifest>,
        depth: u32,
        key: Key,
    ) -> Result<v1::GameResponse, Status> {
        let _turn = self
            .reading
            .acquire()
            .await
            .map_err(|error| Status::internal(error.to_string()))?;
        // Somebody else may have asked for the same, and waited less.
        if let Some(game) = self.find(&key) {
            return Ok(game);
        }
        let wanted = (depth > 0).then_some(depth);
        let read = read_back(&self.objects, &manifest, &self.scratch, wanted).await;
        let read = read.map_err(|error| status(&manifest, &error))?;
        tracing::info!(
            run = manifest.name,
            depth = read.game.depth,
            tables = read.fetched.tables,
            bytes = read.fetched.bytes,
            "a game is read back"
        );
        let game = v1::GameResponse {
            replay: read.film.base2048,
            score: read.game.score,
            pieces: read.game.wells.len() as u32,
            depth: read.game.depth,
        };
        self.keep(key, &game);
        Ok(game)
    }
}

/// What a client is told of a game that cannot be read back.
fn status(manifest: &Manifest, error: &ReadError) -> Status {
    let whole = with_causes(error);
    match error {
        error if error.is_dropped() => Status::failed_precondition(format!(
            "no game can be read back of run {}, as it keeps the wells of \"{}\": {whole}",
            manifest.name, manifest.keep
        )),
        ReadError::Game(GameError::Store(StoreError::NoDepth { .. }) | GameError::Nothing) => {
            Status::failed_precondition(whole)
        }
        // The object store is unavailable, or the tables were dropped in the meantime.
        ReadError::Game(GameError::Store(
            StoreError::DamagedDepth { .. } | StoreError::Io { .. } | StoreError::DiskFull { .. },
        ))
        | ReadError::Manifest(ManifestError::Object(_) | ManifestError::Scratch(_)) => {
            Status::unavailable(whole)
        }
        _ => Status::internal(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_objects::Options;
    use hatebeam_runs::{CommittedDepth, GameResult, first_record};
    use hatebeam_runs::{Retention, RunSpec, Start, WellSpec};
    use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Quiescence, Weights};
    use tonic::Code;

    fn manifest(depths: u32) -> Manifest {
        let spec = RunSpec {
            width: 10,
            well: WellSpec {
                columns: 10,
                rows: 16,
                clear_above_bar: false,
            },
            start: Start::Empty,
            evaluator: EvaluatorSpec {
                kind: EvaluatorKind::Plain,
                weights: Weights::default(),
                quiescence: Quiescence::Off,
            },
        };
        let mut manifest = Manifest::new("r".to_owned(), spec, Retention::Last, 1, 0);
        for depth in 0..depths {
            let mut record = first_record(&manifest.spec).unwrap();
            record.depth = depth;
            record.kept = depth + 1 == depths;
            manifest.depths.push(CommittedDepth {
                record,
                sent: 0,
                sent_bytes: 0,
                tables: None,
                cost: Default::default(),
            });
        }
        manifest
    }

    async fn games(dir: &tempfile::TempDir) -> Arc<Games> {
        let place = dir.path().join("store").display().to_string();
        let objects = Objects::open(&place, &Options::default()).await.unwrap();
        Games::new(objects, dir.path().to_owned())
    }

    #[tokio::test]
    async fn what_cannot_be_read_back_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let games = games(&dir).await;
        let ask = async |depths, depth| games.game(Arc::new(manifest(depths)), depth).await;
        for (depths, depth, words) in [
            (0, 0, "has no depth yet"),
            (3, 9, "has come to depth 2"),
            (9, 7, "keeps the wells of \"last\""),
        ] {
            let error = ask(depths, depth).await.unwrap_err();
            assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
            assert!(error.message().contains(words), "{error}");
        }
    }

    #[tokio::test]
    async fn games_are_kept_by_run_and_depth_and_not_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let games = games(&dir).await;
        let first = games.game(Arc::new(manifest(1)), 0).await.unwrap();
        assert!(first.pieces > 0 && !first.replay.is_empty());
        assert!(games.find(&("r".to_owned(), 0, 0)).is_some());
        for depth in 0..KEPT as u32 {
            games.keep(("r".to_owned(), depth, 1), &first);
        }
        assert_eq!(games.kept().len(), KEPT);
        assert!(games.find(&("r".to_owned(), 0, 0)).is_none());
        // Of a run that has ended it is known.
        let mut ended = manifest(3);
        ended.result = Some(GameResult {
            lines: 9,
            pieces: 40,
            replay: "x".to_owned(),
            lookups: 1,
            seconds: 0.0,
            depth: 30,
            ended_ms: 0,
            files: Vec::new(),
        });
        let told = games.game(Arc::new(ended), 0).await.unwrap();
        assert_eq!((told.score, told.depth, told.replay.as_str()), (9, 30, "x"));
    }
}
