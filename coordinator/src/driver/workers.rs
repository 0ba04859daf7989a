//! The workers of an epoch (a period with a fixed set of workers), and the orders that all of them receive at the same
//! time. At each depth, the candidates (wells that may stay in the beam) at or above the cut are the survivors. The cut
//! is a rank, which is a score with tie-breaks.

use super::uploaded::Uploaded;
use crate::parts::Parts;
use crate::registry::{Member, WorkerError, WorkerErrorKind, WorkerRegistry};
use hatebeam_env::Env;
use hatebeam_metrics::CoordinatorMetrics;
use hatebeam_objects::Objects;
use hatebeam_proto::messages::{
    AnswerKind, ChangedWell, Expand, OrderKind, Prepare, Prepared, Select, ValidateCut, WaitCommit,
};
use hatebeam_runs::{CellBalance, FrontierSummary, Table};
use hatebeam_search::{Cut, DEFAULT_SIGMAS, NodeWell, Quiescence, Ties, retry_sigmas};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Time to wait for the other workers' answers after one worker reports a peer. The other answers may also report peers.
/// Together, the answers show which worker is the cause.
const PEER_REPORT_TIME: Duration = Duration::from_millis(500);

/// Number of attempts at a depth after which it fails if tables are still too small. The last attempt has room for 248 standard
/// deviations, while 8 of them nearly always suffice, so the worker's answer is wrong.
const MAX_ATTEMPTS: u32 = 6;

/// Maximum number of a worker's wells whose rank is the cut. Such wells have equal scores and equal lower halves of their
/// hashes, so even a beam of a billion wells has only a few. The order to select contains all of them, and must not exceed
/// the limit of messages.
const MAX_TIES: usize = 1024;

/// Maximum time to wait until the workers have stopped searching.
const HALT_LIMIT: Duration = Duration::from_secs(5);

/// Pending uploads of one depth. Each task returns the tables of one worker.
pub(super) type Uploads = JoinSet<Result<Vec<Table>, WorkerError>>;

pub(super) struct EpochWorkers {
    env: Env,
    registry: Arc<WorkerRegistry>,
    metrics: CoordinatorMetrics,
    objects: Objects,
    pub(super) members: Vec<Member>,
    pub(super) epoch: u64,
}

/// A depth that is to be searched.
#[derive(Clone, Copy)]
pub(super) struct NextDepth {
    pub(super) depth: u32,
    /// Number of wells to expand.
    pub(super) parents: u64,
    /// An estimate of the cut. Candidates below it are dropped immediately.
    pub(super) floor: Option<u64>,
}

/// A depth that is expanded and whose cut is known.
pub(super) struct Explored {
    pub(super) children: u64,
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    /// Expansion time of each worker, in microseconds.
    pub(super) busy_micros: Vec<u64>,
    /// Median of the survivors' scores.
    pub(super) median: i32,
    /// Wells of each worker in which the loop rule changes the piece.
    pub(super) changed: Vec<Vec<ChangedWell>>,
    select: Select,
}

enum Attempted {
    Explored(Explored),
    /// The estimated floor (the rank below which candidates are dropped) was above the cut, so survivors may have
    /// been dropped.
    FloorTooHigh,
    /// A candidate table was too small, so survivors may have been dropped.
    TablesTooSmall {
        /// Index of the first worker with such a table.
        worker: usize,
    },
}

/// The workers' verdict on a cut.
struct Validation {
    /// Index of the first worker whose tables may have dropped a child at or above the cut.
    dropped: Option<usize>,
    /// The survivors whose rank equals the cut. Empty if all candidates with that rank survive.
    tied: Vec<NodeWell>,
}

type Answered = (usize, Result<AnswerKind, WorkerError>);

impl EpochWorkers {
    pub(super) fn new(parts: &Parts, members: Vec<Member>, epoch: u64) -> EpochWorkers {
        EpochWorkers {
            env: parts.env.clone(),
            registry: Arc::clone(&parts.registry),
            metrics: parts.metrics.coordinator.clone(),
            objects: parts.objects.clone(),
            members,
            epoch,
        }
    }

