//! Lookup of a run by its name or by the beginning of its name.

use thiserror::Error;

/// The reason why a name or the beginning of a name does not identify a run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// No run name begins with the wanted name.
    #[error("there is no run {0:?}")]
    Unknown(String),
    /// Several run names begin with the wanted name.
    #[error("'{wanted}' is ambiguous ({}): give more of the name", matches_text(first, second, *more))]
    Ambiguous {
        /// The wanted name.
        wanted: String,
        /// A run name that begins with the wanted name.
        first: String,
        /// Another run name that begins with the wanted name.
        second: String,
        /// Number of further run names that begin with the wanted name.
        more: usize,
    },
}

fn matches_text(first: &str, second: &str, more: usize) -> String {
    match more {
        0 => format!("{first} or {second}"),
        more => format!("{first}, {second} and {more} more"),
    }
}

/// Returns the run whose name equals `wanted`, or else the only run whose name begins with `wanted`. Runs whose names begin
/// with `wanted` and a dash take precedence, so that the name of a wider run does not make a width ambiguous.
///
/// # Errors
/// Returns a [`NameError`] if there is no such run, several names match, or `wanted` is empty and matches no
/// name exactly.
pub fn find_by_name<'a, T>(
    runs: &'a [T],
    name: impl Fn(&T) -> &str,
    wanted: &str,
) -> Result<&'a T, NameError> {
    if let Some(exact) = runs.iter().find(|run| name(run) == wanted) {
        return Ok(exact);
    }
    let matches = |run: &T| name(run).starts_with(wanted);
    let has_dash = |run: &T| {
        let rest = name(run).strip_prefix(wanted);
        rest.is_some_and(|rest| rest.starts_with('-'))
    };
    let mut matching: Vec<&T> = runs.iter().filter(|run| matches(run)).collect();
    if matching.iter().any(|run| has_dash(run)) {
        matching.retain(|run| has_dash(run));
    }
    match matching[..] {
        [only] if !wanted.is_empty() => Ok(only),
        [first, second, ref others @ ..] => Err(NameError::Ambiguous {
            wanted: wanted.to_owned(),
            first: name(first).to_owned(),
            second: name(second).to_owned(),
            more: others.len(),
        }),
        _ => Err(NameError::Unknown(wanted.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_name_or_unique_prefix_finds_run() {
        let runs = ["patterns-10-a", "patterns-10", "plain-7"];
        let find = |wanted| find_by_name(&runs, |run| run, wanted);
        assert_eq!(find("pl"), Ok(&"plain-7"));
        assert_eq!(find("patterns-10"), Ok(&"patterns-10"));
        let error = find("patterns").unwrap_err().to_string();
        let expected =
            "'patterns' is ambiguous (patterns-10-a or patterns-10): give more of the name";
        assert_eq!(error, expected);
        for unknown in ["plain-77", "knewjade"] {
            assert_eq!(find(unknown), Err(NameError::Unknown(unknown.to_owned())));
        }
        let runs = ["beam-1000-a", "beam-10000-b", "beam-10000-c", "beam-2-d"];
        let find = |wanted| find_by_name(&runs, |run| run, wanted);
        assert_eq!(find("beam-1000"), Ok(&"beam-1000-a"));
        let error = find("beam").unwrap_err().to_string();
        let expected =
            "'beam' is ambiguous (beam-1000-a, beam-10000-b and 2 more): give more of the name";
        assert_eq!(error, expected);
        let single = find_by_name(&["a"], |run| run, "");
        assert_eq!(single, Err(NameError::Unknown(String::new())));
    }
}
