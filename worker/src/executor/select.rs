//! The order `select`, which keeps the wells at or above the cut (the score threshold of a depth) and starts their
//! commit.

use super::Executor;
use super::commit::Commit;
use crate::epoch::Epoch;
use crate::error::OrderError;
use hatebeam_proto::messages::Select;
use hatebeam_runs::FrontierSummary;
use hatebeam_search::{Cut, Frontier, Ties};
use std::sync::Arc;
use tracing::Instrument;

impl Executor {
    pub(super) async fn select(
        &self,
        epoch: &Arc<Epoch>,
        order: Select,
    ) -> Result<FrontierSummary, OrderError> {
        let depth = order.depth;
        let candidates = epoch.candidates(depth)?;
        let cut = Cut {
            rank: order.cut,
            ties: order.ties.map_or(Ties::All, Ties::Listed),
        };
        epoch.begin_selection();
        self.inbound.release_candidates(epoch.number);
        let threads = self.threads;
        let selected = self.env.run_blocking(move || {
            let shards = candidates.select(&cut, threads);
            let frontier = Frontier { depth, shards };
            let summary = FrontierSummary::of(frontier.nodes());
            (frontier, summary)
        });
        let (frontier, summary) = selected.await?;
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
