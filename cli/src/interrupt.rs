//! Ctrl-C.

use anyhow::Context;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The exit code of a process that was told to stop.
pub(crate) const EXIT_CODE: u8 = 130;

/// A flag that Ctrl-C and a request to terminate raise. The second one ends the process there and
/// then: what was committed stays.
#[cfg(unix)]
pub(crate) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag::{register, register_conditional_shutdown};
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register_conditional_shutdown(signal, i32::from(EXIT_CODE), Arc::clone(&flag))
            .and_then(|_| register(signal, Arc::clone(&flag)))
            .context("cannot listen to signals")?;
    }
    Ok(flag)
}

/// A flag that nothing raises: the system's own way of stopping a process has to do.
#[cfg(not(unix))]
pub(crate) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    Ok(Arc::new(AtomicBool::new(false))).context("")
}
