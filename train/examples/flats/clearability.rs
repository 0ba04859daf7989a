//! The probability that a row is cleared, from the statistics of games.

use crate::statistics::{FULL, FlatStatistics, ROWS};
use clap::ValueEnum;
use petgraph::algo::dinics;
use petgraph::graph::{DiGraph, NodeIndex};

/// Number of imagined observations of a row, of which the share of all flats was cleared. So rarely observed rows have
/// nearly the mean probability.
const PRIOR: f64 = 4.0;

/// The calculation of the probability that a row is cleared.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Clearability {
    /// The maximum flow from the row to *cleared*, divided by the sum of this and the maximum flow to *immortal*. The
    /// capacity of an edge is the number of observed transitions.
    Flow,
    /// The probability of *cleared* if each row changes with the observed frequencies.
    Frequency,
}

impl Clearability {
    /// Returns for each row the probability that it is cleared. For the empty row it is 1.
    pub(crate) fn of_rows(self, statistics: &FlatStatistics) -> Vec<f64> {
        let prior = statistics.cleared_share();
        let mut all = match self {
            Clearability::Flow => flows(statistics, prior),
            Clearability::Frequency => frequencies(statistics, prior),
        };
        all[0] = 1.0;
        all
    }
}

fn with_prior(cleared: f64, immortal: f64, prior: f64) -> f64 {
    (cleared + PRIOR * prior) / (cleared + immortal + PRIOR)
}

fn flows(statistics: &FlatStatistics, prior: f64) -> Vec<f64> {
    let mut graph: DiGraph<(), u64> = DiGraph::with_capacity(ROWS + 1, statistics.growths.len());
    let nodes: Vec<NodeIndex> = (0..=ROWS).map(|_| graph.add_node(())).collect();
    let [full, immortal] = [nodes[usize::from(FULL)], nodes[ROWS]];
    for ([from, to], &count) in &statistics.growths {
        graph.add_edge(
            nodes[usize::from(*from)],
            nodes[usize::from(*to)],
            count.into(),
        );
    }
    for (row, &count) in &statistics.immortal {
        graph.add_edge(nodes[usize::from(*row)], immortal, count.into());
    }
    let flow = |from: NodeIndex, to| match from == to || graph.edges(from).next().is_none() {
        true => 0,
        false => dinics(&graph, from, to).0,
    };
    nodes[..ROWS]
        .iter()
        .map(|&row| with_prior(flow(row, full) as f64, flow(row, immortal) as f64, prior))
        .collect()
}

fn frequencies(statistics: &FlatStatistics, prior: f64) -> Vec<f64> {
    let mut all = vec![prior; ROWS];
    all[usize::from(FULL)] = 1.0;
    // Rows only gain cells, so the probabilities of what a row becomes are known before its own.
    for row in (0..FULL).rev() {
        let growths = statistics.growths.range([row, 0]..=[row, FULL]);
        let growths = growths.map(|([_, to], &count)| (f64::from(count), all[usize::from(*to)]));
        let (cleared, grown) = growths.fold((0.0, 0.0), |(cleared, grown), (count, share)| {
            (cleared + count * share, grown + count)
        });
        let immortal = statistics.immortal.get(&row).copied().unwrap_or(0);
        let immortal = f64::from(immortal) + grown - cleared;
        all[usize::from(row)] = with_prior(cleared, immortal, prior);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Three flats become the row `A`. Of these, two become `B`, and one becomes `C`. `B` is cleared once and immortal
    /// once. `C` is cleared.
    const A: u16 = 0b1;
    const B: u16 = 0b11;
    const C: u16 = 0b101;

    fn statistics() -> FlatStatistics {
        FlatStatistics {
            growths: BTreeMap::from([
                ([0, A], 3_000),
                ([A, B], 2_000),
                ([A, C], 1_000),
                ([B, FULL], 1_000),
                ([C, FULL], 1_000),
            ]),
            immortal: BTreeMap::from([(B, 1_000)]),
            games: 1,
            ..FlatStatistics::default()
        }
    }

    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 2e-3, "{found} {expected}");
    }

    #[test]
    fn flow_compares_maximum_flows_to_both_ends() {
        let all = Clearability::Flow.of_rows(&statistics());
        assert_eq!(all[0], 1.0);
        // 2,000 units can flow from A to the full row, and 1,000 to the immortal rows.
        assert_near(all[usize::from(A)], 2.0 / 3.0);
        assert_near(all[usize::from(B)], 0.5);
        assert_near(all[usize::from(C)], 1.0);
    }

    #[test]
    fn frequency_follows_transitions() {
        let all = Clearability::Frequency.of_rows(&statistics());
        assert_near(all[usize::from(A)], 2.0 / 3.0);
        assert_near(all[usize::from(B)], 0.5);
        assert_near(all[usize::from(C)], 1.0);
    }

    #[test]
    fn methods_differ_where_channels_are_wider_than_frequencies() {
        // Most flats that become B come from elsewhere. So the channel from B to the immortal rows is wide enough for all
        // that A can send there.
        let mut statistics = statistics();
        statistics.growths.insert([0b10, B], 8_000);
        statistics.immortal.insert(B, 9_000);
        let a = |method: Clearability| method.of_rows(&statistics)[usize::from(A)];
        assert_near(a(Clearability::Flow), 2_000.0 / 4_000.0);
        assert_near(a(Clearability::Frequency), (2.0 * 0.1 + 1.0) / 3.0);
    }

    #[test]
    fn unobserved_row_has_mean_probability() {
        let statistics = statistics();
        for method in [Clearability::Flow, Clearability::Frequency] {
            let all = method.of_rows(&statistics);
            assert_eq!(all[0b1111], statistics.cleared_share());
        }
    }
}
