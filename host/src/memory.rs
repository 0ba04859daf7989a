//! The memory of the machine and of this process, in bytes. The functions return `None` if the system does not report the
//! number.

use std::fs;

/// Returns the memory that this process can still use: the smaller of the kernel's available memory and the free memory
/// of the control group.
pub fn available_memory() -> Option<u64> {
    let available = value_of(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    Some(left_in_group().map_or(available, |left| available.min(left)))
}

/// Returns the difference between the control group's limit and its use. Returns `None` if the group has no limit.
fn left_in_group() -> Option<u64> {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max")?;
    let used = number("/sys/fs/cgroup/memory.current")?;
    Some(limit.saturating_sub(used))
}

/// Returns the highest memory use of this process so far.
pub fn peak_memory() -> Option<u64> {
    value_of(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// Returns the current memory use of this process.
pub fn memory_in_use() -> Option<u64> {
    value_of(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Returns the number in the line that begins with `name`, converted from kB to bytes.
fn value_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_parses_lines_of_the_kernel() {
        let text = "MemTotal:       16 kB\nMemAvailable:    12345 kB\n";
        assert_eq!(value_of(text, "MemAvailable:"), Some(12345 << 10));
        assert_eq!(value_of(text, "VmHWM:"), None);
        assert_eq!(value_of("VmHWM: x kB", "VmHWM:"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_figures_are_positive() {
        let (now, peak) = (memory_in_use().unwrap(), peak_memory().unwrap());
        assert!(now > 0 && peak > 0);
        assert!(available_memory().unwrap() > 0);
    }
}
