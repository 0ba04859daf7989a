//! The orders `count` and `validate_cut`, with which the coordinator finds the cut (the score threshold of a depth).

use super::Executor;
use crate::epoch::Epoch;
use crate::error::OrderError;
use hatebeam_proto::messages::{Count, CutVerdict, DigitCount, Histogram, ValidateCut};
use hatebeam_search::{Candidates, CountQuery};
use std::sync::Arc;

impl Executor {
    pub(super) async fn count(
        &self,
        epoch: &Arc<Epoch>,
        order: Count,
    ) -> Result<Vec<Histogram>, OrderError> {
        // The coordinator sends this order after all children of the depth have arrived, so all batches are checked.
        if let Some(games) = &epoch.games {
            let check = self.inbound.origin_check(games.known().past);
            self.env.run_blocking(check).await?;
        }
        let faults = self.inbound.faults();
        if !faults.is_empty() {
            return Err(OrderError::WrongChildren(faults));
        }
        let candidates = epoch.candidates(order.depth)?;
        let threads = self.threads;
        let counted = self.env.run_blocking(move || {
            let queries = order.queries.iter();
            queries
                .map(|&query| histogram(&candidates, query, threads))
                .collect()
        });
        Ok(counted.await?)
    }

    pub(super) async fn validate_cut(
        &self,
        epoch: &Epoch,
        order: ValidateCut,
    ) -> Result<CutVerdict, OrderError> {
        let candidates = epoch.candidates(order.depth)?;
        let verdict = self.env.run_blocking(move || {
            let mut tied = Vec::new();
            if order.tied {
                tied = candidates.tied(order.cut);
            }
            CutVerdict {
                dropped: candidates.dropped_above(order.cut),
                tied,
            }
        });
        Ok(verdict.await?)
    }
}

fn histogram(candidates: &Candidates, query: CountQuery, threads: usize) -> Histogram {
    let counts = candidates.count(query, threads);
    let counted = |(digit, count)| DigitCount { digit, count };
    Histogram {
        counts: counts.iter().map(counted).collect(),
    }
}
