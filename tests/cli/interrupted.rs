//! Tests of runs that are killed, stopped by a signal, or run out of disk space, and are then resumed.

use crate::state::{Search, State};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Starts or resumes a search and kills it after a random delay, until it has been killed `kills` times. Then completes
/// the search, and asserts that its result is equal to the result of an uninterrupted search.
#[track_caller]
fn assert_same_after_kills(name: &str, width: &str, kills: u32) {
    let seed = time_ns();
    eprintln!("seed {seed}");
    let state = State::new(name);
    let undisturbed = State::new(&format!("{name}-undisturbed"));
    let reference = undisturbed.search(&["--width", width]);
    let name = reference.name();
    let digests = undisturbed.digests(name);
    let seconds = reference.summary["seconds"].as_f64().unwrap();
    let mut random = seed;
    let mut killed = 0;
    let mut attempts = 0;
    while killed < kills {
        attempts += 1;
        assert!(
            attempts <= 20 * kills,
            "the search ended before the kill in too many attempts"
        );
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let fraction = (random >> 40) as f64 / (1u64 << 24) as f64;
        let running = state.start(&["--width", width]);
        sleep(Duration::from_secs_f64(seconds * fraction * 0.7));
        running.signal("-KILL");
        let (code, _) = running.wait();
        if code.is_none() {
            killed += 1;
        } else {
            // The search ended before the kill. Deletes the run, so that the next attempt starts again with the
            // first piece.
            assert_eq!(state.digests(name), digests);
            fs::remove_dir_all(state.path()).unwrap();
        }
    }
    let resumed = state.search(&["--width", width]);
    assert_eq!(state.digests(name), digests);
    for key in ["replay", "children"] {
        assert_eq!(resumed.summary[key], reference.summary[key], "{key}");
    }
    for state in [state, undisturbed] {
        fs::remove_dir_all(state.path()).unwrap();
    }
}

fn time_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_nanos() as u64
}

#[test]
fn resume_after_kills_gives_same_digests() {
    assert_same_after_kills("killed", "2000", 4);
}

#[test]
#[ignore = "takes minutes"]
fn resume_after_sixty_kills_gives_same_digests() {
    for width in ["700", "3000", "8000", "20k"] {
        assert_same_after_kills(&format!("killed-{width}"), width, 15);
    }
}

/// A run commits several depths together as a group: one line of the file `depths.jsonl`.
#[test]
fn killed_run_keeps_valid_depths_in_groups() {
    let width = ["--width", "10k", "--name", "groups", "--max-depth", "120"];
    let undisturbed = State::new("groups-undisturbed");
    undisturbed.search(&width);
    let digests = undisturbed.digests("groups");
    let state = State::new("groups");
    let mut lines = 0;
    for wait_ms in [0, 150, 400] {
        let before = state.committed("groups");
        let running = state.start(&width);
        state.wait_for_depths("groups", before.max(1) + 1);
        // Gives the search time to begin the next group.
        sleep(Duration::from_millis(wait_ms));
        running.signal("-KILL");
        if running.wait().0.is_some() {
            // The search ended before the kill.
            break;
        }
        let found = state.digests("groups");
        assert!(found.len() > before);
        assert_eq!(found, digests[..found.len()]);
        let path = state.path().join("runs/groups/depths.jsonl");
        let text = fs::read_to_string(path).unwrap();
        lines = text.lines().count();
        assert!(
            lines < found.len() / 2,
            "{lines} groups of {} depths",
            found.len()
        );
    }
    assert!(lines > 1, "the search ended before each kill");
    state.search(&width);
    assert_eq!(state.digests("groups"), digests);
}

#[test]
fn run_stopped_by_signal_prints_resume_command_and_can_be_resumed() {
    let state = State::new("signal");
    for signal in ["-INT", "-TERM"] {
        let before = state.committed("long");
        let running = state.start(&["--width", "100k", "--name", "long"]);
        state.wait_for_depths("long", before + 5);
        let begin = Instant::now();
        running.signal(signal);
        let (code, err) = running.wait();
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert_eq!(code, Some(130));
        let resume = format!("hatebeam resume long --state {}\n", state.path().display());
        assert!(err.contains(&resume), "{err}");
    }
    state.digests("long");
    let other = ["run", "--width", "99", "--name", "long"];
    let error = state.run(&other).error(1);
    let selecting = format!("long --state {}", state.path().display());
    assert_eq!(
        error,
        format!(
            "run long has width 100000, not 99: pass another --name, or remove it with `hatebeam runs rm {selecting}`"
        )
    );
    let depth = (state.committed("long") + 1).to_string();
    let resume = ["resume", "long", "--max-depth", &depth, "--json", "-q"];
    let resumed = Search::parse(state.run(&resume));
    assert_eq!(resumed.depths.len(), 2);
    assert_eq!(resumed.summary["end"], "max-depth");
}

/// A mounted file system with a limited size, which is unmounted on drop.
struct SmallDisk<'a>(&'a Path);

impl SmallDisk<'_> {
    /// Mounts a file system. If this fails, for example because the user lacks the permission, prints a note and
    /// returns `None`.
    fn new<'a>(path: &'a Path, size: &str) -> Option<SmallDisk<'a>> {
        fs::create_dir_all(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]);
        let status = mount.arg(path).stderr(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            println!("skipped: cannot mount a file system");
            return None;
        }
        Some(SmallDisk(path))
    }

    fn grow(&self, size: &str) {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,size={size}")]);
        assert!(mount.arg(self.0).status().unwrap().success());
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn run_resumes_after_full_disk() {
    let state = State::new("full-disk");
    let Some(disk) = SmallDisk::new(state.path(), "12m") else {
        return;
    };
    let search = ["--width", "30k", "--max-depth", "70"];
    // The estimated size of the run exceeds the free space.
    let error = state.run(&[&["run", "-q"], &search[..]].concat()).error(1);
    for word in ["free", "--keep"] {
        assert!(error.contains(word), "{error}");
    }
    let wide = ["run", "-q", "--name", "wide", "--ignore-limits"];
    for _ in 0..2 {
        let stopped = state.run(&[&wide[..], &search].concat());
        let error = stopped.error(1);
        // The reason precedes the remedy.
        let (_, rest) = error.split_once("no space is left").unwrap();
        assert!(rest.contains("hatebeam resume wide"), "{error}");
        assert!(state.digests("wide").len() > 10);
    }
    disk.grow("100m");
    let undisturbed = State::new("full-disk-undisturbed");
    let reference = undisturbed.search(&search);
    let resume = ["resume", "wide", "--json", "-q", "--max-depth", "70"];
    let resumed = Search::parse(state.run(&resume));
    assert_eq!(resumed.summary["replay"], reference.summary["replay"]);
    assert_eq!(state.digests("wide"), undisturbed.digests(reference.name()));
}
