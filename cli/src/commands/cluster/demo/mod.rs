//! `hatebeam demo`: a cluster on the loopback, a run, and its best game, with the commands that a user would type.

mod servers;

use crate::args::parse_wells;
use crate::interrupt;
use crate::output::{self, Failure};
use anyhow::{Context, bail, ensure};
use hatebeam_store::write_whole;
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

const HELP: &str = "\
Starts a coordinator and two workers on free ports of the loopback, with a folder as the object store, submits a run, shows
it as `hatebeam watch` does, and verifies its best game. Everything is stopped and removed at the end, however it ends. With
--dir the folder stays, and another demo in it finds the run finished.

Examples:
  hatebeam demo
  hatebeam demo --width 100k --open
  hatebeam demo --width 1000 --dir /data/demo --exit --no-play";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct DemoArgs {
    /// Width of the beam: the number of wells kept per depth, such as 10000, 10k or 2.5M
    #[arg(long, short, value_name = "WELLS", default_value = "10k", value_parser = parse_wells)]
    width: u64,
    /// Folder for all files, created if necessary [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Open the run in the dashboard with a browser
    #[arg(long)]
    open: bool,
    /// Do not offer to play the game
    #[arg(long)]
    no_play: bool,
    /// Exit when the run has ended [default: keep the coordinator running until Ctrl-C]
    #[arg(long)]
    exit: bool,
}

/// The part of the output of `hatebeam watch --json` that the demo uses.
#[derive(Deserialize)]
struct Ended {
    state: String,
    note: String,
    best_lines: Option<u32>,
    replay: Option<String>,
}

/// The folder of a demo. A temporary one is removed on drop.
struct Folder {
    path: PathBuf,
    _temporary: Option<TempDir>,
}

impl Folder {
    fn create(dir: Option<&Path>) -> anyhow::Result<Folder> {
        let Some(dir) = dir else {
            let temporary = tempfile::Builder::new().prefix("hatebeam-demo-").tempdir();
            let temporary = temporary.context("cannot create a temporary folder")?;
            return Ok(Folder {
                path: temporary.path().to_owned(),
                _temporary: Some(temporary),
            });
        };
        if dir.as_os_str().is_empty() {
            return Err(Failure::Usage("--dir is empty: name a folder".to_owned()).into());
        }
        std::fs::create_dir_all(dir)
            .with_context(|| format!("cannot create the folder {}", dir.display()))?;
        Ok(Folder {
            path: std::path::absolute(dir)?,
            _temporary: None,
        })
    }
}

impl DemoArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let stop = interrupt::flag()?;
        // Declared before the servers, so that it is dropped after them.
        let folder = Folder::create(self.dir.as_deref())?;
        let mut servers = Servers::new(&folder.path, Arc::clone(&stop));
        let addresses = servers.start()?;
        let uri = format!("http://{}", addresses.coordinator);
        output::note(format_args!(
            "a coordinator at {uri} and two workers; show them with: hatebeam status --coordinator {uri}"
        ));
        let run = submit(self.width, &uri, &mut servers)?;
        let page = format!("{}#/run/{run}", addresses.dashboard);
        output::note(format_args!("the run in the dashboard: {page}"));
        if self.open {
            open(&page);
        }
        let replay = folder.path.join("replay.txt");
        let ended = watch(&run, &uri, &mut servers)?;
        if verify(&ended, &replay)? && !self.no_play {
            offer_to_play(&replay, &stop)?;
        }
        if !self.exit {
            output::note(format_args!(
                "play the game in a browser: {page}/game; press Ctrl-C to stop the cluster"
            ));
            servers.wait_for(|| None::<()>)?;
        }
        Ok(())
    }
}

/// Submits a run to the coordinator, and returns its name.
fn submit(width: u64, uri: &str, servers: &mut Servers) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Submitted {
        run: String,
    }
    let mut command = hatebeam()?;
    command.args(["submit", "--json", "--coordinator", uri, "--width"]);
    command.arg(width.to_string());
    let out = servers.output(command)?;
    let submitted: Submitted = serde_json::from_str(&out).context("hatebeam submit")?;
    Ok(submitted.run)
}

/// Shows a run until it ends, and returns its result.
fn watch(run: &str, uri: &str, servers: &mut Servers) -> anyhow::Result<Ended> {
    let mut command = hatebeam()?;
    command.args(["watch", run, "--json", "--coordinator", uri]);
    let out = servers.output(command)?;
    let last = out.lines().next_back();
    serde_json::from_str(last.unwrap_or_default()).context("hatebeam watch")
}

/// Verifies a run's best game, writes it to a file and prints it. Returns whether there is a game.
fn verify(ended: &Ended, file: &Path) -> anyhow::Result<bool> {
    if ended.state != "finished" {
        bail!("the run is {}: {}", ended.state, ended.note);
    }
    let (Some(replay), Some(lines)) = (&ended.replay, ended.best_lines) else {
        output::note("the run has no game");
        return Ok(false);
    };
    write_whole(file, format!("{replay}\n").as_bytes())?;
    let mut command = hatebeam()?;
    command.args(["replay", "verify", "--expect-score"]);
    command.arg(lines.to_string()).arg("--file").arg(file);
    let verified = command.status().context("hatebeam replay verify")?;
    ensure!(verified.success(), "the game is not valid");
    output::print(format_args!("\n{replay}\n"))?;
    Ok(true)
}

/// Plays the game in the terminal, if there is a user who wants to see it.
fn offer_to_play(replay: &Path, stop: &AtomicBool) -> anyhow::Result<()> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Ok(());
    }
    output::note("press Enter to play the game (q quits it), or n and Enter to skip it");
    let (tx, rx) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut line = String::new();
        let is_read = io::stdin()
            .read_line(&mut line)
            .is_ok_and(|bytes| bytes > 0);
        // The receiver is gone if a signal stopped the demo.
        let _ = tx.send(is_read && !line.trim().starts_with(['n', 'q']));
    });
    let is_wanted = loop {
        match rx.recv_timeout(TICK) {
            Ok(is_wanted) => break is_wanted,
            Err(mpsc::RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
            Err(_) => break false,
        }
    };
    if is_wanted {
        let mut command = hatebeam()?;
        command.args(["replay", "show", "--file"]).arg(replay);
        // The player reports its own errors, and the demo continues.
        let _ = command.status();
    }
    Ok(())
}

/// Opens an address in a browser, if there is one.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null());
    let opened = command.stderr(Stdio::null()).spawn();
    if let Err(error) = opened {
        output::warn(format_args!("{program} cannot open a browser: {error}"));
    }
}
