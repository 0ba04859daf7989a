//! `hatebeam demo`: a cluster on the loopback, a run, and its best game, each by the command that a person
//! would type.

mod servers;

use crate::interrupt;
use crate::output::{self, Failure};
use crate::run::parse_wells;
use anyhow::{Context, bail, ensure};
use hatebeam_store::write_whole;
use serde::Deserialize;
use servers::{Servers, hatebeam};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

pub(crate) const DEMO_EXAMPLES: &str = "\
Starts a coordinator and two workers on free ports of the loopback, with a folder as the object store,
submits a run, shows it as `hatebeam watch` does, and verifies its best game. All of it is stopped and removed
at the end, whatever the end is; with --dir the folder stays, and another demo in it finds the run done.

Examples:
  hatebeam demo
  hatebeam demo --width 100k --open
  hatebeam demo --width 1000 --dir /data/demo --exit --no-play";

/// How often is looked whether something has ended.
const TICK: Duration = Duration::from_millis(50);

/// What to show.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// The beam's width: the wells kept of each depth; k, M and G stand for thousands, millions …
    #[arg(long, short, value_name = "WELLS", default_value = "10k", value_parser = parse_wells)]
    width: u64,
    /// Keep all of it in this folder, made if it is not there, rather than in one that is removed
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Open the run's page of the dashboard in a browser
    #[arg(long)]
    open: bool,
    /// Do not offer to play the game
    #[arg(long)]
    no_play: bool,
    /// End when the run has, rather than keep the coordinator up until Ctrl-C
    #[arg(long)]
    exit: bool,
}

/// What is used of what `hatebeam watch --json` says of a run at its end.
#[derive(Deserialize)]
struct Ended {
    state: String,
    note: String,
    best_lines: Option<u32>,
    replay: Option<String>,
}

/// Runs `hatebeam demo`.
pub(crate) fn demo(args: &DemoArgs) -> anyhow::Result<()> {
    let stop = interrupt::flag()?;
    // Removed when this function is left, and after the servers, which are declared later.
    let temporary;
    let dir = match &args.dir {
        Some(dir) => {
            ensure!(
                !dir.as_os_str().is_empty(),
                Failure::Usage("--dir names no folder".to_owned())
            );
            std::fs::create_dir_all(dir)
                .with_context(|| format!("the folder {}", dir.display()))?;
            std::path::absolute(dir).context("the folder of the demo")?
        }
        None => {
            temporary = tempfile::Builder::new().prefix("hatebeam-demo-").tempdir();
            let made = temporary.as_ref();
            made.map_err(|error| anyhow::anyhow!("a temporary folder: {error}"))?
                .path()
                .to_owned()
        }
    };
    let mut servers = Servers::new(&dir, Arc::clone(&stop));
    let shown = servers.start()?;
    let uri = format!("http://{}", shown.coordinator);
    output::note(format_args!(
        "a coordinator at {uri} and two workers; hatebeam status --coordinator {uri} tells how they are"
    ));
    let run = submit(args.width, &uri, &mut servers)?;
    let page = format!("{}#/run/{run}", shown.dashboard);
    output::note(format_args!("the run in the dashboard: {page}"));
    if args.open {
        open(&page);
    }
    let replay = dir.join("replay.txt");
    if tell(&watch(&run, &uri, &mut servers)?, &replay)? {
        offer(args, &replay, &stop)?;
    }
    if !args.exit {
        output::note(format_args!(
            "its game, to be played in a browser: {page}/game; it stays up, and Ctrl-C ends all of it"
        ));
        servers.until_told(|| None::<()>)?;
    }
    Ok(())
}

/// Has the coordinator search a run, and gives its name.
fn submit(width: u64, uri: &str, servers: &mut Servers) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Submitted {
        run: String,
    }
    let mut command = hatebeam()?;
    command.args([
        "submit",
        "--json",
        "--coordinator",
        uri,
        "--width",
        &width.to_string(),
    ]);
    let said = servers.output(command)?;
    let submitted: Submitted = serde_json::from_str(&said).context("hatebeam submit")?;
    Ok(submitted.run)
}

/// Shows a run to its end, and gives what it came to.
fn watch(run: &str, uri: &str, servers: &mut Servers) -> anyhow::Result<Ended> {
    let mut command = hatebeam()?;
    command.args(["watch", run, "--json", "--coordinator", uri]);
    let said = servers.output(command)?;
    let last = said
        .lines()
        .next_back()
        .context("hatebeam watch says nothing")?;
    serde_json::from_str(last).context("hatebeam watch")
}

/// Verifies a run's best game and prints it; whether there is one.
fn tell(ended: &Ended, file: &Path) -> anyhow::Result<bool> {
    if ended.state != "finished" {
        bail!("the run is {}: {}", ended.state, ended.note);
    }
    let (Some(replay), Some(score)) = (&ended.replay, ended.best_lines) else {
        output::note("the run has no game");
        return Ok(false);
    };
    write_whole(file, format!("{replay}\n").as_bytes())?;
    let mut command = hatebeam()?;
    command
        .args(["replay", "verify", "--expect-score"])
        .arg(score.to_string())
        .arg("--file")
        .arg(file);
    let verified = command.status().context("hatebeam replay verify")?;
    ensure!(verified.success(), "the game does not hold");
    output::print(&format_args!("\n{replay}\n"))?;
    Ok(true)
}

/// Plays the game, if somebody is there and wants to see it.
fn offer(args: &DemoArgs, replay: &Path, stop: &AtomicBool) -> anyhow::Result<()> {
    let somebody = io::stdin().is_terminal() && io::stdout().is_terminal();
    if args.no_play || !somebody {
        return Ok(());
    }
    output::note("Enter plays the game, q quits it; n and Enter goes on without");
    let (tell, told) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        // If nobody waits for the answer any more, it does not matter.
        let _ =
            tell.send(read.is_ok_and(|bytes| bytes > 0) && !line.trim().starts_with(['n', 'q']));
    });
    let wanted = loop {
        match told.recv_timeout(TICK) {
            Ok(wanted) => break wanted,
            Err(mpsc::RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
            Err(_) => break false,
        }
    };
    if wanted {
        let mut command = hatebeam()?;
        command.args(["replay", "show", "--file"]).arg(replay);
        // What goes wrong there is said there, and takes nothing from the demo.
        let _ = command.status();
    }
    Ok(())
}

/// Opens an address in a browser, if there is one.
fn open(url: &str) {
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false => "xdg-open",
    };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null());
    let opened = command.stderr(Stdio::null()).spawn();
    if let Err(error) = opened {
        output::warn(format_args!("{program} cannot open a browser: {error}"));
    }
}

/// All that a child says, read as it comes so that it never has to wait.
fn reader(child: &mut Child) -> anyhow::Result<thread::JoinHandle<io::Result<String>>> {
    let mut stdout = child.stdout.take().context("a child without output")?;
    Ok(thread::spawn(move || {
        let mut said = String::new();
        stdout.read_to_string(&mut said).map(|_| said)
    }))
}
