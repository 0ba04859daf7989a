//! Process-wide settings.

/// Raises the limit on open files to 65,536, or to the allowed maximum if that is lower. The usual default of 1024 is
/// too low for the tables and streams of a large cluster. Ignores errors, because the old limit may suffice.
#[cfg(unix)]
pub fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const ENOUGH: u64 = 65536;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let target = maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    if current.is_some_and(|current| current < target) {
        let raised = Rlimit {
            current: Some(target),
            maximum,
        };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Does nothing, because this system has no such limit.
#[cfg(not(unix))]
pub fn raise_file_limit() {}

/// Makes the allocator return large blocks to the system when they are freed. By default, glibc raises its threshold
/// when such blocks are freed, and keeps later ones in an arena per thread. A search starts new threads at each depth, so
/// it would use twice the memory that it needs.
///
/// Call this function before the process starts other threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn return_large_blocks() {
    const LARGE: libc::c_int = 256 << 10;
    // SAFETY: both arguments are plain numbers, and no other thread is running.
    let done = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    if done == 0 {
        tracing::debug!("failed to change the allocator's threshold");
    }
}

/// Does nothing, because other allocators have no such setting.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_large_blocks() {}
