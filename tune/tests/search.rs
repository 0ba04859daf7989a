//! Tests that search for the maximum of a known function.

#![allow(clippy::unwrap_used)] // helper functions also call `unwrap`

use hatebeam_tune::{
    Evaluation, Journal, JournalError, Measured, Method, Objective, Parameter, SearchError,
    Settings, search, tune,
};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Point at which [`hill`] has its maximum.
const TOP: [f64; 3] = [3.0, -7.0, 0.25];

fn parameters() -> Vec<Parameter> {
    let parameter = |name: &str, start, min, max| Parameter {
        name: name.to_owned(),
        start,
        min,
        max,
    };
    vec![
        parameter("a", 0.0, -10.0, 10.0),
        parameter("b", 5.0, -20.0, 20.0),
        parameter("c", 0.5, 0.0, 1.0),
    ]
}

/// Returns the value of a function with a single maximum of 0. The first two coordinates interact.
fn hill(weights: &[f64]) -> f64 {
    let scale = [10.0, 20.0, 1.0];
    let distance: Vec<f64> = (0..3)
        .map(|at| (weights[at] - TOP[at]) / scale[at])
        .collect();
    let squares: f64 = distance.iter().map(|distance| distance * distance).sum();
    -squares - (distance[0] + distance[1]).powi(2)
}

fn settings(method: Method, evaluations: usize, threads: usize) -> Settings {
    Settings {
        method,
        seed: 5,
        evaluations,
        population: 12,
        threads,
    }
}

/// Searches for the maximum of [`hill`]. Counts the calls of the objective in `calls`, and interrupts the search after
/// `limit` calls.
fn run(
    folder: &Path,
    settings: &Settings,
    limit: usize,
    calls: &AtomicUsize,
) -> Result<Evaluation, SearchError> {
    let parameters = parameters();
    let journal = Journal::open(&folder.join("journal"), &parameters, json!("hill"))?;
    let objective = |weights: &[f64], _round: usize| {
        let number = calls.fetch_add(1, Ordering::Relaxed);
        (number < limit).then(|| Measured::exact(hill(weights)))
    };
    search(&parameters, settings, journal, true, &objective, &|_| ()).into_best()
}

fn best(settings: &Settings) -> Evaluation {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), settings, usize::MAX, &AtomicUsize::new(0)).unwrap()
}

#[test]
fn methods_approach_maximum() {
    let start = hill(&[0.0, 5.0, 0.5]);
    for method in Method::ALL {
        let best = best(&settings(method, 600, 2));
        assert!(best.value > 0.02 * start, "{method:?}: {best:?}");
        assert_eq!(best.value, hill(&best.weights), "{method:?}");
    }
}

#[test]
fn survivors_are_measured_again_only_if_there_are_rounds() {
    let parameters = parameters();
    // In the first round, luck is worth as much as the whole hill.
    let luck = |weights: &[f64]| (weights[0] * 1e4).rem_euclid(2.0);
    let objective = |weights: &[f64], round: usize| {
        let luck = if round == 0 { luck(weights) } else { 0.0 };
        Some(Measured {
            value: hill(weights) + luck,
            half_width: 1.0,
        })
    };
    let best = |has_rounds| {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&folder.path().join("journal"), &parameters, json!(0));
        let settings = settings(Method::Brenman, 600, 2);
        let journal = journal.unwrap();
        search(
            &parameters,
            &settings,
            journal,
            has_rounds,
            &objective,
            &|_| (),
        )
        .into_best()
        .unwrap()
    };
    for has_rounds in [false, true] {
        let best = best(has_rounds);
        let rounds = best.rounds as f64;
        assert_eq!(best.rounds > 1, has_rounds, "{best:?}");
        assert!((best.value - hill(&best.weights) - luck(&best.weights) / rounds).abs() < 1e-12);
        assert!((best.half_width - 1.0 / rounds.sqrt()).abs() < 1e-12);
    }
}

#[test]
fn result_does_not_depend_on_thread_count() {
    for method in Method::ALL {
        let [one, three] = [1, 3].map(|threads| best(&settings(method, 150, threads)));
        assert_eq!(
            (one.weights, one.value),
            (three.weights, three.value),
            "{method:?}"
        );
    }
}

#[test]
fn interrupted_search_resumes_from_journal() {
    for method in Method::ALL {
        let settings = settings(method, 150, 1);
        let folder = tempfile::tempdir().unwrap();
        let whole = AtomicUsize::new(0);
        let expected = run(folder.path(), &settings, usize::MAX, &whole).unwrap();
        let whole = whole.into_inner();

        let folder = tempfile::tempdir().unwrap();
        let calls = AtomicUsize::new(0);
        let stopped = run(folder.path(), &settings, 60, &calls);
        assert!(
            matches!(stopped, Err(SearchError::Interrupted)),
            "{method:?}"
        );
        // Simulates a crash that leaves an incomplete last line.
        let journal = folder.path().join("journal");
        let text = fs::read(&journal).unwrap();
        fs::write(&journal, &text[..text.len() - 5]).unwrap();
        let calls = AtomicUsize::new(0);
        let resumed = run(folder.path(), &settings, usize::MAX, &calls).unwrap();
        assert_eq!(
            (resumed.weights, resumed.value),
            (expected.weights, expected.value),
            "{method:?}"
        );
        assert_eq!(
            calls.into_inner(),
            whole - 59,
            "{method:?}: a value in the journal was measured again"
        );
    }
}