    pub(super) fn names(&self) -> Vec<&str> {
        let names = self.members.iter().map(|member| member.name.as_str());
        names.collect()
    }

    /// Sends each worker an order, waits for all answers, and returns the values that `take` extracts from them. The
    /// values are in the same order as the workers.
    pub(super) async fn ask_all<T>(
        &self,
        order: impl Fn(usize) -> OrderKind,
        take: impl Fn(AnswerKind) -> Option<T>,
    ) -> Result<Vec<T>, WorkerError> {
        let mut asked: JoinSet<Answered> = JoinSet::new();
        for (index, member) in self.members.iter().enumerate() {
            let (registry, member) = (Arc::clone(&self.registry), member.clone());
            let (epoch, order) = (self.epoch, order(index));
            asked.spawn(self.env.guard(async move {
                let answer = registry.ask(&member, epoch, order).await;
                (index, answer)
            }));
        }
        let mut answers: Vec<Option<T>> = self.members.iter().map(|_| None).collect();
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((index, Ok(answer))) => match take(answer) {
                    Some(answer) => answers[index] = Some(answer),
                    None => return Err(unexpected_answer(&self.members[index].name)),
                },
                Ok((_, Err(error))) if error.reports.is_empty() => return Err(error),
                Ok((_, Err(error))) => return Err(collect_peer_reports(error, asked).await),
                Err(error) => return Err(WorkerError::failed("coordinator", error)),
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// Orders each worker to load its shards. Returns the answers, which contain the numbers of loaded wells.
    pub(super) async fn prepare(
        &self,
        order: impl Fn(usize) -> Prepare,
    ) -> Result<Vec<Prepared>, WorkerError> {
        let prepared = |answer| match answer {
            AnswerKind::Prepared(prepared) => Some(prepared),
            _ => None,
        };
        let order = |index| OrderKind::Prepare(Box::new(order(index)));
        self.ask_all(order, prepared).await
    }

    /// Orders the workers to stop searching and to free their memory. Errors are ignored: a worker that misses the
    /// order stops when the next epoch begins.
    pub(super) async fn halt(&self) {
        let mut asked = JoinSet::new();
        for member in &self.members {
            let (registry, member, epoch) =
                (Arc::clone(&self.registry), member.clone(), self.epoch);
            asked.spawn(self.env.guard(async move {
                let _ = registry.ask(&member, epoch, OrderKind::Halt).await;
            }));
        }
        // Each answer is awaited, because one lost worker must not keep the others from getting the order.
        let halting = async { while asked.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(HALT_LIMIT, halting).await;
    }

    /// Expands a depth and finds the cut that leaves at most `width` survivors. Repeats the depth without a floor if
    /// the estimated floor was above the cut, and with larger tables if a table was too small.
    ///
    /// If the quiescence search is only for the best children, a first cut by their own scores selects these.
    pub(super) async fn explore(
        &self,
        next: NextDepth,
        width: usize,
        quiescence: Quiescence,
    ) -> Result<Explored, WorkerError> {
        let children = quiescence.children_per_well();
        // The estimate is for scores with quiescence.
        let floor = next.floor.filter(|_| children.is_none());
        let mut expand = Expand {
            depth: next.depth,
            attempt: 1,
            sigmas: DEFAULT_SIGMAS,
            floor: floor.unwrap_or(0),
            wells: next.parents,
        };
        loop {
            let gathered = width.saturating_mul(children.unwrap_or(1));
            match self.try_explore(expand, gathered).await? {
                Attempted::Explored(explored) if children.is_some() => {
                    return self.rescore(explored, width).await;
                }
                Attempted::Explored(explored) => return Ok(explored),
                Attempted::FloorTooHigh => {
                    self.metrics.high_floors.add(1);
                    expand.floor = 0;
                    tracing::info!("repeating depth: the estimated floor was above the cut");
                }
                Attempted::TablesTooSmall { worker } if expand.attempt >= MAX_ATTEMPTS => {
                    let reason = format!("its tables are too small in {MAX_ATTEMPTS} attempts");
                    return Err(WorkerError::failed(&self.members[worker].name, reason));
                }
                Attempted::TablesTooSmall { .. } => {
                    self.metrics.repeats.add(1);
                    expand.sigmas = retry_sigmas(expand.sigmas);
                    let sigmas = expand.sigmas;
                    tracing::info!(sigmas, "repeating depth: its tables were too small");
                }
            }
            expand.attempt += 1;
        }
    }

    async fn try_explore(&self, order: Expand, width: usize) -> Result<Attempted, WorkerError> {
        let began = self.env.now();
        let depth = order.depth;
        let expand = |_| OrderKind::Expand(order);
        let expanded = |answer| match answer {
            AnswerKind::Expanded(expanded) => Some(expanded),
            _ => None,
        };
        let parts = self.ask_all(expand, expanded).await?;
        self.observe("expand", began);
        let began = self.env.now();
        let found = self.find_cut(depth, width).await?;
        let validation = self.validate_cut(depth, &found.cut).await?;
        self.observe("cut", began);
        if let Some(worker) = validation.dropped {
            return Ok(match order.floor > found.cut.rank {
                true => Attempted::FloorTooHigh,
                false => Attempted::TablesTooSmall { worker },
            });
        }
        let select = select(depth, &found.cut, validation);
        Ok(Attempted::Explored(Explored {
            changed: parts.iter().map(|part| part.changed.clone()).collect(),
            children: total(&parts, |part| part.children),
            sent: total(&parts, |part| part.sent),
            sent_bytes: total(&parts, |part| part.sent_bytes),
            busy_micros: parts.iter().map(|part| part.busy_micros).collect(),
            median: found.median,
            select,
        }))
    }

    /// Orders the workers to give the survivors of the first cut their scores with quiescence, and finds the second cut,
    /// which leaves at most `width` survivors.
    async fn rescore(&self, first: Explored, width: usize) -> Result<Explored, WorkerError> {
        let began = self.env.now();
        let depth = first.select.depth;
        let order = |_| OrderKind::Rescore(first.select.clone());
        let rescored = |answer| match answer {
            AnswerKind::Rescored(rescored) => Some(rescored),
            _ => None,
        };
        let parts = self.ask_all(order, rescored).await?;
        self.observe("rescore", began);
        let began = self.env.now();
        let found = self.find_cut(depth, width).await?;
        // No table has dropped a child above the second cut, because none has dropped one above the first.
        let validation = self.validate_cut(depth, &found.cut).await?;
        self.observe("cut", began);
        let busy = first.busy_micros.iter().zip(&parts);
        Ok(Explored {
            busy_micros: busy
                .map(|(micros, part)| micros.saturating_add(part.busy_micros))
                .collect(),
            median: found.median,
            select: select(depth, &found.cut, validation),
            ..first
        })
    }

    fn observe(&self, phase: &str, began: Instant) {
        self.metrics.phases.observe(phase, began.elapsed());
    }

    async fn validate_cut(&self, depth: u32, cut: &Cut) -> Result<Validation, WorkerError> {
        let validate_cut = ValidateCut {
            depth,
            cut: cut.rank,
            tied: matches!(cut.ties, Ties::First(_)),
        };
        let verdict = |answer| match answer {
            AnswerKind::CutVerdict(verdict) => Some(verdict),
            _ => None,
        };
        let order = |_| OrderKind::ValidateCut(validate_cut);
        let verdicts = self.ask_all(order, verdict).await?;
        let many = verdicts
            .iter()
            .position(|verdict| verdict.tied.len() > MAX_TIES);
        if let Some(at) = many {
            let reason = format!("it has more than {MAX_TIES} wells with the rank of the cut");
            return Err(WorkerError::failed(&self.members[at].name, reason));
        }
        let dropped = verdicts.iter().position(|verdict| verdict.dropped);
        let tied = verdicts.into_iter().flat_map(|verdict| verdict.tied);
        let mut tied: Vec<NodeWell> = tied.collect();
        if let Ties::First(count) = cut.ties {
            tied.sort_unstable();
            tied.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        }
        Ok(Validation { dropped, tied })
    }

    /// Orders the workers to keep the survivors and to begin uploading them. Returns a summary of each worker's part of the
    /// new frontier.
    pub(super) async fn select(
        &self,
        explored: &Explored,
        balance: &CellBalance,
    ) -> Result<Vec<FrontierSummary>, WorkerError> {
        let began = self.env.now();
        let select = |_| OrderKind::Select(explored.select.clone());
        let selected = |answer| match answer {
            AnswerKind::Selected(selected) => Some(selected),
            _ => None,
        };
        let parts = self.ask_all(select, selected).await?;
        for (member, part) in self.members.iter().zip(&parts) {
            let checked = part.check(balance, explored.select.depth);
            checked.map_err(|error| WorkerError::failed(&member.name, error))?;
        }
        self.observe("select", began);
        Ok(parts)
    }

    /// Starts to wait in the background until each worker has uploaded its tables of a depth. `parts` are the workers' parts
    /// of the frontier, and `owners` the names of the shards' owners.
    pub(super) fn uploads(
        &self,
        run: &str,
        depth: u32,
        parts: &[FrontierSummary],
        owners: &[String],
    ) -> Uploads {
        let mut uploads = JoinSet::new();
        for (member, &part) in self.members.iter().zip(parts) {
            let (registry, member) = (Arc::clone(&self.registry), member.clone());
            let (objects, run, epoch) = (self.objects.clone(), run.to_owned(), self.epoch);
            let owned = owners.iter().map(|owner| *owner == member.name).collect();
            uploads.spawn(self.env.guard(async move {
                let order = OrderKind::WaitCommit(WaitCommit { depth });
                let AnswerKind::Committed(tables) = registry.ask(&member, epoch, order).await?
                else {
                    return Err(unexpected_answer(&member.name));
                };
                let uploaded = Uploaded {
                    run: &run,
                    epoch,
                    depth,
                    worker: &member.name,
                    tables: &tables,
                    part,
                    owned,
                };
                uploaded.check(&objects).await?;
                Ok(tables)
            }));
        }
        uploads
    }
}

/// Returns the sum of a number in the answers. A false answer may contain any number.
pub(super) fn total<T>(answers: &[T], number: impl Fn(&T) -> u64) -> u64 {
    answers.iter().map(number).fold(0, u64::saturating_add)
}

fn select(depth: u32, cut: &Cut, validation: Validation) -> Select {
    let has_ties = matches!(cut.ties, Ties::First(_));
    Select {
        depth,
        cut: cut.rank,
        ties: has_ties.then_some(validation.tied),
    }
}

/// Waits for the other workers' answers for at most [`PEER_REPORT_TIME`], and adds their reports about peers to `error`.
async fn collect_peer_reports(mut error: WorkerError, mut asked: JoinSet<Answered>) -> WorkerError {
    let until = Instant::now() + PEER_REPORT_TIME;
    while let Ok(Some(answer)) = tokio::time::timeout_at(until, asked.join_next()).await {
        match answer {
            // A worker was lost, which explains why other workers cannot reach it.
            Ok((_, Err(other))) if other.kind == WorkerErrorKind::Gone => return other,
            Ok((_, Err(other))) => error.reports.extend(other.reports),
            _ => {}
        }
    }
    error
}

fn unexpected_answer(worker: &str) -> WorkerError {
    WorkerError::failed(worker, "the answer does not match the order")
}
