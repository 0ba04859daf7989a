//! Functions that read test vectors.

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
#[allow(dead_code)]
pub(crate) fn numbers(value: &Value) -> Vec<i64> {
    list(value)
        .iter()
        .map(|number| number.as_i64().unwrap())
        .collect()
}
