//! Workers that search together for an epoch, asked all at once.

use crate::registry::{Member, WorkerError, WorkerRegistry};
use hatebeam_proto::v1;
use hatebeam_proto::v1::answer::Kind as Answer;
use hatebeam_proto::v1::order::Kind as Order;
use hatebeam_runs::FrontierSummary;
use hatebeam_search::{
    CountQuery, Cut, CutSearch, DEFAULT_SIGMAS, DIGIT_VALUES, Node, NodeWell, Ties, WELL_BYTES,
    retry_sigmas,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// When one worker cannot reach another, the others are heard for so long: who cannot be reached by most is
/// the one to failures.
const HEARING: Duration = Duration::from_millis(500);

/// The workers of an epoch.
pub(crate) struct EpochWorkers {
    registry: Arc<WorkerRegistry>,
    pub(crate) members: Vec<Member>,
    pub(crate) epoch: u64,
}

/// What is known of a depth before anything of it is selected.
pub(crate) struct Explored {
    pub(crate) children: u64,
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    /// Of the scores of what survives.
    pub(crate) median: i32,
    select: v1::Select,
}

impl EpochWorkers {
    pub(crate) fn new(
        registry: Arc<WorkerRegistry>,
        members: Vec<Member>,
        epoch: u64,
    ) -> EpochWorkers {
        EpochWorkers {
            registry,
            members,
            epoch,
        }
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.members
            .iter()
            .map(|member| member.name.as_str())
            .collect()
    }

    /// Asks all of the workers the same, or nearly, and gives what `take` finds in the answers, in its order.
    async fn ask_all<T>(
        &self,
        order: impl Fn(usize) -> Order,
        take: impl Fn(Answer) -> Option<T>,
    ) -> Result<Vec<T>, WorkerError> {
        let mut asked = JoinSet::new();
        for (place, member) in self.members.iter().enumerate() {
            let (registry, member, order) =
                (Arc::clone(&self.registry), member.clone(), order(place));
            let epoch = self.epoch;
            asked.spawn(async move { (place, registry.ask(&member, epoch, order).await) });
        }
        let mut answers: Vec<Option<T>> = self.members.iter().map(|_| None).collect();
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((place, Ok(answer))) => match take(answer) {
                    Some(answer) => answers[place] = Some(answer),
                    None => return Err(misanswered(&self.members[place].name)),
                },
                Ok((_, Err(lost))) if lost.unreached.is_empty() => return Err(lost),
                Ok((_, Err(lost))) => return Err(hear_others(lost, asked).await),
                Err(error) => return Err(strange("coordinator", &error)),
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// Gives each its shards; what each has then.
    pub(crate) async fn prepare(
        &self,
        order: impl Fn(usize) -> v1::Prepare,
    ) -> Result<Vec<v1::Prepared>, WorkerError> {
        let prepared = |answer| match answer {
            Answer::Prepared(prepared) => Some(prepared),
            _ => None,
        };
        let order = |place| Order::Prepare(order(place));
        self.ask_all(order, prepared).await
    }

    /// Ends what is going on.
    pub(crate) async fn halt(&self) {
        // Whoever does not hear it hears of a later epoch, or of none.
        let _ = self.ask_all(|_| Order::Halt(v1::Halt {}), Some).await;
    }

    /// Has the children of a depth made, and finds what survives of them in a beam of this width.
    pub(crate) async fn explore(&self, depth: u32, width: usize) -> Result<Explored, WorkerError> {
        let mut sigmas = DEFAULT_SIGMAS;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let expand = v1::Expand {
                depth,
                attempt,
                sigmas,
            };
            if let Some(explored) = self.try_explore(expand, width).await? {
                return Ok(explored);
            }
            self.registry.metrics.all.repeats.add(1);
            tracing::info!("the tables were too small: the depth is done again");
            sigmas = retry_sigmas(sigmas);
        }
    }

    /// None if the workers' tables had too little room for this many standard deviations.
    async fn try_explore(
        &self,
        expand: v1::Expand,
        width: usize,
    ) -> Result<Option<Explored>, WorkerError> {
        let began = Instant::now();
        let depth = expand.depth;
        let expand = |_| Order::Expand(expand);
        let expanded = |answer| match answer {
            Answer::Expanded(part) => Some(part),
            _ => None,
        };
        let parts = self.ask_all(expand, expanded).await?;
        self.took("expand", began);
        let began = Instant::now();
        let (cut, median) = self.cut(depth, width).await?;
        let (dropped, tied) = self.validate_cut(depth, &cut).await?;
        self.took("cut", began);
        if dropped {
            return Ok(None);
        }
        let mut select = v1::Select {
            depth,
            cut: cut.rank,
            ties: Vec::new(),
            all_ties: true,
        };
        if let Ties::First(_) = cut.ties {
            select.all_ties = false;
            select.ties = tied.iter().flat_map(|well| well.0).collect();
        }
        Ok(Some(Explored {
            children: parts.iter().map(|part| part.children).sum(),
            sent: parts.iter().map(|part| part.sent).sum(),
            sent_bytes: parts.iter().map(|part| part.sent_bytes).sum(),
            median,
            select,
        }))
    }

    fn took(&self, phase: &str, since: Instant) {
        self.registry
            .metrics
            .all
            .phases
            .observe(phase, since.elapsed());
    }

    /// Whether anything was dropped that the cut would let live; and, where not all wells of the cut's rank
    /// survive, those that do.
    async fn validate_cut(
        &self,
        depth: u32,
        cut: &Cut,
    ) -> Result<(bool, Vec<NodeWell>), WorkerError> {
        let validate_cut = v1::ValidateCut {
            depth,
            cut: cut.rank,
            tied: matches!(cut.ties, Ties::First(_)),
        };
        let validate_cut = |_| Order::ValidateCut(validate_cut);
        let cut_verdict = |answer| match answer {
            Answer::CutVerdict(cut_verdict) => Some(cut_verdict),
            _ => None,
        };
        let mut dropped = false;
        let mut tied = Vec::new();
        for cut_verdict in self.ask_all(validate_cut, cut_verdict).await? {
            dropped |= cut_verdict.dropped;
            let wells = cut_verdict.tied.chunks_exact(WELL_BYTES);
            tied.extend(wells.filter_map(|well| well.try_into().ok().map(NodeWell)));
        }
        if let Ties::First(count) = cut.ties {
            tied.sort_unstable();
            tied.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        }
        Ok((dropped, tied))
    }

    /// The cut, ties not yet settled, and the median of the scores of what survives it.
    async fn cut(&self, depth: u32, width: usize) -> Result<(Cut, i32), WorkerError> {
        let mut search = CutSearch::new(width);
        let mut median: Option<CutSearch> = None;
        // The first question is the same for both; its answer tells how many there are.
        loop {
            let mut queries: Vec<CountQuery> = Vec::new();
            queries.extend(search.query());
            let of_median = median.as_ref().and_then(CutSearch::query);
            queries.extend(of_median);
            if queries.is_empty() {
                break;
            }
            let prefixes: Vec<v1::Prefix> = queries
                .iter()
                .map(|query| v1::Prefix {
                    known: query.known,
                    prefix: query.prefix,
                })
                .collect();
            let count = v1::Count { depth, prefixes };
            let count = |_| Order::Count(count.clone());
            let counted = |answer| match answer {
                Answer::Counted(counted) => Some(counted),
                _ => None,
            };
            let mut sums = vec![vec![0u64; DIGIT_VALUES]; queries.len()];
            for counted in self.ask_all(count, counted).await? {
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
            if search.query().is_some()
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

    /// Has each keep what survives, and begin to commit it.
    pub(crate) async fn select(&self, explored: &Explored) -> Result<FrontierSummary, WorkerError> {
        let began = Instant::now();
        let select = |_| Order::Select(explored.select.clone());
        let selected = |answer| match answer {
            Answer::Selected(part) => Some(part),
            _ => None,
        };
        let mut whole = FrontierSummary::default();
        for part in self.ask_all(select, selected).await? {
            whole.join(&part_of(&part).map_err(|error| strange("a worker", &error))?);
        }
        self.took("select", began);
        Ok(whole)
    }

    /// The tables of a depth that was selected, as each has put them into the object store.
    pub(crate) fn tables(&self, depth: u32) -> JoinSet<Result<Vec<v1::Table>, WorkerError>> {
        let mut tables = JoinSet::new();
        for member in &self.members {
            let (registry, member, epoch) =
                (Arc::clone(&self.registry), member.clone(), self.epoch);
            tables.spawn(async move {
                let order = Order::WaitCommit(v1::WaitCommit { depth });
                match registry.ask(&member, epoch, order).await? {
                    Answer::Committed(committed) => Ok(committed.tables),
                    _ => Err(misanswered(&member.name)),
                }
            });
        }
        tables
    }
}

/// Adds what the others complain of, once one could not reach another.
async fn hear_others(
    mut lost: WorkerError,
    mut asked: JoinSet<(usize, Result<Answer, WorkerError>)>,
) -> WorkerError {
    let until = tokio::time::Instant::now() + HEARING;
    while let Ok(Some(answer)) = tokio::time::timeout_at(until, asked.join_next()).await {
        match answer {
            // It could not be reached because it is not there any more.
            Ok((_, Err(other))) if other.is_gone => return other,
            Ok((_, Err(other))) => lost.unreached.extend(other.unreached),
            _ => {}
        }
    }
    lost
}

pub(crate) fn strange(worker: &str, what: &dyn std::fmt::Display) -> WorkerError {
    WorkerError::of(worker, &what.to_string())
}

/// An answer to another question than was asked.
fn misanswered(worker: &str) -> WorkerError {
    WorkerError::of(worker, "it gave another answer than asked for")
}

fn part_of(selected: &v1::Selected) -> Result<FrontierSummary, String> {
    let bad = |_| "its part of the depth cannot be read".to_owned();
    let best = match selected.best_well.is_empty() {
        true => None,
        false => Some(Node {
            score: selected.best_well_eval,
            well: NodeWell(selected.best_well.as_slice().try_into().map_err(bad)?),
            lines: u16::try_from(selected.best_lines)
                .map_err(|_| "its best game has too many lines".to_owned())?,
            hint: selected.best_well_hint as u8,
        }),
    };
    Ok(FrontierSummary {
        count: selected.count,
        digest: selected
            .digest
            .parse()
            .map_err(|_| "its digest cannot be read".to_owned())?,
        best_eval: selected.best_eval,
        worst_eval: selected.worst_eval,
        best,
    })
}
