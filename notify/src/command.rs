//! A hook that runs a command for each event.

use crate::event::Event;
use crate::webhook::SECRET_VARIABLE;
use hatebeam_net::TOKEN_VARIABLE;
use std::io::Write;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Interval between checks of a running command.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A hook that runs a command for each event, one event at a time.
pub(crate) struct CommandHook {
    pub(crate) command: String,
    pub(crate) timeout: Duration,
}

impl CommandHook {
    /// Runs the command with the event on standard input, and waits until the command exits. Returns an error if the
    /// command fails, times out, or is aborted.
    pub(crate) fn deliver(
        &self,
        event: &Event,
        is_aborted: impl Fn() -> bool,
    ) -> Result<(), String> {
        let json = event.json()?;
        let mut command = Command::new("sh");
        command
            .args(["-c", &self.command])
            // The command does not need these two variables. The token allows spending money, and the secret allows
            // forging events.
            .env_remove(TOKEN_VARIABLE)
            .env_remove(SECRET_VARIABLE)
            .env("HATEBEAM_EVENT", event.kind.name())
            .env("HATEBEAM_RUN", &event.run)
            .env("HATEBEAM_SCORE", event.score.to_string())
            .stdin(Stdio::piped())
            // Standard output is reserved for this program's results.
            .stdout(std::io::stderr());
        // In a separate process group, the command does not receive Ctrl-C and can be killed together with
        // its children.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot run the command: {error}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            // Write on another thread, so that a command that does not read its input cannot block this
            // thread.
            std::thread::spawn(move || drop(stdin.write_all(&json)));
        }
        match self.wait(&mut child, is_aborted)? {
            status if status.success() => Ok(()),
            status => Err(format!("the command failed: {status}")),
        }
    }

    fn wait(&self, child: &mut Child, is_aborted: impl Fn() -> bool) -> Result<ExitStatus, String> {
        let until = Instant::now() + self.timeout;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(error) => return Err(format!("cannot wait for the command: {error}")),
            }
            let is_late = Instant::now() > until;
            if is_late || is_aborted() {
                kill(child);
                let reason = if is_late {
                    format!("killed the command after {:?}", self.timeout)
                } else {
                    "killed the command at shutdown".to_owned()
                };
                return Err(reason);
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }
}

/// Kills a command and its children. The process has not been waited for yet, so its process ID cannot have
/// been reused.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}
