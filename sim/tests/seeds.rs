//! The simulation under many seeds, that it repeats, and that it can fail.

use hatebeam_sim::{Class, Detail, Mix, Options, Report, Sabotage, run_seed, run_seeds};

/// Seeds of the test suite.
const SEEDS: u64 = 1000;

/// Says why a seed failed and how to repeat it.
fn explain(report: &Report) -> String {
    format!(
        "{}\nseed {} failed: {:?}\nrepeat it with: cargo run --release -p hatebeam-sim --example sim -- --seed {}",
        report.trace, report.seed, report.violations, report.seed
    )
}

#[test]
fn invariants_hold_under_a_thousand_seeds() {
    let options = Options::default();
    let summary = run_seeds(0..SEEDS, 2, &options, |report| {
        eprintln!("{}", explain(report))
    });
    assert_eq!(
        summary.failed,
        [0; 0],
        "{} of {SEEDS} seeds failed",
        summary.failed.len()
    );
    assert!(summary.depths > 5 * SEEDS, "only {} depths", summary.depths);
    for class in Class::ALL {
        let is_open = Class::OPEN.contains(&class);
        assert_eq!(summary.classes.contains_key(&class), !is_open, "{class:?}");
    }
}

#[test]
fn seed_repeats_byte_by_byte() {
    let options = Options {
        detail: Detail::Everything,
        ..Options::default()
    };
    for seed in 0..12 {
        let (one, other) = (run_seed(seed, &options), run_seed(seed, &options));
        assert!(
            one.trace.lines().count() > 100,
            "seed {seed} logs next to nothing"
        );
        let (one, other) = (behaviour(&one.trace), behaviour(&other.trace));
        let differs = one.iter().zip(&other).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed} does not repeat");
        assert_eq!(one.len(), other.len(), "seed {seed} does not repeat");
    }
}

/// Returns the lines of a trace without log messages and task numbers. Whether a message is logged depends on the other threads of the
/// test process as well: tracing caches which call sites are enabled for all threads together.
fn behaviour(trace: &str) -> Vec<&str> {
    let levels = [" INFO ", " WARN ", " ERROR ", " DEBUG "];
    let is_log = |line: &&str| levels.iter().any(|level| line.contains(level));
    let lines = trace.lines().filter(|line| !is_log(line));
    // tokio numbers tasks for all runtimes of the process together.
    lines
        .map(|line| line.split(": task ").next().unwrap_or(line))
        .collect()
}

/// Simulates seeds until one fails. Returns whether one does.
fn is_noticed(seeds: u64, options: &Options) -> bool {
    (0..seeds).any(|seed| !run_seed(seed, options).violations.is_empty())
}

#[test]
fn store_that_ignores_conditions_is_noticed() {
    let options = Options {
        mix: Mix::Only(vec![Class::CoordinatorStall, Class::Request]),
        sabotage: Some(Sabotage::UnconditionalStore),
        ..Options::default()
    };
    assert!(is_noticed(100, &options));
}

#[test]
fn children_of_an_earlier_attempt_are_noticed() {
    let options = Options {
        mix: Mix::Only(vec![Class::SmallTables]),
        sabotage: Some(Sabotage::ForgottenAttempts),
        ..Options::default()
    };
    assert!(is_noticed(100, &options));
}

/// Faults that are known and open: the simulation shows each of them.
#[test]
fn open_faults_are_shown() {
    for class in Class::OPEN {
        let options = Options {
            mix: Mix::With(vec![class]),
            ..Options::default()
        };
        assert!(
            is_noticed(100, &options),
            "{class:?} is mended: take it off the list"
        );
    }
}
