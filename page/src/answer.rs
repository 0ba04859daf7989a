//! Answers to requests.

use serde::Serialize;
use std::error::Error;
use std::fmt::Display;

/// Reason why a request failed. The page shows its text.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Result of a request. The value is the answer in JSON.
pub(crate) type Answer = Result<String, Failure>;

/// Converts an answer to JSON.
pub(crate) fn json(value: &impl Serialize) -> Answer {
    Ok(serde_json::to_string(value)?)
}

/// Converts an error to JSON.
pub(crate) fn failure(error: &impl Display) -> String {
    let text = serde_json::Value::String(error.to_string());
    format!("{{\"error\":{text}}}")
}
