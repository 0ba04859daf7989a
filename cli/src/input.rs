//! Command input: replays from arguments, files and standard input, and lines from standard input. Replays from files and
//! standard input, and files of replays, have a maximum size, and lines have a maximum length. Errors name the source of the
//! replay or the number of the line.

use crate::args::ReplayInput;
use crate::output::{self, CANNOT_WRITE, Failure};
use anyhow::{Context, anyhow, bail, ensure};
use hatebeam_game::{Encoding, Geometry, Key, Record, Well, decode};
use hatebeam_report::count;
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::Path;

/// Maximum length of a replay in bytes. The record game, with 9,309 pieces, takes about 150 kB in its longest encoding.
/// The limit also bounds memory: the memory of a played replay can be a few hundred times its length, because one
/// Base65536 character can encode 16 keys, and one piece takes 64 bytes.
const MAX_REPLAY_BYTES: u64 = 4 << 20;
/// Maximum length in bytes of a file with one replay per line: several hundred games of the record's length in the longest
/// encoding.
const MAX_REPLAYS_BYTES: u64 = 64 << 20;

/// The kind of text to read, with its maximum size.
#[derive(Clone, Copy, Debug)]
struct TextKind {
    name: &'static str,
    /// The file to name instead of a directory.
    file: &'static str,
    max_bytes: u64,
}

const ONE_REPLAY: TextKind = TextKind {
    name: "a replay",
    file: "a file with one replay",
    max_bytes: MAX_REPLAY_BYTES,
};
const REPLAYS: TextKind = TextKind {
    name: "a file of replays",
    file: "a file with one replay per line",
    max_bytes: MAX_REPLAYS_BYTES,
};

impl fmt::Display for TextKind {
    /// Writes the maximum size as a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.max_bytes >> 20;
        write!(f, "{} can have at most {limit} MiB", self.name)
    }
}

/// Maximum length in bytes of a line with one well. The largest well has 80 hex digits, including the rows above the
/// bar.
pub(crate) const MAX_WELL_BYTES: u64 = 1024;
/// Maximum length in bytes of a line with a JSON object. The largest playing field has 56 rows of 16 cells.
const MAX_OBJECT_BYTES: u64 = 64 << 10;

/// Origin of a replay.
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

/// A decoded replay and its original encoding.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) keys: Vec<Key>,
    pub(crate) encoding: Encoding,
}

impl Replay {
    /// Reads and decodes the replay that the command line names.
    pub(crate) fn read(input: &ReplayInput) -> anyhow::Result<Replay> {
        let source = Source::of(input)?;
        let text = source.read(ONE_REPLAY)?;
        let replay = match input.from {
            None => decode(&text).map(|(keys, encoding)| Replay { keys, encoding }),
            Some(encoding) => encoding.decode(&text).map(|keys| Replay { keys, encoding }),
        };
        if let (Source::Argument(path), Err(_)) = (&source, &replay)
            && let Some((position, character)) = foreign_character(&text)
            && !Path::new(path).is_file()
        {
            bail!(
                "{source}: character {position}, {character:?}, is not valid in a replay: to read a file, pass --file"
            );
        }
        if replay.is_err()
            && let many @ 2.. = replays_in(&text)
        {
            bail!("{source} contains {many} replays, one per line: pass one of them");
        }
        replay.with_context(|| match source {
            Source::Argument(path) if Path::new(path).is_file() => {
                format!("{source} (it is the name of a file: pass it with --file)")
            }
            _ => source.to_string(),
        })
    }
}

/// Returns the first character that no encoding contains, such as a dot in the name of a file, and its position, counted from
/// 1. Recognizes only ASCII punctuation.
fn foreign_character(text: &str) -> Option<(usize, char)> {
    let is_foreign = |letter: char| letter.is_ascii_punctuation() && letter != '#';
    let mut letters = (1..).zip(text.chars());
    letters.find(|(_, letter)| is_foreign(*letter))
}

