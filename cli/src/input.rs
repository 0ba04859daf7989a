//! Reading what the user gives: replays from arguments, files and standard input, and lines from
//! standard input. Everything is bounded, and every error names the input.

use crate::args::ReplayInput;
use crate::output::{Failure, count};
use anyhow::{Context, bail, ensure};
use hatebeam_game::{Encoding, Key, decode};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::Path;

/// The longest text that is read as a replay. The record of 9,309 pieces takes some 150 KB in its
/// longest encoding. Played, a text can take a few hundred times its length of memory: a character
/// of Base65536 can be 16 keys, and a piece 64 bytes.
const MAX_REPLAY_BYTES: u64 = 4 << 20;

/// The longest line that is read as a well. The largest well has 80 digits, above the bar included.
const MAX_LINE_BYTES: u64 = 1024;

/// Where a text comes from.
#[derive(Debug)]
enum Source<'a> {
    Argument(&'a str),
    File(&'a Path),
    Stdin,
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Argument(_) => write!(f, "REPLAY"),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Stdin => write!(f, "standard input"),
        }
    }
}

/// A replay as it was given.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) keys: Vec<Key>,
    pub(crate) encoding: Encoding,
}

impl Replay {
    /// Reads and decodes the replay that the command line names.
    pub(crate) fn read(input: &ReplayInput) -> anyhow::Result<Replay> {
        let source = source(input)?;
        let text = source.read()?;
        let replay = match input.from {
            None => decode(&text).map(|(keys, encoding)| Replay { keys, encoding }),
            Some(encoding) => encoding.decode(&text).map(|keys| Replay { keys, encoding }),
        };
        replay.with_context(|| match source {
            Source::Argument(path) if Path::new(path).is_file() => {
                format!("{source} (there is a file of this name: --file reads it)")
            }
            _ => source.to_string(),
        })
    }
}

/// Reads and decodes the replay in a file, in whatever encoding.
pub(crate) fn read_replay(path: &Path) -> anyhow::Result<Replay> {
    Replay::read(&ReplayInput {
        replay: None,
        file: Some(path.to_owned()),
        from: None,
    })
}

fn source(input: &ReplayInput) -> anyhow::Result<Source<'_>> {
    match (&input.file, &input.replay) {
        (Some(path), _) if path.as_os_str() != "-" => Ok(Source::File(path)),
        (None, Some(text)) if text != "-" => Ok(Source::Argument(text)),
        (None, None) => {
            refuse_terminal("replay: give it as an argument, name its file with --file")?;
            Ok(Source::Stdin)
        }
        _ => Ok(Source::Stdin),
    }
}

impl Source<'_> {
    fn read(&self) -> anyhow::Result<String> {
        match self {
            Source::Argument(text) => Ok((*text).to_owned()),
            Source::File(path) => self.read_from(open(path)?),
            Source::Stdin => self.read_from(io::stdin().lock()),
        }
    }

    fn read_from(&self, reader: impl Read) -> anyhow::Result<String> {
        let mut bytes = Vec::new();
        let mut limited = reader.take(MAX_REPLAY_BYTES + 1);
        limited
            .read_to_end(&mut bytes)
            .with_context(|| format!("cannot read {self}"))?;
        ensure!(
            bytes.len() as u64 <= MAX_REPLAY_BYTES,
            too_large(&self.to_string(), None)
        );
        into_text(bytes).with_context(|| self.to_string())
    }
}

/// Opens a file that can be a replay's.
fn open(path: &Path) -> anyhow::Result<File> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let metadata = file
        .metadata()
        .with_context(|| format!("cannot read {name}"))?;
    ensure!(
        !metadata.is_dir(),
        "{name} is a directory: name a file with one replay in it"
    );
    ensure!(
        metadata.len() <= MAX_REPLAY_BYTES,
        too_large(&name, Some(metadata.len()))
    );
    Ok(file)
}

fn too_large(name: &str, bytes: Option<u64>) -> String {
    let limit = MAX_REPLAY_BYTES >> 20;
    let size = bytes.map_or(format!("has more than {limit} MiB"), |bytes| {
        format!("has {} MiB", bytes.div_ceil(1 << 20))
    });
    format!("{name} {size}: no replay is that long (at most {limit} MiB are read)")
}

fn into_text(bytes: Vec<u8>) -> anyhow::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes()[at];
        anyhow::anyhow!(
            "byte {} ({byte:#04x}) is not valid UTF-8: this is no text",
            at + 1
        )
    })
}

/// Refuses to wait for somebody to type.
pub(crate) fn refuse_terminal(what: &str) -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        return Err(Failure::Usage(format!(
            "there is no {what}, or pipe it in (--help tells more)"
        )));
    }
    Ok(())
}

/// The lines of standard input, numbered from 1, each of bounded length.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    number: usize,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Lines<R> {
        Lines {
            reader: BufReader::new(reader),
            number: 0,
            line: Vec::new(),
        }
    }

    /// Whether the next line may have to be waited for.
    pub(crate) fn may_wait(&self) -> bool {
        !self.reader.buffer().contains(&b'\n')
    }

    /// The number of the line that was read last; 0 before the first.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The next line without its end; `None` after the last.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<&str>> {
        self.line.clear();
        let mut limited = (&mut self.reader).take(MAX_LINE_BYTES + 1);
        let read = limited.read_until(b'\n', &mut self.line);
        if read.context("cannot read standard input")? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() as u64 > MAX_LINE_BYTES {
            bail!(
                "it has more than {}: no well is that long",
                count(MAX_LINE_BYTES as usize, "byte")
            );
        }
        let text = std::str::from_utf8(&self.line);
        let text = text.map_err(|error| {
            let at = error.valid_up_to();
            anyhow::anyhow!(
                "byte {} ({:#04x}) is not valid UTF-8",
                at + 1,
                self.line[at]
            )
        })?;
        Ok(Some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<T: fmt::Debug>(result: anyhow::Result<T>) -> String {
        format!("{:#}", result.unwrap_err())
    }

    #[test]
    fn endless_input_is_refused() {
        let text = error(Source::Stdin.read_from(io::repeat(b'D')));
        assert_eq!(
            text,
            "standard input has more than 4 MiB: no replay is that long (at most 4 MiB are read)"
        );
    }

    #[test]
    fn a_byte_that_is_no_text_is_named() {
        let text = error(Source::Stdin.read_from(&b"DD\xff"[..]));
        assert_eq!(
            text,
            "standard input: byte 3 (0xff) is not valid UTF-8: this is no text"
        );
    }

    #[test]
    fn lines_are_numbered_and_bounded() {
        let mut input = b"one\n\ntwo".to_vec();
        let mut lines = Lines::new(&input[..]);
        for expected in [Some("one"), Some(""), Some("two"), None] {
            assert_eq!(lines.next().unwrap(), expected);
        }
        assert_eq!(lines.number(), 3);

        input.extend([b'x'; 1025]);
        let mut lines = Lines::new(&input[..]);
        assert!(lines.next().unwrap().is_some() && lines.next().unwrap().is_some());
        assert_eq!(
            error(lines.next()),
            "it has more than 1024 bytes: no well is that long"
        );

        let mut lines = Lines::new(&b"ab\xc3"[..]);
        assert_eq!(error(lines.next()), "byte 3 (0xc3) is not valid UTF-8");
    }
}
