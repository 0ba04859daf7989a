//! The file `depths.jsonl`, which contains a record for each depth (number of placed pieces) of a run.
//!
//! Every commit appends a line, so its cost does not depend on the number of earlier depths. A
//! line has the form `{"sum":"…","record":{…}}`, or `{"sum":"…","records":[{…},{…}]}` for several
//! depths that are committed together. The sum is the 64-bit FNV-1a hash of the JSON text of the
//! record or list. If a depth has several records, the last one is valid. For example, a second
//! record is appended when the tables of a depth are dropped (deleted).
//!
//! A crash may leave an incomplete last line, so an invalid last line is ignored. Depths that are
//! committed together share a line, so a crash leaves all of them or none. The line can also contain
//! the second records of depths that the commit drops.

use crate::error::StoreError;
use hatebeam_files::write_whole;
use hatebeam_search::{DepthRecord, fnv1a};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Number of hexadecimal digits of a checksum.
const SUM_LEN: usize = 16;
const BEFORE_SUM: &str = "{\"sum\":\"";
const AFTER_SUM: &str = "\",\"record\":";
const AFTER_SUM_OF_LIST: &str = "\",\"records\":";

/// Returns the line for records that are committed together.
fn line_of(records: &[DepthRecord]) -> Result<String, StoreError> {
    let (after_sum, text) = match records {
        [record] => (AFTER_SUM, serde_json::to_string(record)),
        records => (AFTER_SUM_OF_LIST, serde_json::to_string(records)),
    };
    let text = text.map_err(|error| StoreError::BadRecord {
        depth: records.first().map_or(0, |record| record.depth),
        reason: error.to_string(),
    })?;
    let sum = fnv1a(text.bytes());
    Ok(format!("{BEFORE_SUM}{sum:016x}{after_sum}{text}}}\n"))
}

fn parse_line(line: &str) -> Result<Vec<DepthRecord>, String> {
    let rest = line
        .strip_prefix(BEFORE_SUM)
        .ok_or("the checksum is missing")?;
    let (sum, text, is_list) = match rest.split_at_checked(SUM_LEN) {
        Some((sum, rest)) => match rest.strip_prefix(AFTER_SUM) {
            Some(text) => (sum, text, false),
            None => {
                let text = rest.strip_prefix(AFTER_SUM_OF_LIST);
                (sum, text.ok_or("the record is missing")?, true)
            }
        },
        None => return Err("the checksum is incomplete".to_owned()),
    };
    let text = text
        .strip_suffix('}')
        .ok_or("the closing brace is missing")?;
    if u64::from_str_radix(sum, 16) != Ok(fnv1a(text.bytes())) {
        return Err("the checksum does not match".to_owned());
    }
    let records = if is_list {
        serde_json::from_str(text)
    } else {
        serde_json::from_str(text).map(|record| vec![record])
    };
    records.map_err(|error| error.to_string())
}

/// The records of all depths, and the file that contains them.
#[derive(Debug)]
pub(crate) struct Records {
    path: PathBuf,
    list: Vec<DepthRecord>,
    /// Length in bytes of the valid part of the file.
    len: u64,
}

impl Records {
    /// Creates an empty list and writes its file.
    pub(crate) fn create(path: &Path) -> Result<Records, StoreError> {
        write_whole(path, b"").map_err(StoreError::io(path))?;
        Ok(Records {
            path: path.to_path_buf(),
            list: Vec::new(),
            len: 0,
        })
    }

