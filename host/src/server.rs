//! Requests to stop a server process.

use crate::metadata::Metadata;
use crate::signals::{INTERRUPTED, stop_flag};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Maximum time for a graceful shutdown after standard input ends.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns a channel whose value becomes `true` on the first SIGINT or SIGTERM. If `with_stdin` is set, the value also
/// becomes `true` when standard input ends. A second signal ends the process immediately. This function must be called
/// within a tokio runtime.
///
/// # Errors
/// Returns an error if the signals cannot be handled.
pub fn stop_channel(with_stdin: bool) -> io::Result<watch::Receiver<bool>> {
    let flag = stop_flag()?;
    if with_stdin {
        let flag = Arc::clone(&flag);
        let thread = std::thread::Builder::new().name("stdin".to_owned());
        thread.spawn(move || stop_at_end_of_input(&flag))?;
    }
    let (tx, rx) = watch::channel(false);
    tokio::spawn(async move {
        while !flag.load(Ordering::Relaxed) {
            tokio::time::sleep(SIGNAL_INTERVAL).await;
        }
        let _ = tx.send(true);
        // Receivers treat a closed channel as an error, so keep the channel open until all receivers are dropped.
        tx.closed().await;
    });
    Ok(rx)
}

/// Sets the flag when standard input ends. Exits the process if it is still running after [`STOP_TIMEOUT`].
fn stop_at_end_of_input(flag: &AtomicBool) {
    // A read error counts as the end of the input.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    flag.store(true, Ordering::Relaxed);
    std::thread::sleep(STOP_TIMEOUT);
    std::process::exit(i32::from(INTERRUPTED));
}

/// Returns a channel that receives a reason to stop when `stop` becomes `true` or AWS announces that it will reclaim
/// the machine. This function must be called within a tokio runtime.
pub fn stop_reason(
    mut stop: watch::Receiver<bool>,
    metadata: Option<Metadata>,
) -> watch::Receiver<Option<String>> {
    let (tx, rx) = watch::channel(None);
    tokio::spawn(async move {
        let reclaimed = async {
            match &metadata {
                Some(metadata) => metadata.reclaimed().await,
                None => std::future::pending().await,
            }
        };
        let reason = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => "received a request to stop".to_owned(),
            reason = reclaimed => reason,
        };
        let _ = tx.send(Some(reason));
        // Receivers treat a closed channel as an error, so keep the channel open until all receivers are dropped.
        tx.closed().await;
    });
    rx
}