/// Returns the number of replays in a text with one replay per line, or 0 if a line is not a replay. Like in
/// [`read_replays`], empty lines and lines that begin with `#` are ignored.
fn replays_in(text: &str) -> usize {
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let decoded = lines.try_fold(0, |count, line| decode(line).map(|_| count + 1));
    decoded.unwrap_or(0)
}

/// Reads a file with one replay per line. Returns the keys of each replay with the number of its line. Empty lines and
/// lines that begin with `#` are ignored.
pub(crate) fn read_replays(path: &Path) -> anyhow::Result<Vec<(usize, Vec<Key>)>> {
    let text = Source::File(path).read(REPLAYS)?;
    let lines = text.lines().map(str::trim).zip(1..);
    lines
        .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
        .map(|(line, number)| {
            let name = || format!("{}, line {number}", path.display());
            let is_too_long = line.len() as u64 > MAX_REPLAY_BYTES;
            ensure!(!is_too_long, "{} is too long: {ONE_REPLAY}", name());
            let (keys, _) = decode(line).with_context(name)?;
            Ok((number, keys))
        })
        .collect()
}

/// Describes the keys of a replay after the end of its game.
pub(crate) fn ignored_keys(record: &Record) -> String {
    format!(
        "ignored {} after key {}, which ended the game with piece {}",
        count(record.keys_unused as u64, "key"),
        record.keys_used,
        record.turns.len()
    )
}

/// Warns if a replay has more keys after the end of its game than the one that may be padding of its encoding. The game of a
/// damaged replay often ends early. `name` says where the replay comes from.
pub(crate) fn warn_of_ignored_keys(name: impl fmt::Display, record: &Record) {
    if record.keys_unused > 1 {
        let ignored = ignored_keys(record);
        output::warn(format_args!("{name}: {ignored}: the replay may be damaged"));
    }
}

/// Reads a file with one well in hex per line, up to a maximum number of lines. Returns `None` if there is no such file.
pub(crate) fn read_wells(
    path: &Path,
    geometry: Geometry,
    most: usize,
) -> anyhow::Result<Option<Vec<Well>>> {
    let name = path.display();
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.with_context(|| format!("cannot open {name}"))?,
    };
    let cannot_read = || format!("cannot read {name}");
    let mut lines = Lines::new(file, MAX_WELL_BYTES);
    let mut wells = Vec::new();
    while let Some(line) = lines.next().with_context(cannot_read)? {
        let well = line.and_then(|line| Ok(Well::from_hex(geometry, line)?));
        wells.push(well.with_context(|| format!("{name}, line {}", lines.number))?);
        ensure!(
            wells.len() <= most,
            "{name} has more than {most} lines: it can have at most {most}"
        );
    }
    Ok(Some(wells))
}

impl<'a> Source<'a> {
    fn of(input: &'a ReplayInput) -> anyhow::Result<Source<'a>> {
        match (&input.file, &input.replay) {
            (Some(path), _) if path.as_os_str() != "-" => Ok(Source::File(path)),
            (None, Some(text)) if text != "-" => Ok(Source::Argument(text)),
            (None, None) => {
                refuse_terminal(
                    "replay: pass it as an argument, name its file with --file, or pipe it to standard input",
                )?;
                Ok(Source::Stdin)
            }
            _ => Ok(Source::Stdin),
        }
    }

    fn read(&self, kind: TextKind) -> anyhow::Result<String> {
        match self {
            Source::Argument(text) => Ok((*text).to_owned()),
            Source::File(path) => self.read_from(open(path, kind)?, kind),
            Source::Stdin => self.read_from(io::stdin().lock(), kind),
        }
    }

    fn read_from(&self, reader: impl Read, kind: TextKind) -> anyhow::Result<String> {
        let mut bytes = Vec::new();
        let mut limited = reader.take(kind.max_bytes + 1);
        limited
            .read_to_end(&mut bytes)
            .with_context(|| format!("cannot read {self}"))?;
        ensure!(
            bytes.len() as u64 <= kind.max_bytes,
            "{self} is larger than {} MiB: {kind}",
            kind.max_bytes >> 20
        );
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            anyhow!("{self}: {}", not_utf8(error.as_bytes(), at))
        })
    }
}

