//! Estimates the end of a run from its last depths.

use crate::spec::RunSpec;
use hatebeam_search::EvaluatorKind;
use hatebeam_store::DepthRecord;
use std::collections::VecDeque;

/// How fast a run goes at present.
#[derive(Clone, Debug)]
pub struct ProgressEstimator {
    width: u64,
    max_depth: Option<u32>,
    /// How deep it may get, before its depths tell more.
    likely: [u32; 2],
    /// Depth, wells and seconds of the last depths.
    recent: VecDeque<(u32, u64, f64)>,
}

/// Where a run may end: of each the least and the most that is likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projection {
    /// The last depth.
    pub depths: (u32, u32),
    /// Seconds from now on.
    pub seconds: (f64, f64),
    /// What the estimate is based on, in words.
    pub basis: &'static str,
}

/// Lines of the games that beams found, by the logarithm of their width; *patterns*.
const PATTERNS: &[(f64, f64)] = &[
    (3.0, 32.0),
    (4.0, 51.0),
    (5.0, 71.0),
    (6.0, 75.0),
    (6.7, 99.0),
];
/// The same of the other evaluators: *knewjade* with the published weights.
const OTHERS: &[(f64, f64)] = &[(3.0, 12.0), (4.0, 23.0), (4.5, 25.0)];
/// Cells of a line and of a piece, and cells that are left when a game is over.
const LINE: f64 = 10.0;
const PIECE: f64 = 4.0;
const LEFT: f64 = 134.0;
/// How far the depth of a run may be from what others of about its width came to: a game's length is a chaotic
/// function of the width, and weights matter more.
const RANGE: [f64; 2] = [0.8, 1.3];

/// How deep a run may get, from the least that is likely to the most, as far as its specification tells.
pub fn likely_depths(spec: &RunSpec, max_depth: Option<u32>) -> [u32; 2] {
    let table = match spec.evaluator.kind {
        EvaluatorKind::Patterns => PATTERNS,
        _ => OTHERS,
    };
    let lines = interpolated(table, (spec.width.max(1) as f64).log10());
    let cells = (spec.well.columns * spec.well.rows) as f64 / 160.0;
    let pieces = (lines * LINE + LEFT) * cells / PIECE;
    // A game that begins in the middle is no shorter for that, all told, and one piece is always possible.
    let first = spec.start_depth() + 1;
    RANGE.map(|part| {
        let depth = ((pieces * part).round() as u32).max(first);
        max_depth.map_or(depth, |max| depth.min(max))
    })
}

fn interpolated(table: &[(f64, f64)], at: f64) -> f64 {
    let after = table
        .partition_point(|&(x, _)| x < at)
        .clamp(1, table.len() - 1);
    let ((x0, y0), (x1, y1)) = (table[after - 1], table[after]);
    (y0 + (at - x0) * (y1 - y0) / (x1 - x0)).max(0.0)
}

impl ProgressEstimator {
    /// Number of recent depths that the estimate uses.
    pub const DEPTHS: usize = 6;

    /// Of a run, to be stopped at this depth if there is one.
    pub fn new(spec: &RunSpec, max_depth: Option<u32>) -> ProgressEstimator {
        ProgressEstimator {
            width: spec.width,
            max_depth,
            likely: likely_depths(spec, max_depth),
            recent: VecDeque::with_capacity(ProgressEstimator::DEPTHS),
        }
    }

    /// Takes note of the next depth.
    pub fn add(&mut self, record: &DepthRecord) {
        if self.recent.len() == ProgressEstimator::DEPTHS {
            self.recent.pop_front();
        }
        let seconds = record.seconds.max(0.0);
        self.recent.push_back((record.depth, record.count, seconds));
    }

