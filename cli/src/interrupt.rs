//! Handling of the signals that stop a command.

use anyhow::Context;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Exit code of a command that a signal stopped.
pub(crate) const EXIT_CODE: u8 = 130;

/// Returns a flag that the first Ctrl-C or SIGTERM sets. A second signal ends the process immediately, which damages no
/// committed depth.
#[cfg(unix)]
pub(crate) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag::{register, register_conditional_shutdown};
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register_conditional_shutdown(signal, i32::from(EXIT_CODE), Arc::clone(&flag))
            .and_then(|_| register(signal, Arc::clone(&flag)))
            .context("cannot handle signals")?;
    }
    Ok(flag)
}

/// Returns a flag that is never set. On systems other than Unix, a signal ends the process immediately.
#[cfg(not(unix))]
pub(crate) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    Ok(Arc::new(AtomicBool::new(false))).context("")
}
