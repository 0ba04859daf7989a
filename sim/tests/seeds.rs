//! Tests of the invariants under many seeds, of the simulation's determinism, and of its ability to detect faults.

use hatebeam_sim::{Class, Detail, Mix, Options, Report, Sabotage, run_seed, run_seeds};
use std::path::Path;

/// Number of seeds in the test suite.
const SEEDS: u64 = 1000;

/// Formats why a seed failed and how to repeat it.
fn explain(report: &Report) -> String {
    format!(
        "{}\nseed {} failed: {:?}\nrepeat it with: cargo run --release -p hatebeam-sim --example sim -- --seed {}",
        report.trace, report.seed, report.violations, report.seed
    )
}

#[test]
fn invariants_hold_for_a_thousand_seeds() {
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
    assert!(
        summary.splits > SEEDS / 20,
        "only {} epochs split shards",
        summary.splits
    );
    assert!(summary.lies > SEEDS, "only {} lies", summary.lies);
    let drops = summary.drops.get(&Class::WrongResults);
    assert!(
        drops.is_some_and(|drops| *drops > 0),
        "wrong results contradicted each other in no seed"
    );
    for class in Class::ALL {
        assert!(
            summary.classes.contains_key(&class),
            "no seed has {class:?}"
        );
    }
}

/// Earlier faults of the program, and the seeds beyond the first thousand that revealed them. A change to the
/// simulation or to the simulated code may change the events of a seed, so unit tests also cover these faults.
const REGRESSIONS: [(&str, &[u64]); 8] = [
    (
        "the late delivery of the event for a run's end removed the event for its next end from the outbox",
        &[2323, 2568],
    ),
    (
        "a run failed when a lost worker was quarantined",
        &[2976, 3718, 4597],
    ),
    (
        "when a run was stopped, the costs that another coordinator had added were lost",
        &[4126, 4994],
    ),
    (
        "a coordinator added the cost of a jump of its predecessor's clock to a run",
        &[3971, 5451],
    ),
    (
        "a run that a stale list of the object store lacked was submitted again, but not searched",
        &[21939],
    ),
    (
        "a coordinator that shut down kept its workers, so its successor had none",
        &[37453],
    ),
    (
        "a second submission returned a running run to the queue",
        &[62063],
    ),
    (
        "a coordinator that resumed reading a game back dropped the damaged last depth",
        &[26988],
    ),
];

#[test]
fn invariants_hold_for_seeds_that_have_failed_before() {
    for (fault, seeds) in REGRESSIONS {
        for &seed in seeds {
            let report = run_seed(seed, &Options::default());
            let is_ok = report.violations.is_empty();
            assert!(is_ok, "{}\nearlier fault: {fault}", explain(&report));
        }
    }
}

#[test]
fn equal_seeds_give_equal_traces() {
    let options = Options {
        detail: Detail::Everything,
        ..Options::default()
    };
    for seed in 0..12 {
        let (one, other) = (run_seed(seed, &options), run_seed(seed, &options));
        assert!(
            one.trace.lines().count() > 100,
            "the log of seed {seed} is too short"
        );
        let (one, other) = (behavior(&one.trace), behavior(&other.trace));
        let differs = one.iter().zip(&other).find(|(one, other)| one != other);
        assert_eq!(differs, None, "two simulations of seed {seed} differ");
        assert_eq!(
            one.len(),
            other.len(),
            "two simulations of seed {seed} differ"
        );
    }
}

/// Returns the lines of a trace without log messages and task numbers. Log messages are not repeatable: tracing caches
/// the enabled call sites for the whole process, so concurrent tests affect which messages are logged.
fn behavior(trace: &str) -> Vec<&str> {
    let levels = [" INFO ", " WARN ", " ERROR ", " DEBUG "];
    let is_log = |line: &&str| levels.iter().any(|level| line.contains(level));
    let lines = trace.lines().filter(|line| !is_log(line));
    // Tokio assigns task numbers across all runtimes of the process, so they are not repeatable either.
    lines
        .map(|line| line.split(": task ").next().unwrap_or(line))
        .collect()
}

/// Whether one of the first hundred seeds fails, with exactly these classes of events and a deliberate fault.
fn is_noticed(classes: &[Class], sabotage: Sabotage) -> bool {
    let options = Options {
        mix: Mix::Only(classes.to_vec()),
        sabotage: Some(sabotage),
        ..Options::default()
    };
    (0..100).any(|seed| !run_seed(seed, &options).violations.is_empty())
}

#[test]
fn simulation_detects_a_store_that_ignores_conditions() {
    let classes = [Class::CoordinatorStall, Class::Request];
    assert!(is_noticed(&classes, Sabotage::UnconditionalStore));
}

#[test]
fn simulation_detects_workers_that_ignore_the_attempt_number_of_children() {
    let classes = [Class::SmallTables];
    assert!(is_noticed(&classes, Sabotage::ForgottenAttempts));
}

#[test]
fn simulation_detects_a_worker_with_a_different_search() {
    let classes = [Class::VersionSkew];
    assert!(is_noticed(&classes, Sabotage::ForgedFingerprints));
}

/// `docs/guarantees.md` names each check of the simulation as `file: function`.
#[test]
fn guarantees_name_existing_checks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let mut checks = 0;
    let mut check = |file: &str, function: &str| {
        let is_there = read(file).contains(&format!("fn {function}("));
        assert!(is_there, "{file} has no function {function}");
        checks += 1;
    };
    for quoted in read("docs/guarantees.md").split('`').skip(1).step_by(2) {
        if let Some((file, function)) = quoted.split_once(": ") {
            check(&format!("sim/src/{file}"), function);
        }
    }
    // Tests are named as: `function` in `file`.
    for page in ["docs/guarantees.md", "docs/formats.md"] {
        let text = Vec::from_iter(read(page).split_whitespace()).join(" ");
        for (before, after) in text
            .match_indices("` in `")
            .map(|(at, _)| text.split_at(at))
        {
            let function = before.rsplit(['`', ':']).next().unwrap();
            let file = after[6..].split('`').next().unwrap();
            if file.ends_with(".rs") {
                check(file, function);
            }
        }
    }
    assert!(checks > 40, "only {checks} checks are named");
}
