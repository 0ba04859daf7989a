//! Tests of the files in deploy/prometheus and deploy/grafana. The program must export all metrics in these files, with
//! the labels and values that the queries select.

use crate::support::{list, path, read, succeeds, text, tool, yaml};
use hatebeam_metrics::Definition;
use hatebeam_metrics::list::of_process;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the metric definition of each exported series, by series name.
fn series() -> BTreeMap<String, &'static Definition> {
    let mut found = BTreeMap::new();
    for process in ["coordinator", "worker"] {
        for metric in of_process(process).into_iter().flatten() {
            let name = metric.name();
            if metric.kind == "histogram" {
                for part in ["bucket", "sum", "count"] {
                    found.insert(format!("{name}_{part}"), metric);
                }
            } else {
                found.insert(name, metric);
            }
        }
    }
    assert!(found.len() > 60, "{}", found.len());
    found
}

/// Returns the series in a query, each with its label matchers.
fn selected(query: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(at) = rest.find("hatebeam_") {
        // A match inside a longer word is not a series.
        let begins =
            !rest[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        rest = &rest[at..];
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let braces = after.strip_prefix('{');
        let matchers = braces.map_or("", |inside| inside.split('}').next().unwrap());
        if begins {
            found.push((name, matchers));
        }
        rest = after;
    }
    found
}

/// Parses matchers such as `a="b",c=~"d|e"`. Returns each label with its values.
fn matchers(text: &str) -> Vec<(String, Vec<String>)> {
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    parts
        .map(|part| {
            let (label, value) = part.split_once('=').unwrap();
            let value = value.trim_start_matches('~').trim_matches('"');
            let label = label.trim().trim_end_matches('!').to_owned();
            (label, value.split('|').map(str::to_owned).collect())
        })
        .collect()
}

fn jobs() -> BTreeSet<String> {
    let config = &yaml("deploy/prometheus/prometheus.yml")[0];
    let jobs = list(config, "/scrape_configs").map(|job| text(job, "/job_name").to_owned());
    jobs.collect()
}

/// Asserts that the program exports all metrics, labels and label values of a query.
#[track_caller]
fn check(place: &str, query: &str) {
    let (series, jobs) = (series(), jobs());
    let is_built_in = query.contains("up{") || query.starts_with("ALERTS");
    let selected = selected(query);
    assert!(!selected.is_empty() || is_built_in, "{place}: {query}");
    for (name, braces) in selected {
        let metric = series.get(name);
        let metric = metric.unwrap_or_else(|| panic!("{place}: {name} is not exported"));
        for (label, values) in matchers(braces) {
            let has_label = metric.labels.contains(&label.as_str());
            let is_known_value = |value: &String| match label.as_str() {
                "job" => jobs.contains(value),
                _ => {
                    has_label
                        && (metric.values.is_empty() || metric.values.contains(&value.as_str()))
                }
            };
            let is_known = has_label || label == "job";
            assert!(
                is_known && values.iter().all(is_known_value),
                "{place}: {name} has no {label}={values:?}"
            );
        }
    }
    for braces in query.split("up{").skip(1) {
        for (label, values) in matchers(braces.split('}').next().unwrap()) {
            assert_eq!(label, "job");
            assert!(values.iter().all(|job| jobs.contains(job)), "{query}");
        }
    }
}

/// Asserts that the metrics in a query have all labels by which the query groups or which the legend shows.
#[track_caller]
fn check_labels(place: &str, query: &str, legend: &str) {
    let series = series();
    let mut known = BTreeSet::from(["job", "instance", "le"]);
    for (name, _) in selected(query) {
        known.extend(series[name].labels);
    }
    let grouped = ["by (", "ignoring (", "group_left ("];
    let grouped = grouped
        .iter()
        .flat_map(|word| query.split(word).skip(1))
        .flat_map(|rest| rest.split(')').next().unwrap().split(','));
    let shown = legend
        .split("{{")
        .skip(1)
        .map(|rest| rest.split("}}").next().unwrap());
    for label in grouped.chain(shown).map(str::trim) {
        assert!(
            known.contains(label),
            "{place}: no label {label} in {query}"
        );
    }
}

fn rules() -> Vec<Value> {
    let file = &yaml("deploy/prometheus/alerts.yaml")[0];
    let groups = list(file, "/groups");
    groups
        .flat_map(|group| list(group, "/rules").cloned())
        .collect()
}

#[test]
fn query_parser_finds_metrics_and_matchers() {
    let query =
        r#"rate(hatebeam_a_total[5m]) / (x_hatebeam_b{c="d",e=~"f|g"} or hatebeam_h{c!="d"})"#;
    assert_eq!(
        selected(query),
        [("hatebeam_a_total", ""), ("hatebeam_h", r#"c!="d""#)]
    );
    assert_eq!(
        matchers(r#"c="d", e=~"f|g""#),
        [
            ("c".to_owned(), vec!["d".to_owned()]),
            ("e".to_owned(), vec!["f".to_owned(), "g".to_owned()])
        ]
    );
}

#[test]
fn alerts_use_exported_metrics_and_have_runbook() {
    let mut names = BTreeSet::new();
    for rule in rules() {
        let name = text(&rule, "/alert").to_owned();
        check(&name, text(&rule, "/expr"));
        let severity = text(&rule, "/labels/severity");
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{name}"
        );
        for annotation in ["/annotations/summary", "/annotations/runbook"] {
            assert!(text(&rule, annotation).len() > 15, "{name}: {annotation}");
        }
        assert!(names.insert(name), "duplicate name");
    }
    assert!(names.len() >= 15, "{names:?}");
}

#[test]
fn rule_tests_cover_firing_and_silent_case_of_each_alert() {
    let tests = read("deploy/prometheus/alerts_test.yaml");
    for rule in rules() {
        let name = text(&rule, "/alert");
        let quiet = format!("alertname: {name}, exp_alerts: []");
        let fires = format!("alertname=\"{name}\"");
        assert!(tests.contains(&quiet) && tests.contains(&fires), "{name}");
    }
    let file = &yaml("deploy/prometheus/alerts_test.yaml")[0];
    for test in list(file, "/tests") {
        for series in list(test, "/input_series") {
            let series = text(series, "/series");
            // Removes the label `instance`, which Prometheus adds to exported series.
            let without = series.replace(", instance=\"w\"", "");
            let without = without.replace(", instance=\"c\"", "");
            let without = without.replace("instance=\"w\"", "");
            let without = without.replace("instance=\"c\"", "");
            check("alerts_test.yaml", &without);
        }
    }
}

#[test]
fn promtool_accepts_config_and_rules_and_rule_tests_pass() {
    for args in [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "alerts_test.yaml"],
    ] {
        let Some(mut promtool) = tool("HATEBEAM_PROMTOOL", "promtool") else {
            return;
        };
        succeeds(promtool.args(args).current_dir(path("deploy/prometheus")));
    }
}

#[test]
fn dashboards_use_exported_metrics() {
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/hatebeam.json")).unwrap();
    let (mut ids, mut queries) = (BTreeSet::new(), 0);
    for panel in list(&dashboard, "/panels") {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let title = text(panel, "/title");
        for target in list(panel, "/targets") {
            let query = text(target, "/expr").replace("$__rate_interval", "5m");
            check(title, &query);
            check_labels(title, &query, text(target, "/legendFormat"));
            assert_eq!(text(target, "/datasource/uid"), "${datasource}");
            queries += 1;
        }
        let is_row = text(panel, "/type") == "row";
        assert_eq!(is_row, list(panel, "/targets").count() == 0, "{title}");
    }
    assert!(queries > 30, "{queries}");
    for note in list(&dashboard, "/annotations/list") {
        check("annotations", text(note, "/expr"));
    }
    assert_eq!(text(&dashboard, "/templating/list/0/name"), "datasource");
}

#[test]
fn keda_uses_exported_metrics_and_monitors_use_known_jobs() {
    let scaled = &yaml("deploy/kubernetes/components/keda/scaled-object.yaml")[0];
    let triggers: Vec<&Value> = list(scaled, "/spec/triggers").collect();
    assert_eq!(triggers.len(), 1);
    let query = text(triggers[0], "/metadata/query");
    check("KEDA", query);
    // The query returns 0 or 1, and KEDA divides this value by the threshold to get the number of workers. For 1, the
    // quotient must exceed the maximum, so that the maximum alone determines the number of workers.
    assert!(query.ends_with("> bool 0"), "{query}");
    let threshold: f64 = text(triggers[0], "/metadata/threshold").parse().unwrap();
    let most = scaled["spec"]["maxReplicaCount"].as_f64().unwrap();
    assert!(1.0 / threshold > most, "{threshold} {most}");
    assert_eq!(scaled["spec"]["minReplicaCount"], 0);
    let monitors = yaml("deploy/kubernetes/components/monitoring/monitors.yaml");
    let named = monitors.iter().map(|monitor| {
        let relabeled = text(
            monitor,
            "/spec/podMetricsEndpoints/0/relabelings/0/replacement",
        );
        assert_eq!(relabeled, text(monitor, "/metadata/name"));
        relabeled.to_owned()
    });
    assert_eq!(named.collect::<BTreeSet<String>>(), jobs());
}
