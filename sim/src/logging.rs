//! Redirection of the coordinators' and workers' log messages to the trace.

use crate::trace::{Detail, Trace};
use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    /// Name of the process whose task is being polled.
    static CURRENT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Sets the name of the process whose task is polled next.
pub(crate) fn set_current(process: &str) {
    CURRENT.with_borrow_mut(|current| {
        if current != process {
            current.clear();
            current.push_str(process);
        }
    });
}

/// A subscriber that writes log messages to a trace, without their spans.
struct Logger(Arc<Trace>);

/// Redirects log messages of the current thread to a trace, until the returned guard is dropped. Does nothing unless
/// the trace has [`Detail::Everything`].
pub(crate) fn install(trace: &Arc<Trace>) -> Option<DefaultGuard> {
    let wanted = trace.has(Detail::Everything);
    wanted.then(|| tracing::subscriber::set_default(Logger(Arc::clone(trace))))
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG && metadata.target().starts_with("hatebeam")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        CURRENT.with_borrow(|process| self.0.event(process, &text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