/// Opens a file of this kind.
fn open(path: &Path, kind: TextKind) -> anyhow::Result<File> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let metadata = file
        .metadata()
        .with_context(|| format!("cannot read {name}"))?;
    ensure!(
        !metadata.is_dir(),
        "{name} is a directory: name {}",
        kind.file
    );
    let size = metadata.len().div_ceil(1 << 20);
    ensure!(
        metadata.len() <= kind.max_bytes,
        "{name} is {size} MiB: {kind}"
    );
    Ok(file)
}

/// Returns the error message for an invalid byte at index `at`.
fn not_utf8(bytes: &[u8], at: usize) -> String {
    format!("byte {} ({:#04x}) is not valid UTF-8", at + 1, bytes[at])
}

/// Returns an error if standard input is a terminal. Without this check, the command would silently wait for input.
pub(crate) fn refuse_terminal(missing: &str) -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        return Err(Failure::Usage(format!("missing {missing} (see --help)")));
    }
    Ok(())
}

/// Lines of input, numbered from 1, with a maximum length.
#[derive(Debug)]
struct Lines<R> {
    reader: BufReader<R>,
    max_bytes: u64,
    number: usize,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    fn new(reader: R, max_bytes: u64) -> Lines<R> {
        Lines {
            reader: BufReader::new(reader),
            max_bytes,
            number: 0,
            line: Vec::new(),
        }
    }

    /// Returns whether the next call to [`Lines::next`] may block until more input arrives.
    fn may_wait(&self) -> bool {
        !self.reader.buffer().contains(&b'\n')
    }

    /// Returns the next line without its line break, or `None` after the last line. The outer error is a read error. The
    /// inner error describes an invalid line; after it, the caller can continue with the next line.
    fn next(&mut self) -> io::Result<Option<anyhow::Result<&str>>> {
        self.line.clear();
        let mut limited = (&mut self.reader).take(self.max_bytes + 1);
        let read = limited.read_until(b'\n', &mut self.line);
        if read? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() as u64 > self.max_bytes {
            self.reader.skip_until(b'\n')?;
            let limit = self.max_bytes;
            let error = anyhow!("the line is too long: it can have at most {limit} bytes");
            return Ok(Some(Err(error)));
        }
        let text = std::str::from_utf8(&self.line);
        let text = text.map_err(|error| anyhow!(not_utf8(&self.line, error.valid_up_to())));
        Ok(Some(text))
    }
}

/// The JSON object that is printed for an invalid line.
#[derive(Debug, Serialize)]
struct BadLine<'a> {
    line: usize,
    error: &'a str,
}

/// Settings of [`answer_lines`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineFormat {
    /// Name of the content of a line, such as `well`, for error messages.
    pub(crate) content: &'static str,
    pub(crate) max_bytes: u64,
    /// Whether an invalid line is reported as an object on standard output. Otherwise, it is reported on standard error.
    pub(crate) json: bool,
}

