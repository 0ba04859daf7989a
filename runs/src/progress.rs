//! Estimates of when a run will end, based on its most recent depths.

use crate::spec::RunSpec;
use hatebeam_search::{DepthRecord, EvaluatorKind};
use std::collections::VecDeque;

/// Estimates the end of a run from its most recent depths.
#[derive(Clone, Debug)]
pub struct ProgressEstimator {
    width: u64,
    max_depth: Option<u32>,
    /// Lowest and highest likely last depth, as estimated from the specification alone.
    likely: [u32; 2],
    /// The most recent depths.
    recent: VecDeque<Recent>,
}

/// The facts about a depth that the estimate uses.
#[derive(Clone, Copy, Debug)]
struct Recent {
    depth: u32,
    wells: u64,
    seconds: f64,
}

/// Estimated end of a run. Each range consists of the lowest and the highest likely value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projection {
    /// Last depth.
    pub depths: (u32, u32),
    /// Remaining time in seconds.
    pub seconds: (f64, f64),
    /// Description of the basis of the estimate.
    pub basis: &'static str,
}

/// Rows cleared by the best games found with the evaluator `patterns`. Each pair contains the decimal logarithm of the
/// width and the number of rows.
const PATTERNS: &[(f64, f64)] = &[
    (3.0, 32.0),
    (4.0, 51.0),
    (5.0, 71.0),
    (6.0, 75.0),
    (6.7, 99.0),
];
/// Rows cleared by the best games found with the network `network`, in the same form as [`PATTERNS`].
const NETWORK: &[(f64, f64)] = &[
    (3.0, 41.0),
    (3.3, 56.0),
    (3.6, 60.0),
    (4.0, 78.0),
    (5.0, 81.0),
    (5.4, 91.0),
];
/// Rows cleared by the best games found with the other evaluators, in the same form as [`PATTERNS`]. The numbers were
/// measured with `knewjade` and the published weights.
const OTHERS: &[(f64, f64)] = &[(3.0, 12.0), (4.0, 23.0), (4.5, 25.0)];
/// Number of cells in a row of the standard well.
const CELLS_PER_LINE: f64 = 10.0;
/// Number of cells in a piece.
const CELLS_PER_PIECE: f64 = 4.0;
/// Typical number of filled cells in the standard well when a game is over.
const CELLS_LEFT: f64 = 134.0;
/// Lowest and highest likely ratio of a game's length to the length interpolated for the beam's width. The length is
/// a chaotic function of the width, and weights have an even larger effect.
const RANGE: [f64; 2] = [0.8, 1.3];

/// Returns the lowest and the highest likely last depth of a run, as estimated from its specification.
pub fn likely_depths(spec: &RunSpec, max_depth: Option<u32>) -> [u32; 2] {
    let table = match spec.evaluator.kind {
        EvaluatorKind::Patterns => PATTERNS,
        EvaluatorKind::Network(_) => NETWORK,
        _ => OTHERS,
    };
    let lines = interpolated(table, (spec.width.max(1) as f64).log10());
    let cells = (spec.well.columns * spec.well.rows) as f64 / 160.0;
    let pieces = (lines * CELLS_PER_LINE + CELLS_LEFT) * cells / CELLS_PER_PIECE;
    // Depths are counted from the start of the game, so a start in the middle of a game only sets a lower bound.
    let first = spec.start_depth() + 1;
    RANGE.map(|part| {
        let depth = ((pieces * part).round() as u32).max(first);
        max_depth.map_or(depth, |max| depth.min(max))
    })
}

