//! Benchmark of narrow and deep beams: depths per second of a run on this machine, with its store on disk. Run it with
//! `cargo bench -p hatebeam-runs`.
//!
//! For each line of output, the benchmark searches games of at most 300 pieces for the time that `--seconds` sets, but at
//! least two games. The time to create a run's folder is not measured. The second figure excludes the time after the start
//! of the last depth, in which the last depths are committed. It is the speed of a long run, whose commits overlap with the
//! search. Processor time is summed over all threads, and depends less on other processes than elapsed time does.
//!
//! Options, after `--`:
//!
//! - `--width N` and `--quiescence NAME` measure only this width and this quiescence.
//! - `--evaluator NAME` sets the evaluator, such as patterns or the built-in network chains [default: the evaluator of a
//!   run that names none].
//! - `--seconds S` sets the time for each line [default: 5].
//! - `--threads N` sets the number of threads [default: 2].
//! - `--dir DIR` sets the folder for the runs [default: the folder for temporary files].
//! - `--long N` instead searches one run of N depths in a small well, in which games need not end. It prints the speed of
//!   each tenth of the run, and the time to read a game back.

use hatebeam_game::{Geometry, Rules, Well};
use hatebeam_runs::{
    EndReason, GroupLimits, Limits, Observer, Retention, Run, RunSpec, Settings, WellSpec, game_to,
};
use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Network, Quiescence};
use hatebeam_store::DepthRecord;
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// Maximum number of pieces of a game. Without the loop rule, a beam can find an endless game: one of `network` with 10,000
/// wells and the quiescence `first` does.
const MAX_DEPTH: u32 = 300;

