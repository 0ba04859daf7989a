//! Training targets from short beam searches.
//!
//! A short beam search starts with the labelled well. If it dies, the target is the number of pieces that it placed.
//! Otherwise, the target is the number of pieces that it placed plus a share of the network's estimate for its best
//! wells. So the targets of one generation depend on the network of the previous generation, and they are not limited
//! by the length of any beam.

use crate::beam::{BeamSettings, run_beam};
use crate::labels::Sample;
use crate::random::Random;
use crate::recipe::Lookahead;
use crate::workers::run_in_threads;
use hatebeam_game::{Children, Emulator, Well};
use hatebeam_search::{Evaluator, Network, NodeWell, Quiescence, VALUE_ONE};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of wells that a thread labels at a time.
const CHUNK: usize = 512;
/// Maximum estimate of the number of pieces. Estimates are far smaller unless the training diverges. Without this limit, their
/// targets would be infinite then, and a saved training could not be loaded.
const MAX_PIECES: f64 = (1 << 20) as f64;

/// Draws wells from `wells` and plays 0 to `lookahead.moves` random pieces from each. The result contains
/// `lookahead.samples` wells, or none if `wells` is empty.
pub(crate) fn draw_wells(
    emulator: &Emulator,
    wells: &[Sample],
    lookahead: &Lookahead,
    random: &mut Random,
) -> Vec<Well> {
    if wells.is_empty() {
        return Vec::new();
    }
    let mut children = Children::new();
    let draw = |_| {
        let drawn = wells[random.below(wells.len())].well;
        let mut well = drawn
            .unpack(emulator.geometry())
            .expect("samples contain live wells");
        for _ in 0..random.below(lookahead.moves + 1) {
            emulator.expand(&well, &mut children);
            if children.wells().is_empty() {
                break;
            }
            well = children.wells()[random.below(children.wells().len())];
        }
        well
    };
    (0..lookahead.samples).map(draw).collect()
}

/// Labels wells with the targets of short searches by `network`. If `cancel` becomes `true`, labels only some of them.
pub(crate) fn label_wells(
    emulator: &Emulator,
    network: &Arc<Network>,
    wells: &[Well],
    lookahead: &Lookahead,
    threads: usize,
    cancel: &AtomicBool,
) -> Vec<Sample> {
    let chunks: Vec<&[Well]> = wells.chunks(CHUNK).collect();
    let is_running = || !cancel.load(Ordering::Relaxed);
    let labelled = run_in_threads(threads, &chunks, |wells| {
        if !is_running() {
            return Vec::new();
        }
        let mut searcher = Searcher {
            emulator,
            evaluator: Evaluator::with_network(emulator, Arc::clone(network), Quiescence::Off),
            lookahead,
            cancel,
        };
        let label = |&well: &Well| Sample {
            well: NodeWell::pack(emulator.geometry(), &well),
            pieces: searcher.target(well),
        };
        let wells = wells.iter().take_while(|_| is_running());
        wells.map(label).collect::<Vec<Sample>>()
    });
    labelled.into_iter().flatten().collect()
}

struct Searcher<'a> {
    emulator: &'a Emulator,
    evaluator: Evaluator,
    lookahead: &'a Lookahead,
    cancel: &'a AtomicBool,
}

impl Searcher<'_> {
    fn target(&mut self, well: Well) -> f32 {
        let settings = BeamSettings {
            start: well,
            ..BeamSettings::new(self.lookahead.width, self.lookahead.pieces)
        };
        let beam = run_beam(self.emulator, &mut self.evaluator, &settings, self.cancel);
        let placed = beam.pieces() as f64;
        if beam.died {
            return placed as f32;
        }
        let last = beam.depths.last().expect("a beam has a first frontier");
        let geometry = self.emulator.geometry();
        let best = last.wells.iter().take(self.lookahead.best);
        let best: Vec<Well> = best
            .map(|well| {
                well.unpack(geometry)
                    .expect("all wells in a frontier are live")
            })
            .collect();
        let mut scores = Vec::new();
        self.evaluator
            .score(&best, &last.lines[..best.len()], &mut scores);
        let sum: f64 = scores.iter().map(|&score| estimated_pieces(score)).sum();
        (placed + self.lookahead.discount * sum / best.len() as f64) as f32
    }
}

