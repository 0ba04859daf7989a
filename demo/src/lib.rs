//! Demonstration of a cluster. It starts a coordinator and two workers on this machine, submits a run, and shows the
//! best game of the run. For each step, it runs the command that a user would type.

mod error;
mod servers;

pub use error::DemoError;

use hatebeam_files::write_whole;
use serde::Deserialize;
use servers::{Servers, TICK, hatebeam};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use tempfile::TempDir;

/// The settings of a demo.
#[derive(Clone, Debug)]
pub struct Demo {
    /// Width of the beam.
    pub width: u64,
    /// Folder for all files, which is created if necessary, or `None` for a temporary folder.
    pub dir: Option<PathBuf>,
    /// Whether to open the run's page of the dashboard in a browser.
    pub open: bool,
    /// Whether to offer to play the best game in the terminal.
    pub play: bool,
    /// Whether to keep the cluster running after the end of the run, until `stop` is set.
    pub stay: bool,
    /// Flag that stops the demo when it becomes `true`.
    pub stop: Arc<AtomicBool>,
}

/// A message from the demo to the user.
#[derive(Clone, Debug)]
pub enum Message {
    /// A note.
    Note(String),
    /// A warning.
    Warning(String),
    /// The best game, in Base2048.
    Replay(String),
}

/// A function that receives the messages of a demo.
pub type Sink<'a> = &'a mut dyn FnMut(Message) -> io::Result<()>;

/// The fields in the output of `hatebeam watch --json` that the demo uses.
#[derive(Deserialize)]
struct Ended {
    state: String,
    note: String,
    best_lines: Option<u32>,
    replay: Option<String>,
}

/// The folder of a demo. If it is temporary, it is removed on drop.
struct Folder {
    path: PathBuf,
    _temporary: Option<TempDir>,
}

impl Folder {
    fn create(dir: Option<&Path>) -> Result<Folder, DemoError> {
        let Some(dir) = dir else {
            let temporary = tempfile::Builder::new().prefix("hatebeam-demo-").tempdir();
            let temporary = temporary.map_err(DemoError::io("create a temporary folder"))?;
            return Ok(Folder {
                path: temporary.path().to_owned(),
                _temporary: Some(temporary),
            });
        };
        let created = std::fs::create_dir_all(dir).and_then(|()| std::path::absolute(dir));
        let path = created.map_err(DemoError::io(format!("create {}", dir.display())))?;
        Ok(Folder {
            path,
            _temporary: None,
        })
    }
}

impl Demo {
    /// Runs the demo. Always stops the servers and removes the temporary folder, if any, before it returns.
    ///
    /// # Errors
    /// Returns an error if the demo is interrupted, a server or a command fails, or the best game is invalid.
    pub fn run(&self, report: Sink<'_>) -> Result<(), DemoError> {
        // The folder is declared before the servers, so that it is dropped after the servers have stopped.
        let folder = Folder::create(self.dir.as_deref())?;
        let mut servers = Servers::new(&folder.path, Arc::clone(&self.stop));
        let addresses = servers.start()?;
        let uri = format!("http://{}", addresses.coordinator);
        report(Message::Note(format!(
            "started a coordinator at {uri} and two workers; show them with: hatebeam status --coordinator {uri}"
        )))?;
        let run = submit(self.width, &uri, &mut servers)?;
        let page = format!("{}#/run/{run}", addresses.dashboard);
        report(Message::Note(format!(
            "see the run in the dashboard: {page}"
        )))?;
        if self.open {
            open(&page, report)?;
        }
        let replay = folder.path.join("replay.txt");
        let ended = watch(&run, &uri, &mut servers)?;
        if verify(&ended, &replay, report)? && self.play {
            self.offer_to_play(&replay, report)?;
        }
        if self.stay {
            report(Message::Note(format!(
                "play the game in a browser: {page}/game; press Ctrl-C to stop the cluster"
            )))?;
            servers.wait_for(|| None::<()>)?;
        }
        Ok(())
    }

    /// Asks whether to play the game, and plays it if the user agrees. Does nothing if standard input or standard
    /// output is not a terminal.
    fn offer_to_play(&self, replay: &Path, report: Sink<'_>) -> Result<(), DemoError> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Ok(());
        }
        let text = "press Enter to play the game (q quits the player), or n and Enter to skip it";
        report(Message::Note(text.to_owned()))?;
        let (tx, rx) = mpsc::sync_channel(1);
        thread::spawn(move || {
            let mut line = String::new();
            let is_read = io::stdin()
                .read_line(&mut line)
                .is_ok_and(|bytes| bytes > 0);
            // Sending fails if the demo has been stopped in the meantime.
            let _ = tx.send(is_read && !line.trim().starts_with(['n', 'q']));
        });
        let is_wanted = loop {
            match rx.recv_timeout(TICK) {
                Ok(is_wanted) => break is_wanted,
                Err(mpsc::RecvTimeoutError::Timeout) if !self.stop.load(Ordering::Relaxed) => {}
                Err(_) => break false,
            }
        };
        if is_wanted {
            let mut command = hatebeam()?;
            command.args(["replay", "show", "--file"]).arg(replay);
            // The player prints its own errors, and the demo continues after them.
            let _ = command.status();
        }
        Ok(())
    }
}

fn submit(width: u64, uri: &str, servers: &mut Servers) -> Result<String, DemoError> {
    #[derive(Deserialize)]
    struct Submitted {
        run: String,
    }
    let mut command = hatebeam()?;
    command.args(["submit", "--json", "--coordinator", uri, "--width"]);
    command.arg(width.to_string());
    let out = servers.output(command)?;
    let submitted: Submitted = serde_json::from_str(&out).map_err(DemoError::json("submit"))?;
    Ok(submitted.run)
}

/// Shows the progress of a run until it ends, and returns its result.
fn watch(run: &str, uri: &str, servers: &mut Servers) -> Result<Ended, DemoError> {
    let mut command = hatebeam()?;
    command.args(["watch", run, "--json", "--coordinator", uri]);
    let out = servers.output(command)?;
    let last = out.lines().next_back();
    serde_json::from_str(last.unwrap_or_default()).map_err(DemoError::json("watch"))
}

/// Writes a run's best game to a file, verifies the game and reports it. Returns `false` if the run found no game.
fn verify(ended: &Ended, file: &Path, report: Sink<'_>) -> Result<bool, DemoError> {
    if ended.state != "finished" {
        return Err(DemoError::NotFinished {
            state: ended.state.clone(),
            note: ended.note.clone(),
        });
    }
    let (Some(replay), Some(lines)) = (&ended.replay, ended.best_lines) else {
        report(Message::Note("the run found no game".to_owned()))?;
        return Ok(false);
    };
    let written = write_whole(file, format!("{replay}\n").as_bytes());
    written.map_err(DemoError::io(format!("write {}", file.display())))?;
    let mut command = hatebeam()?;
    command.args(["replay", "verify", "--expect-score"]);
    command.arg(lines.to_string()).arg("--file").arg(file);
    let verified = command.status();
    let verified = verified.map_err(DemoError::io("run hatebeam replay verify"))?;
    if !verified.success() {
        return Err(DemoError::InvalidGame);
    }
    report(Message::Replay(replay.clone()))?;
    Ok(true)
}

/// Opens a URL in a browser. Reports a warning if the browser cannot be started.
fn open(url: &str, report: Sink<'_>) -> io::Result<()> {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null());
    match command.stderr(Stdio::null()).spawn() {
        Ok(_) => Ok(()),
        Err(error) => report(Message::Warning(format!(
            "{program} cannot open a browser: {error}"
        ))),
    }
}