#[test]
fn finished_search_continues_without_repeating_evaluations() {
    for method in Method::ALL {
        let folder = tempfile::tempdir().unwrap();
        let calls = AtomicUsize::new(0);
        run(folder.path(), &settings(method, 60, 2), usize::MAX, &calls).unwrap();
        let first = calls.swap(0, Ordering::Relaxed);
        run(folder.path(), &settings(method, 120, 2), usize::MAX, &calls).unwrap();
        let whole = AtomicUsize::new(0);
        let other = tempfile::tempdir().unwrap();
        run(other.path(), &settings(method, 120, 2), usize::MAX, &whole).unwrap();
        assert!(
            calls.into_inner() + first <= whole.into_inner() + 12,
            "{method:?}"
        );
    }
}

/// An [`Objective`] with the value [`hill`], which stops the search at the first new point if it is `stopped`.
struct Hill {
    parameters: Vec<Parameter>,
    stopped: bool,
}

impl Objective for Hill {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn description(&self) -> Value {
        json!("hill")
    }

    fn has_rounds(&self) -> bool {
        false
    }

    fn measure(&self, weights: &[f64], _round: usize) -> Option<Measured> {
        (!self.stopped).then(|| Measured::exact(hill(weights)))
    }

    fn weights_file(&self, best: &Evaluation) -> String {
        format!("{:?}", best.weights)
    }
}

#[test]
fn other_method_keeps_the_best_weights_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let hill = |stopped| Hill {
        parameters: parameters(),
        stopped,
    };
    let first = settings(Method::CmaEs, 300, 2);
    let (best, file) = tune(folder.path(), &hill(false), &first, &|_| ()).unwrap();
    let weights = fs::read_to_string(&file).unwrap();
    assert_eq!(weights, format!("{:?}", best.weights));
    // Simple(x) is interrupted at its first new point, and four points of it are worse than those of CMA-ES.
    let second = settings(Method::Simplers, 4, 2);
    for stopped in [true, false] {
        let found = tune(folder.path(), &hill(stopped), &second, &|_| ());
        match found {
            Err(error) => assert!(stopped && matches!(error, SearchError::Interrupted)),
            Ok((found, _)) => assert!(!stopped && found.weights == best.weights, "{found:?}"),
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), weights);
    }
}

#[test]
fn damaged_locked_and_foreign_journals_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    run(
        folder.path(),
        &settings(Method::CmaEs, 24, 1),
        usize::MAX,
        &AtomicUsize::new(0),
    )
    .unwrap();
    let other = Journal::open(&path, &parameters(), json!("valley"));
    assert!(matches!(other, Err(JournalError::OtherSearch { .. })));
    let fewer = Journal::open(&path, &parameters()[..2], json!("hill"));
    assert!(matches!(fewer, Err(JournalError::OtherSearch { .. })));

    let open = Journal::open(&path, &parameters(), json!("hill")).unwrap();
    let second = Journal::open(&path, &parameters(), json!("hill"));
    assert!(matches!(second, Err(JournalError::InUse { .. })));
    drop(open);

    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let damaged = [
        lines[0],
        lines[1],
        r#"{"point":[1,2],"value":3.0}"#,
        lines[2],
    ]
    .join("\n")
        + "\n";
    fs::write(&path, damaged).unwrap();
    let found = Journal::open(&path, &parameters(), json!("hill"));
    assert!(matches!(found, Err(JournalError::Damaged { line: 3, .. })));
    // Opening a file that is not a journal does not change the file.
    fs::write(&path, "something else").unwrap();
    let found = Journal::open(&path, &parameters(), json!("hill"));
    assert!(matches!(found, Err(JournalError::Damaged { line: 1, .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "something else");
}

#[test]
fn invalid_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let small = Settings {
        population: 3,
        ..settings(Method::Swarm, 10, 1)
    };
    let refused = run(folder.path(), &small, usize::MAX, &AtomicUsize::new(0));
    assert!(matches!(refused, Err(SearchError::Population(3))));
    for (start, min, max) in [
        (0.0, 1.0, 2.0),
        (0.0, 0.0, 0.0),
        (0.0, f64::NAN, 1.0),
        (0.0, -1.0, f64::INFINITY),
    ] {
        let mut parameters = parameters();
        parameters[1] = Parameter {
            start,
            min,
            max,
            ..parameters[1].clone()
        };
        let journal = Journal::open(
            &folder.path().join(format!("{start}{min}{max}")),
            &parameters,
            json!(0),
        )
        .unwrap();
        let refused = search(
            &parameters,
            &settings(Method::CmaEs, 10, 1),
            journal,
            true,
            &|weights, _| Some(Measured::exact(hill(weights))),
            &|_| (),
        );
        assert!(
            matches!(refused.error, Some(SearchError::Parameter(_))),
            "{start} {min} {max}"
        );
    }
}
