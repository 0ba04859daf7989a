//! Detection of panics in simulated tasks, which tokio would otherwise hide.

use crate::faults::INJECTED;
use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::sync::Once;

thread_local! {
    /// Descriptions of the panics on this thread, except injected ones.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Installs a panic hook at the first call, and discards the panics that the current thread has recorded. The previous
/// hook is still called for every panic that is not injected.
pub(crate) fn watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !is_injected(info) {
                PANICS.with_borrow_mut(|panics| panics.push(format!("a task panicked: {info}")));
                before(info);
            }
        }));
    });
    take();
}

/// Returns the panics on the current thread since the last call of [`watch`] or [`take`].
pub(crate) fn take() -> Vec<String> {
    PANICS.with_borrow_mut(std::mem::take)
}

fn is_injected(info: &PanicHookInfo<'_>) -> bool {
    info.payload().downcast_ref::<&str>() == Some(&INJECTED)
}