/// Interpolates linearly between the points of a table, and extrapolates its outermost segments.
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

    /// Creates an estimator without depths.
    pub fn new(spec: &RunSpec, max_depth: Option<u32>) -> ProgressEstimator {
        ProgressEstimator {
            width: spec.width,
            max_depth,
            likely: likely_depths(spec, max_depth),
            recent: VecDeque::with_capacity(ProgressEstimator::DEPTHS),
        }
    }

    /// Adds the next depth.
    pub fn add(&mut self, record: &DepthRecord) {
        if self.recent.len() == ProgressEstimator::DEPTHS {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent {
            depth: record.depth,
            wells: record.count,
            seconds: record.seconds.max(0.0),
        });
    }

    /// Returns the estimated end of the run, or `None` until [`ProgressEstimator::DEPTHS`] depths have been
    /// added.
    pub fn projection(&self) -> Option<Projection> {
        if self.recent.len() < ProgressEstimator::DEPTHS {
            return None;
        }
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        let seconds: f64 = self.recent.iter().map(|recent| recent.seconds).sum();
        let per_depth = seconds / self.recent.len() as f64;
        let mut pairs = self.recent.iter().zip(self.recent.iter().skip(1));
        let shrinks = last.wells < self.width && pairs.all(|(one, next)| next.wells < one.wells);
        Some(if shrinks {
            self.shrinking(first, last, per_depth)
        } else {
            self.full(last.depth, per_depth)
        })
    }

    fn limited(&self, depth: u32) -> u32 {
        self.max_depth.map_or(depth, |max| depth.min(max))
    }

    /// Estimates the end of a beam that loses wells at every depth, assuming that the number of wells
    /// decreases exponentially.
    fn shrinking(&self, first: &Recent, last: &Recent, per_depth: f64) -> Projection {
        let ratio = first.wells as f64 / last.wells.max(1) as f64;
        let rate = ratio.ln() / f64::from(last.depth - first.depth);
        let left = ((last.wells as f64).ln() / rate).ceil().clamp(1.0, 1e6);
        let end = |left: f64| {
            let depth = last.depth.saturating_add(left.ceil() as u32);
            self.limited(depth).max(last.depth)
        };
        let (low, high) = (end(left / 2.0), end(left * 2.0));
        // The time per depth decreases too, so the remaining depths take about half the time that they would
        // take at the current speed.
        let seconds = |end: u32| per_depth * f64::from(end - last.depth) / 2.0;
        Projection {
            depths: (low, high),
            seconds: (seconds(low), seconds(high)),
            basis: "the decreasing number of wells",
        }
    }

    /// Estimates the end of a beam at full width from games that other beams of this width found.
    fn full(&self, depth: u32, per_depth: f64) -> Projection {
        let [low, high] = self.likely;
        // A beam that is still full beyond these depths may continue for another quarter of its depth.
        let low = self.limited(low.max(depth)).max(depth);
        let high = self.limited(high.max(depth + depth / 4)).max(depth);
        let basis = match self.max_depth {
            Some(max) if max <= low => "the depth limit",
            _ => "games that beams of this width found, with a margin",
        };
        let seconds = |end: u32| per_depth * f64::from(end.saturating_sub(depth));
        Projection {
            depths: (low, high),
            seconds: (seconds(low), seconds(high)),
            basis,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::Geometry;
    use hatebeam_search::{EvaluatorSpec, Quiescence};

    fn spec(width: u64) -> RunSpec {
        spec_with(EvaluatorKind::Patterns, width)
    }

    fn spec_with(kind: EvaluatorKind, width: u64) -> RunSpec {
        RunSpec::new(width, EvaluatorSpec::new(kind, Quiescence::Off))
    }

    #[test]
    fn likely_depths_include_measured_games_and_respect_limit() {
        // Measured number of pieces: 161 at width 10,000, 223 at 1,000,000, and 283 at 5,000,000.
        for (width, pieces) in [(10_000, 161), (1_000_000, 223), (5_000_000, 283)] {
            let [low, high] = likely_depths(&spec(width), None);
            assert!((low..=high).contains(&pieces), "{width}: {low} {high}");
        }
        // Measured number of pieces with the default network: 135 at width 1,000, and 228 at 10,000.
        let network = EvaluatorKind::default_for(Geometry::STANDARD);
        for (width, pieces) in [(1000, 135), (10_000, 228)] {
            let [low, high] = likely_depths(&spec_with(network, width), None);
            assert!((low..=high).contains(&pieces), "{width}: {low} {high}");
        }
        assert_eq!(likely_depths(&spec(10_000), Some(20)), [20, 20]);
        assert!(likely_depths(&spec(1), None)[0] >= 1);
        assert!(likely_depths(&spec(1 << 30), None)[1] < 700);
    }

    fn projection(
        width: u64,
        max_depth: Option<u32>,
        from: u32,
        counts: &[u64],
    ) -> Option<Projection> {
        let mut estimator = ProgressEstimator::new(&spec(width), max_depth);
        for (n, count) in counts.iter().enumerate() {
            estimator.add(&DepthRecord {
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
                changed: Vec::new(),
            });
        }
        estimator.projection()
    }

    #[test]
    fn projection_depends_on_width_limit_and_recent_well_counts() {
        assert_eq!(projection(1000, None, 1, &[1, 17, 100]), None);
        let full = [1_000_000; 8];
        // Beams with a million wells found games of 223 pieces.
        let usual = projection(1_000_000, None, 50, &full).unwrap();
        assert!(usual.depths.0 < 223 && usual.depths.1 > 223, "{usual:?}");
        assert_eq!(usual.seconds.0, 2.0 * f64::from(usual.depths.0 - 57));
        let stopped = projection(1_000_000, Some(100), 50, &full).unwrap();
        assert_eq!(stopped.depths, (100, 100));
        assert_eq!(stopped.seconds, (86.0, 86.0));
        assert_eq!(stopped.basis, "the depth limit");
        // This beam is deeper than usual, but still full.
        let late = projection(1_000_000, None, 900, &full).unwrap();
        assert!(late.depths.0 == 907 && late.depths.1 > 907);
        // The number of wells halves at each depth, so about 10 depths remain.
        let fewer = projection(
            100_000,
            None,
            150,
            &[65536, 32768, 16384, 8192, 4096, 2048, 1024],
        )
        .unwrap();
        assert!(fewer.depths.0 <= 166 && fewer.depths.1 >= 166, "{fewer:?}");
        assert!(fewer.depths.0 > 156 && fewer.depths.1 < 180, "{fewer:?}");
        let one = projection(100_000, None, 150, &[6, 5, 4, 3, 2, 1]).unwrap();
        assert!(one.depths.0 >= 155);
    }
}
