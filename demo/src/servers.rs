//! The servers of a demo: a coordinator and its workers. They stop when the demo's process ends.
//!
//! Each server runs with `--stop-with-stdin`, and its standard input is a pipe whose other end only this process holds.
//! When the pipe is closed, the server stops gracefully. If this process is killed, the operating system closes the
//! pipe. This method needs no unsafe code. A parent-death signal would need unsafe code, exists only on Linux, and
//! depends on the parent's thread instead of its process.
//!
//! A terminal sends Ctrl-C to all processes in the foreground process group. Each server is in a separate process
//! group, so Ctrl-C does not reach it, and this process can stop the workers before the coordinator.

use crate::error::DemoError;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Interval between checks of the servers, the commands and the stop flag.
pub(crate) const TICK: Duration = Duration::from_millis(50);
/// Maximum time for the coordinator to print its addresses, and for a server to stop.
const TIMEOUT: Duration = Duration::from_secs(30);
const WORKERS: [&str; 2] = ["worker-1", "worker-2"];
/// Maximum number of log lines in an error message.
const LOG_LINES: usize = 5;

/// Addresses of the coordinator and its dashboard.
pub(crate) struct Addresses {
    pub(crate) coordinator: String,
    pub(crate) dashboard: String,
}

/// A process that stops when its standard input ends.
struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

/// A coordinator and its workers, which are stopped on drop.
pub(crate) struct Servers {
    dir: PathBuf,
    stop: Arc<AtomicBool>,
    /// The servers that have been started. The coordinator is the first element.
    servers: Vec<Server>,
}

/// Returns a command that runs this program without the user's configuration file, and without the environment
/// variables for hatebeam and OpenTelemetry, except HATEBEAM_LOG.
pub(crate) fn hatebeam() -> Result<Command, DemoError> {
    let program = std::env::current_exe().map_err(DemoError::io("find this program's file"))?;
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let is_setting = name.to_str().is_some_and(|name| {
            name.starts_with("HATEBEAM_") && name != "HATEBEAM_LOG" || name.starts_with("OTEL_")
        });
        if is_setting {
            command.env_remove(name);
        }
    }
    command.env("HATEBEAM_CONFIG", "none").stdin(Stdio::null());
    Ok(command)
}

impl Servers {
    pub(crate) fn new(dir: &Path, stop: Arc<AtomicBool>) -> Servers {
        Servers {
            dir: dir.to_owned(),
            stop,
            servers: Vec::new(),
        }
    }

    /// Starts the coordinator and then the workers. Returns the coordinator's addresses.
    pub(crate) fn start(&mut self) -> Result<Addresses, DemoError> {
        let store = self.dir.join("store");
        let mut command = hatebeam()?;
        command.arg("coordinator").arg("--store").arg(&store);
        command.args(["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"]);
        command.args(["--min-workers", &WORKERS.len().to_string()]);
        let lines = self.spawn("coordinator", command)?;
        let addresses = self.addresses(&lines)?;
        let threads = (hatebeam_host::cores() / WORKERS.len()).max(1);
        for name in WORKERS {
            let mut command = hatebeam()?;
            command.arg("worker").arg("--store").arg(&store);
            command.arg("--coordinator");
            command.arg(format!("http://{}", addresses.coordinator));
            command.args(["--listen", "127.0.0.1:0", "--name", name]);
            command.arg("--dir").arg(self.dir.join(name));
            command.arg("--threads").arg(threads.to_string());
            self.spawn(name, command)?;
        }
        Ok(addresses)
    }

