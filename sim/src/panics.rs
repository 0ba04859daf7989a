//! Panics of simulated tasks, which tokio catches.

use crate::store::INJECTED;
use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::sync::Once;

thread_local! {
    /// The panics on this thread that no plan has injected.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Watches for panics from now on. Those of threads that simulate nothing are printed as before.
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

/// Returns the panics on this thread since [`watch`].
pub(crate) fn take() -> Vec<String> {
    PANICS.with_borrow_mut(std::mem::take)
}

fn is_injected(info: &PanicHookInfo<'_>) -> bool {
    info.payload().downcast_ref::<&str>() == Some(&INJECTED)
}
