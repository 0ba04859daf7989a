//! Execution of the coordinator's orders.
//!
//! [`Executor::execute`] dispatches each order to the module that carries it out. A `prepare` order ends the current
//! epoch (a period with a fixed set of workers) and begins a new one. The coordinator sends the orders of a depth one
//! after another. Only the commit of a depth overlaps with the search of the next depth. A `read_back` order belongs to no
//! epoch: it arrives after the search of a run.

mod commit;
mod cut;
mod expand;
mod load;
mod prepare;
mod read_back;
mod select;

use crate::epoch::Epoch;
use crate::error::OrderError;
use crate::exchange::{InboundControl, Traffic};
use crate::link::PeerLink;
use crate::lock;
use crate::tables::{LocalStorage, LocalTables};
use hatebeam_env::Env;
use hatebeam_objects::Objects;
use hatebeam_proto::messages::{AnswerKind, Order, OrderKind};
use hatebeam_search::Fingerprint;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::Instrument;

/// Initial value of [`State::lost_after`]. The coordinator's welcome message may replace it.
const LOST_AFTER: Duration = Duration::from_secs(5);

/// The part of a worker that carries out orders.
pub(crate) struct Executor {
    pub(crate) env: Env,
    pub(crate) name: String,
    pub(crate) threads: usize,
    /// Whether batches of children for peers are compressed.
    pub(crate) compress: bool,
    /// Maximum number of batches of children that are queued for a peer.
    pub(crate) queued_batches: usize,
    /// Fingerprint of the program's search algorithm.
    pub(crate) search: Fingerprint,
    pub(crate) objects: Objects,
    pub(crate) storage: Arc<dyn LocalStorage>,
    pub(crate) peers: Arc<dyn PeerLink>,
    pub(crate) inbound: InboundControl,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) state: State,
}

/// State of an [`Executor`] that persists between orders.
pub(crate) struct State {
    pub(crate) progress: Progress,
    /// Time without a message after which a peer counts as lost.
    pub(crate) lost_after: Mutex<Duration>,
    current: Mutex<Current>,
    tables: Mutex<Option<RunTables>>,
    /// Held while a `prepare` order is carried out. The next one waits until this one has noticed that it is superseded, so
    /// both never write the same files or create local tables at the same time.
    preparing: tokio::sync::Mutex<()>,
}

impl Default for State {
    fn default() -> State {
        State {
            progress: Progress::default(),
            lost_after: Mutex::new(LOST_AFTER),
            current: Mutex::default(),
            tables: Mutex::default(),
            preparing: tokio::sync::Mutex::default(),
        }
    }
}

#[derive(Default)]
struct Current {
    epoch: Option<Arc<Epoch>>,
    /// Number of calls to [`Executor::halt`]. A `prepare` order, which may be slow, installs its epoch only if the
    /// generation has not changed in the meantime.
    generation: u64,
    /// Is set when the generation changes.
    cancel: Arc<AtomicBool>,
    /// Sender that is dropped to cancel the order `read_back` in progress.
    reading: Option<oneshot::Sender<Infallible>>,
}

/// The local tables and the name of their run.
struct RunTables {
    run: String,
    tables: Arc<dyn LocalTables>,
}

/// Progress of the search, which heartbeats and metrics report.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) epoch: AtomicU64,
    /// Depth of the search, or depth that reading a game back has reached.
    pub(crate) depth: Arc<AtomicU32>,
    /// Number of expanded parents or, after the first of two cuts, of children that have got their new scores. During the
    /// order `prepare`, number of wells whose parents were found.
    pub(crate) expanded: Arc<AtomicU64>,
    /// Number of parents or, after the first of two cuts, of children that get new scores.
    pub(crate) parents: Arc<AtomicU64>,
}

impl Progress {
    fn begin_depth(&self, depth: u32, parents: usize) {
        self.depth.store(depth, Ordering::Relaxed);
        self.expanded.store(0, Ordering::Relaxed);
        self.parents.store(parents as u64, Ordering::Relaxed);
    }
}

impl Executor {
    pub(crate) async fn execute(&self, order: Order) -> AnswerKind {
        let metrics = &self.traffic.metrics;
        let phase = metrics.phases.get(order.kind.name());
        let began = self.env.now();
        match self.try_execute(order).await {
            Ok(answer) => {
                if let Some(phase) = phase {
                    phase.observe(began.elapsed());
                }
                answer
            }
            Err(error) => {
                metrics.failed.add(1);
                AnswerKind::Failed(error.into())
            }
        }
    }