    /// Starts a server, and returns a channel with the lines that it prints.
    fn spawn(
        &mut self,
        name: &'static str,
        mut command: Command,
    ) -> Result<mpsc::Receiver<String>, DemoError> {
        let log = self.dir.join(format!("{name}.log"));
        let file = File::create(&log);
        let file = file.map_err(DemoError::io(format!("create the log {}", log.display())))?;
        command
            .arg("--stop-with-stdin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn();
        let mut child = child.map_err(DemoError::io(format!("start the process {name}")))?;
        let stdout = child.stdout.take();
        self.servers.push(Server { name, child, log });
        // If the channel is full, further lines are read and dropped, so that the server does not block.
        let (tx, lines) = mpsc::sync_channel(16);
        thread::spawn(move || {
            let lines = stdout
                .into_iter()
                .flat_map(|out| BufReader::new(out).lines());
            for line in lines.map_while(Result::ok) {
                let _ = tx.try_send(line);
            }
        });
        Ok(lines)
    }

    /// Waits until the coordinator has printed its addresses, for at most [`TIMEOUT`].
    fn addresses(&mut self, lines: &mpsc::Receiver<String>) -> Result<Addresses, DemoError> {
        let begun = Instant::now();
        let (mut coordinator, mut dashboard) = (None, None);
        let found = self.wait_for(|| {
            for line in lines.try_iter() {
                if let Some(address) = line.strip_prefix("listening on ") {
                    coordinator = Some(address.to_owned());
                } else if let Some(url) = line.strip_prefix("dashboard at ") {
                    dashboard = Some(url.to_owned());
                }
            }
            let are_complete = coordinator.is_some() && dashboard.is_some();
            (are_complete || begun.elapsed() > TIMEOUT).then_some(())
        })?;
        if found.is_none() {
            return Err(DemoError::Interrupted);
        }
        match (coordinator, dashboard) {
            (Some(coordinator), Some(dashboard)) => Ok(Addresses {
                coordinator,
                dashboard,
            }),
            _ => Err(DemoError::NoAddresses {
                limit: TIMEOUT,
                log: self
                    .servers
                    .first()
                    .map(Server::end_of_log)
                    .unwrap_or_default(),
            }),
        }
    }

    /// Calls `look` repeatedly until it returns a value. Returns `None` if the stop flag is set first, and an error if
    /// a server ends first.
    pub(crate) fn wait_for<T>(
        &mut self,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, DemoError> {
        while !self.stop.load(Ordering::Relaxed) {
            if let Some(found) = look() {
                return Ok(Some(found));
            }
            self.check()?;
            thread::sleep(TICK);
        }
        Ok(None)
    }

    /// Returns an error if a server has ended.
    fn check(&mut self) -> Result<(), DemoError> {
        for server in &mut self.servers {
            let status = server.child.try_wait();
            let status = status.map_err(DemoError::io(format!(
                "wait for the process {}",
                server.name
            )))?;
            if let Some(status) = status {
                return Err(DemoError::ServerEnded {
                    name: server.name,
                    status,
                    log: server.end_of_log(),
                });
            }
        }
        Ok(())
    }

    /// Runs a command that needs the servers, and returns its output. Kills the command if a server ends or the stop
    /// flag is set.
    pub(crate) fn output(&mut self, mut command: Command) -> Result<String, DemoError> {
        let failed = || DemoError::io("run a command");
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(failed())?;
        let stdout = child.stdout.take();
        // A thread reads the output immediately, so that the command never blocks on a full pipe.
        let reader = thread::spawn(move || {
            let mut out = String::new();
            let mut stdout = stdout.into_iter();
            stdout
                .try_for_each(|mut from| from.read_to_string(&mut out).map(|_| ()))
                .map(|()| out)
        });
        let ended = self.wait_for(|| child.try_wait().transpose());
        if !matches!(ended, Ok(Some(_))) {
            // Killing fails if the command has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        let status = ended?.ok_or(DemoError::Interrupted)?.map_err(failed())?;
        // Ctrl-C also reaches the command, so the command may end before `wait_for` checks the flag.
        if self.stop.load(Ordering::Relaxed) {
            return Err(DemoError::Interrupted);
        }
        // The thread does not panic, so the default is never used.
        let out = reader.join().unwrap_or_else(|_| Ok(String::new()));
        let out = out.map_err(failed())?;
        // If a failed command printed output, the caller reports the failure that the output describes.
        if !status.success() && out.is_empty() {
            return Err(DemoError::Command(status));
        }
        Ok(out)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let Some((coordinator, workers)) = self.servers.split_first_mut() else {
            return;
        };
        // The workers stop first, so that they do not try to reconnect to a stopped coordinator.
        workers.iter_mut().for_each(Server::ask_to_stop);
        workers.iter_mut().for_each(Server::wait_for_end);
        coordinator.ask_to_stop();
        coordinator.wait_for_end();
    }
}

impl Server {
    fn ask_to_stop(&mut self) {
        self.child.stdin = None;
    }

    /// Waits until the server ends. Kills it if it has not ended after [`TIMEOUT`].
    fn wait_for_end(&mut self) {
        let begun = Instant::now();
        while let Ok(None) = self.child.try_wait() {
            if begun.elapsed() > TIMEOUT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(TICK);
        }
    }

    /// Returns the last [`LOG_LINES`] lines of the log.
    fn end_of_log(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
        last.join("\n")
    }
}
