//! A page in a real Chromium: a script of `tests/browser` clicks, and asks its test for what only that can do.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long all of a script may take.
const PATIENCE: Duration = Duration::from_secs(420);

/// A Chromium, and a Node that speaks to it.
pub(crate) struct Browser {
    chromium: PathBuf,
    node: PathBuf,
}

/// The first of these programs that is there.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let all = names
        .iter()
        .flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    all.into_iter().find(|file| file.is_file())
}

impl Browser {
    /// The machine's own; where it has none, that is said aloud.
    pub(crate) fn find() -> Option<Browser> {
        let chromium = std::env::var_os("HATEBEAM_CHROMIUM").map(PathBuf::from);
        let chromium =
            chromium.or_else(|| program(&["chromium", "chromium-browser", "google-chrome"]));
        let (Some(chromium), Some(node)) = (chromium, program(&["node", "nodejs"])) else {
            eprintln!(
                "skipped: the dashboard in a browser (it takes chromium and node; apt-get install chromium nodejs)"
            );
            return None;
        };
        Some(Browser { chromium, node })
    }

    /// Runs a script at an address to its end. What it prints after an `@` is an order, and is answered with a line.
    #[track_caller]
    pub(crate) fn run(&self, script: &Path, url: &str, mut obey: impl FnMut(&str) -> String) {
        let mut child = Command::new(&self.node)
            .arg(script)
            .arg(&self.chromium)
            .arg(url)
            // Where pictures go, if somebody wants to look.
            .args(std::env::var_os("HATEBEAM_PICTURES"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut answers = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Whatever it waits for, it ends in time; its browser ends with it.
        let (done, is_done) = mpsc::channel::<()>();
        let pid = child.id().to_string();
        let watchdog = thread::spawn(move || {
            let late = is_done.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
            late && Command::new("kill").arg(pid).status().is_ok()
        });
        let mut has_ended = false;
        for line in lines {
            let line = line.unwrap();
            match line.strip_prefix('@') {
                Some("done") => has_ended = true,
                Some(order) => {
                    let answer = obey(order);
                    // One that has gone says by its exit what was wrong.
                    let _ = writeln!(answers, "{answer}");
                }
                None => println!("{line}"),
            }
        }
        drop(done);
        assert!(!watchdog.join().unwrap(), "it takes too long");
        assert!(
            child.wait().unwrap().success() && has_ended,
            "see above what went wrong"
        );
    }
}