    /// Where the run may end; none before enough depths are known.
    pub fn projection(&self) -> Option<Projection> {
        let (&(from, first, _), &(depth, last, _)) = (self.recent.front()?, self.recent.back()?);
        if self.recent.len() < ProgressEstimator::DEPTHS {
            return None;
        }
        let seconds: f64 = self.recent.iter().map(|(_, _, seconds)| seconds).sum();
        let each = seconds / self.recent.len() as f64;
        let mut pairs = self.recent.iter().zip(self.recent.iter().skip(1));
        let shrinks = last < self.width && pairs.all(|(one, next)| next.1 < one.1);
        let capped = |depths: u32| self.max_depth.map_or(depths, |max| depths.min(max));
        if shrinks {
            let rate = (first as f64 / last.max(1) as f64).ln() / f64::from(depth - from);
            let left = ((last as f64).ln() / rate).ceil().clamp(1.0, 1e6);
            let ends = |left: f64| capped(depth.saturating_add(left.ceil() as u32)).max(depth);
            // What shrinks by the same part each depth takes, all told, half as much.
            let takes = |end: u32| each * f64::from(end - depth) / 2.0;
            let (low, high) = (ends(left / 2.0), ends(left * 2.0));
            return Some(Projection {
                depths: (low, high),
                seconds: (takes(low), takes(high)),
                basis: "the wells get fewer from depth to depth",
            });
        }
        let [low, high] = self.likely;
        // Nothing tells where a beam that is still full ends, when it has come so far already.
        let (low, high) = (capped(low.max(depth)), capped(high.max(depth + depth / 4)));
        let basis = match self.max_depth {
            Some(max) if max <= low => "the depth to stop at",
            _ => "the games that beams of such a width found, a quarter more or less",
        };
        let takes = |end: u32| each * f64::from(end.saturating_sub(depth));
        Some(Projection {
            depths: (low.max(depth), high.max(depth)),
            seconds: (takes(low), takes(high)),
            basis,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Start, WellSpec};
    use hatebeam_search::{EvaluatorSpec, Quiescence, Weights};

    fn spec(width: u64) -> RunSpec {
        RunSpec {
            width,
            well: WellSpec {
                columns: 10,
                rows: 16,
                clear_above_bar: false,
            },
            start: Start::Empty,
            evaluator: EvaluatorSpec {
                kind: EvaluatorKind::Patterns,
                weights: Weights::default(),
                quiescence: Quiescence::Off,
            },
        }
    }

    #[test]
    fn depths_grow_with_the_width_and_end_at_the_limit() {
        // As measured: 161 pieces at 10,000, 223 at 1,000,000, 283 at 5,000,000.
        for (width, pieces) in [(10_000, 161), (1_000_000, 223), (5_000_000, 283)] {
            let [low, high] = likely_depths(&spec(width), None);
            assert!((low..=high).contains(&pieces), "{width}: {low} {high}");
        }
        assert_eq!(likely_depths(&spec(10_000), Some(20)), [20, 20]);
        assert!(likely_depths(&spec(1), None)[0] >= 1);
        assert!(likely_depths(&spec(1 << 30), None)[1] < 700);
    }

    fn pace(width: u64, max_depth: Option<u32>, from: u32, counts: &[u64]) -> Option<Projection> {
        let mut pace = ProgressEstimator::new(&spec(width), max_depth);
        for (n, count) in counts.iter().enumerate() {
            pace.add(&DepthRecord {
                depth: from + n as u32,
                count: *count,
                digest: String::new(),
                best_eval: 0,
                median_eval: 0,
                worst_eval: 0,
                best_lines: 0,
                best_well: String::new(),
                children: 0,
                seconds: 2.0,
                bytes: 0,
                kept: true,
            });
        }
        pace.projection()
    }

    #[test]
    fn it_says_what_it_can_and_how_sure_it_is() {
        assert_eq!(pace(1000, None, 1, &[1, 17, 100]), None);
        let full = [1_000_000; 8];
        // Beams of a million wells found games of 223 pieces.
        let usual = pace(1_000_000, None, 50, &full).unwrap();
        assert!(usual.depths.0 < 223 && usual.depths.1 > 223, "{usual:?}");
        assert_eq!(usual.seconds.0, 2.0 * f64::from(usual.depths.0 - 57));
        let stopped = pace(1_000_000, Some(100), 50, &full).unwrap();
        assert_eq!(stopped.depths, (100, 100));
        assert_eq!(stopped.seconds, (86.0, 86.0));
        assert_eq!(stopped.basis, "the depth to stop at");
        // Longer than usual, and still full.
        let late = pace(1_000_000, None, 900, &full).unwrap();
        assert!(late.depths.0 == 907 && late.depths.1 > 907);
        // By half each depth: 10 more, give or take.
        let fewer = pace(
            100_000,
            None,
            150,
            &[65536, 32768, 16384, 8192, 4096, 2048, 1024],
        )
        .unwrap();
        assert!(fewer.depths.0 <= 166 && fewer.depths.1 >= 166, "{fewer:?}");
        assert!(fewer.depths.0 > 156 && fewer.depths.1 < 180, "{fewer:?}");
        let one = pace(100_000, None, 150, &[6, 5, 4, 3, 2, 1]).unwrap();
        assert!(one.depths.0 >= 155);
    }
}
