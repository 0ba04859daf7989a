//! The journal of a search: an append-only file of JSON lines.
//!
//! The first line contains the format version, the parameters and a description of the objective. Every other line
//! contains a point and its value. An incomplete last line, which a crash can leave, is dropped.

use crate::parameter::{Parameter, Point};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Version of the journal format.
const FORMAT: u32 = 1;
/// Maximum size of a journal in bytes. Ten million points with ten parameters fit in it.
const MAX_BYTES: u64 = 1 << 30;
/// Maximum number of evaluations of a search. Methods round it up to whole generations, and those of CMA-ES grow, but twice as
/// many values of 50 parameters fit into a journal.
pub const MAX_EVALUATIONS: u32 = 1_000_000;

/// Journal error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The file is damaged, or is not a journal.
    #[error("{} is damaged at line {line}: tune in another folder", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: usize,
    },
    /// The lock on the journal cannot be acquired, because another process holds it.
    #[error("{} is used by another process: wait until it ends, or tune in another folder", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The journal is too large, or the next line does not fit.
    #[error("{} can have at most {} MiB: tune in another folder", path.display(), MAX_BYTES >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file belongs to another search.
    #[error(
        "{} belongs to a search with other settings: tune in another folder, or use the settings in its first line",
        path.display()
    )]
    OtherSearch {
        /// The file.
        path: PathBuf,
    },
}

/// The first line of a journal.
#[derive(PartialEq, Serialize, Deserialize)]
struct Header {
    format: u32,
    parameters: Vec<Parameter>,
    objective: Value,
}

/// Measured value of a point in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Half the width of the value's 95 % confidence interval, or 0 if the value is exact.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub half_width: f64,
}

impl Measured {
    /// Returns an exact value.
    pub fn exact(value: f64) -> Measured {
        Measured {
            value,
            half_width: 0.0,
        }
    }
}

/// Each further line of a journal.
#[derive(Serialize, Deserialize)]
struct Line {
    point: Point,
    #[serde(default, skip_serializing_if = "is_first")]
    round: usize,
    #[serde(flatten)]
    measured: Measured,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires a reference"
)]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires a reference"
)]
fn is_first(round: &usize) -> bool {
    *round == 0
}

/// A file that records the values of measured points.
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Length of the complete lines in bytes.
    length: u64,
    values: HashMap<(Point, usize), Measured>,
}

