//! What there is to say of a frontier, or of a part of one.

use hatebeam_game::Geometry;
use hatebeam_search::{Digest, Node};
use hatebeam_store::DepthRecord;
use std::cmp::Ordering;

/// What there is to say of a part of a frontier. Parts can be joined in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontierSummary {
    /// Wells.
    pub count: u64,
    /// Of the nodes.
    pub digest: Digest,
    /// The greatest score; the least number of its kind without a node.
    pub best_eval: i32,
    /// The least score; the greatest number of its kind without a node.
    pub worst_eval: i32,
    /// The node with the most lines, then the greatest score, then the first well.
    pub best: Option<Node>,
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
    /// Of these nodes.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> FrontierSummary {
        let mut part = FrontierSummary::default();
        for node in nodes {
            part.join(&FrontierSummary {
                count: 1,
                digest: Digest::of([node]),
                best_eval: node.score,
                worst_eval: node.score,
                best: Some(*node),
            });
        }
        part
    }

    /// Adds another part of the same frontier.
    pub fn join(&mut self, other: &FrontierSummary) {
        self.count += other.count;
        self.digest.join(other.digest);
        self.best_eval = self.best_eval.max(other.best_eval);
        self.worst_eval = self.worst_eval.min(other.worst_eval);
        self.best = [self.best, other.best]
            .into_iter()
            .flatten()
            .max_by(by_lines);
    }

    /// The record of a depth that this is all of.
    pub fn record(
        &self,
        geometry: Geometry,
        (depth, median_eval): (u32, i32),
        children: u64,
        seconds: f64,
    ) -> DepthRecord {
        let well = self.best.and_then(|node| node.well.unpack(geometry).ok());
        DepthRecord {
            depth,
            count: self.count,
            digest: self.digest.to_string(),
            best_eval: if self.count == 0 { 0 } else { self.best_eval },
            median_eval,
            worst_eval: if self.count == 0 { 0 } else { self.worst_eval },
            best_lines: self.best.map_or(0, |node| node.lines),
            best_well: well.map_or_else(String::new, |well| well.to_hex(geometry)),
            children,
            seconds,
            bytes: 0,
            kept: true,
        }
    }
}

fn by_lines(a: &Node, b: &Node) -> Ordering {
    (a.lines, a.score)
        .cmp(&(b.lines, b.score))
        .then(b.well.cmp(&a.well))
}
