//! Errors in a configuration file.

use crate::location::{NONE, VARIABLE};
use serde::Serialize;
use std::fmt;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Error that occurs when finding, reading or parsing a configuration file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is too long.
    #[error("the configuration file {} has more than {limit} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Maximum length in bytes.
        limit: u64,
    },
    /// The file is not valid UTF-8.
    #[error("the configuration file {} is not valid UTF-8", .0.display())]
    NotText(PathBuf),
    /// The file contains errors.
    #[error("{}:{}{}", path.display(), problems[0], more(path, problems))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The errors, sorted by line. The list is not empty.
        problems: Vec<Problem>,
    },
    /// The user disabled the configuration file, but the command needs one.
    #[error(
        "the configuration file is disabled, because --config or {VARIABLE} is '{NONE}': name a file"
    )]
    Disabled,
    /// The default file does not exist.
    #[error("{} does not exist: create it with `hatebeam config init`", .0.display())]
    Missing(PathBuf),
    /// The default file is unknown, because no environment variable names the home folder.
    #[error("HOME is not set: name a configuration file with --config")]
    NoHome,
}

fn more(path: &std::path::Path, problems: &[Problem]) -> String {
    match problems.len() {
        0 | 1 => String::new(),
        count => format!(
            " (and {} more: hatebeam config check {})",
            count - 1,
            path.display()
        ),
    }
}

/// An error in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Line number, counted from 1.
    pub line: usize,
    /// Description of the error.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.text)
    }
}
