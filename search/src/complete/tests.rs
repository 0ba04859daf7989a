//! Limits lower than a caller may set: so that a small tree needs many runs, passes and files.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use super::*;
use std::process::{Command, Stdio};

/// Solves 10 × 5 with so much in memory, and so much for a thread to merge in.
fn solved(
    threads: usize,
    held: u64,
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
        store: Store::new(scratch, held),
        buffer_bytes,
    };
    search.run::<u64>(&mut |_, _| {})
}

#[test]
fn what_is_put_into_files_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let expected = solved(2, u64::MAX, 1 << 30, folder.path()).unwrap();
    assert_eq!(expected.scratch_bytes, 0);
    // A buffer of 16 KiB holds a thousand wells, of a level of up to 174,585.
    for (threads, held, buffer_bytes) in [
        (1, 0, 16 << 10),
        (3, 0, 16 << 10),
        (2, 0, 1 << 30),
        (2, 200_000, 16 << 10),
        (2, u64::MAX, 16 << 10),
    ] {
        let solution = solved(threads, held, buffer_bytes, folder.path()).unwrap();
        assert_eq!(solution.scratch_bytes > 0, held < u64::MAX);
        // The runs of one level only: those of all would come to more.
        assert!(solution.scratch_bytes < 2 * solution.bytes);
        let bytes = (expected.bytes, expected.scratch_bytes);
        let alike = Solution {
            bytes: bytes.0,
            scratch_bytes: bytes.1,
            ..solution
        };
        assert_eq!(alike, expected, "{threads} {held} {buffer_bytes}");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0);
}

/// A small disk of its own.
struct SmallDisk<'a>(&'a Path);

impl SmallDisk<'_> {
    /// `None` where nobody may make one.
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
fn a_full_disk_is_told_with_what_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path()) else {
        eprintln!("skipped: nobody may mount a small disk here");
        return;
    };
    let error = solved(2, 0, 1 << 20, folder.path()).unwrap_err();
    let SolveError::Full { bytes, .. } = error else {
        panic!("{error}");
    };
    // The disk counts by pages, so that it is full a little earlier.
    assert!(bytes > 400_000, "{bytes}");
    let text = error.to_string();
    assert!(text.contains(&*folder.path().to_string_lossy()), "{text}");
}