impl Journal {
    /// Opens a journal, or creates it if it does not exist. `objective` describes how values are measured. The
    /// parameters and the objective must be equal to those in an existing journal.
    ///
    /// # Errors
    /// Returns a [`JournalError`] if the file cannot be read, locked or written, is too large or damaged, or belongs to
    /// another search.
    pub fn open(
        path: &Path,
        parameters: &[Parameter],
        objective: Value,
    ) -> Result<Journal, JournalError> {
        let failed = |error| JournalError::Io {
            path: path.to_owned(),
            error,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(failed)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::InUse {
                path: path.to_owned(),
            },
            TryLockError::Error(error) => failed(error),
        })?;
        let mut text = Vec::new();
        let mut limited = (&file).take(MAX_BYTES + 1);
        limited.read_to_end(&mut text).map_err(failed)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(JournalError::TooLarge {
                path: path.to_owned(),
            });
        }
        // A line without a line break is incomplete.
        let whole = text
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let header = Header {
            format: FORMAT,
            parameters: parameters.to_vec(),
            objective,
        };
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            length: whole as u64,
            values: HashMap::new(),
        };
        if whole > 0 {
            journal.read(&text[..whole], &header)?;
        } else if !text.is_empty() && !is_start_of_header(&text) {
            return Err(JournalError::Damaged {
                path: path.to_owned(),
                line: 1,
            });
        }
        journal.drop_fragment().map_err(failed)?;
        if whole == 0 {
            journal.write(&header)?;
        }
        Ok(journal)
    }

    fn read(&mut self, text: &[u8], expected: &Header) -> Result<(), JournalError> {
        let damaged = |line| JournalError::Damaged {
            path: self.path.clone(),
            line,
        };
        let mut lines = text.trim_ascii_end().split(|&byte| byte == b'\n').zip(1..);
        let (first, number) = lines.next().ok_or_else(|| damaged(1))?;
        let header: Header = serde_json::from_slice(first).map_err(|_| damaged(number))?;
        if header != *expected {
            return Err(JournalError::OtherSearch {
                path: self.path.clone(),
            });
        }
        for (text, number) in lines {
            let line: Option<Line> = serde_json::from_slice(text).ok();
            let is_valid = |line: &Line| line.point.is_valid(expected.parameters.len());
            let line = line.filter(is_valid).ok_or_else(|| damaged(number))?;
            self.values.insert((line.point, line.round), line.measured);
        }
        Ok(())
    }

    /// Returns the recorded value of a point in a round.
    pub(crate) fn get(&self, key: &(Point, usize)) -> Option<Measured> {
        self.values.get(key).copied()
    }

    /// Removes and returns all recorded values, sorted by round and point.
    pub(crate) fn take_values(&mut self) -> Vec<((Point, usize), Measured)> {
        let mut values: Vec<_> = std::mem::take(&mut self.values).into_iter().collect();
        values.sort_unstable_by(|((one, one_round), _), ((other, other_round), _)| {
            (one_round, one).cmp(&(other_round, other))
        });
        values
    }

    /// Records the value of a point in a round.
    pub(crate) fn add(
        &mut self,
        key: (Point, usize),
        measured: Measured,
    ) -> Result<(), JournalError> {
        let line = Line {
            point: key.0,
            round: key.1,
            measured,
        };
        self.write(&line)?;
        self.values.insert((line.point, line.round), measured);
        Ok(())
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), JournalError> {
        let mut text = serde_json::to_vec(line)
            .expect("a line contains only numbers, strings, lists and objects");
        text.push(b'\n');
        // Otherwise, `open` would refuse the journal.
        if self.length + text.len() as u64 > MAX_BYTES {
            return Err(JournalError::TooLarge {
                path: self.path.clone(),
            });
        }
        if let Err(error) = self.file.write_all(&text) {
            // If this fails too, the fragment remains the last line, which `open` drops.
            let _ = self.drop_fragment();
            return Err(JournalError::Io {
                path: self.path.clone(),
                error,
            });
        }
        self.length += text.len() as u64;
        Ok(())
    }

    /// Removes what follows the complete lines, so that the next line begins after them.
    fn drop_fragment(&mut self) -> io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length))?;
        Ok(())
    }
}

/// Returns `true` if an incomplete first line may be the start of a header.
fn is_start_of_header(text: &[u8]) -> bool {
    let start = format!(r#"{{"format":{FORMAT},"#);
    text.starts_with(start.as_bytes()) || start.as_bytes().starts_with(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn line_after_a_failed_write_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let parameters = [Parameter::of_tests()];
        let measured = Measured::exact(1.0);
        let key = |at| (Point::nearest(&[at]), 0);
        let mut journal = Journal::open(&path, &parameters, json!(0)).unwrap();
        journal.add(key(0.25), measured).unwrap();
        // A full disk leaves the beginning of a line.
        journal.file.write_all(br#"{"point":"#).unwrap();
        journal.drop_fragment().unwrap();
        journal.add(key(0.75), measured).unwrap();
        drop(journal);
        let journal = Journal::open(&path, &parameters, json!(0)).unwrap();
        assert_eq!(journal.values.len(), 2);
        assert_eq!(journal.get(&key(0.75)), Some(measured));
    }

    #[test]
    fn longest_lines_of_a_search_fit() {
        let line = Line {
            point: Point::nearest(&[1.0; 50]),
            round: usize::MAX,
            measured: Measured {
                value: f64::MIN,
                half_width: f64::MAX,
            },
        };
        let bytes = serde_json::to_vec(&line).unwrap().len() as u64 + 1;
        let lines = 2 * u64::from(MAX_EVALUATIONS);
        assert!(lines * bytes < MAX_BYTES, "{bytes} bytes per line");
    }

    #[test]
    fn line_that_does_not_fit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path, &[Parameter::of_tests()], json!(0)).unwrap();
        let before = std::fs::read(&path).unwrap();
        journal.length = MAX_BYTES;
        let refused = journal.add((Point::nearest(&[0.5]), 0), Measured::exact(1.0));
        assert!(matches!(refused, Err(JournalError::TooLarge { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
