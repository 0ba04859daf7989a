//! Checks that find problems with a machine or a cluster before a search starts.

mod check;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod coordinator;
mod machine;
mod ports;
#[cfg(feature = "cluster")]
mod store;

pub use check::{Check, Examination, Verdict};
#[cfg(feature = "cluster")]
pub use cluster::{Cluster, Coordinator};

use std::path::PathBuf;
use std::time::Duration;

/// Returns the checks for this machine. The disk check examines the disk that contains the
/// folder `dir`.
pub fn local(dir: PathBuf) -> Vec<Examination> {
    vec![
        Examination::new("processor", Duration::from_secs(5), || {
            vec![machine::processor()]
        }),
        Examination::new("memory", Duration::from_secs(5), || vec![machine::memory()]),
        Examination::new("open files", Duration::from_secs(5), || {
            machine::open_files().into_iter().collect()
        }),
        Examination::new("disk", Duration::from_secs(30), move || machine::disk(&dir)),
        Examination::new("ports", Duration::from_secs(15), ports::ports),
    ]
}
