//! The records of a run's depths: `depths.jsonl`.
//!
//! A line a commit, so that a commit costs the same however deep the run is. A line is
//! `{"sum":"…","record":{…}}`, the sum being FNV-1a (64 bits) of the record's text as it stands. A
//! record of a depth that has one already takes its place: so the tables of a depth are given up.
//! A last line that is not whole is what a crash left, and does not count.

use crate::error::StoreError;
use crate::files::{sync_dir, write_whole};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What is known of a committed depth.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct DepthRecord {
    /// The depth: how many pieces were placed.
    pub depth: u32,
    /// How many wells its frontier has.
    pub count: u64,
    /// The [`Digest`](hatebeam_search::Digest) of its nodes in hex.
    pub digest: String,
    /// The greatest score.
    #[serde(rename = "best_score")]
    pub best_eval: i32,
    /// The median of the scores.
    #[serde(rename = "median_score")]
    pub median_eval: i32,
    /// The least score.
    #[serde(rename = "worst_score")]
    pub worst_eval: i32,
    /// The most lines cleared.
    #[serde(rename = "best_game_score")]
    pub best_lines: u16,
    /// A well with the most lines cleared, as [`Well::to_hex`](hatebeam_game::Well::to_hex) has it.
    pub best_well: String,
    /// How many children were made to get the frontier.
    pub children: u64,
    /// How long that took.
    pub seconds: f64,
    /// The bytes of its tables; the store fills it in.
    pub bytes: u64,
    /// Whether the tables are there; the store fills it in.
    pub kept: bool,
}

const BEFORE_SUM: &str = "{\"sum\":\"";
const AFTER_SUM: &str = "\",\"record\":";

/// FNV-1a.
fn sum_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn line_of(record: &DepthRecord) -> Result<String, StoreError> {
    let text = serde_json::to_string(record).map_err(|error| StoreError::BadRecord {
        depth: record.depth,
        reason: error.to_string(),
    })?;
    let sum = sum_of(&text);
    Ok(format!("{BEFORE_SUM}{sum:016x}{AFTER_SUM}{text}}}\n"))
}

fn parse_line(line: &str) -> Result<DepthRecord, String> {
    let rest = line.strip_prefix(BEFORE_SUM).ok_or("it has no checksum")?;
    let (sum, rest) = rest.split_once(AFTER_SUM).ok_or("it has no record")?;
    let text = rest.strip_suffix('}').ok_or("it has no end")?;
    if u64::from_str_radix(sum, 16) != Ok(sum_of(text)) {
        return Err("its checksum is wrong".to_owned());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The records, and the file they are in.
#[derive(Debug)]
pub(crate) struct Records {
    path: PathBuf,
    list: Vec<DepthRecord>,
    /// The length of the file as far as it is valid.
    len: u64,
}

impl Records {
    /// An empty list with its file.
    pub(crate) fn create(path: &Path) -> Result<Records, StoreError> {
        write_whole(path, b"")?;
        Ok(Records {
            path: path.to_path_buf(),
            list: Vec::new(),
            len: 0,
        })
    }

    /// Reads the file, but for a last line that is not whole.
    pub(crate) fn read(path: &Path) -> Result<Records, StoreError> {
        let bytes = fs::read(path).map_err(StoreError::io(path))?;
        let mut records = Records {
            path: path.to_path_buf(),
            list: Vec::new(),
            len: 0,
        };
        let mut rest = bytes.as_slice();
        for number in 1.. {
            let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
                break;
            };
            let line = std::str::from_utf8(&rest[..end]).map_err(|error| error.to_string());
            let added = line
                .and_then(parse_line)
                .and_then(|record| records.put(record));
            let is_last = end + 1 == rest.len();
            match added {
                Ok(()) => {}
                Err(_) if is_last => break,
                Err(reason) => {
                    return Err(StoreError::Damaged {
                        path: path.to_path_buf(),
                        reason: format!("line {number}: {reason}"),
                    });
                }
            }
            records.len += end as u64 + 1;
            rest = &rest[end + 1..];
        }
        if !rest.is_empty() {
            tracing::warn!(file = %path.display(), "the last line is not whole: passed over");
        }
        Ok(records)
    }

    /// Removes what [`Records::read`] passed over.
    pub(crate) fn trim(&self) -> Result<(), StoreError> {
        OpenOptions::new()
            .write(true)
            .open(&self.path)
            .and_then(|file| {
                file.set_len(self.len)?;
                file.sync_all()
            })
            .map_err(StoreError::io(&self.path))
    }

    fn put(&mut self, record: DepthRecord) -> Result<(), String> {
        if let Some(at) = self.index(record.depth) {
            self.list[at] = record;
            return Ok(());
        }
        match self.next_depth() {
            Some(next) if next != record.depth => {
                Err(format!("depth {} stands where {next} should", record.depth))
            }
            _ => {
                self.list.push(record);
                Ok(())
            }
        }
    }

    /// The depth whose turn it is; `None` if there is none yet, and it may be any.
    pub(crate) fn next_depth(&self) -> Option<u32> {
        self.list.last().map(|last| last.depth.saturating_add(1))
    }

    fn index(&self, depth: u32) -> Option<usize> {
        let first = self.list.first()?.depth;
        let at = depth.checked_sub(first)? as usize;
        (at < self.list.len()).then_some(at)
    }

    pub(crate) fn list(&self) -> &[DepthRecord] {
        &self.list
    }

    pub(crate) fn get(&self, depth: u32) -> Option<&DepthRecord> {
        self.index(depth).map(|at| &self.list[at])
    }

    /// Adds a record, or puts it in place of the depth's. On an error nothing has changed.
    pub(crate) fn append(&mut self, record: DepthRecord) -> Result<(), StoreError> {
        let line = line_of(&record)?;
        let appended = OpenOptions::new()
            .write(true)
            .open(&self.path)
            .and_then(|file| append_at(&file, self.len, line.as_bytes()));
        if let Err(error) = appended {
            if let Err(error) = self.trim() {
                tracing::warn!(%error, "a record that was not written whole is left");
            }
            return Err(StoreError::io(&self.path)(error));
        }
        let depth = record.depth;
        self.put(record)
            .map_err(|reason| StoreError::BadRecord { depth, reason })?;
        self.len += line.len() as u64;
        Ok(())
    }

    /// Forgets the depths that are not to be kept, as one step.
    pub(crate) fn retain(&mut self, keeps: impl Fn(u32) -> bool) -> Result<(), StoreError> {
        let kept: Vec<DepthRecord> = self
            .list
            .iter()
            .filter(|record| keeps(record.depth))
            .cloned()
            .collect();
        let mut text = String::new();
        for record in &kept {
            text.push_str(&line_of(record)?);
        }
        write_whole(&self.path, text.as_bytes())?;
        self.list = kept;
        self.len = text.len() as u64;
        self.path.parent().map_or(Ok(()), sync_dir)
    }
}

fn append_at(mut file: &File, at: u64, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::{Seek, SeekFrom};
    file.set_len(at)?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)?;
    file.sync_all()
}
