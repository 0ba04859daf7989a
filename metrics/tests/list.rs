//! Tests that the list of metrics is valid, and that the tables in `docs/metrics.md` show exactly this list.

use hatebeam_metrics::list::of_process;
use hatebeam_metrics::{
    CertificateMetrics, CoordinatorMetrics, Definition, ObjectMetrics, ProcessMetrics, RunMetrics,
    WorkerMetrics,
};
use std::collections::BTreeSet;

const GROUPS: [&[Definition]; 6] = [
    RunMetrics::DEFINITIONS,
    CoordinatorMetrics::DEFINITIONS,
    WorkerMetrics::DEFINITIONS,
    ObjectMetrics::DEFINITIONS,
    ProcessMetrics::DEFINITIONS,
    CertificateMetrics::DEFINITIONS,
];

fn row(metric: &Definition) -> String {
    let values = metric.values.iter().map(|value| format!("`{value}`"));
    let values: Vec<String> = values.collect();
    let labels: Vec<String> = metric
        .labels
        .iter()
        .map(|label| {
            if values.is_empty() {
                format!("`{label}`")
            } else {
                format!("`{label}`: {}", values.join(", "))
            }
        })
        .collect();
    let (name, kind, unit, help) = (metric.name(), metric.kind, metric.unit, metric.help);
    format!(
        "| `{name}` | {kind} | {unit} | {} | {help} |",
        labels.join(", ")
    )
}

#[test]
fn documentation_shows_exactly_the_defined_metrics() {
    let text = include_str!("../../docs/metrics.md");
    let documented: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| `hatebeam_"))
        .collect();
    let expected: Vec<String> = GROUPS.into_iter().flatten().map(row).collect();
    assert_eq!(
        documented,
        expected,
        "docs/metrics.md must have these rows:\n{}\n",
        expected.join("\n")
    );
}

#[test]
fn definitions_are_valid_and_names_are_unique_per_process() {
    for process in ["coordinator", "worker", "run"] {
        let mut names = BTreeSet::new();
        for metric in of_process(process).into_iter().flatten() {
            let name = metric.name();
            let is_valid = |letter: char| letter.is_ascii_lowercase() || letter == '_';
            assert!(
                name.starts_with("hatebeam_") && name.chars().all(is_valid),
                "{name}"
            );
            assert!(
                ["counter", "gauge", "histogram"].contains(&metric.kind),
                "{name}"
            );
            assert!(
                ["", "seconds", "bytes", "dollars"].contains(&metric.unit),
                "{name}"
            );
            // The library adds the full stop.
            assert!(
                !metric.help.is_empty() && !metric.help.ends_with('.'),
                "{name}"
            );
            assert!(
                metric.values.is_empty() || metric.labels.len() == 1,
                "{name}"
            );
            assert!(names.insert(name.clone()), "{name} is defined twice");
        }
        assert!(names.len() > 10, "{process}");
    }
    assert!(of_process("").is_empty());
}
