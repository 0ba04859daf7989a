//! The search for the cut: the lowest score, with tie-breaks, that stays in the beam. The candidates at or above the
//! cut are the survivors. The workers count their candidates and send only the counts, so no wells are transferred.
//! Each round of queries determines the next digit of the cut.

use super::workers::EpochWorkers;
use crate::registry::WorkerError;
use hatebeam_proto::messages::{AnswerKind, Count, OrderKind};
use hatebeam_search::{CountQuery, Cut, CutSearch, DigitCounts};

/// A cut, and the median of the survivors' scores.
pub(super) struct FoundCut {
    pub(super) cut: Cut,
    pub(super) median: i32,
}

/// The searches for the cut and for the median, which run at the same time. Both start with the same query. The answer
/// to this query also gives the total number of candidates, which determines the position of the median.
struct Searches {
    width: usize,
    cut: CutSearch,
    median: Option<CutSearch>,
}

impl Searches {
    fn new(width: usize) -> Searches {
        Searches {
            width,
            cut: CutSearch::new(width),
            median: None,
        }
    }

    /// Returns the next query of each unfinished search, the cut's before the median's. Returns an empty list once
    /// both searches are finished.
    fn queries(&self) -> Vec<CountQuery> {
        let median = self.median.as_ref().and_then(CutSearch::query);
        self.cut.query().into_iter().chain(median).collect()
    }

    /// Continues the searches with the answers to the last [`queries`](Searches::queries), in the same order.
    fn answer(&mut self, counts: Vec<DigitCounts>) {
        let mut counts = counts.into_iter();
        let median_query = self.median.as_ref().and_then(CutSearch::query);
        if self.cut.query().is_some()
            && let Some(counts) = counts.next()
        {
            self.begin_median(&counts);
            self.cut.answer(&counts);
        }
        if let (Some(median), Some(_), Some(counts)) =
            (&mut self.median, median_query, counts.next())
        {
            median.answer(&counts);
        }
    }

    /// Starts the search for the median with the answer to the first query. Does nothing after the first call.
    fn begin_median(&mut self, counts: &DigitCounts) {
        if self.median.is_some() {
            return;
        }
        let counted = counts.iter().map(|(_, count)| count);
        let total = counted.fold(0, u64::saturating_add);
        let survivors = usize::try_from(total).unwrap_or(usize::MAX).min(self.width);
        // The median's position among the survivors, counted from the greatest score.
        let mut median = CutSearch::new((survivors - survivors / 2).max(1));
        median.answer(counts);
        self.median = Some(median);
    }

    fn found(self) -> FoundCut {
        FoundCut {
            cut: self.cut.cut(),
            median: self.median.map_or(0, |median| median.cut().score()),
        }
    }
}

impl EpochWorkers {
    /// Finds the cut that leaves at most `width` survivors, and their median score.
    pub(super) async fn find_cut(&self, depth: u32, width: usize) -> Result<FoundCut, WorkerError> {
        let mut searches = Searches::new(width);
        loop {
            let queries = searches.queries();
            if queries.is_empty() {
                return Ok(searches.found());
            }
            let counts = self.count(depth, &queries).await?;
            searches.answer(counts);
        }
    }

    /// Returns the answer to each query, summed over all workers.
    async fn count(
        &self,
        depth: u32,
        queries: &[CountQuery],
    ) -> Result<Vec<DigitCounts>, WorkerError> {
        let count = Count {
            depth,
            queries: queries.to_vec(),
        };
        let order = |_| OrderKind::Count(count.clone());
        let counted = |answer| match answer {
            AnswerKind::Counted(histograms) => Some(histograms),
            _ => None,
        };
        let mut sums = vec![DigitCounts::default(); queries.len()];
        let answers = self.ask_all(order, counted).await?;
        for (member, histograms) in self.members.iter().zip(answers) {
            let (found, expected) = (histograms.len(), queries.len());
            if found != expected {
                let reason = format!("it sent {found} histograms instead of {expected}");
                return Err(WorkerError::failed(&member.name, reason));
            }
            for (sum, histogram) in sums.iter_mut().zip(&histograms) {
                for counted in &histogram.counts {
                    sum.add(counted.digit, counted.count);
                }
            }
        }
        Ok(sums)
    }
}
