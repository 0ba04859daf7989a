//! Summaries of frontiers and of their parts.

use crate::record::DepthWork;
use crate::spec::{RunSpec, SpecError};
use hatebeam_game::{Geometry, Well, WellError};
use hatebeam_search::{DepthRecord, Digest, Node};
use std::cmp::Ordering;
use thiserror::Error;

/// Summary of a frontier (the wells kept at one depth) or of a part of it. Summaries can be joined in any
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontierSummary {
    /// Number of wells.
    pub count: u64,
    /// Digest of the nodes.
    pub digest: Digest,
    /// Highest score, or [`i32::MIN`] if there are no nodes.
    pub best_eval: i32,
    /// Lowest score, or [`i32::MAX`] if there are no nodes.
    pub worst_eval: i32,
    /// The node with the most rows cleared, or `None` if there are no nodes. Ties are broken by the highest score, then by
    /// the lowest well.
    pub best: Option<Node>,
}

/// The reason why a summary does not describe a part of any frontier.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SummaryError {
    /// A part has a best well exactly if it has wells.
    #[error("the summary has a best well but no wells, or the reverse: its number of wells is {0}")]
    Count(u64),
    /// The best well is invalid.
    #[error("the best well of the summary is invalid: {0}")]
    BestWell(WellError),
    /// The lines of the best well do not match its number of cells.
    #[error("the {0} lines of the summary's best well do not match its number of cells")]
    Lines(u16),
}

/// Number of cells that each piece adds to a well.
const PIECE_CELLS: i64 = 4;

/// The relation between the depth, the lines and the number of cells of each well of a run: each piece adds four cells, and
/// each line removes the cells of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellBalance {
    geometry: Geometry,
    /// Number of cells in a well and in its cleared rows, minus the cells of the placed pieces.
    cells: i64,
}

impl CellBalance {
    /// Returns the relation for the wells of a run.
    ///
    /// # Errors
    /// Returns a [`SpecError`] if the specification is invalid.
    pub fn of(spec: &RunSpec) -> Result<CellBalance, SpecError> {
        let (geometry, start) = (spec.well.geometry()?, spec.check()?);
        Ok(CellBalance {
            geometry,
            cells: cells_of(geometry, start.well(), start.lines, start.depth()),
        })
    }

    /// Returns whether a well at a depth can be the result of a game of the run that clears this number of lines.
    pub fn holds(&self, well: &Well, lines: u16, depth: u32) -> bool {
        cells_of(self.geometry, well, lines, depth) == self.cells
    }
}

/// Returns the number of cells in a well and in its cleared rows, minus the cells of `depth` pieces.
fn cells_of(geometry: Geometry, well: &Well, lines: u16, depth: u32) -> i64 {
    let cleared = i64::from(lines) * geometry.width() as i64;
    i64::from(well.filled()) + cleared - PIECE_CELLS * i64::from(depth)
}

impl Default for FrontierSummary {
    fn default() -> FrontierSummary {
        FrontierSummary {
            count: 0,
            digest: Digest::default(),
            best_eval: i32::MIN,
            worst_eval: i32::MAX,
            best: None,
        }
    }
}

impl FrontierSummary {
    /// Returns the summary of the given nodes.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> FrontierSummary {
        let mut summary = FrontierSummary::default();
        for node in nodes {
            summary.join(&FrontierSummary {
                count: 1,
                digest: Digest::of([node]),
                best_eval: node.score,
                worst_eval: node.score,
                best: Some(*node),
            });
        }
        summary
    }

    /// Checks a summary from another process of wells at a depth.
    ///
    /// # Errors
    /// Returns a [`SummaryError`] if no part of a frontier has this summary.
    pub fn check(&self, balance: &CellBalance, depth: u32) -> Result<(), SummaryError> {
        if self.best.is_some() != (self.count > 0) {
            return Err(SummaryError::Count(self.count));
        }
        let Some(best) = self.best else {
            return Ok(());
        };
        let well = best.well.unpack(balance.geometry);
        let well = well.map_err(SummaryError::BestWell)?;
        match balance.holds(&well, best.lines, depth) {
            true => Ok(()),
            false => Err(SummaryError::Lines(best.lines)),
        }
    }

    /// Adds the summary of another part of the same frontier.
    pub fn join(&mut self, other: &FrontierSummary) {
        self.count = self.count.saturating_add(other.count);
        self.digest.join(other.digest);
        self.best_eval = self.best_eval.max(other.best_eval);
        self.worst_eval = self.worst_eval.min(other.worst_eval);
        self.best = [self.best, other.best]
            .into_iter()
            .flatten()
            .max_by(by_lines);
    }

    /// Converts the summary of a whole frontier to the record of its depth.
    pub fn record(&self, geometry: Geometry, work: DepthWork) -> DepthRecord {
        let well = self.best.and_then(|node| node.well.unpack(geometry).ok());
        let (best_eval, worst_eval) = match self.count {
            0 => (0, 0),
            _ => (self.best_eval, self.worst_eval),
        };
        DepthRecord {
            depth: work.depth,
            count: self.count,
            digest: self.digest.to_string(),
            best_eval,
            median_eval: work.median_eval,
            worst_eval,
            best_lines: self.best.map_or(0, |node| node.lines),
            best_well: well.map_or_else(String::new, |well| well.to_hex(geometry)),
            children: work.children,
            seconds: work.seconds,
            bytes: 0,
            kept: true,
            changed: Vec::new(),
        }
    }
}

/// Orders nodes by rows cleared, then by score, then by well in descending order.
fn by_lines(a: &Node, b: &Node) -> Ordering {
    (a.lines, a.score)
        .cmp(&(b.lines, b.score))
        .then(b.well.cmp(&a.well))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_search::{EvaluatorKind, EvaluatorSpec, NodeWell, Quiescence};

    #[test]
    fn summary_without_a_valid_best_well_is_refused() {
        let geometry = Geometry::STANDARD;
        let evaluator = EvaluatorSpec::new(EvaluatorKind::Plain, Quiescence::Off);
        let balance = CellBalance::of(&RunSpec::new(10, evaluator)).unwrap();
        let node = Node {
            score: 5,
            well: NodeWell::pack(geometry, &Well::EMPTY),
            lines: 0,
            hint: 0,
        };
        let whole = FrontierSummary::of(&[node]);
        assert_eq!(whole.check(&balance, 0), Ok(()));
        assert_eq!(FrontierSummary::default().check(&balance, 0), Ok(()));
        let without = FrontierSummary {
            best: None,
            ..whole
        };
        assert_eq!(without.check(&balance, 0), Err(SummaryError::Count(1)));
        let without = FrontierSummary { count: 0, ..whole };
        assert_eq!(without.check(&balance, 0), Err(SummaryError::Count(0)));
        let well = NodeWell([0xff; 20]);
        let invalid = FrontierSummary {
            best: Some(Node { well, ..node }),
            ..whole
        };
        let error = invalid.check(&balance, 0).unwrap_err();
        assert!(matches!(error, SummaryError::BestWell(_)), "{error}");
        // Five pieces fill two rows. No other number of lines leaves an empty well.
        let with_lines = |lines| FrontierSummary {
            best: Some(Node { lines, ..node }),
            ..whole
        };
        assert_eq!(with_lines(2).check(&balance, 5), Ok(()));
        let error = Err(SummaryError::Lines(3));
        assert_eq!(with_lines(3).check(&balance, 5), error);
    }
}
