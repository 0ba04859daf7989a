//! Targets of wells from one beam.
//!
//! A beam that dies at depth `D` shows for each of its wells how long it had, `R = D - d`, and for how
//! many depths `k` some descendant stayed in the frontiers. The target is `R (0.5 + 0.5 min(1, k / min(20, R)))`
//! pieces: `R` gives the absolute scale, `k` the order within a frontier.

use crate::beam::Beam;
use hatebeam_search::NodeWell;

/// Number of depths after which a descendant in the beam counts fully.
const HORIZON: f32 = 20.0;
/// Number of pieces that a beam which reached its limit is taken to have had left.
const BEYOND: usize = 200;

/// A well with its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The well.
    pub well: NodeWell,
    /// Pieces still to come.
    pub pieces: f32,
}

/// For each well of each frontier, the depth of its last descendant.
pub fn lifetimes(beam: &Beam) -> Vec<Vec<u32>> {
    let mut last: Vec<Vec<u32>> = beam
        .depths
        .iter()
        .zip(0..)
        .map(|(depth, at)| vec![at; depth.wells.len()])
        .collect();
    for at in (1..last.len()).rev() {
        let (before, from) = last.split_at_mut(at);
        for &[parent, child] in &beam.depths[at].edges {
            let parent = &mut before[at - 1][parent as usize];
            *parent = (*parent).max(from[0][child as usize]);
        }
    }
    last
}

/// Labels all wells of a beam. A beam that reached its limit of pieces counts as if it had died 200 pieces
/// later, with descendants of its last frontier.
pub fn label_beam(beam: &Beam) -> Vec<Sample> {
    let last = lifetimes(beam);
    let reached = beam.pieces();
    let end = if beam.died { reached } else { reached + BEYOND };
    let mut samples = Vec::new();
    for (at, (depth, last)) in beam.depths.iter().zip(&last).enumerate() {
        let rest = (end - at) as f32;
        for (&well, &last) in depth.wells.iter().zip(last) {
            let last = if last as usize == reached {
                end
            } else {
                last as usize
            };
            let stayed = (last - at) as f32;
            let share = if rest > 0.0 {
                (stayed / rest.min(HORIZON)).min(1.0)
            } else {
                0.0
            };
            samples.push(Sample {
                well,
                pieces: rest * (0.5 + 0.5 * share),
            });
        }
    }
    samples
}
