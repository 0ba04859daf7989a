//! Signals that stop a process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Exit code after a signal.
pub const INTERRUPTED: u8 = 130;

/// Returns a flag that the first SIGINT (Ctrl-C) or SIGTERM sets. A second signal ends the process immediately.
///
/// # Errors
/// Returns an error if the signals cannot be handled.
#[cfg(unix)]
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag::{register, register_conditional_shutdown};
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&flag))
            .and_then(|_| register(signal, Arc::clone(&flag)))
            .map_err(|error| {
                io::Error::new(error.kind(), format!("cannot handle signals: {error}"))
            })?;
    }
    Ok(flag)
}

/// Returns a flag that is never set. On systems other than Unix, a signal ends the process immediately.
///
/// # Errors
/// This function never returns an error.
#[cfg(not(unix))]
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    Ok(Arc::new(AtomicBool::new(false)))
}