    async fn try_execute(&self, order: Order) -> Result<AnswerKind, OrderError> {
        let Order { epoch, kind, .. } = order;
        match kind {
            OrderKind::Halt => {
                self.halt();
                Ok(AnswerKind::Halted)
            }
            OrderKind::Prepare(prepare) => {
                let run = tracing::info_span!("run", run = prepare.run);
                let span = tracing::info_span!(parent: &run, "epoch", epoch);
                let prepared = self.prepare(epoch, *prepare).instrument(span).await?;
                Ok(AnswerKind::Prepared(prepared))
            }
            OrderKind::ReadBack(read) => {
                let run = tracing::info_span!("run", run = read.run);
                let nodes = self.read_back(epoch, read).instrument(run).await?;
                Ok(AnswerKind::GameNodes(nodes))
            }
            kind => self.execute_in_epoch(&self.epoch(epoch)?, kind).await,
        }
    }

    /// Carries out an order of the current epoch, in the tracing span of the order's depth.
    async fn execute_in_epoch(
        &self,
        epoch: &Arc<Epoch>,
        kind: OrderKind,
    ) -> Result<AnswerKind, OrderError> {
        match kind {
            OrderKind::Expand(expand) => {
                let span = epoch.span_of(expand.depth);
                let expanded = self.expand(epoch, expand).instrument(span).await?;
                Ok(AnswerKind::Expanded(expanded))
            }
            OrderKind::Count(count) => {
                let span = epoch.span_of(count.depth);
                let counted = self.count(epoch, count).instrument(span).await?;
                Ok(AnswerKind::Counted(counted))
            }
            OrderKind::ValidateCut(cut) => {
                let span = epoch.span_of(cut.depth);
                let verdict = self.validate_cut(epoch, cut).instrument(span).await?;
                Ok(AnswerKind::CutVerdict(verdict))
            }
            OrderKind::Rescore(select) => {
                let span = epoch.span_of(select.depth);
                let rescored = self.rescore(epoch, select).instrument(span).await?;
                Ok(AnswerKind::Rescored(rescored))
            }
            OrderKind::Select(select) => {
                let span = epoch.span_of(select.depth);
                let selected = self.select(epoch, select).instrument(span).await?;
                Ok(AnswerKind::Selected(selected))
            }
            OrderKind::WaitCommit(wait) => {
                let tables = commit::wait(epoch, wait.depth).await?;
                Ok(AnswerKind::Committed(tables))
            }
            OrderKind::Halt | OrderKind::Prepare(_) | OrderKind::ReadBack(_) => Err(
                OrderError::bad_order("the order cannot be executed within an epoch"),
            ),
        }
    }

    /// Ends the current epoch, if any, cancels reading back, and returns the new generation.
    pub(crate) fn halt(&self) -> u64 {
        let mut current = lock(&self.state.current);
        current.generation += 1;
        std::mem::take(&mut current.cancel).store(true, Ordering::Relaxed);
        current.reading = None;
        self.state.progress.epoch.store(0, Ordering::Relaxed);
        if let Some(epoch) = current.epoch.take() {
            epoch.end();
        }
        self.inbound.close();
        current.generation
    }

    /// Returns an error if [`Executor::halt`] was called since it returned `generation`.
    fn check_generation(&self, generation: u64) -> Result<(), OrderError> {
        match lock(&self.state.current).generation == generation {
            true => Ok(()),
            false => Err(OrderError::superseded("another order has ended the epoch")),
        }
    }

    /// Returns a flag that is set when another order changes the generation.
    fn cancellation(&self, generation: u64) -> Result<Arc<AtomicBool>, OrderError> {
        let cancel = Arc::clone(&lock(&self.state.current).cancel);
        // If the generation has not changed yet, the flag belongs to it.
        self.check_generation(generation).map(|()| cancel)
    }

    fn current(&self) -> Option<Arc<Epoch>> {
        lock(&self.state.current).epoch.clone()
    }

    fn epoch(&self, number: u64) -> Result<Arc<Epoch>, OrderError> {
        self.current()
            .filter(|epoch| epoch.number == number)
            .ok_or_else(|| {
                OrderError::superseded(format!("epoch {number} is not the current epoch"))
            })
    }

    /// Updates the metrics that report the worker's current state.
    pub(crate) fn update_metrics(&self) {
        let metrics = &self.traffic.metrics;
        let progress = &self.state.progress;
        metrics.epoch.set(progress.epoch.load(Ordering::Relaxed));
        let depth = progress.depth.load(Ordering::Relaxed);
        metrics.depth.set(u64::from(depth));
        metrics
            .depth_wells
            .set(progress.parents.load(Ordering::Relaxed));
        metrics
            .depth_wells_expanded
            .set(progress.expanded.load(Ordering::Relaxed));
        metrics.batches_waiting.set(self.traffic.waiting() as u64);
        metrics.disk_free.set(self.storage.free_bytes());
        let epoch = self.current();
        let shards = epoch.as_ref().map_or(0, |e| e.assignment.shards_here());
        metrics.shards.set(shards as u64);
        let frontier = epoch.as_ref().map_or(0, |epoch| epoch.frontier().len());
        metrics.frontier.set(frontier as u64);
        let candidates = epoch.as_ref().map_or(0, |epoch| epoch.candidate_bytes());
        metrics.candidates.set(candidates);
    }
}

#[cfg(test)]
mod tests;
