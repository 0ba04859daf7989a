//! A command that is run for each event.

use crate::event::Event;
use std::io::Write;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a command is looked after.
const LOOK: Duration = Duration::from_millis(20);

/// A command that is run for each event, one at a time.
pub(crate) struct CommandHook {
    pub(crate) command: String,
    pub(crate) timeout: Duration,
}

impl CommandHook {
    /// Runs the command, and waits for it.
    pub(crate) fn deliver(
        &self,
        event: &Event,
        is_given_up: impl Fn() -> bool,
    ) -> Result<(), String> {
        let json = event.json()?;
        let mut command = Command::new("sh");
        command
            .args(["-c", &self.command])
            .env("HATEBEAM_EVENT", event.what.name())
            .env("HATEBEAM_RUN", &event.run)
            .env("HATEBEAM_SCORE", event.score.to_string())
            .stdin(Stdio::piped())
            // Standard output is for results of this program.
            .stdout(std::io::stderr());
        // A group of its own: Ctrl-C is not for it, and all that it starts can be ended with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .spawn()
            .map_err(|error| format!("it cannot be run: {error}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            // It need not read, and may end without having: nothing waits for that.
            std::thread::spawn(move || drop(stdin.write_all(&json)));
        }
        match self.wait(&mut child, is_given_up)? {
            status if status.success() => Ok(()),
            status => Err(format!("it ended with {status}")),
        }
    }

    fn wait(
        &self,
        child: &mut Child,
        is_given_up: impl Fn() -> bool,
    ) -> Result<ExitStatus, String> {
        let until = Instant::now() + self.timeout;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(error) => return Err(format!("it cannot be waited for: {error}")),
            }
            let is_late = Instant::now() > until;
            if is_late || is_given_up() {
                end(child);
                return Err(match is_late {
                    true => format!("it was ended, as it took longer than {:?}", self.timeout),
                    false => "it was ended, as this program ends".to_owned(),
                });
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Ends a command, and all that it has started. It has not been waited for: its number is still its own.
fn end(child: &mut Child) {
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
