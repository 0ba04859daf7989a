//! Tests of `hatebeam runs report`.

use crate::support::{new_path, run};
use std::fs;

/// Searches with the given options and returns the report of the run.
#[track_caller]
fn report_of(name: &str, args: &[&str]) -> String {
    let state = new_path(&format!("report-{name}"));
    let state = state.to_str().unwrap();
    run(&[&["run", "--quiet", "--state", state, "--name", "it"], args].concat()).results();
    let file = format!("{state}/it.html");
    let written = run(&["runs", "report", "it", "--state", state, "--out", &file]);
    assert_eq!(written.silent_results(), format!("{file}\n"));
    let page = fs::read_to_string(&file).unwrap();
    let printed = run(&["runs", "report", "it", "--state", state, "--out", "-"]);
    assert_eq!(printed.silent_results(), page);
    page
}

/// Asserts that the elements of a page are closed, that the page loads no other files, and that its numbers are finite.
#[track_caller]
fn assert_valid(page: &str) {
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for tag in [
        "svg", "figure", "table", "div", "p", "script", "style", "main",
    ] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    assert!(!page.contains(" src=") && !page.contains("@import") && !page.contains("url("));
    let links = page.matches("href=").count();
    assert_eq!(links, page.matches("href=\"https://qntm.org/").count());
    assert!(!page.contains("NaN") && !page.contains("inf,"));
}

#[test]
fn report_of_finished_run_has_all_plots_and_player() {
    let page = report_of("whole", &["--width", "300"]);
    assert_valid(&page);
    for text in [
        "Lines of the best game",
        "Evaluator scores",
        "Stack height of the best game",
        "Children per second",
        "Time per depth",
        "Bytes stored per depth",
        "Distribution of scores",
        "searched to the end",
        "id=\"replay\"",
        "id=\"player\"",
        "<figcaption>10: ",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.len() < 1 << 20);
}

#[test]
fn report_of_short_or_partial_run_omits_missing_parts() {
    let page = report_of("one", &["--width", "30", "--max-depth", "1"]);
    assert_valid(&page);
    assert!(page.contains("<figcaption>1: 0"));
    let page = report_of("gaps", &["--width", "30", "--keep", "4"]);
    assert_valid(&page);
    assert!(page.contains("id=\"player\""));
    let page = report_of("last", &["--width", "30", "--keep", "last"]);
    assert_valid(&page);
    assert!(page.contains("The game cannot be read back"), "{page}");
}
