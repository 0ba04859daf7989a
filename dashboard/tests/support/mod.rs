//! Runs a script from `tests/browser` with Node and Chromium. The script sends commands to the test that starts it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Maximum duration of a script.
const TIMEOUT: Duration = Duration::from_secs(900);

/// Paths of the programs that run a script.
pub(crate) struct Browser {
    chromium: PathBuf,
    node: PathBuf,
}

/// Returns the path of the first program in `names` that is installed.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let all = names
        .iter()
        .flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    all.into_iter().find(|file| file.is_file())
}

impl Browser {
    /// Finds Chromium and Node. If one of them is missing, prints that the test is skipped, and returns `None`.
    pub(crate) fn find() -> Option<Browser> {
        let chromium = std::env::var_os("HATEBEAM_CHROMIUM").map(PathBuf::from);
        let chromium =
            chromium.or_else(|| program(&["chromium", "chromium-browser", "google-chrome"]));
        let (Some(chromium), Some(node)) = (chromium, program(&["node", "nodejs"])) else {
            eprintln!(
                "skipped: chromium or node is not installed (apt-get install chromium nodejs)"
            );
            return None;
        };
        Some(Browser { chromium, node })
    }

    /// Runs a script until it ends, with `url` as its argument. If the script prints a line that starts with `@`, calls
    /// `execute` with the rest of the line and writes the answer to the script's standard input.
    #[track_caller]
    pub(crate) fn run(&self, script: &Path, url: &str, mut execute: impl FnMut(&str) -> String) {
        let mut child = Command::new(&self.node)
            .arg(script)
            .arg(&self.chromium)
            .arg(url)
            // The optional argument is a folder for screenshots.
            .args(std::env::var_os("HATEBEAM_PICTURES"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut answers = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The watchdog kills a script that exceeds the timeout, which also ends its browser.
        let (done, is_done) = mpsc::channel::<()>();
        let pid = child.id().to_string();
        let watchdog = thread::spawn(move || {
            let late = is_done.recv_timeout(TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout);
            late && Command::new("kill").arg(pid).status().is_ok()
        });
        let mut has_ended = false;
        for line in lines {
            let line = line.unwrap();
            match line.strip_prefix('@') {
                Some("done") => has_ended = true,
                Some(command) => {
                    let answer = execute(command);
                    // Writing fails if the script has ended. Its exit status is checked below.
                    let _ = writeln!(answers, "{answer}");
                }
                None => println!("{line}"),
            }
        }
        drop(done);
        assert!(!watchdog.join().unwrap(), "the script exceeded {TIMEOUT:?}");
        assert!(
            child.wait().unwrap().success() && has_ended,
            "the script failed; its error is above"
        );
    }
}
