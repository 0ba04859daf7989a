//! The servers of a demo, and that they never outlive it.
//!
//! Each has a pipe for its standard input, of which only this process holds the other end, and was told
//! `--stop-with-stdin`. So dropping the pipe asks it to stop in order; and if this process is killed, without
//! time for anything, the system drops it. That needs neither the kernel's word about dead parents, which
//! is Linux's alone and heeds threads rather than processes, nor unsafe code.
//!
//! Ctrl-C goes to all processes of a terminal's foreground group. The servers are therefore in groups of their
//! own: it is this process that ends them, the workers before the coordinator.

use super::{TICK, reader};
use crate::output::Failure;
use anyhow::{Context, bail};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to be there, and to go.
const PATIENCE: Duration = Duration::from_secs(30);
const WORKERS: usize = 2;
/// Lines of a log that are told.
const TOLD: usize = 5;

/// Where the servers can be reached.
pub(super) struct Shown {
    pub(super) coordinator: String,
    pub(super) dashboard: String,
}

/// A process that stops with its standard input.
struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

/// A coordinator and its workers. They are stopped when this is dropped.
pub(super) struct Servers {
    dir: PathBuf,
    stop: Arc<AtomicBool>,
    /// The coordinator is the first.
    servers: Vec<Server>,
}

/// This program, told nothing by whoever sits before it: neither his file nor his environment is meant for a
/// demo. Where logs are set, they stay so.
pub(super) fn hatebeam() -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("this program's own file")?;
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let own = name.to_str().is_some_and(|name| {
            name.starts_with("HATEBEAM_") && name != "HATEBEAM_LOG" || name.starts_with("OTEL_")
        });
        if own {
            command.env_remove(name);
        }
    }
    command.env("HATEBEAM_CONFIG", "none").stdin(Stdio::null());
    Ok(command)
}

impl Servers {
    pub(super) fn new(dir: &Path, stop: Arc<AtomicBool>) -> Servers {
        Servers {
            dir: dir.to_owned(),
            stop,
            servers: Vec::new(),
        }
    }

    /// Starts all, each once the one before it is there.
    pub(super) fn start(&mut self) -> anyhow::Result<Shown> {
        let store = self.dir.join("store");
        let mut command = hatebeam()?;
        command.arg("coordinator").arg("--store").arg(&store);
        command.args(["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"]);
        command.args(["--min-workers", &WORKERS.to_string()]);
        let lines = self.spawn("coordinator", command)?;
        let shown = self.shown(&lines)?;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for name in ["worker-1", "worker-2"] {
            let mut command = hatebeam()?;
            command.arg("worker").arg("--store").arg(&store);
            command.arg("--coordinator");
            command.arg(format!("http://{}", shown.coordinator));
            command.args(["--listen", "127.0.0.1:0", "--name", name]);
            command.arg("--dir").arg(self.dir.join(name));
            command.arg("--threads");
            command.arg((cores / WORKERS).max(1).to_string());
            self.spawn(name, command)?;
        }
        Ok(shown)
    }

    /// Starts a server, and gives the lines that it prints.
    fn spawn(
        &mut self,
        name: &'static str,
        mut command: Command,
    ) -> anyhow::Result<mpsc::Receiver<String>> {
        let log = self.dir.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("the log {}", log.display()))?;
        command
            .arg("--stop-with-stdin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().with_context(|| format!("the {name}"))?;
        let stdout = child.stdout.take();
        self.servers.push(Server { name, child, log });
        let stdout = stdout.context("a server without output")?;
        // As many lines as a server ever prints, and some; what is beyond is read and dropped.
        let (tell, lines) = mpsc::sync_channel(16);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = tell.try_send(line);
            }
        });
        Ok(lines)
    }

    /// Where the coordinator listens, as it says itself, and shows its dashboard.
    fn shown(&mut self, lines: &mpsc::Receiver<String>) -> anyhow::Result<Shown> {
        let begun = Instant::now();
        let (mut coordinator, mut dashboard) = (None, None);
        let found = self.until_told(|| {
            while let Ok(line) = lines.try_recv() {
                if let Some(address) = line.strip_prefix("listening on ") {
                    coordinator = Some(address.to_owned());
                } else if let Some(at) = line.find("http://") {
                    let rest = &line[at..];
                    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    dashboard = Some(rest[..end].to_owned());
                }
            }
            let all = coordinator.is_some() && dashboard.is_some();
            (all || begun.elapsed() > PATIENCE).then_some(())
        })?;
        if found.is_none() {
            return Err(Failure::Interrupted.into());
        }
        match (coordinator, dashboard) {
            (Some(coordinator), Some(dashboard)) => Ok(Shown {
                coordinator,
                dashboard,
            }),
            _ => bail!(
                "the coordinator does not say within {PATIENCE:?} where it is{}",
                self.tails()
            ),
        }
    }

    /// Waits until something is there, or somebody says that all is to stop: then it is `None`. Fails if a server
    /// ends.
    pub(super) fn until_told<T>(
        &mut self,
        mut look: impl FnMut() -> Option<T>,
    ) -> anyhow::Result<Option<T>> {
        while !self.stop.load(Ordering::Relaxed) {
            if let Some(found) = look() {
                return Ok(Some(found));
            }
            self.check()?;
            thread::sleep(TICK);
        }
        Ok(None)
    }

    /// Fails if a server has ended.
    fn check(&mut self) -> anyhow::Result<()> {
        for server in &mut self.servers {
            if let Some(status) = server.child.try_wait()? {
                bail!("the {} ended ({status}){}", server.name, server.tail());
            }
        }
        Ok(())
    }

    fn tails(&self) -> String {
        self.servers.iter().map(Server::tail).collect()
    }

    /// What a command prints that needs the servers; it ends with them, and when somebody says so.
    pub(super) fn output(&mut self, mut command: Command) -> anyhow::Result<String> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let said = reader(&mut child)?;
        let ended = self.until_told(|| child.try_wait().transpose());
        if !matches!(ended, Ok(Some(_))) {
            // It may have ended this very moment.
            let _ = child.kill();
            let _ = child.wait();
        }
        let Some(status) = ended? else {
            return Err(Failure::Interrupted.into());
        };
        let status = status.context("a command of the demo")?;
        // Ctrl-C reaches the command as well, and it may be the first to heed it.
        if self.stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted.into());
        }
        let said = said
            .join()
            .map_err(|_| anyhow::anyhow!("its output cannot be read"))??;
        // What it says of itself is told by whoever asked; what it cannot say it has said already.
        match status.success() || !said.is_empty() {
            true => Ok(said),
            false => bail!("a command of the demo failed ({status})"),
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Workers first, so that they need not look for their coordinator.
        let (coordinator, workers) = match self.servers.split_first_mut() {
            Some(split) => split,
            None => return,
        };
        workers.iter_mut().for_each(Server::ask_to_stop);
        workers.iter_mut().for_each(Server::end);
        coordinator.ask_to_stop();
        coordinator.end();
    }
}

impl Server {
    fn ask_to_stop(&mut self) {
        self.child.stdin = None;
    }

    /// Waits for its end, but not for ever.
    fn end(&mut self) {
        let begun = Instant::now();
        while let Ok(None) = self.child.try_wait() {
            if begun.elapsed() > PATIENCE {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(TICK);
        }
    }

    /// The end of its log, for whoever is told that it failed.
    fn tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(TOLD)..];
        format!("; its last words:\n{}", last.join("\n"))
    }
}