    /// Reads the file. Ignores an invalid last line.
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
                .and_then(|added| added.into_iter().try_for_each(|record| records.put(record)));
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
            tracing::warn!(file = %path.display(), "ignored incomplete last line");
        }
        Ok(records)
    }

    /// Truncates the file to its valid part, which removes an invalid last line.
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
            Some(next) if next != record.depth => Err(format!(
                "found depth {} instead of depth {next}",
                record.depth
            )),
            _ => {
                self.list.push(record);
                Ok(())
            }
        }
    }

    /// Returns the next depth to commit, or `None` if there are no records and any depth can be
    /// committed.
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

    /// Appends a line with these records, which replace existing records for the same depths. After
    /// an I/O error, the list is unchanged.
    pub(crate) fn append(&mut self, records: Vec<DepthRecord>) -> Result<(), StoreError> {
        let line = line_of(&records)?;
        let appended = OpenOptions::new()
            .write(true)
            .open(&self.path)
            .and_then(|file| append_at(&file, self.len, line.as_bytes()));
        if let Err(error) = appended {
            if let Err(error) = self.trim() {
                tracing::warn!(%error, "cannot remove incomplete record");
            }
            return Err(StoreError::io(&self.path)(error));
        }
        for record in records {
            let depth = record.depth;
            self.put(record)
                .map_err(|reason| StoreError::BadRecord { depth, reason })?;
        }
        self.len += line.len() as u64;
        Ok(())
    }

    /// Atomically removes the records of all depths for which `keeps` returns `false`.
    pub(crate) fn retain(&mut self, keeps: impl Fn(u32) -> bool) -> Result<(), StoreError> {
        let kept: Vec<DepthRecord> = self
            .list
            .iter()
            .filter(|record| keeps(record.depth))
            .cloned()
            .collect();
        let mut text = String::new();
        for record in &kept {
            text.push_str(&line_of(std::slice::from_ref(record))?);
        }
        write_whole(&self.path, text.as_bytes()).map_err(StoreError::io(&self.path))?;
        self.list = kept;
        self.len = text.len() as u64;
        Ok(())
    }
}

fn append_at(mut file: &File, at: u64, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::{Seek, SeekFrom};
    file.set_len(at)?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_search::ChangedPiece;

    const LINE: &str = concat!(
        r#"{"sum":"611a1f82621d5684","record":{"depth":7,"count":2,"#,
        r#""digest":"000102030405060708090a0b0c0d0e0f","best_eval":900,"median_eval":-20,"worst_eval":-300,"#,
        r#""best_lines":1,"best_well":"00000000000000000000000000000000000000000001800c","children":31,"#,
        r#""seconds":0.25,"bytes":1234,"kept":true}}"#,
    );
    /// The record in `LINE`, in format 1.
    const LINE_1: &str = concat!(
        r#"{"sum":"cba54aae18159bf6","record":{"depth":7,"count":2,"#,
        r#""digest":"000102030405060708090a0b0c0d0e0f","best_score":900,"median_score":-20,"worst_score":-300,"#,
        r#""best_game_score":1,"best_well":"00000000000000000000000000000000000000000001800c","children":31,"#,
        r#""seconds":0.25,"bytes":1234,"kept":true}}"#,
    );

    fn record() -> DepthRecord {
        DepthRecord {
            depth: 7,
            count: 2,
            digest: "000102030405060708090a0b0c0d0e0f".to_owned(),
            best_eval: 900,
            median_eval: -20,
            worst_eval: -300,
            best_lines: 1,
            best_well: "00000000000000000000000000000000000000000001800c".to_owned(),
            children: 31,
            seconds: 0.25,
            bytes: 1234,
            kept: true,
            changed: Vec::new(),
        }
    }

    #[test]
    fn record_line_has_documented_format() {
        assert_eq!(line_of(&[record()]).unwrap(), format!("{LINE}\n"));
        assert_eq!(parse_line(LINE), Ok(vec![record()]));
    }

    #[test]
    fn line_of_several_records_has_documented_format() {
        let mut next = record();
        next.depth = 8;
        let both = [record(), next];
        let line = line_of(&both).unwrap();
        let text = serde_json::to_string(&both).unwrap();
        let sum = fnv1a(text.bytes());
        assert_eq!(
            line,
            format!("{{\"sum\":\"{sum:016x}\",\"records\":{text}}}\n")
        );
        assert_eq!(parse_line(line.trim_end()), Ok(both.to_vec()));
        let damaged = line.trim_end().replacen("\"depth\":8", "\"depth\":9", 1);
        assert_eq!(
            parse_line(&damaged),
            Err("the checksum does not match".to_owned())
        );
    }

    #[test]
    fn changed_pieces_have_documented_format() {
        let mut record = record();
        let well = "00000000000000000000000000000000000000000001800c".to_owned();
        record.changed = vec![ChangedPiece { well, piece: 'Z' }];
        let line = line_of(std::slice::from_ref(&record)).unwrap();
        let changed = concat!(
            r#""kept":true,"changed":[{"well":"00000000000000000000000000000000000000000001800c","#,
            r#""piece":"Z"}]}}"#,
        );
        assert!(line.trim_end().ends_with(changed), "{line}");
        assert_eq!(parse_line(line.trim_end()), Ok(vec![record]));
    }

    #[test]
    fn record_line_of_format_1_can_be_read() {
        assert_eq!(parse_line(LINE_1), Ok(vec![record()]));
    }
}
