//! Estimates of the memory and disk space that a run needs.

use crate::retention::Retention;

/// Upper bound on the memory per well of width, in bytes.
const MEMORY_PER_WELL: u64 = 100;
/// Upper bound on the memory that the process needs in addition to its wells, in bytes.
const MEMORY_OF_PROCESS: u64 = 200 << 20;
/// Approximate disk space per well in a table, in bytes.
const DISK_PER_WELL: f64 = 12.0;

/// Returns an upper bound on the memory that a run with this width needs, in bytes.
pub fn memory_needed(width: u64) -> u64 {
    width * MEMORY_PER_WELL + MEMORY_OF_PROCESS
}

/// Returns the greatest width with which a run fits in `memory` bytes.
pub fn max_width(memory: u64) -> u64 {
    memory.saturating_sub(MEMORY_OF_PROCESS) / MEMORY_PER_WELL
}

/// Returns the approximate disk space that a run with this number of depths needs, in bytes.
pub fn disk_needed(width: u64, depths: u32, keep: Retention) -> u64 {
    (width as f64 * DISK_PER_WELL * f64::from(depths) * keep.share(depths)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_width_fits_in_memory_and_greater_width_does_not() {
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
