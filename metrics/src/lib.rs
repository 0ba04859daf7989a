//! The metrics that hatebeam's processes export to Prometheus.
//!
//! [`list`] defines every metric in one place: its name, kind, unit, labels and meaning. A test compares the list with
//! `docs/metrics.md`. A process [registers](Registry) its groups of metrics, updates them where things happen, and
//! [serves](Server) them as text. There is no global state: two workers in one process count separately.

pub mod list;
mod process;
mod registry;
mod server;

pub use list::{CoordinatorMetrics, ObjectMetrics, ProcessMetrics, RunMetrics, WorkerMetrics};
pub use process::watch_process;
pub use registry::{Counter, Definition, Gauge, Histogram, Info, Labeled, Registry, Seconds};
pub use server::{Server, bind};
