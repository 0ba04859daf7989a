//! The machine that a process runs on: its memory, limits and price, signals, and the AWS metadata service.

mod limits;
mod memory;
#[cfg(feature = "aws")]
mod metadata;
#[cfg(not(feature = "aws"))]
#[path = "no_metadata.rs"]
mod metadata;
#[cfg(feature = "server")]
mod rent;
#[cfg(feature = "server")]
mod server;
mod signals;

pub use limits::{raise_file_limit, return_large_blocks};
pub use memory::{available_memory, memory_in_use, peak_memory};
pub use metadata::{Metadata, is_aws};
#[cfg(feature = "server")]
pub use rent::{GivenMachine, RentedMachine};
#[cfg(feature = "server")]
pub use server::{stop_channel, stop_reason};
pub use signals::{INTERRUPTED, stop_flag};

/// Returns the number of cores that this process can use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns a name for this process that no other running process has: the host name and the process ID.
pub fn process_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_allowed = |letter: &char| letter.is_ascii_alphanumeric() || "-_.".contains(*letter);
    let host: String = host.trim().chars().filter(is_allowed).take(64).collect();
    let host = if host.is_empty() { "host" } else { &host };
    format!("{host}-{}", std::process::id())
}
