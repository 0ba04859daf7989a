//! A line on the terminal that shows progress.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval between updates of the line.
const INTERVAL: Duration = Duration::from_millis(200);

/// Shows progress on the current line of standard error if it is a terminal. The next call overwrites the line. An empty
/// text clears the line.
pub fn show_progress(text: impl Display) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
    }
}

/// A progress line on standard error. A thread updates the line until this value is dropped.
pub struct ProgressLine {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Starts the thread, which repeatedly calls `text` and shows the result.
    pub fn start(text: impl Fn() -> String + Send + 'static) -> ProgressLine {
        let stop = Arc::<AtomicBool>::default();
        let thread = thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                while !stop.load(Ordering::Relaxed) {
                    thread::park_timeout(INTERVAL);
                    show_progress(text());
                }
                show_progress("");
            }
        });
        ProgressLine {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
