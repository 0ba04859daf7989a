//! Creation of depth records. A depth record contains statistics of one depth of a run.

use crate::spec::{RunSpec, SpecError, StartingPosition};
use crate::summary::FrontierSummary;
use hatebeam_game::Geometry;
use hatebeam_search::{DepthRecord, Frontier, Node, ShardLayout};

/// Returns the node with which a search begins.
///
/// # Errors
/// Returns [`SpecError::Geometry`] if the specification has an invalid geometry.
pub fn first_node(spec: &RunSpec, start: &StartingPosition) -> Result<Node, SpecError> {
    let geometry = spec.well.geometry()?;
    Ok(Node::first(geometry, start.well(), start.lines))
}

/// Returns the record of a run's first depth.
///
/// # Errors
/// Returns a [`SpecError`] if the specification is invalid.
pub fn first_record(spec: &RunSpec) -> Result<DepthRecord, SpecError> {
    let start = spec.check()?;
    let frontier = Frontier::new(
        start.depth(),
        [first_node(spec, &start)?],
        ShardLayout::new(1, 1),
    );
    Ok(record_of(spec.well.geometry()?, &frontier, 0, 0.0))
}

/// Returns the record of a frontier (the wells kept at a depth) that was selected from `children` children in
/// `seconds`.
pub fn record_of(
    geometry: Geometry,
    frontier: &Frontier,
    children: u64,
    seconds: f64,
) -> DepthRecord {
    let mut scores: Vec<i32> = frontier.nodes().map(|node| node.score).collect();
    let middle = scores.len() / 2;
    let median_eval = if scores.is_empty() {
        0
    } else {
        *scores.select_nth_unstable(middle).1
    };
    drop(scores);
    FrontierSummary::of(frontier.nodes()).record(
        geometry,
        DepthWork {
            depth: frontier.depth,
            median_eval,
            children,
            seconds,
        },
    )
}

/// Facts about a depth that its frontier's [summary](FrontierSummary) does not contain.
#[derive(Clone, Copy, Debug)]
pub struct DepthWork {
    /// The depth.
    pub depth: u32,
    /// Median score of the wells.
    pub median_eval: i32,
    /// Number of distinct children of each parent, summed over all parents.
    pub children: u64,
    /// Duration of the search at this depth, in seconds.
    pub seconds: f64,
}
