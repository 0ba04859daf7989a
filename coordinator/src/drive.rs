//! A run, depth by depth.
//!
//! An epoch is a crew of workers with their shards. Within it each depth is expanded, the cut is found by
//! counting, the survivors are selected and their tables put into the object store, while the next depth is
//! expanded already. When all tables of a depth are there, the manifest names them: from then on the depth
//! counts. When a worker is lost, comes, or wants to go, the epoch ends, and the next one goes on from the
//! last depth that counts.

use crate::assign::{Seat, assign};
use crate::board::{Board, Wish};
use crate::hub::{Hub, Lost, Member};
use hatebeam_game::{Encoding, Geometry, encode};
use hatebeam_objects::{ObjectError, Objects};
use hatebeam_proto::v1;
use hatebeam_proto::v1::answer::What as Answer;
use hatebeam_proto::v1::order::What as Order;
use hatebeam_search::{
    CutSearch, DIGIT_VALUES, Node, NodeWell, Question, SIGMAS, Ties, WELL_BYTES, more_sigmas,
};
use hatebeam_store::DepthRecord;
use hatebeam_worker::cluster::{
    Archive, Depth, Kept, ManifestError, Outcome, State, Table, first_record,
};
use hatebeam_worker::{Part, SpecError, best_game};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::task::JoinSet;
use tracing::{Instrument, Span};

/// After the last worker has come, others are waited for so long.
const SETTLE: Duration = Duration::from_millis(400);
/// So often in a row may the same depth fail because a worker cannot do it, before the run fails.
const MAX_FAILURES: u32 = 5;
/// Between two tries of a depth that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// Why a run cannot go on here.
#[derive(Debug, Error)]
pub(crate) enum DriveError {
    /// The object store refuses, or another coordinator has the run.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Its specification cannot be searched.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Workers say again and again that they cannot.
    #[error("depth {depth} failed {MAX_FAILURES} times; worker {worker} says: {reason}")]
    Failing {
        depth: u32,
        worker: String,
        reason: String,
    },
    /// The best game cannot be read back.
    #[error("the best game cannot be read back: {0}")]
    Game(String),
}

impl DriveError {
    /// Whether another coordinator has the run.
    pub(crate) fn is_superseded(&self) -> bool {
        matches!(self, DriveError::Manifest(ManifestError::Superseded { .. }))
    }

    /// Whether the object store alone is what holds the run up, and only for now.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            DriveError::Manifest(ManifestError::Object(error)) => error.is_transient(),
            _ => false,
        }
    }
}

/// What an epoch came to.
enum EpochEnd {
    /// No well of the last depth has a child that is alive, or the depth to stop at is reached.
    Over,
    /// Somebody stopped it.
    Cancelled,
    /// Others have come, or somebody wants to go.
    NewCrew,
}

/// A run that is being searched.
pub(crate) struct Drive {
    pub(crate) hub: Arc<Hub>,
    pub(crate) board: Arc<Board>,
    pub(crate) objects: Objects,
    pub(crate) kept: Kept,
    pub(crate) min_workers: usize,
    pub(crate) scratch: PathBuf,
    /// The owner of each shard in the last epoch.
    owners: Vec<String>,
    /// Seconds of epochs before this one.
    worked: f64,
}

/// A depth that is being committed.
struct Pending {
    record: DepthRecord,
    sent: u64,
    sent_bytes: u64,
    tables: JoinSet<Result<Vec<v1::Table>, Lost>>,
    /// Its depth, as another may be under way while it is committed.
    span: Span,
}

impl Drive {
    pub(crate) fn new(
        (hub, board, objects): (Arc<Hub>, Arc<Board>, Objects),
        kept: Kept,
        min_workers: usize,
        scratch: PathBuf,
    ) -> Drive {
        let worked = kept.manifest.seconds;
        Drive {
            hub,
            board,
            objects,
            kept,
            min_workers,
            scratch,
            owners: Vec::new(),
            worked,
        }
    }

    fn name(&self) -> String {
        self.kept.manifest.name.clone()
    }

