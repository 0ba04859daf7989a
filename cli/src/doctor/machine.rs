//! This machine: processor, memory, open files, disk.

use super::check::Check;
use crate::machine::available_memory;
use crate::output::count;
use crate::run::screen::{bytes, duration};
use crate::run::widest;
use hatebeam_game::{Emulator, Geometry, Rules, SimdLevel};
use hatebeam_store::free_bytes;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How wide a run is by default.
const DEFAULT_WIDTH: u64 = 10_000;

/// RocksDB keeps 512 files open at most; the rest is for sockets, logs and objects on their way.
const OPEN_FILES: (u64, u64) = (700, 2048);

/// Free disk below which a check fails, and below which it warns: a run of the default width takes 40 MB.
const FREE: (u64, u64) = (100_000_000, 2_000_000_000);

/// What is written to judge a disk, and how long at most.
const TEST_BYTES: usize = 64 << 20;
const TEST_TIME: Duration = Duration::from_secs(5);
const TEST_PART: usize = 1 << 20;

/// Bytes a second that a disk should take. A million wells are 12 MB a depth, which is searched in seconds.
const SLOW: f64 = 20e6;

/// How many cores, and which instructions the emulator chooses.
pub(super) fn processor() -> Check {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let level = Emulator::new(Geometry::STANDARD, Rules::default()).level();
    let found = format!("{}, instructions {level}", count(cores, "core"));
    if level == SimdLevel::Portable && cfg!(target_arch = "x86_64") {
        return Check::warning(
            "processor",
            found,
            "without AVX2 a search takes about twice as long; a virtual machine may hide it",
        );
    }
    Check::ok("processor", found)
}

/// How much memory there is, and which width fits.
pub(super) fn memory() -> Check {
    let Some(available) = available_memory() else {
        return Check::warning(
            "memory",
            "the system does not say how much is available",
            "a run needs some 100 bytes a well of width",
        );
    };
    let most = widest(available);
    let found = format!("{} available", bytes(available));
    let fits = || format!("{found}, for a width of {} at most", wells(most));
    match most {
        DEFAULT_WIDTH.. => Check::ok("memory", fits()),
        1.. => Check::warning(
            "memory",
            fits(),
            "give `hatebeam run` that --width, or make room",
        ),
        0 => Check::failed("memory", found, "no run fits: end other processes"),
    }
}

/// A width as `--width` takes it, rounded down.
fn wells(number: u64) -> String {
    match number {
        1_000_000.. => format!("{}M", number / 1_000_000),
        1_000.. => format!("{}k", number / 1_000),
        _ => number.to_string(),
    }
}

/// How many files can be open, where that is told.
pub(super) fn open_files() -> Option<Check> {
    open_files_of(&fs::read_to_string("/proc/self/limits").ok()?)
}

fn open_files_of(limits: &str) -> Option<Check> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let soft = line.split_whitespace().next()?;
    let limit = match soft {
        "unlimited" => return Some(Check::ok("open files", "no limit")),
        number => number.parse::<u64>().ok()?,
    };
    let (least, enough) = OPEN_FILES;
    let found = format!("{limit} at most");
    let advice = format!("`ulimit -n {enough}`, or LimitNOFILE={enough} in a systemd unit");
    Some(if limit < least {
        Check::failed("open files", found, advice)
    } else if limit < enough && limit < 1024 {
        Check::warning("open files", found, advice)
    } else {
        Check::ok("open files", found)
    })
}

/// How much room is on a folder's disk, and how fast it takes what is written.
pub(super) fn disk(dir: &Path) -> Vec<Check> {
    let free = match free_bytes(dir) {
        Ok(free) => free,
        Err(error) => {
            return vec![Check::failed(
                "disk space",
                error.to_string(),
                "name a folder with --dir or --state",
            )];
        }
    };
    let found = format!("{} free in {}", bytes(free), dir.display());
    let advice = "make room, name another folder, or keep fewer depths (--keep)";
    let space = match free {
        free if free < FREE.0 => Check::failed("disk space", found, advice),
        free if free < FREE.1 => Check::warning("disk space", found, advice),
        _ => Check::ok("disk space", found),
    };
    let enough = free > FREE.0.max(TEST_BYTES as u64 * 2);
    let speed = enough.then(|| speed(dir));
    [space].into_iter().chain(speed).collect()
}

fn speed(dir: &Path) -> Check {
    // The folder itself may not be there yet; its disk is.
    let there = dir.ancestors().find(|folder| folder.is_dir());
    let Some(there) = there else {
        return Check::failed("disk speed", "there is no folder", "name one with --dir");
    };
    match write_and_sync(there) {
        Err(error) => Check::failed(
            "disk speed",
            format!("{} cannot be written to ({error})", there.display()),
            "give this user the right to, or name another folder with --dir or --state",
        ),
        Ok((written, took)) => {
            let rate = written as f64 / took.as_secs_f64().max(1e-6);
            let found = format!(
                "{}/s written and synced ({} in {})",
                bytes(rate as u64),
                bytes(written),
                duration(took)
            );
            match rate < SLOW {
                true => Check::warning(
                    "disk speed",
                    found,
                    "a wide beam will wait for it: a local disk is meant, best NVMe",
                ),
                false => Check::ok("disk speed", found),
            }
        }
    }
}

/// Writes to a file without a name, which is gone with this process at the latest.
fn write_and_sync(dir: &Path) -> io::Result<(u64, Duration)> {
    let mut file = tempfile::tempfile_in(dir)?;
    let part = noise(TEST_PART);
    let (begun, mut written) = (Instant::now(), 0);
    while written < TEST_BYTES && begun.elapsed() < TEST_TIME {
        file.write_all(&part)?;
        written += part.len();
    }
    file.sync_all()?;
    Ok((written as u64, begun.elapsed()))
}

/// Bytes that nothing on the way can make fewer of.
pub(super) fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut noise: Vec<u8> = std::iter::repeat_with(&mut next)
        .take(bytes.div_ceil(8))
        .flatten()
        .collect();
    noise.truncate(bytes);
    noise
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Verdict;

    #[test]
    fn the_limit_of_open_files_is_read() {
        let of = |soft: &str| {
            let text = format!(
                "Limit Soft Hard Units\nMax processes 1 2 processes\n\
                 Max open files            {soft}                 1048576              files\n"
            );
            open_files_of(&text).map(|check| check.verdict)
        };
        assert_eq!(of("1048576"), Some(Verdict::Ok));
        assert_eq!(of("unlimited"), Some(Verdict::Ok));
        assert_eq!(of("1024"), Some(Verdict::Ok));
        assert_eq!(of("800"), Some(Verdict::Warning));
        assert_eq!(of("256"), Some(Verdict::Failed));
        assert_eq!(of("many"), None);
        assert_eq!(open_files_of(""), None);
    }

    #[test]
    fn a_disk_is_judged_and_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("not/there");
        let found = disk(&missing);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].to_string().contains("/s written and synced"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(disk(Path::new("/proc/self"))[0].verdict != Verdict::Ok);
    }

    #[test]
    fn widths_can_be_typed_as_they_are_told() {
        for (number, text) in [(999, "999"), (10_999, "10k"), (209_922_908, "209M")] {
            assert_eq!(wells(number), text);
            assert!(crate::run::parse_wells(text).unwrap() <= number);
        }
    }

    #[test]
    fn noise_is_as_long_as_wanted() {
        assert_eq!(noise(13).len(), 13);
        assert_ne!(noise(16)[..8], noise(16)[8..]);
    }
}