/// Returns the command-line argument after `name`.
fn option<T: FromStr>(name: &str) -> Option<T> {
    let mut args = std::env::args().skip_while(|arg| arg != name);
    args.nth(1)?.parse().ok()
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn folder() -> tempfile::TempDir {
    let parent = option::<PathBuf>("--dir").unwrap_or_else(std::env::temp_dir);
    tempfile::tempdir_in(parent).expect("temporary folder can be created")
}

fn settings(max_depth: Option<u32>) -> Settings {
    Settings {
        threads: option("--threads").unwrap_or(2),
        limits: Limits {
            max_depth,
            ..Limits::default()
        },
        group: GroupLimits::default(),
    }
}

fn spec(width: u64, geometry: Geometry, kind: EvaluatorKind, quiescence: Quiescence) -> RunSpec {
    RunSpec {
        well: WellSpec::new(geometry, Rules::default()),
        ..RunSpec::new(width, EvaluatorSpec::new(kind, quiescence))
    }
}

/// Stores the time at which the last depth began.
struct Last(Instant);

impl Observer for Last {
    fn begun(&mut self, _: u32, _: u64, _: &Arc<AtomicU64>) {
        self.0 = Instant::now();
    }
}

/// Returns the evaluator that `--evaluator` names.
fn evaluator() -> EvaluatorKind {
    let Some(name) = option::<String>("--evaluator") else {
        return EvaluatorKind::default_for(Geometry::STANDARD);
    };
    let network = Network::shipped(&name).map(|network| EvaluatorKind::Network(network.digest()));
    let mut kinds = EvaluatorKind::ALL.into_iter().chain(network);
    let named = |kind: &EvaluatorKind| kind.name() == name || Some(*kind) == network;
    kinds.find(named).expect("the evaluator exists")
}

/// Searches whole games with beams of this width until `seconds` have passed, and prints the speed.
fn games(width: u64, quiescence: Quiescence, seconds: f64) {
    let spec = spec(width, Geometry::STANDARD, evaluator(), quiescence);
    let (mut games, mut depths, mut children) = (0, 0, 0);
    let (mut time, mut searched_for, mut cpu) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    while games < 2 || time.as_secs_f64() < seconds {
        let folder = folder();
        let run = Run::open_or_create(&folder.path().join("run"), &spec, Some(Retention::All));
        let run = run.expect("the run can be created");
        let (begun, cpu_begun) = (Instant::now(), cpu_time());
        let mut last = Last(begun);
        let settings = settings(Some(MAX_DEPTH));
        let searched = run.search(&settings, &AtomicBool::new(false), &mut last);
        let (run, end) = searched.expect("the search succeeds");
        cpu += cpu_time() - cpu_begun;
        time += begun.elapsed();
        searched_for += last.0 - begun;
        assert!(matches!(end, EndReason::Over | EndReason::MaxDepth));
        games += 1;
        depths += run.store().depths().len() - 1;
        children += run
            .store()
            .depths()
            .iter()
            .map(|record| record.children)
            .sum::<u64>();
    }
    println!(
        "width {width:6} quiescence {:7} {:8.1} depths per second, {:8.1} without the last commit, \
         {:8.3} ms of processor time per depth, {:6.1} ns per child, {} depths per game",
        quiescence.name(),
        depths as f64 / time.as_secs_f64(),
        depths as f64 / searched_for.as_secs_f64(),
        cpu.as_secs_f64() * 1e3 / depths as f64,
        cpu.as_secs_f64() * 1e9 / children as f64,
        depths / games,
    );
}

/// Prints the speed of each tenth of a run.
struct Tenths {
    begun: Instant,
    of: u32,
}

impl Observer for Tenths {
    fn committed(&mut self, record: &DepthRecord) {
        if record.depth > 0 && record.depth.is_multiple_of(self.of) {
            let seconds = self.begun.elapsed().as_secs_f64();
            println!(
                "depth {:7} {:8.1} depths per second, {} lines",
                record.depth,
                f64::from(self.of) / seconds,
                record.best_lines
            );
            self.begun = Instant::now();
        }
    }
}

/// Searches a run of `depths` depths, opens it again, and reads back the path to the best well at its last depth.
fn long(depths: u32) {
    let geometry = Geometry::new(4, 16).expect("the well is valid");
    let width = option("--width").unwrap_or(20);
    let spec = spec(width, geometry, EvaluatorKind::Knewjade, Quiescence::Off);
    let folder = folder();
    let dir = folder.path().join("run");
    let run = Run::open_or_create(&dir, &spec, Some(Retention::All)).expect("the run is created");
    let mut tenths = Tenths {
        begun: Instant::now(),
        of: (depths / 10).max(1),
    };
    let searched = run.search(
        &settings(Some(depths)),
        &AtomicBool::new(false),
        &mut tenths,
    );
    let (run, end) = searched.expect("the search succeeds");
    println!(
        "end: {}, {} bytes stored",
        end.name(),
        run.store().stored_bytes()
    );
    drop(run);
    let begun = Instant::now();
    let run = Run::open(&dir, None).expect("the run can be opened");
    println!("opened in {:.2} s", begun.elapsed().as_secs_f64());
    // The best game is not read back, because it may have no end in this well.
    let last = run.store().depths().last().expect("a depth is committed");
    let well = Well::from_hex(geometry, &last.best_well).expect("the well of a record is valid");
    let begun = Instant::now();
    match game_to(&run, last.depth, &well) {
        Ok(game) => println!(
            "read back {} wells in {:.2} s",
            game.wells.len(),
            begun.elapsed().as_secs_f64()
        ),
        Err(error) => println!("{error}, after {:.2} s", begun.elapsed().as_secs_f64()),
    }
}

fn main() {
    if let Some(depths) = option("--long") {
        return long(depths);
    }
    let only_width: Option<u64> = option("--width");
    let only_quiescence: Option<String> = option("--quiescence");
    for quiescence in [Quiescence::Off, Quiescence::First, Quiescence::FirstOfBest] {
        for width in [100, 1_000, 10_000] {
            let is_skipped = only_width.is_some_and(|only| only != width)
                || only_quiescence
                    .as_deref()
                    .is_some_and(|only| only != quiescence.name());
            if !is_skipped {
                games(width, quiescence, option("--seconds").unwrap_or(5.0));
            }
        }
    }
}
