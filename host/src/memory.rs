//! The memory of the machine and of this process, in bytes. The functions return `None` if the system does not report
//! the figure.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the memory that this process can still use. This is the machine's available memory, or less if a control
/// group of the process has less free memory.
pub fn available_memory() -> Option<u64> {
    let available = value_of(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let left = left_in_groups(Path::new("/sys/fs/cgroup"), &groups);
    Some(left.map_or(available, |left| available.min(left)))
}

/// Returns the least free memory (limit minus use) of a control group and its ancestors, or `None` if none of them has
/// a limit. `root` is the root of the hierarchy. `groups` has the format of `/proc/self/cgroup`.
fn left_in_groups(root: &Path, groups: &str) -> Option<u64> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let own = root.join(own.unwrap_or_default());
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let around = own.ancestors().take_while(|group| group.starts_with(root));
    let left = around.filter_map(|group| {
        let limit = number(group.join("memory.max"))?;
        Some(limit.saturating_sub(number(group.join("memory.current"))?))
    });
    left.min()
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
    fn kernel_figures_are_parsed() {
        let text = "MemTotal:       16 kB\nMemAvailable:    12345 kB\n";
        assert_eq!(value_of(text, "MemAvailable:"), Some(12345 << 10));
        assert_eq!(value_of(text, "VmHWM:"), None);
        assert_eq!(value_of("VmHWM: x kB", "VmHWM:"), None);
    }

    #[test]
    fn control_group_with_least_free_memory_determines_the_result() {
        let dir = tempfile::tempdir().unwrap();
        let group = |name: &str, limit: &str, used: &str| {
            let folder = dir.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("memory.max"), format!("{limit}\n")).unwrap();
            fs::write(folder.join("memory.current"), format!("{used}\n")).unwrap();
        };
        let left = |groups: &str| left_in_groups(dir.path(), groups);
        assert_eq!(left("0::/system.slice/worker.service\n"), None);
        group("system.slice", "1000", "300");
        group("system.slice/worker.service", "max", "100");
        assert_eq!(left("0::/system.slice/worker.service\n"), Some(700));
        group("system.slice/worker.service", "500", "100");
        assert_eq!(left("0::/system.slice/worker.service\n"), Some(400));
        assert_eq!(left("0::/\n"), None);
        // In a container, the root can have a limit.
        fs::write(dir.path().join("memory.max"), "50\n").unwrap();
        fs::write(dir.path().join("memory.current"), "60\n").unwrap();
        assert_eq!(left("0::/\n"), Some(0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_figures_are_positive() {
        let (now, peak) = (memory_in_use().unwrap(), peak_memory().unwrap());
        assert!(now > 0 && peak > 0);
        assert!(available_memory().unwrap() > 0);
    }
}
