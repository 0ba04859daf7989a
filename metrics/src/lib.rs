//! What the processes of a search count, and how it is told to Prometheus.
//!
//! [`list`] names everything there is, in one place, with its kind, its unit and what it means; what is
//! documented is compared with it. A process [registers](Registry) the groups that it has, counts where things
//! happen, and [serves](Server) them as text. Nothing here is process-wide: two workers in one process count apart.

pub mod list;
mod process;
mod registry;
mod server;

pub use list::{CoordinatorMetrics, ObjectMetrics, ProcessMetrics, RunMetrics, WorkerMetrics};
pub use process::watch_process;
pub use registry::{By, Counter, Definition, Facts, Gauge, Histogram, Registry, Seconds};
pub use server::{Server, bind};
