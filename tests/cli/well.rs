//! Tests of `hatebeam well`.

use crate::support::{run, run_with_input, vector};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

const EMPTY: &str = "000000000000000000000000000000000000000000000000";

/// Returns the wells of an `expand_*.jsonl` file, one per line.
fn wells_of(expansions: &str) -> String {
    let well = |line| {
        let line: Value = serde_json::from_str(line).unwrap();
        format!("{}\n", line["well"].as_str().unwrap())
    };
    expansions.lines().map(well).collect()
}

/// Returns the lines of a JSON output without the parents, which the vectors do not contain.
fn without_parents(output: &str) -> String {
    let shorten = |line: &str| match line.split_once(",\"parents\":[") {
        Some((start, _)) => format!("{start}}}\n"),
        None => panic!("no parents: {line}"),
    };
    output.lines().map(shorten).collect()
}

#[test]
fn json_output_equals_test_vectors() {
    for name in ["expand_play.jsonl", "expand_records.jsonl"] {
        let expected = vector(name);
        let results = run_with_input(&["well", "--json"], wells_of(&expected).as_bytes());
        let found = without_parents(&results.silent_results());
        assert!(found == expected, "{name}");
    }
}

#[test]
fn json_output_lists_parents() {
    let well = "00000000000000000000000000000000000000000001800c";
    let found = run(&["well", "--json", well]).json();
    let parent = json!({"well": EMPTY, "piece": "S", "lines": 0});
    assert_eq!(found["parents"], json!([parent]));
    // A child of a well has the well among its parents, also if a piece clears lines.
    let expansions = vector("expand_records.jsonl");
    let mut expansions = expansions
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (expansion, child, lines) = expansions
        .find_map(|expansion| {
            let children = expansion["children"].as_array().unwrap().clone();
            let mut clearing = children
                .iter()
                .filter_map(|child| child.as_str()?.split_once('+'));
            let (child, lines) = clearing.next()?;
            Some((expansion, child.to_owned(), lines.parse::<u8>().unwrap()))
        })
        .unwrap();
    let found = run(&["well", "--json", &child]).json();
    let expected = json!({
        "well": expansion["well"],
        "piece": expansion["piece"],
        "lines": lines,
    });
    let parents = found["parents"].as_array().unwrap();
    assert!(parents.contains(&expected), "{expected} {found}");
}

#[test]
fn well_is_read_from_argument_or_standard_input() {
    let expected = vector("expand_play.jsonl");
    let first = run(&["well", "--json", EMPTY]).silent_results();
    assert_eq!(
        without_parents(&first).trim_end(),
        expected.lines().next().unwrap()
    );
    let input = format!("{EMPTY}\r\n");
    assert_eq!(
        run_with_input(&["well", "--json", "-"], input.as_bytes()).silent_results(),
        first
    );
}

#[test]
fn text_shows_well_children_and_parents() {
    let well = "00000000000000000000000000000000000000000001800c";
    let text = run(&["well", well]).silent_results();
    let start = format!(
        "{well}\n{}...##.....\n..##......\n\npiece     S\ncan die   no\n\
         children  18 (0 with lines cleared)\n  00000000000000000000000000000000000000000001e00f\n",
        "..........\n".repeat(14)
    );
    assert!(text.starts_with(&start), "{text}");
    assert!(
        text.ends_with(&format!("parents   1\n  S {EMPTY}\n")),
        "{text}"
    );
}

#[test]
fn well_of_other_size_is_read_with_and_without_rows_above_bar() {
    let text = run(&["well", "--width", "4", "--height", "2", "07"]).silent_results();
    assert!(text.starts_with("07\n....\n###.\n"), "{text}");
    // The digits may also include the rows above the bar if those rows are empty.
    let whole = run(&["well", "--width", "4", "--height", "2", "000007"]).silent_results();
    assert_eq!(whole, text);
}

#[test]
fn error_for_invalid_well_gives_reason() {
    let width_5 = ["--width", "5", "--height", "2"];
    for (options, hex, expected) in [
        (&[][..], "0000", "a 10x16 well has 48 hex digits, not 4"),
        (&[], "", "a 10x16 well has 48 hex digits, not 0"),
        (
            &[],
            &EMPTY.replacen('0', "x", 1),
            "unexpected character 'x' at position 1",
        ),
        (
            &[],
            &EMPTY.replacen("000", "400", 1),
            "row 1 has cells outside the 10 columns",
        ),
        (
            &[],
            &format!("{}3ff", &EMPTY[3..]),
            "row 16 is full: the game removes full rows",
        ),
        (
            &[],
            &format!("000000000001{EMPTY}"),
            "row 4 is above the bar and not empty",
        ),
        (&width_5, "0020", "row 2 has cells outside the 5 columns"),
        (&width_5, "1f00", "row 1 is full"),
    ] {
        let args = [&["well"], options, &[hex]].concat();
        let error = run(&args).error(1);
        assert!(
            error.starts_with(&format!("invalid HEX: {expected}")),
            "{error}"
        );
    }
}

/// Invalid lines and their error messages.
const BAD_LINES: [(&[u8], &str); 4] = [
    (b"0123", "a 10x16 well has 48 hex digits, not 4"),
    (b"", "a 10x16 well has 48 hex digits, not 0"),
    (b"00\xff00", "byte 3 (0xff) is not valid UTF-8"),
    (
        &[b'0'; 100_000],
        "the line is too long: it can have at most 1024 bytes",
    ),
];

/// Returns five lines of input: lines 2 and 4 are `bad`, and the other lines are valid wells.
fn with_bad_lines(bad: &[u8]) -> Vec<u8> {
    let good = format!("{EMPTY}\n");
    let good = good.as_bytes();
    [good, bad, b"\n", good, bad, b"\n", good].concat()
}

#[test]
fn invalid_lines_give_error_objects_and_other_lines_are_processed() {
    let good = run(&["well", "--json", EMPTY]).silent_results();
    for (bad, expected) in BAD_LINES {
        let result = run_with_input(&["well", "--json"], &with_bad_lines(bad));
        assert_eq!((result.code, result.err.as_str()), (1, ""));
        let error = |line: u32| format!("{{\"line\":{line},\"error\":\"{expected}\"}}\n");
        let expected = [good.clone(), error(2), good.clone(), error(4), good.clone()];
        assert_eq!(result.out, expected.concat());
    }
}

#[test]
fn text_output_describes_valid_wells_and_errors_name_invalid_lines() {
    let good = run(&["well", EMPTY]).silent_results();
    for (bad, expected) in BAD_LINES {
        let (out, error) = run_with_input(&["well"], &with_bad_lines(bad)).late_error();
        assert_eq!(out, good.repeat(3));
        let errors = [2, 4].map(|line| format!("standard input, line {line}: {expected}"));
        assert_eq!(error, errors.join("\nerror: "));
    }
}

#[test]
fn empty_input_is_an_error() {
    let error = run(&["well", "--json"]).error(1);
    let expected = "standard input is empty: give one well per line";
    assert_eq!(error, expected);
}

#[test]
fn each_line_is_processed_before_next_line_is_read() {
    let mut child = crate::support::command(&["well", "--json"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for line in vector("expand_play.jsonl").lines().take(3) {
        stdin.write_all(wells_of(line).as_bytes()).unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert_eq!(without_parents(&answer).trim_end(), line);
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
