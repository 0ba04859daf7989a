//! The memory and disk that a run needs.

use crate::retention::Retention;

/// Memory of a well of width: an upper bound.
const MEMORY_PER_WELL: u64 = 100;
/// Memory of the process: an upper bound.
const MEMORY_OF_PROCESS: u64 = 200 << 20;
/// Approximate disk space of a well in a table.
const DISK_PER_WELL: f64 = 12.0;

/// Returns the memory in bytes that a run of this width needs at most.
pub fn memory_needed(width: u64) -> u64 {
    width * MEMORY_PER_WELL + MEMORY_OF_PROCESS
}

/// Returns the greatest width that fits in this much memory.
pub fn max_width(memory: u64) -> u64 {
    memory.saturating_sub(MEMORY_OF_PROCESS) / MEMORY_PER_WELL
}

/// Returns the approximate disk space in bytes of a run with this number of depths.
pub fn disk_needed(width: u64, depths: u32, keep: Retention) -> u64 {
    (width as f64 * DISK_PER_WELL * f64::from(depths) * keep.share(depths)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widest_run_fits_and_a_wider_one_does_not() {
        let memory = 1 << 30;
        let most = max_width(memory);
        assert!(memory_needed(most) <= memory && memory_needed(most + 1) > memory);
        assert_eq!(max_width(0), 0);
    }

    #[test]
    fn keeping_fewer_depths_needs_less_disk() {
        let all = disk_needed(1_000_000, 100, Retention::All);
        assert_eq!(all, 1_200_000_000);
        assert_eq!(disk_needed(1_000_000, 100, Retention::Every(4)), all / 4);
    }
}
