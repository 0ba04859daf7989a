//! Ctrl-C.

use anyhow::Context;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
#[cfg(feature = "cluster")]
use std::sync::atomic::Ordering;
#[cfg(feature = "cluster")]
use std::time::Duration;

/// The exit code of a process that was told to stop.
pub(crate) const EXIT_CODE: u8 = 130;

/// How long a process may take to come to an end in order once its standard input has ended.
#[cfg(feature = "cluster")]
const GRACE: Duration = Duration::from_secs(10);

/// Raises the flag when standard input ends. Whoever holds its other end is gone then, in whatever way, or
/// wants this process to be: the system closes what a dead process held open.
#[cfg(feature = "cluster")]
pub(crate) fn at_end_of_input(flag: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let flag = Arc::clone(flag);
    let thread = std::thread::Builder::new().name("stdin".to_owned());
    let listening = thread.spawn(move || {
        // What comes is not for us, and input that fails is as good as none.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        flag.store(true, Ordering::Relaxed);
        std::thread::sleep(GRACE);
        std::process::exit(i32::from(EXIT_CODE));
    });
    listening.context("no thread for standard input")?;
    Ok(())
}

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
