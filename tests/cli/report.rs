//! `runs report`.

use crate::support::run;
use std::fs;
use std::path::Path;

fn report_of(name: &str, args: &[&str]) -> String {
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    let _ = fs::remove_dir_all(&state);
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

/// What a page needs from elsewhere, and whether its elements are closed.
#[track_caller]
fn check(page: &str) {
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
fn a_report_has_everything() {
    let page = report_of("whole", &["--width", "300"]);
    check(&page);
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
fn a_report_can_do_with_little() {
    let page = report_of("one", &["--width", "30", "--max-depth", "1"]);
    check(&page);
    assert!(page.contains("<figcaption>1: 0"));
    let page = report_of("gaps", &["--width", "30", "--keep", "4"]);
    check(&page);
    assert!(page.contains("id=\"player\""));
    let page = report_of("last", &["--width", "30", "--keep", "last"]);
    check(&page);
    assert!(page.contains("The game cannot be read back"), "{page}");
}
