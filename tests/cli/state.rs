//! Helpers for tests of runs in a state folder.

use crate::program::{signal, wait_until};
use crate::support::{Run, command, new_path, run};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

pub(crate) struct State(PathBuf);

/// Output of `run --json`.
pub(crate) struct Search {
    /// One JSON object for each depth (number of placed pieces) that the search reached.
    pub(crate) depths: Vec<Value>,
    pub(crate) summary: Value,
}

impl Search {
    #[track_caller]
    pub(crate) fn parse(run: Run) -> Search {
        let text = run.silent_results();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let mut depths: Vec<Value> = lines.collect();
        let summary = depths.pop().unwrap();
        Search { depths, summary }
    }

    pub(crate) fn name(&self) -> &str {
        self.summary["run"].as_str().unwrap()
    }

    pub(crate) fn score(&self) -> String {
        self.summary["best_lines"].to_string()
    }

    pub(crate) fn replay(&self) -> &str {
        self.summary["replay"].as_str().unwrap()
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let files = self.summary["files"].as_array().unwrap().iter();
        files.map(|file| file.as_str().unwrap().into()).collect()
    }
}

impl State {
    /// Returns a state folder that does not exist yet. Each test must use a different name.
    pub(crate) fn new(name: &str) -> State {
        State(new_path(&format!("state-{name}")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        run(&[args, &["--state", self.0.to_str().unwrap()]].concat())
    }

    /// Runs `run --json --quiet` with the given arguments.
    #[track_caller]
    pub(crate) fn search(&self, args: &[&str]) -> Search {
        let all = [&["run", "--json", "--quiet"], args].concat();
        Search::parse(self.run(&all))
    }

    /// Starts `run --quiet` with the given arguments.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let state = self.0.to_str().unwrap();
        let all = [&["run", "--quiet", "--state", state], args].concat();
        Running(command(&all).stdin(Stdio::null()).spawn().unwrap())
    }

    /// Verifies all stored depths and returns their digests.
    #[track_caller]
    pub(crate) fn digests(&self, name: &str) -> Vec<String> {
        let shown = self.run(&["runs", "show", name, "--verify", "--json"]);
        let shown = shown.json();
        assert_eq!(shown["damaged"], json!([]));
        assert_eq!(shown["missing"], json!([]));
        let depths = shown["depths"].as_array().unwrap().iter();
        let digest = |record: &Value| record["digest"].as_str().unwrap().to_owned();
        depths.map(digest).collect()
    }

    /// Returns the number of depths that a run has committed.
    pub(crate) fn committed(&self, name: &str) -> usize {
        let path = self.0.join("runs").join(name).join("depths.jsonl");
        fs::read_to_string(path).map_or(0, |text| text.matches("{\"depth\":").count())
    }

    /// Waits until a run has committed at least the given number of depths.
    #[track_caller]
    pub(crate) fn wait_for_depths(&self, name: &str, depths: usize) {
        wait_until(
            || self.committed(name) >= depths,
            || format!("{} of {depths} depths", self.committed(name)),
        );
    }
}

pub(crate) struct Running(Child);

impl Running {
    #[track_caller]
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.0, name);
    }

    /// Waits until the process exits. Returns the exit code, or `None` if a signal killed the process, and the standard
    /// error.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let status = self.0.wait().unwrap();
        let mut err = String::new();
        let mut stderr = self.0.stderr.take().unwrap();
        stderr.read_to_string(&mut err).unwrap();
        (status.code(), err)
    }
}
