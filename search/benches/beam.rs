//! Benchmark of scoring, and of whole steps of the beam search from one depth to the next. The
//! results are times per child on one thread. Run it with `cargo bench -p hatebeam-search`.
//!
//! Options follow `--`. `--width N` sets the width of the beam [default: 250,000]. `--step EVALUATOR`
//! measures only the step with this evaluator, without quiescence (the search that continues from a
//! child with pieces that clear lines). `--loops EVALUATOR` measures only the ratio of a step that
//! applies the loop rule to one that does not, in games without repeated wells. `--score` measures
//! only scoring.

use hatebeam_game::{Children, Emulator, Geometry, Rules, SimdLevel, Well};
use hatebeam_search::{
    Evaluator, EvaluatorKind, EvaluatorSpec, Frontier, Network, Node, Past, Quiescence, RecentCuts,
    ShardLayout, Step,
};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

const GEOMETRY: Geometry = Geometry::STANDARD;

/// Returns the children of the wells in the benchmark file.
fn children(emulator: &Emulator) -> Vec<Well> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../game/tests/vectors/bench_beam.txt"
    );
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut children = Children::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let well = Well::from_hex(GEOMETRY, line).expect("every test vector is a valid well");
        emulator.expand(&well, &mut children);
        all.extend_from_slice(children.wells());
    }
    all
}

fn scoring(level: SimdLevel) {
    let emulator =
        Emulator::with_level(GEOMETRY, Rules::default(), level).expect("the level is available");
    let wells = children(&emulator);
    let lines = vec![0; wells.len()];
    for quiescence in Quiescence::ALL {
        for kind in [
            EvaluatorKind::Knewjade,
            EvaluatorKind::PlainHoles,
            EvaluatorKind::Patterns,
            EvaluatorKind::Network(
                Network::shipped("network")
                    .expect("the program contains this network")
                    .digest(),
            ),
        ] {
            let mut evaluator = Evaluator::new(&emulator, &EvaluatorSpec::new(kind, quiescence))
                .expect("the weights are in range");
            let mut scores = Vec::new();
            let mut times: Vec<f64> = (0..7)
                .map(|_| {
                    let start = Instant::now();
                    for (wells, lines) in wells.chunks(450).zip(lines.chunks(450)) {
                        evaluator.score(wells, lines, &mut scores);
                        black_box(&scores);
                    }
                    start.elapsed().as_nanos() as f64 / wells.len() as f64
                })
                .collect();
            times.sort_by(f64::total_cmp);
            println!(
                "score  {level:14} {:12} quiescence {:7} {:7.1} ns per child",
                kind.name(),
                quiescence.name(),
                times[3]
            );
        }
    }
}

fn root() -> Node {
    Node::first(GEOMETRY, &Well::EMPTY, 0)
}

/// Returns the lowest score in a frontier.
fn worst(frontier: &Frontier) -> i32 {
    let scores = frontier.nodes().map(|node| node.score);
    scores.min().unwrap_or(0)
}

