//! Tests of the graph heuristic.

use crate::clearability::Clearability;
use crate::heuristic::{FlatHeuristic, FlatScorer};
use crate::statistics::{FlatStatistics, Passes};
use hatebeam_game::{Emulator, Geometry, Rules, Well};
use hatebeam_search::{Evaluator, EvaluatorKind, EvaluatorSpec, Quiescence};
use hatebeam_train::{Beam, BeamSettings, Noise, Scorer, run_beam};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

static CONTINUE: AtomicBool = AtomicBool::new(false);

fn emulator() -> Emulator {
    Emulator::new(Geometry::STANDARD, Rules::default())
}

fn patterns() -> Evaluator {
    let spec = EvaluatorSpec::new(EvaluatorKind::Patterns, Quiescence::Off);
    Evaluator::new(&emulator(), &spec).unwrap()
}

fn beam(scorer: &mut impl Scorer, width: usize, seed: u64) -> Beam {
    let settings = BeamSettings {
        noise: Noise {
            seed,
            first: 100.0,
            rest: 100.0,
        },
        keeps: true,
        ..BeamSettings::new(width, 1000)
    };
    run_beam(&emulator(), scorer, &settings, &CONTINUE)
}

/// Returns statistics in which `lower` is cleared in a quarter of all cases, and pieces pass from the empty row to
/// `upper` in half of all cases and from there to `lower` in a tenth.
fn statistics(upper: u16, lower: u16) -> FlatStatistics {
    let pair = |passed, stopped| Passes { passed, stopped };
    FlatStatistics {
        growths: BTreeMap::from([([upper, 1023], 30_000), ([lower, 1023], 10_000)]),
        immortal: BTreeMap::from([(upper, 30_000), (lower, 30_000)]),
        passes: BTreeMap::from([
            ([0, upper], pair(20_000, 20_000)),
            ([upper, lower], pair(2_000, 18_000)),
        ]),
        games: 1,
    }
}

#[test]
fn value_is_sum_of_clearability_times_reach() {
    let well = Well::from_picture(Geometry::STANDARD, "##........\n#######...").unwrap();
    let [lower, upper] = [well.rows()[0], well.rows()[1]];
    for method in [Clearability::Flow, Clearability::Frequency] {
        let heuristic = FlatHeuristic::new(&statistics(upper, lower), method);
        assert_eq!(heuristic.value(&Well::EMPTY), 16 << 16);
        let expected = 14.0 + 0.5 * 0.5 + 0.5 * 0.1 * 0.25;
        let found = f64::from(heuristic.value(&well)) / 65_536.0;
        assert!((found - expected).abs() < 1e-3, "{found} {expected}");
    }
}

#[test]
fn weight_adds_empty_rows_to_score_of_evaluator() {
    let well = Well::from_picture(Geometry::STANDARD, "##........\n#######...").unwrap();
    let wells = [Well::EMPTY, well];
    let mut expected = Vec::new();
    patterns().score(&wells, &[0, 3], &mut expected);
    let statistics = statistics(well.rows()[1], well.rows()[0]);
    let heuristic = FlatHeuristic::new(&statistics, Clearability::Flow);
    let values = wells.map(|well| heuristic.value(&well));
    let mut scorer = FlatScorer {
        heuristic,
        base: Some((patterns(), 10)),
    };
    let mut scores = Vec::new();
    scorer.score(&wells, &[0, 3], &mut scores);
    assert_eq!(scores[0] - expected[0], 16 * 10 * 256);
    assert_eq!(scores[1] - expected[1], values[1] * 10 / 256);
}

#[test]
fn heuristic_from_games_outlives_search_without_evaluator() {
    struct Nothing;
    impl Scorer for Nothing {
        fn score(&mut self, wells: &[Well], _: &[u16], out: &mut Vec<i32>) {
            out.clear();
            out.resize(wells.len(), 0);
        }
    }
    let mut statistics = FlatStatistics::default();
    for seed in 0..50 {
        let beam = beam(&mut patterns(), 10, seed);
        statistics.add_game(&emulator(), &beam.longest_game(Geometry::STANDARD));
    }
    assert_eq!(statistics.games, 50);
    let without = beam(&mut Nothing, 100, 1).pieces();
    for method in [Clearability::Flow, Clearability::Frequency] {
        let mut scorer = FlatScorer {
            heuristic: FlatHeuristic::new(&statistics, method),
            base: None,
        };
        let with = beam(&mut scorer, 100, 1).pieces();
        assert!(with > without + 5, "{with} {without}");
    }
}
