//! Training targets for the wells of one beam.
//!
//! A beam dies at depth `D` if no well at that depth has a child. For a well at depth `d`, let `R = D - d` be the
//! number of pieces that the beam still placed, and let `k` be the number of later depths at which the beam contained a
//! descendant of the well. The target is `R (0.5 + 0.5 min(1, k / min(20, R)))` pieces. `R` sets the scale, and `k`
//! orders the wells of one depth.

use crate::beam::Beam;
use hatebeam_search::NodeWell;

/// Number of later depths at which the beam must contain a descendant for a well to get the full target.
const HORIZON: f32 = 20.0;
/// Assumed number of further pieces for a beam that did not die.
const BEYOND: usize = 200;

/// A well with its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The well.
    pub well: NodeWell,
    /// The target: an estimate of the number of pieces that can still be placed.
    pub pieces: f32,
}

/// Returns, for each well at each depth of the beam, the depth of its last descendant in the beam. For a well without
/// descendants, this is the well's own depth. The beam must [keep](crate::BeamSettings::keeps) all frontiers.
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

/// Labels all wells of a beam with their targets. A beam that did not die is treated as if it had died 200 pieces
/// later, and as if all wells at its last depth had had descendants until then. The beam must
/// [keep](crate::BeamSettings::keeps) all frontiers.
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