    /// Searches the run to its end.
    pub(crate) async fn run(&mut self) -> Result<(), DriveError> {
        if self.kept.manifest.depths.is_empty() {
            let record = first_record(&self.kept.manifest.spec)?;
            self.kept.manifest.depths.push(Depth {
                record,
                sent: 0,
                sent_bytes: 0,
                tables: None,
            });
        }
        self.kept.manifest.state = State::Running;
        self.kept.manifest.note = String::new();
        let mut failures = (0, 0);
        loop {
            let Some(crew) = self.crew().await else {
                return self.cancelled().await;
            };
            self.kept.manifest.epoch += 1;
            self.hub.metrics.all.epochs.add(1);
            self.save().await?;
            let epoch = self.kept.manifest.epoch;
            let span = tracing::info_span!("epoch", epoch);
            let ended = self.epoch(&crew, epoch).instrument(span).await;
            self.kept.manifest.seconds = self.worked;
            match ended {
                Ok(Ok(EpochEnd::Over)) => return self.finish().await,
                Ok(Ok(EpochEnd::Cancelled)) => {
                    self.halt(&crew, epoch).await;
                    return self.cancelled().await;
                }
                Ok(Ok(EpochEnd::NewCrew)) => {
                    tracing::info!(run = self.name(), epoch, "the crew changes");
                }
                Ok(Err(error)) => return Err(error),
                Err(lost) => {
                    let depth = self.depth() + 1;
                    let cause = if lost.is_gone { "lost" } else { "failed" };
                    self.hub.metrics.all.failures.add(cause, 1);
                    tracing::warn!(
                        run = self.name(),
                        depth,
                        worker = lost.worker,
                        reason = lost.reason,
                        "the depth is begun anew"
                    );
                    self.board
                        .note(&self.name(), format!("{}: {}", lost.worker, lost.reason));
                    if !lost.is_gone {
                        failures = match failures {
                            (of, count) if of == depth => (of, count + 1),
                            _ => (depth, 1),
                        };
                        if failures.1 >= MAX_FAILURES {
                            self.halt(&crew, epoch).await;
                            return Err(DriveError::Failing {
                                depth,
                                worker: lost.worker,
                                reason: lost.reason,
                            });
                        }
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
            self.hub.release(&[]);
        }
    }

    /// The last depth that counts.
    fn depth(&self) -> u32 {
        let last = self.kept.manifest.last();
        last.map_or(0, |last| last.record.depth)
    }

    async fn save(&mut self) -> Result<(), ManifestError> {
        self.kept.save().await?;
        self.hub.metrics.all.manifests.add(1);
        self.board.put(&self.kept.manifest);
        Ok(())
    }

    /// Waits until there are workers enough; none if the run is to be stopped.
    async fn crew(&self) -> Option<Vec<Member>> {
        let mut changes = self.hub.changes();
        let mut wishes = self.board.wishes();
        loop {
            changes.mark_unchanged();
            if self.board.wish(&self.name()) == Some(Wish::Cancel) {
                return None;
            }
            self.hub.release(&[]);
            let members = self.hub.members();
            if members.len() >= self.min_workers.max(1) {
                // They often come together.
                if tokio::time::timeout(SETTLE, changes.changed())
                    .await
                    .is_err()
                {
                    return Some(members);
                }
                continue;
            }
            self.board.note(
                &self.name(),
                format!(
                    "waiting for workers: {} of {}",
                    members.len(),
                    self.min_workers.max(1)
                ),
            );
            tokio::select! {
                _ = changes.changed() => {}
                _ = wishes.changed() => {}
            }
        }
    }

    /// Asks all of the crew the same, or nearly, and gives the answers in its order.
    async fn ask_all(
        &self,
        crew: &[Member],
        epoch: u64,
        order: impl Fn(usize) -> Order,
    ) -> Result<Vec<Answer>, Lost> {
        let mut asked = JoinSet::new();
        for (place, member) in crew.iter().enumerate() {
            let (hub, member, order) = (Arc::clone(&self.hub), member.clone(), order(place));
            asked.spawn(async move { (place, hub.ask(&member, epoch, order).await) });
        }
        let mut answers: Vec<Option<Answer>> = vec![None; crew.len()];
        let mut failed: Option<Lost> = None;
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((place, Ok(answer))) => answers[place] = Some(answer),
                Ok((_, Err(lost))) if lost.is_gone => return Err(lost),
                Ok((_, Err(lost))) => {
                    // That one cannot may be because another is gone: that will soon be known.
                    if failed.is_none() {
                        failed = Some(lost);
                        break;
                    }
                }
                Err(error) => return Err(strange("coordinator", &error)),
            }
        }
        match failed {
            Some(lost) => Err(lost),
            None => Ok(answers.into_iter().flatten().collect()),
        }
    }

    async fn halt(&self, crew: &[Member], epoch: u64) {
        // Whoever does not hear it hears of a later epoch, or of none.
        let _ = self
            .ask_all(crew, epoch, |_| Order::Halt(v1::Halt {}))
            .await;
    }

    async fn epoch(
        &mut self,
        crew: &[Member],
        epoch: u64,
    ) -> Result<Result<EpochEnd, DriveError>, Lost> {
        let manifest = &self.kept.manifest;
        let name = manifest.name.clone();
        let seats: Vec<Seat> = crew
            .iter()
            .map(|member| Seat {
                name: member.name.clone(),
                threads: member.threads,
            })
            .collect();
        let owners = assign(&self.owners, manifest.shards as usize, &seats);
        self.owners = owners
            .iter()
            .map(|&place| crew[place as usize].name.clone())
            .collect();
        let (Some(last), Ok(spec)) = (manifest.last(), serde_json::to_string(&manifest.spec))
        else {
            return Err(strange("coordinator", &"the manifest names no depth"));
        };
        let tables = match manifest.tables(&self.objects, last).await {
            Ok(tables) => tables,
            Err(error) => return Ok(Err(error.into())),
        };
        let mut depth = last.record.depth;
        let members: Vec<v1::Member> = crew
            .iter()
            .map(|member| v1::Member {
                name: member.name.clone(),
                address: member.address.clone(),
            })
            .collect();
        let prepare = |place: usize| {
            let mine = |table: &&Table| owners[table.shard as usize] as usize == place;
            Order::Prepare(v1::Prepare {
                run: name.clone(),
                spec: spec.clone(),
                depth,
                owners: owners.clone(),
                members: members.clone(),
                tables: tables
                    .iter()
                    .filter(mine)
                    .cloned()
                    .map(v1::Table::from)
                    .collect(),
            })
        };
        self.ask_all(crew, epoch, prepare).await?;
        self.board.note(&name, String::new());
        let wished = |drive: &Drive| drive.board.wish(&name) == Some(Wish::Cancel);
        let mut pending: Option<Pending> = None;
        let began = Instant::now();
        let worked = self.worked;
        loop {
            let is_enough = self.kept.manifest.max_depth.is_some_and(|max| depth >= max);
            let end = match () {
                () if wished(self) => Some(EpochEnd::Cancelled),
                () if is_enough => Some(EpochEnd::Over),
                () if !self.hub.is_crew(crew) => Some(EpochEnd::NewCrew),
                () => None,
            };
            if let Some(end) = end {
                if let Some(pending) = pending.take()
                    && let Err(error) = self.commit(crew, pending).await?
                {
                    return Ok(Err(error));
                }
                return Ok(Ok(end));
            }
            let started = Instant::now();
            depth += 1;
            let span = tracing::info_span!("depth", depth);
            let done = self.expand(crew, epoch, depth, &mut pending);
            let done = done.instrument(span.clone()).await?;
            self.worked = worked + began.elapsed().as_secs_f64();
            self.kept.manifest.seconds = self.worked;
            match done {
                Err(error) => return Ok(Err(error)),
                Ok(None) => return Ok(Ok(EpochEnd::Over)),
                Ok(Some(mut next)) => {
                    next.record.seconds = started.elapsed().as_secs_f64();
                    next.span = span;
                    pending = Some(next);
                }
            }
        }
    }

    /// Expands and selects a depth, after the one before was committed; none if nothing is alive.
    async fn expand(
        &mut self,
        crew: &[Member],
        epoch: u64,
        depth: u32,
        pending: &mut Option<Pending>,
    ) -> Result<Result<Option<Pending>, DriveError>, Lost> {
        let width = self.kept.manifest.division().width();
        let mut sigmas = SIGMAS;
        let hub = Arc::clone(&self.hub);
        let took =
            |phase: &str, since: Instant| hub.metrics.all.phases.observe(phase, since.elapsed());
        let (stats, cut, median) = loop {
            let began = Instant::now();
            let expand = v1::Expand { depth, sigmas };
            let answers = self.ask_all(crew, epoch, |_| Order::Expand(expand)).await?;
            let mut stats = v1::Expanded::default();
            for answer in answers {
                let Answer::Expanded(part) = answer else {
                    return Err(strange(
                        "a worker",
                        &"it gave another answer than asked for",
                    ));
                };
                stats.children += part.children;
                stats.sent += part.sent;
                stats.sent_bytes += part.sent_bytes;
            }
            took("expand", began);
            let began = Instant::now();
            let (cut, median) = self.cut(crew, epoch, depth, width).await?;
            let judge = v1::Judge {
                depth,
                cut: cut.rank,
                tied: matches!(cut.ties, Ties::First(_)),
            };
            let mut dropped = false;
            let mut tied = Vec::new();
            for answer in self.ask_all(crew, epoch, |_| Order::Judge(judge)).await? {
                let Answer::Judged(judged) = answer else {
                    return Err(strange(
                        "a worker",
                        &"it gave another answer than asked for",
                    ));
                };
                dropped |= judged.dropped;
                let wells = judged.tied.chunks_exact(WELL_BYTES);
                tied.extend(wells.filter_map(|well| well.try_into().ok().map(NodeWell)));
            }
            took("cut", began);
            if dropped {
                self.hub.metrics.all.repeats.add(1);
                tracing::info!(depth, "the tables were too small: the depth is done again");
                sigmas = more_sigmas(sigmas);
                continue;
            }
            let mut select = v1::Select {
                depth,
                cut: cut.rank,
                ties: Vec::new(),
                all_ties: true,
            };
            if let Ties::First(count) = cut.ties {
                tied.sort_unstable();
                tied.truncate(usize::try_from(count).unwrap_or(usize::MAX));
                select.all_ties = false;
                select.ties = tied.iter().flat_map(|well| well.0).collect();
            }
            break (stats, select, median);
        };
        if let Some(before) = pending.take()
            && let Err(error) = self.commit(crew, before).await?
        {
            return Ok(Err(error));
        }
        let began = Instant::now();
        let mut whole = Part::default();
        for answer in self
            .ask_all(crew, epoch, |_| Order::Select(cut.clone()))
            .await?
        {
            let Answer::Selected(part) = answer else {
                return Err(strange(
                    "a worker",
                    &"it gave another answer than asked for",
                ));
            };
            whole.join(&part_of(&part).map_err(|error| strange("a worker", &error))?);
        }
        took("select", began);
        if whole.count == 0 {
            return Ok(Ok(None));
        }
        let geometry: Geometry = match self.kept.manifest.spec.well.geometry() {
            Ok(geometry) => geometry,
            Err(error) => return Ok(Err(SpecError::from(error).into())),
        };
        let mut tables = JoinSet::new();
        for member in crew {
            let (hub, member) = (Arc::clone(&self.hub), member.clone());
            tables.spawn(async move {
                let order = Order::WaitCommit(v1::WaitCommit { depth });
                match hub.ask(&member, epoch, order).await? {
                    Answer::Committed(committed) => Ok(committed.tables),
                    _ => Err(strange(
                        &member.name,
                        &"it gave another answer than asked for",
                    )),
                }
            });
        }
        Ok(Ok(Some(Pending {
            record: whole.record(geometry, (depth, median), stats.children, 0.0),
            sent: stats.sent,
            sent_bytes: stats.sent_bytes,
            tables,
            span: Span::none(),
        })))
    }

    /// The cut, ties not yet settled, and the median of the scores of what survives it.
    async fn cut(
        &self,
        crew: &[Member],
        epoch: u64,
        depth: u32,
        width: usize,
    ) -> Result<(hatebeam_search::Cut, i32), Lost> {
        let mut search = CutSearch::new(width);
        let mut median: Option<CutSearch> = None;
        // The first question is the same for both; its answer tells how many there are.
        loop {
            let mut questions: Vec<Question> = Vec::new();
            questions.extend(search.question());
            let of_median = median.as_ref().and_then(CutSearch::question);
            questions.extend(of_median);
            if questions.is_empty() {
                break;
            }
            let prefixes: Vec<v1::Prefix> = questions
                .iter()
                .map(|question| v1::Prefix {
                    known: question.known,
                    prefix: question.prefix,
                })
                .collect();
            let count = v1::Count { depth, prefixes };
            let answers = self
                .ask_all(crew, epoch, |_| Order::Count(count.clone()))
                .await?;
            let mut sums = vec![vec![0u64; DIGIT_VALUES]; questions.len()];
            for answer in answers {
                let Answer::Counted(counted) = answer else {
                    return Err(strange(
                        "a worker",
                        &"it gave another answer than asked for",
                    ));
                };
                for (sum, histogram) in sums.iter_mut().zip(&counted.histograms) {
                    for (&digit, &count) in histogram.digits.iter().zip(&histogram.counts) {
                        if let Some(place) = sum.get_mut(digit as usize) {
                            *place = place.saturating_add(count);
                        }
                    }
                }
            }
            let mut sums = sums.into_iter();
            let is_first = median.is_none();
            if search.question().is_some()
                && let Some(sum) = sums.next()
            {
                if is_first {
                    let total = sum
                        .iter()
                        .fold(0u64, |all, &count| all.saturating_add(count));
                    let count = usize::try_from(total).unwrap_or(usize::MAX).min(width);
                    // The middle one of `count`, counted from the greatest.
                    let mut of_median = CutSearch::new((count - count / 2).max(1));
                    of_median.answer(&sum);
                    median = Some(of_median);
                }
                search.answer(&sum);
            }
            if let (Some(median), Some(_), Some(sum)) = (&mut median, of_median, sums.next()) {
                median.answer(&sum);
            }
        }
        let median = median.map_or(0, |median| median.cut().score());
        Ok((search.cut(), median))
    }

    /// Waits until all tables of a depth are in the object store, and has the manifest name them.
    async fn commit(
        &mut self,
        crew: &[Member],
        pending: Pending,
    ) -> Result<Result<(), DriveError>, Lost> {
        let span = pending.span.clone();
        self.commit_within(crew, pending).instrument(span).await
    }

    async fn commit_within(
        &mut self,
        crew: &[Member],
        mut pending: Pending,
    ) -> Result<Result<(), DriveError>, Lost> {
        let began = Instant::now();
        let mut tables: Vec<Table> = Vec::new();
        while let Some(done) = pending.tables.join_next().await {
            let done = done.map_err(|error| strange("coordinator", &error))??;
            tables.extend(done.into_iter().map(Table::from));
        }
        tables.sort_by_key(|table| table.shard);
        let count: u64 = tables.iter().map(|table| table.count).sum();
        if count != pending.record.count || tables.windows(2).any(|p| p[0].shard == p[1].shard) {
            return Err(strange("a worker", &"the tables are not what was selected"));
        }
        let mut record = pending.record;
        record.bytes = tables.iter().map(|table| table.bytes).sum();
        let (depth, digest) = (record.depth, record.digest.clone());
        let expected = match self.kept.put_tables(depth, &tables).await {
            Ok(expected) => expected,
            Err(error) => return Ok(Err(error.into())),
        };
        tracing::info!(
            run = self.name(),
            depth,
            wells = record.count,
            points = record.best_game_score,
            children = record.children,
            sent = pending.sent,
            seconds = record.seconds,
            bytes = record.bytes,
            workers = crew.len(),
            digest,
            "depth committed"
        );
        let (children, seconds) = (record.children, record.seconds);
        self.kept.manifest.depths.push(Depth {
            record,
            sent: pending.sent,
            sent_bytes: pending.sent_bytes,
            tables: Some(expected),
        });
        let dropped = self.drop_old(depth);
        if let Err(error) = self.save().await {
            return Ok(Err(error.into()));
        }
        let metrics = &self.hub.metrics;
        metrics.all.phases.observe("commit", began.elapsed());
        metrics.all.exchanged.add(pending.sent);
        metrics.all.exchanged_bytes.add(pending.sent_bytes);
        metrics.run.depths.add(1);
        metrics.run.children.add(children);
        metrics.run.depth_seconds.observe_seconds(seconds);
        // After the manifest says so: what is left over is in nobody's way.
        for depth in dropped {
            let prefix = format!("{}/frontier/{depth:05}", self.kept.manifest.prefix());
            if let Err(error) = self.objects.delete_prefix(&prefix).await {
                tracing::warn!(depth, %error, "tables that are not kept stay");
            }
        }
        Ok(Ok(()))
    }

    /// Takes note that tables are not kept any more, now that a later depth counts.
    fn drop_old(&mut self, depth: u32) -> Vec<u32> {
        let manifest = &mut self.kept.manifest;
        let keep = manifest.keep;
        let first = manifest
            .depths
            .first()
            .map_or(0, |first| first.record.depth);
        let mut dropped = Vec::new();
        for old in &mut manifest.depths {
            let of = old.record.depth;
            if of < depth && of > first && old.record.kept && !keep.keeps(of, first) {
                old.record.kept = false;
                old.record.bytes = 0;
                dropped.push(of);
            }
        }
        dropped
    }

    async fn cancelled(&mut self) -> Result<(), DriveError> {
        self.kept.manifest.state = State::Cancelled;
        self.save().await?;
        Ok(())
    }

    /// Reads the best game back, from the object store, and puts it there.
    async fn finish(&mut self) -> Result<(), DriveError> {
        let started = Instant::now();
        let manifest = self.kept.manifest.clone();
        self.board
            .note(&manifest.name, "reading the best game back".to_owned());
        let objects = self.objects.clone();
        let scratch = self.scratch.clone();
        let prefix = manifest.prefix();
        let width = manifest.spec.width;
        let archive = {
            let manifest = manifest.clone();
            let runtime = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || {
                let _guard = runtime.enter();
                let archive = Archive::open(&objects, manifest, &scratch)?;
                let game = best_game(&archive);
                let fetched = archive.fetched();
                Ok::<_, ManifestError>((game, fetched))
            })
        };
        let read = archive
            .await
            .map_err(|error| DriveError::Game(error.to_string()))?;
        let (game, (tables, bytes)) = read?;
        match game {
            Ok(game) => {
                let replay = encode(&game.keys, Encoding::Base2048);
                let outcome = Outcome {
                    score: game.score,
                    pieces: game.wells.len() as u32,
                    replay: replay.clone(),
                    lookups: game.lookups,
                    seconds: started.elapsed().as_secs_f64(),
                };
                tracing::info!(
                    run = manifest.name,
                    score = outcome.score,
                    pieces = outcome.pieces,
                    lookups = outcome.lookups,
                    tables,
                    bytes,
                    "the best game is read back"
                );
                let key = format!(
                    "{prefix}/replays/{:05}-lines-{}-pieces-{width}-wide.txt",
                    outcome.score, outcome.pieces
                );
                let put = self.objects.put(&key, format!("{replay}\n").into()).await;
                put.map_err(|error: ObjectError| ManifestError::from(error))?;
                self.kept.manifest.outcome = Some(outcome);
                self.kept.manifest.note = String::new();
            }
            Err(error) if manifest.keep == hatebeam_worker::Keep::All => {
                let mut text = error.to_string();
                let mut source = std::error::Error::source(&error);
                while let Some(cause) = source {
                    text.push_str(&format!(": {cause}"));
                    source = cause.source();
                }
                return Err(DriveError::Game(text));
            }
            Err(error) => {
                self.kept.manifest.note = format!("the best game was not kept: {error}");
            }
        }
        self.kept.manifest.state = State::Finished;
        self.save().await?;
        Ok(())
    }
}

fn strange(worker: &str, what: &dyn std::fmt::Display) -> Lost {
    Lost {
        worker: worker.to_owned(),
        reason: what.to_string(),
        is_gone: false,
    }
}

fn part_of(selected: &v1::Selected) -> Result<Part, String> {
    let bad = |_| "its part of the depth cannot be read".to_owned();
    let best = match selected.best_game_well.is_empty() {
        true => None,
        false => Some(Node {
            score: selected.best_game_node_score,
            well: NodeWell(selected.best_game_well.as_slice().try_into().map_err(bad)?),
            game_score: u16::try_from(selected.best_game_score)
                .map_err(|_| "its best game has too many lines".to_owned())?,
            hint: selected.best_game_hint as u8,
        }),
    };
    Ok(Part {
        count: selected.count,
        digest: selected
            .digest
            .parse()
            .map_err(|_| "its digest cannot be read".to_owned())?,
        best_score: selected.best_score,
        worst_score: selected.worst_score,
        best,
    })
}
