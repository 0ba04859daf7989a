//! The memory of the machine and of this process, in bytes. The functions return `None` if the system does not report
//! the figure.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the memory that this process can still use. This is the machine's available memory, or less if a control
/// group of the process has less free memory.
pub fn available_memory() -> Option<u64> {
    let available = value_of(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    Some(least(available, &own_groups(), left_in))
}

/// Returns the memory of the machine, or the limit of a control group of this process if that is lower.
pub fn memory_limit() -> Option<u64> {
    let total = value_of(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    Some(least(total, &own_groups(), limit_of))
}

/// Returns the least figure of the machine and of its control groups, some of which may have none.
fn least(of_machine: u64, groups: &[PathBuf], of_group: fn(&Path) -> Option<u64>) -> u64 {
    let of_groups = groups.iter().filter_map(|group| of_group(group));
    of_groups.fold(of_machine, u64::min)
}

/// Returns the folders of this process's control group and its ancestors.
fn own_groups() -> Vec<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups_in(Path::new("/sys/fs/cgroup"), &groups)
}

/// Returns the folders of a control group and its ancestors. `root` is the root of the hierarchy. `groups` has the format of
/// `/proc/self/cgroup`.
fn groups_in(root: &Path, groups: &str) -> Vec<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let own = root.join(own.unwrap_or_default());
    let around = own.ancestors().take_while(|group| group.starts_with(root));
    around.map(Path::to_path_buf).collect()
}

/// Returns the memory limit of a control group, or `None` if it has none.
fn limit_of(group: &Path) -> Option<u64> {
    number_in(&group.join("memory.max"))
}

/// Returns the free memory of a control group, which is its limit minus its use, or `None` if it has no limit. The kernel
/// counts files that it has read as used, but reclaims this memory before the group exceeds its limit.
fn left_in(group: &Path) -> Option<u64> {
    let limit = limit_of(group)?;
    let current = number_in(&group.join("memory.current"))?;
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let reclaimable = stat
        .lines()
        .find_map(|line| line.strip_prefix("inactive_file "));
    let reclaimable = reclaimable.and_then(|bytes| bytes.trim().parse().ok());
    let used = current.saturating_sub(reclaimable.unwrap_or(0));
    Some(limit.saturating_sub(used))
}

fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
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
        // The machine has 5,000 bytes, of which 4,000 are available.
        let figures = |groups: &str| {
            let groups = groups_in(dir.path(), groups);
            (
                least(4000, &groups, left_in),
                least(5000, &groups, limit_of),
            )
        };
        assert_eq!(figures("0::/system.slice/worker.service\n"), (4000, 5000));
        group("system.slice", "1000", "300");
        group("system.slice/worker.service", "max", "100");
        assert_eq!(figures("0::/system.slice/worker.service\n"), (700, 1000));
        group("system.slice/worker.service", "500", "100");
        assert_eq!(figures("0::/system.slice/worker.service\n"), (400, 500));
        assert_eq!(figures("0::/\n"), (4000, 5000));
        // In a container, the root can have a limit.
        group("", "50", "60");
        assert_eq!(figures("0::/\n"), (0, 50));
    }

    #[test]
    fn file_cache_that_can_be_reclaimed_counts_as_free() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("memory.max"), "1000\n").unwrap();
        fs::write(dir.path().join("memory.current"), "900\n").unwrap();
        for (stat, left) in [
            (
                "anon 300\nfile 600\ninactive_anon 7\ninactive_file 500\nactive_file 100\n",
                600,
            ),
            ("inactive_file 2000\n", 1000),
            ("inactive_file many\n", 100),
            ("", 100),
        ] {
            fs::write(dir.path().join("memory.stat"), stat).unwrap();
            assert_eq!(left_in(dir.path()), Some(left), "{stat}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_figures_are_positive() {
        let (now, peak) = (memory_in_use().unwrap(), peak_memory().unwrap());
        assert!(now > 0 && peak > 0);
        let (available, limit) = (available_memory().unwrap(), memory_limit().unwrap());
        assert!(0 < available && available <= limit);
    }
}
