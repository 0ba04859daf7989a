//! Running the binary, and what to feed it.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// The results of a run that went well.
    #[track_caller]
    pub(crate) fn results(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// The results of a run that went well and had nothing to remark.
    #[track_caller]
    pub(crate) fn silent_results(self) -> String {
        assert_eq!(self.err, "");
        self.results()
    }

    /// The error of a run that failed with this exit code and printed nothing else. It is one line,
    /// unless it is about the command line (code 2).
    #[track_caller]
    pub(crate) fn error(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{self:?}");
        let text = self
            .err
            .strip_prefix("error: ")
            .unwrap_or_else(|| panic!("{self:?}"));
        assert!(code == 2 || text.lines().count() == 1, "{text}");
        text.trim_end().to_owned()
    }

    /// The error of a run that failed with exit code 1 after it had printed something.
    #[track_caller]
    pub(crate) fn late_error(self) -> (String, String) {
        assert_eq!(self.code, 1, "{self:?}");
        let text = self
            .err
            .strip_prefix("error: ")
            .unwrap_or_else(|| panic!("{self:?}"));
        (self.out, text.trim_end().to_owned())
    }
}

/// Runs the binary with nothing on its standard input.
pub(crate) fn run(args: &[&str]) -> Run {
    run_with_input(args, b"")
}

/// Runs the binary and feeds it `input`.
pub(crate) fn run_with_input(args: &[&str], input: &[u8]) -> Run {
    run_command(command(args), input)
}

/// Runs the binary as it was prepared, and feeds it `input`.
pub(crate) fn run_command(mut command: Command, input: &[u8]) -> Run {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The binary may stop reading before the end: that is its right.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The command itself, for tests that want to do more with it.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatebeam-under-test"));
    command
        .args(args)
        .env("HATEBEAM_CONFIG", "none") // whatever the one who tests has told it
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A file with this content, in a folder for tests. Names must differ from test to test.
pub(crate) fn file(name: &str, content: &[u8]) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The text of a vector file of the game.
pub(crate) fn vector(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../game/tests/vectors");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// A public game.
#[derive(Debug, Deserialize)]
pub(crate) struct PublicGame {
    enemy: String,
    pub(crate) name: String,
    pub(crate) score: u32,
    pub(crate) ends_in_game_over: bool,
    pub(crate) keys: usize,
    pub(crate) pieces: String,
    /// By name of the encoding.
    pub(crate) replays: BTreeMap<String, String>,
}

impl PublicGame {
    /// The enemy's name on the command line.
    pub(crate) fn enemy(&self) -> &'static str {
        if self.enemy == "HATETRIS Mild" {
            "mild"
        } else {
            "hatetris"
        }
    }

    /// The replay in one of its encodings.
    pub(crate) fn replay(&self) -> &str {
        self.replays.values().next().unwrap()
    }
}

/// All public games.
pub(crate) fn games() -> Vec<PublicGame> {
    serde_json::from_str(&vector("games.json")).unwrap()
}

/// The public game of this name.
pub(crate) fn game(name: &str) -> PublicGame {
    games().into_iter().find(|game| game.name == name).unwrap()
}

/// The replay that comes with the project.
pub(crate) fn example() -> String {
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/david-and-felipe-148.txt"
    )
    .to_owned()
}

/// The binary in a terminal of 40 rows and 100 columns.
pub(crate) struct Terminal {
    script: Child,
    keys: ChildStdin,
}

/// Runs the binary in a terminal made by `script`, if there is one.
pub(crate) fn script(args: &[&str]) -> Option<Terminal> {
    let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    let line = format!(
        "stty rows 40 cols 100; timeout --foreground 60 '{}' {}",
        env!("CARGO_BIN_EXE_hatebeam-under-test"),
        quoted.join(" ")
    );
    let mut script = Command::new("script")
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env("HATEBEAM_CONFIG", "none")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let keys = script.stdin.take().unwrap();
    Some(Terminal { script, keys })
}

impl Terminal {
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end: the exit code, and all that was written.
    pub(crate) fn end(self) -> (i32, String) {
        let output = self.script.wait_with_output().unwrap();
        drop(self.keys);
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        )
    }
}
