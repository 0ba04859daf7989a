//! The metrics that hatebeam's processes export to Prometheus.
//!
//! [`list`] defines the name, kind, unit, labels and meaning of every metric. A test compares it with
//! `docs/metrics.md`. A process [registers](Registry) its groups of metrics, updates them when events happen,
//! and [serves](Server) them as text. There is no global state, so two workers in one process have separate
//! metrics.

pub mod list;
mod process;
mod registry;
mod server;

pub use list::{
    CertificateMetrics, CoordinatorMetrics, ObjectMetrics, ProcessMetrics, RunMetrics,
    WorkerMetrics,
};
pub use process::{Build, watch_process};
pub use registry::{Counter, Definition, Gauge, Histogram, Info, Labeled, Registry, Seconds};
pub use server::{Server, bind};