/// Prints the answer to each line of standard input. Reports each invalid line and continues with the next one. Returns
/// an error after the last line if a line was invalid or there were no lines.
pub(crate) fn answer_lines(
    format: LineFormat,
    mut answer: impl FnMut(&str) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let mut lines = Lines::new(io::stdin().lock(), format.max_bytes);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut has_failed = false;
    loop {
        // A client that sends one line at a time waits for each answer, so the output must not stay in the buffer.
        if lines.may_wait() {
            out.flush().context(CANNOT_WRITE)?;
        }
        let Some(line) = lines.next().context("cannot read standard input")? else {
            break;
        };
        match line.and_then(&mut answer) {
            Ok(text) => out.write_all(text.as_bytes()).context(CANNOT_WRITE)?,
            Err(error) => {
                has_failed = true;
                let (line, error) = (lines.number, &format!("{error:#}"));
                out.flush().context(CANNOT_WRITE)?;
                if format.json {
                    let object = serde_json::to_string(&BadLine { line, error })?;
                    writeln!(out, "{object}").context(CANNOT_WRITE)?;
                } else {
                    output::line(format_args!("error: standard input, line {line}: {error}"));
                }
            }
        }
    }
    out.flush().context(CANNOT_WRITE)?;
    ensure!(
        lines.number > 0,
        "standard input is empty: give one {} per line",
        format.content
    );
    ensure!(!has_failed, Failure::Printed);
    Ok(())
}

/// Prints the answer to each JSON object on standard input, which must contain one object per line.
pub(crate) fn answer_objects(
    mut answer: impl FnMut(&str) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    refuse_terminal("input: pipe one JSON object per line to standard input")?;
    let format = LineFormat {
        content: "JSON object",
        max_bytes: MAX_OBJECT_BYTES,
        json: true,
    };
    answer_lines(format, |line| Ok(answer(line)? + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<T: fmt::Debug>(result: anyhow::Result<T>) -> String {
        format!("{:#}", result.unwrap_err())
    }

    #[test]
    fn replay_input_is_limited_to_4_mib_and_file_of_replays_to_64_mib() {
        let text = error(Source::Stdin.read_from(io::repeat(b'D'), ONE_REPLAY));
        let expected = "standard input is larger than 4 MiB: a replay can have at most 4 MiB";
        assert_eq!(text, expected);
        let text = error(Source::File(Path::new("x")).read_from(io::repeat(b'D'), REPLAYS));
        let expected = "x is larger than 64 MiB: a file of replays can have at most 64 MiB";
        assert_eq!(text, expected);
    }

    #[test]
    fn text_with_one_replay_per_line_is_recognized() {
        let keys = [Key::Down; 20];
        let line = hatebeam_game::encode(&keys, Encoding::Base2048);
        assert_eq!(replays_in(&format!("# two games\n{line}\n\n{line}\n")), 2);
        assert_eq!(replays_in(&format!("{line}\nno replay\n")), 0);
    }

    #[test]
    fn punctuation_is_in_no_encoding() {
        for (text, found) in [("game.txt", Some((5, '.'))), ("my_game", Some((3, '_')))] {
            assert_eq!(foreign_character(text), found);
        }
        let keys = [Key::Down, Key::Left, Key::Up].repeat(999);
        for encoding in Encoding::ALL {
            let text = hatebeam_game::encode(&keys, encoding);
            assert_eq!(foreign_character(&text), None, "{encoding}");
        }
    }

    #[test]
    fn error_for_invalid_utf8_names_byte_and_position() {
        let text = error(Source::Stdin.read_from(&b"DD\xff"[..], ONE_REPLAY));
        assert_eq!(text, "standard input: byte 3 (0xff) is not valid UTF-8");
    }

    #[test]
    fn lines_are_numbered_and_limited_in_length() {
        let mut input = b"one\n\n".to_vec();
        input.extend([b'x'; 5000]);
        input.extend(b"\nab\xc3\ntwo");
        let mut lines = Lines::new(&input[..], MAX_WELL_BYTES);
        let mut next = || lines.next().unwrap().unwrap().map(str::to_owned);
        assert_eq!(next().unwrap(), "one");
        assert_eq!(next().unwrap(), "");
        assert_eq!(
            error(next()),
            "the line is too long: it can have at most 1024 bytes"
        );
        assert_eq!(error(next()), "byte 3 (0xc3) is not valid UTF-8");
        assert_eq!(next().unwrap(), "two");
        assert!(lines.next().unwrap().is_none());
        assert_eq!(lines.number, 5);
    }
}
