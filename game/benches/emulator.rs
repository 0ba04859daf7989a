//! Benchmark of the emulators: times per well and per child, at every SIMD level that this machine
//! supports and for the oracle (the slow reference emulator). Run it with `cargo bench -p hatebeam-game`.
//!
//! Each row of the output is the median of several rounds. The rounds of a table's rows are
//! interleaved, so a lasting disturbance affects all of them about equally. On a noisy machine, the
//! ratios within one table are reliable even if the times are not.

use hatebeam_game::reference::Reference;
use hatebeam_game::{
    Backward, Children, Emulator, Geometry, PathFinder, Piece, Rules, SimdLevel, Well,
};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 15;

/// A case to measure.
struct Case<'a> {
    name: String,
    /// Processes all wells and returns the number of children, parents or keys produced. The case
    /// `piece` returns a meaningless sum, which is not printed.
    run: Box<dyn FnMut() -> usize + 'a>,
    /// Number of wells that one call to `run` processes.
    wells: usize,
    nanoseconds: Vec<f64>,
    /// Result of the last call to `run`.
    made: usize,
}

impl<'a> Case<'a> {
    fn new(name: String, wells: usize, run: impl FnMut() -> usize + 'a) -> Case<'a> {
        Case {
            name,
            run: Box::new(run),
            wells,
            nanoseconds: Vec::new(),
            made: 0,
        }
    }

    fn round(&mut self) {
        let start = Instant::now();
        self.made = black_box((self.run)());
        self.nanoseconds.push(start.elapsed().as_nanos() as f64);
    }

    fn median(&mut self) -> f64 {
        self.nanoseconds.sort_by(f64::total_cmp);
        self.nanoseconds[self.nanoseconds.len() / 2]
    }
}

fn wells(file: &str) -> Vec<Well> {
    let path = format!("{}/tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let well =
        |line| Well::from_hex(Geometry::STANDARD, line).expect("every test vector is a valid well");
    text.lines().map(well).collect()
}

fn forwards<'a>(cases: &mut Vec<Case<'a>>, wells: &'a [Well]) {
    let oracle = Reference::new(Geometry::STANDARD, Rules::default());
    let few = &wells[..wells.len().min(200)];
    cases.push(Case::new(
        "oracle: piece and children".into(),
        few.len(),
        move || {
            few.iter()
                .map(|well| oracle.expand(well, oracle.piece(well)).children.len())
                .sum()
        },
    ));
    for level in SimdLevel::available() {
        let emulator = Emulator::with_level(Geometry::STANDARD, Rules::default(), level)
            .expect("the level is available");
        let piece = emulator.clone();
        cases.push(Case::new(
            format!("{level}: piece"),
            wells.len(),
            move || wells.iter().map(|well| piece.piece(well).index()).sum(),
        ));
        let clears = emulator.clone();
        cases.push(Case::new(
            format!("{level}: pieces that clear"),
            wells.len(),
            move || {
                let pieces = |well| clears.clears(well, 0, None).pieces.count_ones() as usize;
                wells.iter().map(pieces).sum()
            },
        ));
        let mut children = Children::new();
        cases.push(Case::new(
            format!("{level}: piece and children"),
            wells.len(),
            move || {
                wells
                    .iter()
                    .map(|well| {
                        black_box(emulator.expand(well, &mut children));
                        children.len()
                    })
                    .sum()
            },
        ));
    }
}

/// Returns every 20th well, for the slower cases.
fn some(wells: &[Well]) -> Vec<Well> {
    wells.iter().step_by(20).copied().collect()
}

fn backwards<'a>(cases: &mut Vec<Case<'a>>, wells: &'a [Well]) {
    for level in SimdLevel::available() {
        let emulator = Emulator::with_level(Geometry::STANDARD, Rules::default(), level)
            .expect("the level is available");
        let mut backward = Backward::new(&emulator);
        let mut parents = Vec::new();
        cases.push(Case::new(
            format!("{level}: parents"),
            wells.len(),
            move || {
                let mut found = 0;
                for well in wells {
                    backward.parents(well, &mut parents);
                    found += parents.len();
                }
                found
            },
        ));
    }
}

fn paths<'a>(cases: &mut Vec<Case<'a>>, steps: &'a [(Well, Piece, Well)]) {
    let mut paths = PathFinder::new(Geometry::STANDARD, Rules::default());
    let mut keys = Vec::new();
    cases.push(Case::new("key path".into(), steps.len(), move || {
        let mut pressed = 0;
        for (parent, piece, child) in steps {
            keys.clear();
            assert!(
                paths.find(parent, *piece, child, &mut keys),
                "every child has a key path"
            );
            pressed += keys.len();
        }
        pressed
    }));
}

/// Returns every child of the wells, with its parent and piece.
fn steps(wells: &[Well]) -> Vec<(Well, Piece, Well)> {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    let mut children = Children::new();
    let mut steps = Vec::new();
    for well in wells {
        let piece = emulator.expand(well, &mut children);
        steps.extend(children.wells().iter().map(|child| (*well, piece, *child)));
    }
    steps
}

/// Measures the cases and prints a table. `made` names what a case produces. If `ratio` is true, an
/// additional column compares each case with the first.
fn measure(title: &str, made: &str, ratio: bool, cases: &mut [Case<'_>]) {
    for case in cases.iter_mut() {
        (case.run)(); // warm up
    }
    for _ in 0..ROUNDS {
        cases.iter_mut().for_each(Case::round);
    }
    println!("\n{title}");
    let last = if ratio { "speedup" } else { "" };
    println!(
        "{:34} {:>10} {:>14} {:>12} {last:>12}",
        "",
        "ns each",
        format!("ns per {made}"),
        "count each"
    );
    let first = cases[0].median() / cases[0].wells as f64;
    for case in cases {
        let each = case.median() / case.wells as f64;
        let made = case.made as f64 / case.wells as f64;
        print!("{:34} {each:>10.1}", case.name);
        if case.name.ends_with(": piece") {
            print!("{:>28}", "");
        } else {
            print!(" {:>14.1} {made:>12.1}", each / made);
        }
        println!(
            "{}",
            if ratio {
                format!(" {:>12.1}", first / each)
            } else {
                String::new()
            }
        );
    }
}

fn main() {
    for file in ["bench_random.txt", "bench_beam.txt"] {
        let wells = wells(file);
        let mut cases = Vec::new();
        forwards(&mut cases, &wells);
        measure(
            &format!("{file}: {} wells", wells.len()),
            "child",
            true,
            &mut cases,
        );
        let few = some(&wells);
        let mut cases = Vec::new();
        backwards(&mut cases, &few);
        measure(
            &format!("{file}: parents of {} wells", few.len()),
            "parent",
            false,
            &mut cases,
        );
        let steps = steps(&few);
        let mut cases = Vec::new();
        paths(&mut cases, &steps);
        measure(
            &format!("{file}: key paths to {} children", steps.len()),
            "key",
            false,
            &mut cases,
        );
    }
}
