//! Checks of this machine: processor, memory, open files, and disk.

use crate::check::Check;
use hatebeam_game::{Emulator, Geometry, Rules, SimdLevel};
use hatebeam_report::{bytes, count, duration};
use hatebeam_runs::max_width;
use hatebeam_store::free_bytes;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Default width of a run.
const DEFAULT_WIDTH: u64 = 10_000;

/// Limit on open files below which the check fails. RocksDB keeps up to 512 files open; sockets, logs and uploads need
/// the rest.
const MIN_OPEN_FILES: u64 = 700;
/// Limit on open files that the check recommends.
const GOOD_OPEN_FILES: u64 = 2048;
/// Limit on open files below which the check warns, which is also the usual default.
const USUAL_OPEN_FILES: u64 = 1024;

/// Free space in bytes below which the check fails. A run with the default width takes 40 MB.
const MIN_FREE: u64 = 100_000_000;
/// Free space in bytes below which the check warns.
const GOOD_FREE: u64 = 2_000_000_000;

/// Maximum number of bytes written to measure the speed of a disk.
const TEST_BYTES: usize = 64 << 20;
/// Time after which the speed measurement stops, even if fewer bytes have been written.
const TEST_TIME: Duration = Duration::from_secs(5);
/// Size of one write in bytes.
const WRITE_BYTES: usize = 1 << 20;

/// Speed in bytes per second below which the check warns. At a width of a million wells, searching one depth
/// takes a few seconds and writes 12 MB.
const MIN_SPEED: f64 = 20e6;

/// Reports the number of cores, and checks the instruction set that the emulator uses.
pub(crate) fn processor() -> Check {
    let cores = hatebeam_host::cores();
    let level = Emulator::new(Geometry::STANDARD, Rules::default()).level();
    let is_slow = level == SimdLevel::Portable && cfg!(target_arch = "x86_64");
    Check::unless_low(
        "processor",
        format!("{}, instructions {level}", count(cores as u64, "core")),
        is_slow,
        "without AVX2, a search takes about twice as long; a virtual machine may hide AVX2",
    )
}

/// Checks that the available memory is enough for a run with the default width.
pub(crate) fn memory() -> Check {
    let Some(available) = hatebeam_host::available_memory() else {
        return Check::warning(
            "memory",
            "the system does not report the available memory",
            "a run needs about 100 bytes per well of width",
        );
    };
    let most = max_width(available, hatebeam_host::cores());
    let found = format!("{} available", bytes(available));
    let fits = || format!("{found}, enough for a width of {}", wells(most));
    match most {
        DEFAULT_WIDTH.. => Check::ok("memory", fits()),
        1.. => Check::warning(
            "memory",
            fits(),
            format!(
                "pass --width {} to `hatebeam run`, or end other processes",
                wells(most)
            ),
        ),
        0 => Check::failed("memory", found, "no run fits: end other processes"),
    }
}

/// Formats a width as `--width` accepts it, rounded down.
fn wells(number: u64) -> String {
    match number {
        1_000_000.. => format!("{}M", number / 1_000_000),
        1_000.. => format!("{}k", number / 1_000),
        _ => number.to_string(),
    }
}

/// Checks the limit on open files. Returns `None` if the system does not report the limit.
pub(crate) fn open_files() -> Option<Check> {
    open_files_in(&fs::read_to_string("/proc/self/limits").ok()?)
}

fn open_files_in(limits: &str) -> Option<Check> {
    const NAME: &str = "open files";
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let soft = line.split_whitespace().next()?;
    if soft == "unlimited" {
        return Some(Check::ok(NAME, "no limit"));
    }
    let limit = soft.parse::<u64>().ok()?;
    let found = format!("at most {limit}");
    let advice = format!(
        "raise it with `ulimit -n {GOOD_OPEN_FILES}`, or LimitNOFILE={GOOD_OPEN_FILES} in a systemd unit"
    );
    Some(match limit {
        ..MIN_OPEN_FILES => Check::failed(NAME, found, advice),
        MIN_OPEN_FILES..USUAL_OPEN_FILES => Check::warning(NAME, found, advice),
        _ => Check::ok(NAME, found),
    })
}

