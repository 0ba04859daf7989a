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

/// The bytes of memory that this process holds.
#[cfg(feature = "cluster")]
pub(crate) fn rss() -> Option<u64> {
    kib_of(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Lets this process have as many files and connections open as it may, and no more than it could use: the usual 1024
/// are few for tables and the streams of a large cluster. What goes wrong changes nothing.
#[cfg(unix)]
pub(crate) fn open_more_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const ENOUGH: u64 = 65536;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    if current.is_some_and(|current| current < most) {
        let more = Rlimit {
            current: Some(most),
            maximum,
        };
        let _ = setrlimit(Resource::Nofile, more);
    }
}

#[cfg(not(unix))]
pub(crate) fn open_more_files() {}

/// Has the allocator give large blocks back to the system as soon as they are free. By itself glibc
/// stops doing so once it has seen a few, and then keeps them in one arena a thread: a search, whose
/// threads come and go with each depth, would take twice the memory it needs.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub(crate) fn return_large_blocks() {
    const LARGE: libc::c_int = 256 << 10;
    // SAFETY: the call takes two numbers, and is made before any other thread is.
    let done = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    if done == 0 {
        tracing::debug!("the allocator keeps its own threshold");
    }
}

/// Other allocators do as they please.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn return_large_blocks() {}

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