/// Returns the number of pieces that corresponds to a network's value.
pub fn estimated_pieces(value: i32) -> f64 {
    // The result of `exp` differs between systems, so this code squares 1 + v/2^20 twenty times. With values below 6,
    // the relative error is below 2e-5.
    let value = f64::from(value) / f64::from(VALUE_ONE);
    let power = (0..20).fold(1.0 + value / f64::from(1 << 20), |power, _| power * power);
    (8.0 * (power - 1.0)).clamp(0.0, MAX_PIECES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Geometry, Rules};

    static CONTINUE: AtomicBool = AtomicBool::new(false);

    fn emulator() -> Emulator {
        Emulator::new(Geometry::STANDARD, Rules::default())
    }

    fn network() -> &'static Arc<Network> {
        Network::shipped("network").unwrap()
    }

    fn evaluator() -> Evaluator {
        Evaluator::with_network(&emulator(), Arc::clone(network()), Quiescence::Off)
    }

    fn children(well: &Well) -> Vec<Well> {
        let mut children = Children::new();
        emulator().expand(well, &mut children);
        children.wells().to_vec()
    }

    /// Returns the frontiers of a narrow beam that died.
    fn frontiers() -> Vec<Vec<Well>> {
        let settings = BeamSettings {
            keeps: true,
            ..BeamSettings::new(30, 1000)
        };
        let beam = run_beam(&emulator(), &mut evaluator(), &settings, &CONTINUE);
        assert!(beam.died);
        let unpack = |well: &NodeWell| well.unpack(Geometry::STANDARD).unwrap();
        let wells = beam.depths.iter().map(|depth| &depth.wells);
        wells
            .map(|wells| wells.iter().map(unpack).collect())
            .collect()
    }

    fn targets(wells: &[Well], lookahead: &Lookahead, threads: usize) -> Vec<f32> {
        let samples = label_wells(&emulator(), network(), wells, lookahead, threads, &CONTINUE);
        let packed = wells
            .iter()
            .map(|well| NodeWell::pack(Geometry::STANDARD, well));
        assert!(samples.iter().map(|sample| sample.well).eq(packed));
        samples.iter().map(|sample| sample.pieces).collect()
    }

    const LOOKAHEAD: Lookahead = Lookahead {
        samples: 100,
        moves: 0,
        width: 10_000,
        pieces: 3,
        best: 2,
        discount: 0.9,
    };

    #[test]
    fn estimate_inverts_target() {
        for pieces in [0.0f64, 1.0, 10.0, 100.0, 1000.0] {
            let value = (1.0 + pieces / 8.0).ln() * f64::from(VALUE_ONE);
            let found = estimated_pieces(value.round() as i32);
            assert!((found - pieces).abs() < 1e-4 * (pieces + 8.0), "{found}");
        }
        assert_eq!(estimated_pieces(-VALUE_ONE), 0.0);
        // The estimate of the second value is above the greatest `f32`, and that of the third one is infinite.
        for value in [12, 90, 2047] {
            assert_eq!(estimated_pieces(value * VALUE_ONE), 1_048_576.0);
        }
    }

    #[test]
    fn target_of_dying_well_is_number_of_pieces() {
        /// Returns the length of the longest game from a well, up to `most` pieces.
        fn longest(well: &Well, most: usize) -> usize {
            let after = |child| 1 + longest(child, most - 1);
            if most == 0 {
                return 0;
            }
            children(well).iter().map(after).max().unwrap_or(0)
        }
        let frontiers = frontiers();
        let dying: Vec<Well> = frontiers[frontiers.len() - 3..].concat();
        let mut counts = [0; 3];
        for (well, target) in dying.iter().zip(targets(&dying, &LOOKAHEAD, 1)) {
            match longest(well, 3) {
                3 => assert!(target >= 3.0),
                fewer => {
                    assert_eq!(target, fewer as f32);
                    counts[fewer] += 1;
                }
            }
        }
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    }

    #[test]
    fn target_adds_discounted_mean_of_best_estimates() {
        let lookahead = Lookahead {
            pieces: 1,
            ..LOOKAHEAD
        };
        let wells = frontiers().swap_remove(20);
        let mut scores = Vec::new();
        for (well, target) in wells.iter().zip(targets(&wells, &lookahead, 1)) {
            let children = children(well);
            evaluator().score(&children, &vec![0; children.len()], &mut scores);
            scores.sort_unstable();
            let best: Vec<f64> = scores
                .iter()
                .rev()
                .take(2)
                .map(|&score| estimated_pieces(score))
                .collect();
            let mean = best.iter().sum::<f64>() / best.len() as f64;
            assert_eq!(target, (1.0 + 0.9 * mean) as f32);
        }
    }

    #[test]
    fn targets_do_not_depend_on_thread_count() {
        let wells: Vec<Well> = frontiers().concat();
        let lookahead = Lookahead {
            width: 4,
            ..LOOKAHEAD
        };
        assert!(wells.len() > 2 * CHUNK);
        assert_eq!(
            targets(&wells, &lookahead, 1),
            targets(&wells, &lookahead, 3)
        );
    }

    #[test]
    fn cancelled_search_labels_no_wells() {
        let wells: Vec<Well> = frontiers().concat();
        let cancel = AtomicBool::new(true);
        let samples = label_wells(&emulator(), network(), &wells, &LOOKAHEAD, 2, &cancel);
        assert!(samples.is_empty());
    }

    #[test]
    fn drawn_wells_are_at_most_two_pieces_away() {
        let frontier = frontiers().swap_remove(20);
        let pack = |well: &Well| Sample {
            well: NodeWell::pack(Geometry::STANDARD, well),
            pieces: 0.0,
        };
        let samples: Vec<Sample> = frontier.iter().map(pack).collect();
        let lookahead = Lookahead {
            moves: 2,
            ..LOOKAHEAD
        };
        let mut random = Random::new(1, 0, 0);
        let drawn = draw_wells(&emulator(), &samples, &lookahead, &mut random);
        assert_eq!(drawn.len(), 100);
        let first: Vec<Well> = frontier.iter().flat_map(children).collect();
        let second: Vec<Well> = first.iter().flat_map(children).collect();
        let near = [frontier, first, second];
        let counts = near
            .each_ref()
            .map(|near| drawn.iter().filter(|well| near.contains(well)).count());
        assert_eq!(counts.iter().sum::<usize>(), 100);
        assert!(counts.iter().all(|&count| count > 15), "{counts:?}");
        assert!(draw_wells(&emulator(), &[], &lookahead, &mut random).is_empty());
    }
}
