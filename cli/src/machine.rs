//! What the machine has: memory that is free, memory that was used.

use std::fs;

/// The bytes of memory that can still be used: what the kernel says is available, and no more than
/// what is left of the limit of the control group. `None` where nothing tells.
pub(crate) fn available_memory() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let available = kib_of(&meminfo, "MemAvailable:")?;
    Some(match left_in_group() {
        Some(left) => available.min(left),
        None => available,
    })
}

fn left_in_group() -> Option<u64> {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max")?;
    let used = number("/sys/fs/cgroup/memory.current")?;
    Some(limit.saturating_sub(used))
}

/// The most bytes of memory that this process ever held.
pub(crate) fn peak_rss() -> Option<u64> {
    kib_of(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// The number in the line that begins with `name`, in bytes.
fn kib_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let text = "MemTotal:       16 kB\nMemAvailable:    12345 kB\n";
        assert_eq!(kib_of(text, "MemAvailable:"), Some(12345 << 10));
        assert_eq!(kib_of(text, "VmHWM:"), None);
        assert_eq!(kib_of("VmHWM: x kB", "VmHWM:"), None);
    }
}
