//! Limits that a process sets for itself at its start.

/// Raises the limit of open files to what is allowed and useful. The default of 1024 is too low for tables and the
/// streams of a large cluster. A failure changes nothing.
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

/// Does nothing: this system has no such limit.
#[cfg(not(unix))]
pub fn raise_file_limit() {}

/// Makes the allocator return large blocks to the system as soon as they are free. By default glibc stops returning them
/// after it has seen a few, and then keeps them in one arena per thread. The threads of a search start and end with
/// each depth, so the search would use twice the memory that it needs.
///
/// Call it before the process starts a thread.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn return_large_blocks() {
    const LARGE: libc::c_int = 256 << 10;
    // SAFETY: the call takes two numbers, and no other thread runs yet.
    let done = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    if done == 0 {
        tracing::debug!("the allocator keeps its default threshold");
    }
}

/// Does nothing: other allocators have no such setting.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_large_blocks() {}
