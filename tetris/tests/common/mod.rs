//! Functions that read test vectors, and random rows.

use hatebeam_tetris::Rng;
use serde_json::Value;

/// Reads a file of test vectors.
pub(crate) fn vectors(name: &str) -> Value {
    let path = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// Returns the items of a JSON array.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Returns the rows of text in a JSON array.
pub(crate) fn rows(value: &Value) -> Vec<&str> {
    list(value)
        .iter()
        .map(|row| row.as_str().unwrap())
        .collect()
}

/// Returns the numbers in a JSON array.
pub(crate) fn numbers(value: &Value) -> Vec<i64> {
    list(value)
        .iter()
        .map(|number| number.as_i64().unwrap())
        .collect()
}

/// Returns `count` random rows of text with `width` cells. Each row has a gap, and `dense + 1` of ten other cells are
/// filled.
pub(crate) fn random_rows(count: usize, width: usize, dense: usize, rng: &mut Rng) -> Vec<String> {
    let mut row = || -> String {
        let gap = rng.below(width);
        let mut is_filled = |x: usize| x != gap && rng.below(10) <= dense;
        (0..width)
            .map(|x| if is_filled(x) { 'X' } else { '_' })
            .collect()
    };
    (0..count).map(|_| row()).collect()
}
