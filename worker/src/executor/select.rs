//! The orders after a cut (the score threshold of a depth) is known: `rescore` keeps the wells at or above the first of two
//! cuts and gives them their scores with quiescence, and `select` keeps those at or above the last cut and starts their
//! commit.

use super::Executor;
use super::commit::Commit;
use crate::epoch::Epoch;
use crate::error::OrderError;
use hatebeam_proto::messages::{Rescored, Select};
use hatebeam_runs::FrontierSummary;
use hatebeam_search::{Cut, Frontier, RescoreProgress, Step, Ties};
use std::sync::Arc;
use tracing::Instrument;

fn cut_of(order: Select) -> Cut {
    Cut {
        rank: order.cut,
        ties: order.ties.map_or(Ties::All, Ties::Listed),
    }
}

impl Executor {
    pub(super) async fn rescore(
        &self,
        epoch: &Arc<Epoch>,
        order: Select,
    ) -> Result<Rescored, OrderError> {
        let candidates = epoch.candidates(order.depth)?;
        // The tables must get no more children, so no new stream of this depth is accepted from now on.
        self.inbound.release_candidates(epoch.number);
        let cut = cut_of(order);
        let began = self.env.now();
        let (epoch, threads) = (Arc::clone(epoch), self.threads);
        let progress = &self.state.progress;
        let children = Arc::clone(&progress.parents);
        let done = Arc::clone(&progress.expanded);
        let rescored = self.env.run_blocking(move || {
            let layout = epoch.assignment.layout;
            let step = Step::new(&epoch.emulator, epoch.spec.evaluator, layout, threads)
                .map_err(|error| OrderError::bad_order(error.to_string()))?;
            let progress = RescoreProgress {
                children: &children,
                rescored: &done,
            };
            let rescored = step.rescore(&candidates, &cut, &epoch.cancel, progress);
            rescored.map_err(|_| OrderError::superseded("the epoch has ended"))
        });
        rescored.await??;
        Ok(Rescored {
            busy_micros: began.elapsed().as_micros() as u64,
        })
    }

    pub(super) async fn select(
        &self,
        epoch: &Arc<Epoch>,
        order: Select,
    ) -> Result<FrontierSummary, OrderError> {
        let depth = order.depth;
        let candidates = epoch.candidates(depth)?;
        let cut = cut_of(order);
        let edges = epoch.edges();
        epoch.begin_selection();
        self.inbound.release_candidates(epoch.number);
        let threads = self.threads;
        let games = Arc::clone(epoch);
        let selected = self.env.run_blocking(move || {
            let shards = candidates.select(&cut, threads);
            let frontier = Frontier { depth, shards };
            if let (Some(games), Some(edges)) = (&games.games, edges) {
                games.select(&edges, &frontier, threads)?;
            }
            let summary = FrontierSummary::of(frontier.nodes());
            Ok::<_, OrderError>((frontier, summary))
        });
        let (frontier, summary) = selected.await??;
        let frontier = Arc::new(frontier);
        let done = epoch.finish_selection(&frontier);
        let commit = Commit {
            env: self.env.clone(),
            epoch: Arc::clone(epoch),
            frontier,
            objects: self.objects.clone(),
            name: self.name.clone(),
            threads,
            traffic: Arc::clone(&self.traffic),
        };
        self.env.spawn(commit.run(done).in_current_span());
        Ok(summary)
    }
}