/// Checks the free space of a folder's disk and, if there is enough space, the disk's speed.
pub(crate) fn disk(dir: &Path) -> Vec<Check> {
    const NAME: &str = "disk space";
    if dir.exists() && !dir.is_dir() {
        let found = format!("{} is not a folder", dir.display());
        return vec![Check::failed(
            NAME,
            found,
            "name a folder with --dir or --state",
        )];
    }
    let free = match free_bytes(dir) {
        Ok(free) => free,
        Err(error) => {
            let advice = "name a folder with --dir or --state";
            return vec![Check::failed(NAME, error.to_string(), advice)];
        }
    };
    let found = format!("{} free in {}", bytes(free), dir.display());
    let advice = "free some space, name another folder, or keep fewer depths (--keep)";
    let space = match free {
        ..MIN_FREE => Check::failed(NAME, found, advice),
        MIN_FREE..GOOD_FREE => Check::warning(NAME, found, advice),
        _ => Check::ok(NAME, found),
    };
    let is_enough = free > MIN_FREE.max(TEST_BYTES as u64 * 2);
    let speed = is_enough.then(|| disk_speed(dir));
    [space].into_iter().chain(speed).collect()
}

fn disk_speed(dir: &Path) -> Check {
    const NAME: &str = "disk speed";
    // If the folder does not exist yet, the check uses its nearest existing ancestor, on whose disk it would be
    // created.
    let Some(existing) = dir.ancestors().find(|folder| folder.is_dir()) else {
        return Check::failed(
            NAME,
            "the folder does not exist",
            "name another folder with --dir",
        );
    };
    match write_and_sync(existing) {
        Err(error) => Check::failed(
            NAME,
            format!("cannot write to {} ({error})", existing.display()),
            "give this user write permission, or name another folder with --dir or --state",
        ),
        Ok((written, took)) => {
            let rate = written as f64 / took.as_secs_f64().max(1e-6);
            let found = format!(
                "{}/s written and synced ({} in {})",
                bytes(rate as u64),
                bytes(written),
                duration(took)
            );
            let advice = "this disk would slow down a wide beam: use a local disk, ideally NVMe";
            Check::unless_low(NAME, found, rate < MIN_SPEED, advice)
        }
    }
}

/// Writes a temporary file and syncs it. Returns the number of bytes written and the duration. The file has no name, so
/// it disappears even if the process is killed.
fn write_and_sync(dir: &Path) -> io::Result<(u64, Duration)> {
    let mut file = tempfile::tempfile_in(dir)?;
    let part = noise(WRITE_BYTES);
    let (begun, mut written) = (Instant::now(), 0);
    while written < TEST_BYTES && begun.elapsed() < TEST_TIME {
        file.write_all(&part)?;
        written += part.len();
    }
    file.sync_all()?;
    Ok((written as u64, begun.elapsed()))
}

/// Returns incompressible pseudorandom bytes.
pub(crate) fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let words = std::iter::repeat_with(&mut next).take(bytes.div_ceil(8));
    let mut noise: Vec<u8> = words.flatten().collect();
    noise.truncate(bytes);
    noise
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;

    #[test]
    fn open_files_verdict_depends_on_limit() {
        let verdict = |soft: &str| {
            let text = format!(
                "Limit Soft Hard Units\nMax processes 1 2 processes\n\
                 Max open files            {soft}                 1048576              files\n"
            );
            open_files_in(&text).map(|check| check.verdict)
        };
        assert_eq!(verdict("1048576"), Some(Verdict::Ok));
        assert_eq!(verdict("unlimited"), Some(Verdict::Ok));
        assert_eq!(verdict("1024"), Some(Verdict::Ok));
        assert_eq!(verdict("800"), Some(Verdict::Warning));
        assert_eq!(verdict("256"), Some(Verdict::Failed));
        assert_eq!(verdict("many"), None);
        assert_eq!(open_files_in(""), None);
    }

    #[test]
    fn disk_check_leaves_no_files_and_notices_missing_space() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("not/there");
        let found = disk(&missing);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].to_string().contains("/s written and synced"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(disk(Path::new("/proc/self"))[0].verdict != Verdict::Ok);
    }

    #[test]
    fn wells_rounds_down() {
        for (number, text) in [(999, "999"), (10_999, "10k"), (209_922_908, "209M")] {
            assert_eq!(wells(number), text);
        }
    }

    #[test]
    fn noise_has_requested_length() {
        assert_eq!(noise(13).len(), 13);
        assert_ne!(noise(16)[..8], noise(16)[8..]);
    }
}
