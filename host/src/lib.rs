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
mod scratch;
#[cfg(feature = "server")]
mod server;
mod signals;

pub use limits::{raise_file_limit, return_large_blocks};
pub use memory::{available_memory, memory_in_use, memory_limit, peak_memory};
pub use metadata::{Metadata, is_aws};
#[cfg(feature = "server")]
pub use rent::{GivenMachine, RentedMachine};
pub use scratch::{create_scratch, is_shared};
#[cfg(feature = "server")]
pub use server::{stop_channel, stop_reason};
pub use signals::{INTERRUPTED, stop_flag};

/// Returns the number of hardware threads that this process can use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of hardware threads of the machine. This process may be restricted to some of them.
pub fn machine_threads() -> usize {
    let present = std::fs::read_to_string("/sys/devices/system/cpu/present").unwrap_or_default();
    count_of_list(&present).unwrap_or_else(cores)
}

/// Returns the number of processors in a kernel list such as `0-3,8`.
fn count_of_list(list: &str) -> Option<usize> {
    let ranges = list.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first).map(|more| more + 1)
    });
    ranges.sum()
}

/// Returns a name for this process, which consists of the host name and the process ID.
pub fn process_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_allowed = |letter: &char| letter.is_ascii_alphanumeric() || "-_.".contains(*letter);
    let host: String = host.trim().chars().filter(is_allowed).take(64).collect();
    let host = if host.is_empty() { "host" } else { &host };
    format!("{host}-{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_in_a_kernel_list_are_counted() {
        assert_eq!(count_of_list("0-71\n"), Some(72));
        assert_eq!(count_of_list("0-3,8,10-11\n"), Some(7));
        for list in ["", "x", "3-1"] {
            assert_eq!(count_of_list(list), None, "{list}");
        }
        assert!(machine_threads() >= cores());
    }
}