fn beam(width: usize, kind: EvaluatorKind, quiescence: Quiescence) {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let spec = EvaluatorSpec::new(kind, quiescence);
    let step =
        Step::new(&emulator, spec, ShardLayout::local(width), 1).expect("the weights are in range");
    let (cancel, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut frontier = Arc::new(Frontier::new(0, [root()], ShardLayout::local(width)));
    let mut cuts = RecentCuts::default();
    let (mut children, mut seconds) = (0, 0.0);
    let mut last = Arc::clone(&frontier);
    while frontier.depth < 40 {
        let start = Instant::now();
        let (next, stats) = step
            .advance(Arc::clone(&frontier), cuts.floor(), &cancel, &progress)
            .expect("the step is not cancelled");
        if frontier.depth >= 20 {
            children += stats.children;
            seconds += start.elapsed().as_secs_f64();
        }
        cuts.add(next.len() as u64, worst(&next), width as u64);
        last = std::mem::replace(&mut frontier, Arc::new(next));
    }
    let whole = seconds * 1e9 / children as f64;
    // Measure only expanding and scoring, on the wells of the second-to-last depth.
    let mut evaluator = Evaluator::new(&emulator, &spec).expect("the weights are in range");
    let (mut out, mut scores, mut made) = (Children::new(), Vec::new(), 0);
    let start = Instant::now();
    let (mut wells, mut lines) = (Vec::new(), Vec::new());
    for nodes in last.shards.iter().flat_map(|part| part.chunks(32)) {
        wells.clear();
        lines.clear();
        for node in nodes {
            let well = node
                .well
                .unpack(GEOMETRY)
                .expect("wells in a frontier are valid for its geometry");
            emulator.expand(&well, &mut out);
            wells.extend_from_slice(out.wells());
            lines.extend(out.lines().iter().map(|&n| node.lines + u16::from(n)));
        }
        made += wells.len();
        evaluator.score(&wells, &lines, &mut scores);
        black_box(&scores);
    }
    let generate = start.elapsed().as_nanos() as f64 / made as f64;
    println!(
        "step   width {width:8} {:12} quiescence {:7} {whole:6.1} ns per child, \
         {generate:6.1} of it to expand and score, {:5.2} M children per second",
        kind.name(),
        quiescence.name(),
        1e3 / whole
    );
}

/// Measures the time of steps that apply the loop rule, relative to steps that do not. The two kinds of steps
/// alternate, so that other load on the machine affects both.
fn loops(width: usize, kind: EvaluatorKind) {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let spec = EvaluatorSpec::new(kind, Quiescence::Off);
    let layout = ShardLayout::local(width);
    let step = Step::new(&emulator, spec, layout, 1).expect("the weights are in range");
    let (cancel, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut frontier = Arc::new(Frontier::new(0, [root()], layout));
    let mut past = Past::new(GEOMETRY, &[Well::EMPTY]);
    let mut cuts = RecentCuts::default();
    let (mut ignoring, mut exact, mut most) = (0.0, 0.0, 0);
    while frontier.depth < 100 {
        let start = Instant::now();
        let plain = step.advance(Arc::clone(&frontier), cuts.floor(), &cancel, &progress);
        let (plain, _) = plain.expect("the step is not cancelled");
        let middle = Instant::now();
        let depth = step.advance_exact(&frontier, &mut past, cuts.floor(), &cancel, &progress);
        let next = depth.expect("the step is not cancelled").frontier;
        assert_eq!(next.digest(), plain.digest());
        if frontier.depth >= 20 {
            exact += middle.elapsed().as_secs_f64();
            ignoring += (middle - start).as_secs_f64();
            most = most.max(past.len());
        }
        cuts.add(next.len() as u64, worst(&next), width as u64);
        frontier = Arc::new(next);
    }
    println!(
        "loops  width {width:8} {:12} {:5.3} times the time without the loop rule, at most {:5.2} \
         wells of the past per well of width",
        kind.name(),
        exact / ignoring,
        most as f64 / width as f64
    );
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let width = args
        .iter()
        .position(|arg| arg == "--width")
        .and_then(|at| args.get(at + 1)?.parse().ok())
        .unwrap_or(250_000);
    let network =
        |name: &str| Network::shipped(name).map(|network| EvaluatorKind::Network(network.digest()));
    let only = |option: &str| {
        let at = args.iter().position(|arg| arg == option)?;
        let name = args.get(at + 1).map_or("", String::as_str);
        let mut kinds = EvaluatorKind::ALL.into_iter();
        let kind = kinds.find(|kind| kind.name() == name).or(network(name));
        Some(kind.unwrap_or_else(|| panic!("{option} {name}: unknown evaluator")))
    };
    if let Some(kind) = only("--step") {
        beam(width, kind, Quiescence::Off);
        return;
    }
    if let Some(kind) = only("--loops") {
        loops(width, kind);
        return;
    }
    for level in SimdLevel::available() {
        scoring(level);
    }
    if args.iter().any(|arg| arg == "--score") {
        return;
    }
    for quiescence in [Quiescence::Off, Quiescence::Forced] {
        beam(width, EvaluatorKind::Knewjade, quiescence);
        beam(width, EvaluatorKind::Patterns, quiescence);
    }
    beam(width, EvaluatorKind::PlainHoles, Quiescence::Off);
    let network = network("network").expect("the program contains this network");
    beam(width, network, Quiescence::Off);
}
