//! Tests with lower limits than a caller can set, so that a small tree needs many runs, passes and
//! files.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use super::*;
use std::process::{Command, Stdio};

/// Searches the game tree of a 10 × 5 well. Sections in memory take at most `memory` bytes, and each
/// thread's buffers take `buffer_bytes`.
fn solved(
    threads: usize,
    memory: u64,
    buffer_bytes: u64,
    scratch: &Path,
) -> Result<Solution, SolveError> {
    let game = GameTree {
        geometry: Geometry::new(10, 5).unwrap(),
        rules: Rules::default(),
        enemy: Enemy::Hatetris,
    };
    let search = Search {
        game,
        emulator: Emulator::new(game.geometry, game.rules),
        threads,
        scratch,
        cancel: &AtomicBool::new(false),
        progress: &Progress::default(),
        store: ScratchStore::new(scratch, memory),
        buffer_bytes,
    };
    search.run::<u64>(&mut |_, _| {})
}

#[test]
fn solution_does_not_depend_on_scratch_files() {
    let folder = tempfile::tempdir().unwrap();
    let expected = solved(2, u64::MAX, 1 << 30, folder.path()).unwrap();
    assert_eq!(expected.scratch_bytes, 0);
    // With 16 KiB, a buffer has room for about a thousand wells. A level has up to 174,585 wells.
    for (threads, memory, buffer_bytes) in [
        (1, 0, 16 << 10),
        (3, 0, 16 << 10),
        (2, 0, 1 << 30),
        (2, 200_000, 16 << 10),
        (2, u64::MAX, 16 << 10),
    ] {
        let solution = solved(threads, memory, buffer_bytes, folder.path()).unwrap();
        assert_eq!(solution.scratch_bytes > 0, memory < u64::MAX);
        // The runs of a level are freed after they are merged. Without this, the runs of all levels
        // would exceed the limit below.
        assert!(solution.scratch_bytes < 2 * solution.bytes);
        let comparable = Solution {
            bytes: expected.bytes,
            scratch_bytes: expected.scratch_bytes,
            ..solution
        };
        assert_eq!(comparable, expected, "{threads} {memory} {buffer_bytes}");
    }
    let remaining = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(remaining, 0);
}

/// A small file system mounted on a folder.
struct SmallDisk<'a>(&'a Path);

impl SmallDisk<'_> {
    /// Mounts the file system. Returns `None` if this process may not mount file systems.
    fn mount(folder: &Path) -> Option<SmallDisk<'_>> {
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"])
            .arg(folder)
            .stderr(Stdio::null())
            .status();
        status
            .is_ok_and(|status| status.success())
            .then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn full_disk_error_reports_folder_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path()) else {
        eprintln!("skipped: this process may not mount a file system");
        return;
    };
    let error = solved(2, 0, 1 << 20, folder.path()).unwrap_err();
    let SolveError::Full { bytes, .. } = error else {
        panic!("{error}");
    };
    // The file system allocates whole pages, so it is full before it contains 512 KiB of data.
    assert!(bytes > 400_000, "{bytes}");
    let text = error.to_string();
    assert!(text.contains(&*folder.path().to_string_lossy()), "{text}");
}
