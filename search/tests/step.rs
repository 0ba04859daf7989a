//! The step against a brute force that keeps every child, and against itself with other threads, SIMD
//! levels and room.

#![allow(clippy::unwrap_used)]

use hatebeam_game::{Children, Emulator, Geometry, Rules, SimdLevel, Well};
use hatebeam_search::{
    Evaluator, EvaluatorSpec, Frontier, Kind, Node, NodeWell, Quiescence, Step, Weights,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64};

const GEOMETRY: Geometry = Geometry::STANDARD;

fn spec(kind: Kind, quiescence: Quiescence) -> EvaluatorSpec {
    EvaluatorSpec {
        kind,
        weights: Weights::default(),
        quiescence,
    }
}

fn root() -> Node {
    Node {
        score: 0,
        well: NodeWell::pack(GEOMETRY, &Well::EMPTY),
        game_score: 0,
        hint: 0,
    }
}

fn step(step: &Step, frontier: &Frontier) -> Frontier {
    step.run(frontier, &AtomicBool::new(false), &AtomicU64::new(0))
        .unwrap()
        .0
}

/// All children of all wells, merged and sorted in full.
fn brute_force(
    emulator: &Emulator,
    spec: &EvaluatorSpec,
    from: &[Node],
    width: usize,
) -> Vec<Node> {
    let mut evaluator = Evaluator::new(emulator, spec).unwrap();
    let (mut children, mut scores) = (Children::new(), Vec::new());
    let mut best: HashMap<NodeWell, Node> = HashMap::new();
    for parent in from {
        let well = parent.well.unpack(GEOMETRY).unwrap();
        emulator.expand(&well, &mut children);
        for (child, lines) in children.iter() {
            let game_score = parent.game_score + u16::from(lines);
            evaluator.score(&[*child], &[game_score], &mut scores);
            let node = Node {
                score: scores[0],
                well: NodeWell::pack(GEOMETRY, child),
                game_score,
                hint: well.hash() as u8,
            };
            let here = best.entry(node.well).or_insert(node);
            if (node.game_score, u8::MAX - node.hint) > (here.game_score, u8::MAX - here.hint) {
                *here = node;
            }
        }
    }
    let mut all: Vec<Node> = best.into_values().collect();
    all.sort_by_key(|node| {
        let ties = node.well.hash() as u32;
        (std::cmp::Reverse((node.score, ties)), node.well)
    });
    all.truncate(width);
    all.sort_by_key(|node| node.well);
    all
}

fn sorted(frontier: &Frontier) -> Vec<Node> {
    let mut nodes: Vec<Node> = frontier.nodes().copied().collect();
    nodes.sort_by_key(|node| node.well);
    nodes
}

#[test]
fn a_step_is_the_brute_force() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    for kind in Kind::ALL {
        for quiescence in [Quiescence::Off, Quiescence::Forced] {
            for width in [1, 37, 5000] {
                let spec = spec(kind, quiescence);
                let fast = Step::new(&emulator, spec, width, 2).unwrap();
                let mut frontier = Frontier::new(0, [root()], width);
                for _ in 0..14 {
                    let expected = brute_force(&emulator, &spec, &sorted(&frontier), width);
                    frontier = step(&fast, &frontier);
                    assert_eq!(
                        sorted(&frontier),
                        expected,
                        "{kind:?} {quiescence:?} {width} depth {}",
                        frontier.depth
                    );
                    for part in &frontier.parts {
                        assert!(part.is_sorted_by_key(|node| node.well));
                    }
                }
            }
        }
    }
}

/// What is left of a full table may be just as many wells as are wanted, or one more, or one less.
#[test]
fn a_step_of_any_width_is_the_brute_force() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let spec = spec(Kind::Knewjade, Quiescence::Off);
    for width in (1..=300).step_by(7) {
        let fast = Step::new(&emulator, spec, width, 2).unwrap();
        let mut frontier = Frontier::new(0, [root()], width);
        for _ in 0..20 {
            let expected = brute_force(&emulator, &spec, &sorted(&frontier), width);
            frontier = step(&fast, &frontier);
            assert_eq!(sorted(&frontier), expected, "{width}, {}", frontier.depth);
        }
    }
}

#[test]
fn threads_instructions_and_room_change_nothing() {
    let spec = spec(Kind::Knewjade, Quiescence::Forced);
    let digests = |level: SimdLevel, threads: usize, sigmas: f64| {
        let emulator = Emulator::with_level(GEOMETRY, Rules::default(), level).unwrap();
        let fast = Step::new(&emulator, spec, 6000, threads)
            .unwrap()
            .with_sigmas(sigmas);
        let mut frontier = Frontier::new(0, [root()], 6000);
        let mut digests = Vec::new();
        let mut repeats = 0;
        for _ in 0..25 {
            let (next, stats) = fast
                .run(&frontier, &AtomicBool::new(false), &AtomicU64::new(0))
                .unwrap();
            repeats += stats.repeats;
            frontier = next;
            digests.push(frontier.digest());
        }
        (digests, repeats)
    };
    let best = SimdLevel::available().last().unwrap();
    let (expected, repeats) = digests(best, 1, 8.0);
    assert_eq!(repeats, 0);
    for threads in [2, 8] {
        assert_eq!(digests(best, threads, 8.0).0, expected, "{threads} threads");
    }
    for level in SimdLevel::available() {
        assert_eq!(digests(level, 2, 8.0).0, expected, "{level}");
    }
    let (tight, repeats) = digests(best, 2, -3.0);
    assert!(repeats > 0, "no depth was done twice");
    assert_eq!(tight, expected);
}

#[test]
fn a_step_can_be_stopped() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let spec = spec(Kind::Plain, Quiescence::Off);
    let fast = Step::new(&emulator, spec, 10, 1).unwrap();
    let frontier = Frontier::new(0, [root()], 10);
    let stopped = fast.run(&frontier, &AtomicBool::new(true), &AtomicU64::new(0));
    assert!(stopped.is_err());
}

#[test]
fn weights_out_of_range_are_refused() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    for bad in [f64::NAN, f64::INFINITY, -1e9] {
        let mut spec = spec(Kind::Knewjade, Quiescence::Off);
        spec.weights.enclosed = bad;
        let error = Evaluator::new(&emulator, &spec).err().unwrap();
        assert_eq!(error.name, "enclosed");
    }
}
