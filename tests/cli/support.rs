//! Helpers that run the program and provide its inputs.

use crate::program::{hatebeam, isolate};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Asserts success and returns the standard output.
    #[track_caller]
    pub(crate) fn results(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// Asserts success and empty standard error, and returns the standard output.
    #[track_caller]
    pub(crate) fn silent_results(self) -> String {
        assert_eq!(self.err, "");
        self.results()
    }

    /// Asserts success and empty standard error, and parses the standard output as one JSON value.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let text = self.silent_results();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Asserts the exit code and empty standard output, and returns the error message. Also asserts that the message is
    /// a single line, unless the exit code is 2: then the program also prints its usage.
    #[track_caller]
    pub(crate) fn error(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{self:?}");
        let text = self.error_text();
        assert!(code == 2 || text.lines().count() == 1, "{text}");
        text
    }

    /// Asserts exit code 1 and returns the standard output and the error message.
    #[track_caller]
    pub(crate) fn late_error(self) -> (String, String) {
        assert_eq!(self.code, 1, "{self:?}");
        let text = self.error_text();
        (self.out, text)
    }

    #[track_caller]
    fn error_text(&self) -> String {
        let text = self.err.strip_prefix("error: ");
        let text = text.unwrap_or_else(|| panic!("{self:?}"));
        text.trim_end().to_owned()
    }
}

/// Runs the program with empty standard input.
pub(crate) fn run(args: &[&str]) -> Run {
    run_with_input(args, b"")
}

pub(crate) fn run_with_input(args: &[&str], input: &[u8]) -> Run {
    run_command(command(args), input)
}

pub(crate) fn run_command(mut command: Command, input: &[u8]) -> Run {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // Ignores write errors, which occur if the program exits before it reads all input.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Returns a command that runs the program with piped output.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = hatebeam();
    command.args(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Writes a file for a test and returns its path. Each test must use a different name.
pub(crate) fn file(name: &str, content: &[u8]) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns the path of a file or folder for a test, and removes an existing folder at this path. Each test must use a
/// different name.
pub(crate) fn new_path(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

pub(crate) fn vector(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../game/tests/vectors");
    fs::read_to_string(folder.join(name)).unwrap()
}

#[derive(Debug, Deserialize)]
pub(crate) struct PublicGame {
    enemy: String,
    pub(crate) name: String,
    pub(crate) score: u32,
    pub(crate) ends_in_game_over: bool,
    pub(crate) keys: usize,
    pub(crate) pieces: String,
    /// Replays of the game, by encoding name.
    pub(crate) replays: BTreeMap<String, String>,
}

impl PublicGame {
    /// Returns the value of `--enemy` for the game's enemy.
    pub(crate) fn enemy(&self) -> &'static str {
        if self.enemy == "HATETRIS Mild" {
            "mild"
        } else {
            "hatetris"
        }
    }

    /// Returns the replay in the alphabetically first encoding.
    pub(crate) fn replay(&self) -> &str {
        self.replays.values().next().unwrap()
    }
}

pub(crate) fn games() -> Vec<PublicGame> {
    serde_json::from_str(&vector("games.json")).unwrap()
}

pub(crate) fn game(name: &str) -> PublicGame {
    games().into_iter().find(|game| game.name == name).unwrap()
}

/// Returns the path of a replay in the folder `examples`.
pub(crate) fn example() -> String {
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/games/david-and-felipe-148.txt"
    )
    .to_owned()
}

/// The program running in a terminal with 40 rows and 100 columns.
pub(crate) struct Terminal {
    script: Child,
    keys: ChildStdin,
}

/// Starts the program in a terminal. If the command `script` is not installed, prints a note and returns `None`.
pub(crate) fn terminal(args: &[&str]) -> Option<Terminal> {
    let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    let line = format!(
        "stty rows 40 cols 100; timeout --foreground 60 '{}' {}",
        env!("CARGO_BIN_EXE_hatebeam-under-test"),
        quoted.join(" ")
    );
    let mut command = Command::new("script");
    isolate(&mut command);
    command.args(["-q", "-e", "-c", &line, "/dev/null"]);
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut script) = command.spawn() else {
        println!("skipped: `script` is not installed");
        return None;
    };
    let keys = script.stdin.take().unwrap();
    Some(Terminal { script, keys })
}

impl Terminal {
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the program exits, and returns its exit code and output.
    pub(crate) fn wait(self) -> (i32, String) {
        let output = self.script.wait_with_output().unwrap();
        drop(self.keys);
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        )
    }
}
