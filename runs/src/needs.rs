//! Estimates of the memory and disk space that a run needs.

use crate::retention::Retention;
use crate::spec::LoopRule;
use hatebeam_cost::{MEMORY_OF_PROCESS, MEMORY_PER_WELL};
use hatebeam_search::{Quiescence, TABLE_WELLS, buffer_bytes};

/// Upper bound on the memory per well of width that the loop rule needs, in bytes: ten wells of the past, measured at a
/// width of 1,000 (fewer in wider beams), with 60 bytes each, and the edges of a depth.
pub const MEMORY_OF_LOOPS_PER_WELL: u64 = 700;
/// Approximate disk space per stored well, in bytes.
const DISK_PER_WELL: f64 = 12.0;

/// Returns an upper bound on the memory that a run of this width needs with `threads` search threads, in bytes.
pub fn memory_needed(width: u64, threads: usize) -> u64 {
    // Each thread has buffers for the tables in memory that collect the next beam. With 72 threads and a width of
    // 1,000,000,000 wells, these buffers take 3 GB.
    let buffers = threads as u64 * buffer_bytes(width.div_ceil(TABLE_WELLS as u64));
    width * MEMORY_PER_WELL + buffers + MEMORY_OF_PROCESS
}

/// Returns an upper bound on the additional memory of a run of this width if it applies the loop rule, in bytes.
pub fn memory_of_loops(width: u64, loops: LoopRule) -> u64 {
    match loops {
        LoopRule::Ignore => 0,
        LoopRule::Exact => width * MEMORY_OF_LOOPS_PER_WELL,
    }
}

/// Returns an upper bound on the additional memory of a run of this width if a depth first gathers more children than it
/// keeps, in bytes.
pub fn memory_of_quiescence(width: u64, quiescence: Quiescence) -> u64 {
    let children = quiescence.children_per_well().unwrap_or(1) as u64;
    width * MEMORY_PER_WELL * (children - 1)
}

/// Returns the greatest width of a run that fits in `memory` bytes with `threads` search threads.
pub fn max_width(memory: u64, threads: usize) -> u64 {
    let (mut fits, mut too_wide) = (0, memory / MEMORY_PER_WELL + 1);
    while fits + 1 < too_wide {
        let width = fits + (too_wide - fits) / 2;
        if memory_needed(width, threads) <= memory {
            fits = width;
        } else {
            too_wide = width;
        }
    }
    fits
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
        for threads in [1, 72] {
            let most = max_width(memory, threads);
            assert!(memory_needed(most, threads) <= memory);
            assert!(memory_needed(most + 1, threads) > memory);
        }
        assert_eq!(max_width(0, 1), 0);
    }

    #[test]
    fn memory_includes_buffers_of_each_thread() {
        let width = 1_000_000_000;
        let buffers = memory_needed(width, 72) - memory_needed(width, 0);
        // 72 threads x 257 groups of tables x 4,096 children x 40 bytes.
        assert_eq!(buffers, 72 * 257 * 4096 * 40);
    }

    #[test]
    fn keeping_fewer_depths_needs_less_disk() {
        let all = disk_needed(1_000_000, 100, Retention::All);
        assert_eq!(all, 1_200_000_000);
        assert_eq!(disk_needed(1_000_000, 100, Retention::Every(4)), all / 4);
    }
}
