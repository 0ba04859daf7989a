//! Tests of runs on one machine. Threads, interruptions and damage do not change the digest of any depth.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::{Children, Encoding, Enemy, Geometry, Rules, Well, decode, encode, play};
use hatebeam_runs::{
    EndReason, GameError, GroupLimits, Limits, Observer, ReadableRun, Retention, Run, RunError,
    RunHead, RunSpec, SearchEnd, Settings, SpecError, Start, best_game, game_to, result_of,
};
use hatebeam_search::{
    EvaluatorKind, EvaluatorSpec, FEATURES, Network, NetworkWeights, Quiescence,
};
use hatebeam_store::{DepthRecord, RunStore, StoreError};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

fn spec(width: u64) -> RunSpec {
    RunSpec::new(
        width,
        EvaluatorSpec::new(EvaluatorKind::Knewjade, Quiescence::Off),
    )
}

/// Records the committed and the damaged depths. Cancels the search after `stop_after` committed depths.
#[derive(Default)]
struct Notes {
    committed: Vec<u32>,
    damaged: Vec<u32>,
    stop_after: Option<usize>,
    cancel: Arc<AtomicBool>,
}

impl Notes {
    fn stopping_after(depths: usize) -> Notes {
        Notes {
            stop_after: Some(depths),
            ..Notes::default()
        }
    }
}

impl Observer for Notes {
    fn committed(&mut self, record: &DepthRecord) {
        self.committed.push(record.depth);
        if Some(self.committed.len()) == self.stop_after {
            self.cancel.store(true, Ordering::Relaxed);
        }
    }

    fn damaged(&mut self, depth: u32, _: &StoreError) {
        self.damaged.push(depth);
    }
}

/// Returns settings with which each depth is committed on its own.
fn settings(threads: usize) -> Settings {
    Settings {
        threads,
        limits: Limits::default(),
        group: GroupLimits {
            depths: 1,
            ..GroupLimits::default()
        },
    }
}

fn up_to(max_depth: u32, settings: Settings) -> Settings {
    Settings {
        limits: Limits {
            max_depth: Some(max_depth),
            ..Limits::default()
        },
        ..settings
    }
}

fn search(run: Run, settings: &Settings, notes: &mut Notes) -> (Run, EndReason) {
    let cancel = Arc::clone(&notes.cancel);
    run.search(settings, &cancel, notes).unwrap()
}

/// Searches a run to its end.
fn to_end(dir: &Path, spec: &RunSpec, keep: Retention, threads: usize) -> Run {
    let run = Run::open_or_create(dir, spec, Some(keep)).unwrap();
    let (run, end) = search(run, &settings(threads), &mut Notes::default());
    assert_eq!(end, EndReason::Over);
    run
}

fn digests(run: &Run) -> Vec<String> {
    let digest = |record: &DepthRecord| record.digest.clone();
    run.store().depths().iter().map(digest).collect()
}

fn tables(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir.join("db"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sst"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn digests_do_not_depend_on_threads_or_retention() {
    let folder = tempfile::tempdir().unwrap();
    let reference = to_end(&folder.path().join("1"), &spec(600), Retention::All, 1);
    let game = best_game(&reference).unwrap();
    assert!(game.score > 5, "{}", game.score);
    let record = play(
        Geometry::STANDARD,
        Rules::default(),
        Enemy::Hatetris,
        &game.keys,
    );
    assert!(record.is_finished());
    assert_eq!(record.score, game.score);
    for (name, keep, threads) in [
        ("2", Retention::All, 2),
        ("8", Retention::All, 8),
        ("every 2nd", Retention::Every(2), 2),
        ("every 5th", Retention::Every(5), 2),
        ("last", Retention::Last, 2),
    ] {
        let dir = folder.path().join(name);
        let run = to_end(&dir, &spec(600), keep, threads);
        assert_eq!(digests(&run), digests(&reference), "{name}");
        let depths = run.store().depths();
        let kept = depths.iter().filter(|record| record.kept).count();
        match keep {
            Retention::All => assert_eq!(kept, depths.len()),
            Retention::Every(every) => assert!(kept <= depths.len() / every as usize + 3),
            Retention::Last => assert_eq!(kept, 1),
        }
        if keep == Retention::Last {
            let error = best_game(&run).unwrap_err();
            assert!(
                matches!(error, GameError::Store(StoreError::Dropped { .. })),
                "{error}"
            );
        } else {
            assert_eq!(best_game(&run).unwrap().score, game.score, "{name}");
        }
        drop(run);
        assert_eq!(Run::open(&dir, None).unwrap().keep(), keep);
    }
}

#[test]
fn interruptions_do_not_change_digests() {
    let folder = tempfile::tempdir().unwrap();
    let reference = to_end(&folder.path().join("whole"), &spec(600), Retention::All, 2);
    let dir = folder.path().join("parts");
    let mut interruptions = 0;
    loop {
        let run = Run::open_or_create(&dir, &spec(600), None).unwrap();
        let (run, end) = search(run, &settings(2), &mut Notes::stopping_after(7));
        if end == EndReason::Over {
            assert_eq!(digests(&run), digests(&reference));
            break;
        }
        assert_eq!(end, EndReason::Interrupted);
        interruptions += 1;
    }
    assert!(interruptions > 4, "{interruptions}");
}

#[test]
fn run_that_stopped_at_depth_limit_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let reference = to_end(&folder.path().join("whole"), &spec(200), Retention::All, 2);
    let dir = folder.path().join("parts");
    for (max_depth, last) in [(0, 0), (10, 10), (10, 10), (5, 10)] {
        let run = Run::open_or_create(&dir, &spec(200), None).unwrap();
        let limited = up_to(max_depth, settings(2));
        let (run, end) = search(run, &limited, &mut Notes::default());
        assert_eq!(end, EndReason::MaxDepth);
        assert_eq!(run.store().depths().last().unwrap().depth, last);
        // Reading back continues the game to its end, which may clear a few more rows.
        assert!(best_game(&run).unwrap().score <= 2);
    }
    let run = to_end(&dir, &spec(200), Retention::All, 2);
    assert_eq!(digests(&run), digests(&reference));
}

#[test]
fn run_that_stopped_at_time_limit_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let reference = to_end(&folder.path().join("whole"), &spec(200), Retention::All, 2);
    let dir = folder.path().join("parts");
    let mut before = 0;
    for max_seconds in [0.0, 0.001, 0.001, 0.0] {
        let run = Run::open_or_create(&dir, &spec(200), None).unwrap();
        let limited = Settings {
            limits: Limits {
                max_time: Some(Duration::from_secs_f64(max_seconds)),
                ..Limits::default()
            },
            ..settings(2)
        };
        let (run, end) = search(run, &limited, &mut Notes::default());
        assert_eq!(end, EndReason::MaxHours);
        let depths = run.store().depths();
        // The first depth needs no search, so it exists in every run.
        assert!(depths.len() >= before.max(1), "{max_seconds}");
        if max_seconds == 0.0 {
            assert!(depths.len() <= before + 2);
        }
        before = depths.len();
        best_game(&run).unwrap();
    }
    let run = to_end(&dir, &spec(200), Retention::All, 2);
    assert!(run.store().depths().len() > before);
    assert_eq!(digests(&run), digests(&reference));
}

#[test]
fn result_is_valid_until_the_search_continues() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::open_or_create(folder.path(), &spec(200), None).unwrap();
    let (mut run, end) = search(run, &up_to(5, settings(2)), &mut Notes::default());
    let result = run.summarize("run", end, None, None).unwrap();
    run.set_result(&result).unwrap();
    assert_eq!(result_of(run.store()), Some(result.clone()));
    let (run, end) = search(run, &settings(2), &mut Notes::stopping_after(3));
    assert_eq!(end, EndReason::Interrupted);
    assert_eq!(run.lost(), None);
    drop(run);
    let run = Run::open_read_only(folder.path()).unwrap();
    assert!(run.store().result().is_some());
    assert_eq!(result_of(run.store()), None);
}

#[test]
fn search_recomputes_damaged_last_depths() {
    let folder = tempfile::tempdir().unwrap();
    let reference = to_end(&folder.path().join("whole"), &spec(300), Retention::All, 2);
    let dir = folder.path().join("damaged");
    // Damage the last depth, the last three depths, and all depths.
    for count in [1, 3, usize::MAX] {
        let run = Run::open_or_create(&dir, &spec(300), None).unwrap();
        let (run, end) = search(run, &settings(2), &mut Notes::stopping_after(12));
        assert_eq!(end, EndReason::Interrupted);
        let last = run.store().depths().last().unwrap().depth;
        drop(run);
        for path in tables(&dir).iter().rev().take(count) {
            let mut bytes = fs::read(path).unwrap();
            bytes[30] ^= 0x40;
            fs::write(path, bytes).unwrap();
        }
        let run = Run::open_or_create(&dir, &spec(300), None).unwrap();
        let mut notes = Notes::stopping_after(3);
        let (run, _) = search(run, &settings(2), &mut notes);
        let expected: Vec<u32> = (0..=last).rev().take(count).collect();
        assert_eq!(notes.damaged, expected);
        let found = digests(&run);
        assert_eq!(found, digests(&reference)[..found.len()]);
    }
    let run = to_end(&dir, &spec(300), Retention::All, 2);
    assert_eq!(digests(&run), digests(&reference));
    assert_eq!(best_game(&run).unwrap(), best_game(&reference).unwrap());
}

#[test]
fn search_deletes_no_tables_that_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let run = Run::open_or_create(&dir, &spec(300), None).unwrap();
    let (run, _) = search(run, &settings(2), &mut Notes::stopping_after(12));
    let expected = digests(&run);
    drop(run);
    let last = tables(&dir).pop().unwrap();
    let whole = fs::read(&last).unwrap();
    // Opening a symbolic link to itself fails, but not because the file is missing or damaged.
    fs::remove_file(&last).unwrap();
    std::os::unix::fs::symlink(&last, &last).unwrap();
    let mut notes = Notes::default();
    let run = Run::open(&dir, None).unwrap();
    let searched = run.search(&settings(2), &AtomicBool::new(false), &mut notes);
    let error = searched.unwrap_err();
    assert!(
        matches!(error, RunError::Store(StoreError::Io { .. })),
        "{error}"
    );
    assert_eq!(notes.damaged, [0; 0]);
    fs::remove_file(&last).unwrap();
    fs::write(&last, whole).unwrap();
    let run = Run::open(&dir, None).unwrap();
    assert_eq!(digests(&run), expected);
    assert!(run.store().verify().is_empty());
    assert!(run.store().depths().iter().all(|record| record.kept));
}

/// Searches a run to its end and commits up to `depths` depths together.
fn to_end_in_groups(dir: &Path, keep: Retention, depths: usize) -> Run {
    let run = Run::open_or_create(dir, &spec(300), Some(keep)).unwrap();
    let (run, end) = search(run, &in_groups(depths), &mut Notes::default());
    assert_eq!(end, EndReason::Over);
    run
}

fn in_groups(depths: usize) -> Settings {
    Settings {
        group: GroupLimits {
            time: Duration::MAX,
            depths,
            bytes: usize::MAX,
        },
        ..settings(2)
    }
}

#[test]
fn group_limits_change_only_times_and_sizes_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    for keep in [Retention::All, Retention::Every(3), Retention::Last] {
        let path = |name: &str| folder.path().join(format!("{keep}-{name}"));
        let single = to_end_in_groups(&path("single"), keep, 1);
        for depths in [2, 7, 64, 100_000] {
            let dir = path(&depths.to_string());
            drop(to_end_in_groups(&dir, keep, depths));
            let grouped = Run::open(&dir, None).unwrap();
            assert!(grouped.store().verify().is_empty());
            let pairs = grouped.store().depths().iter().zip(single.store().depths());
            for (record, of_single) in pairs {
                let expected = DepthRecord {
                    seconds: record.seconds,
                    bytes: record.bytes,
                    ..of_single.clone()
                };
                assert_eq!(*record, expected);
                assert_eq!(record.bytes > 0, record.kept);
                if record.kept {
                    let nodes = grouped.store().load(record.depth).unwrap();
                    assert_eq!(nodes, single.store().load(record.depth).unwrap());
                }
            }
            assert_eq!(digests(&grouped), digests(&single));
            if keep != Retention::Last {
                assert_eq!(best_game(&grouped).unwrap(), best_game(&single).unwrap());
            }
            let groups = digests(&grouped).len() / depths + 1;
            assert!(tables(&dir).len() <= 2 * groups + 1, "{:?}", tables(&dir));
        }
    }
}

#[test]
fn interrupted_search_commits_its_group() {
    /// Cancels the search after some depths have begun.
    struct Stop {
        left: u32,
        cancel: Arc<AtomicBool>,
        committed: Vec<u32>,
    }
    impl Observer for Stop {
        fn begun(&mut self, _: u32, _: u64, _: &Arc<AtomicU64>) {
            self.left -= 1;
            self.cancel.store(self.left == 0, Ordering::Relaxed);
        }
        fn committed(&mut self, record: &DepthRecord) {
            self.committed.push(record.depth);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let reference = to_end(&folder.path().join("whole"), &spec(300), Retention::All, 2);
    let dir = folder.path().join("parts");
    let mut next = 1;
    for depths in [3, 8, 1000] {
        let run = Run::open_or_create(&dir, &spec(300), None).unwrap();
        let cancel = Arc::new(AtomicBool::new(false));
        let mut stop = Stop {
            left: 13,
            cancel: Arc::clone(&cancel),
            committed: Vec::new(),
        };
        let (run, end) = run.search(&in_groups(depths), &cancel, &mut stop).unwrap();
        assert_eq!(end, EndReason::Interrupted);
        // The depth that began last is not complete. All others are committed and reported, in order.
        assert_eq!(stop.committed, Vec::from_iter(next..next + 12));
        next += 12;
        assert_eq!(run.store().depths().last().unwrap().depth, next - 1);
        let found = digests(&run);
        assert_eq!(found, digests(&reference)[..found.len()]);
    }
}

#[test]
fn damaged_groups_are_repaired_or_searched_again() {
    let folder = tempfile::tempdir().unwrap();
    for keep in [Retention::All, Retention::Every(3)] {
        let dir = folder.path().join(keep.to_string());
        let whole = to_end_in_groups(&dir, keep, 12);
        let (expected, game) = (digests(&whole), best_game(&whole).unwrap());
        drop(whole);
        // Depths 1 to 11 share a table, and depth 12 has its own table. The same applies to depths 13 to 23 and depth 24.
        for damaged in [&[9][..], &[3, 12], &[15], &[6, 18, 24]] {
            damage(&dir, damaged);
            let mut run = Run::open(&dir, None).unwrap();
            let found: Vec<u32> = run.store().verify().iter().map(|(at, _)| *at).collect();
            let tables = |depth: u32| run.store().tables(depth).unwrap();
            assert!(!found.is_empty());
            for depth in found {
                let shares = |other: &u32| tables(*other) == tables(depth);
                assert!(damaged.iter().any(shares), "{depth}");
            }
            run.repair(2, &AtomicBool::new(false)).unwrap();
            assert!(run.store().verify().is_empty());
            assert_eq!(digests(&run), expected);
            assert_eq!(best_game(&run).unwrap(), game);
            drop(run);
            assert!(Run::open(&dir, None).unwrap().store().verify().is_empty());
        }
    }
    // If the last group is damaged, the search continues after the group before it.
    let dir = folder.path().join("last");
    let run = Run::open_or_create(&dir, &spec(300), None).unwrap();
    let (run, _) = search(run, &up_to(30, in_groups(12)), &mut Notes::default());
    drop(run);
    damage(&dir, &[27, 30]);
    let run = Run::open(&dir, None).unwrap();
    let mut notes = Notes::default();
    let (mut run, _) = search(run, &up_to(40, in_groups(12)), &mut notes);
    assert_eq!(notes.damaged[0], 30);
    // Depths before the depth from which the search continued may still be damaged.
    run.repair(2, &AtomicBool::new(false)).unwrap();
    assert!(run.store().verify().is_empty());
    let whole = Run::open(&folder.path().join("all"), None).unwrap();
    assert_eq!(digests(&run), digests(&whole)[..41]);
}

/// Flips a bit in each table of the given depths.
fn damage(dir: &Path, depths: &[u32]) {
    let run = Run::open_read_only(dir).unwrap();
    let paths = depths
        .iter()
        .flat_map(|&depth| run.store().tables(depth).unwrap());
    for path in paths.collect::<Vec<_>>() {
        let mut bytes = fs::read(&path).unwrap();
        bytes[30] ^= 0x40;
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn damaged_depths_before_the_last_are_repaired() {
    let folder = tempfile::tempdir().unwrap();
    for (at, keep) in [Retention::All, Retention::Every(3)]
        .into_iter()
        .enumerate()
    {
        let dir = folder.path().join(at.to_string());
        let whole = to_end(&dir, &spec(300), keep, 2);
        let (expected, game) = (digests(&whole), best_game(&whole).unwrap());
        let stored: Vec<u64> = whole.store().depths().iter().map(|r| r.bytes).collect();
        drop(whole);
        for damaged in [&[9][..], &[9, 12], &[3, 6, 9, 12], &[0, 3]] {
            damage(&dir, damaged);
            let mut run = Run::open(&dir, None).unwrap();
            let found: Vec<u32> = run
                .store()
                .verify()
                .iter()
                .map(|(depth, _)| *depth)
                .collect();
            assert_eq!(found, damaged);
            // If the repair is cancelled immediately, only depth 0 is repaired, because it needs no search.
            let mut repaired = run.repair(2, &AtomicBool::new(true)).unwrap();
            assert_eq!(repaired, damaged[..usize::from(damaged[0] == 0)]);
            repaired.extend(run.repair(2, &AtomicBool::new(false)).unwrap());
            assert_eq!(repaired, damaged);
            assert!(run.store().verify().is_empty());
            assert_eq!(digests(&run), expected);
            let now: Vec<u64> = run.store().depths().iter().map(|r| r.bytes).collect();
            assert_eq!(now, stored);
            assert_eq!(best_game(&run).unwrap(), game);
        }
        let mut run = Run::open(&dir, None).unwrap();
        assert_eq!(run.repair(2, &AtomicBool::new(false)).unwrap(), [0; 0]);
    }
}

#[test]
fn repair_without_the_network_of_the_run_deletes_no_table() {
    let weights = NetworkWeights {
        lanes: 16,
        bias: vec![1; 16],
        output: vec![2; 16],
        rows: vec![3; 16 * FEATURES],
    };
    let register = || Network::register(Network::new("of a repaired run", &weights).unwrap());
    let registered = register();
    let kind = EvaluatorKind::Network(registered.digest());
    let spec = RunSpec::new(50, EvaluatorSpec::new(kind, Quiescence::Off));
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let run = Run::open_or_create(dir, &spec, None).unwrap();
    let (run, _) = search(run, &in_groups(12), &mut Notes::stopping_after(30));
    let expected = digests(&run);
    drop((run, registered));
    // Depths 1 to 11 share the damaged table.
    damage(dir, &[9]);
    let before = tables(dir);
    let head = RunHead::read(dir).unwrap();
    assert_eq!(head.spec, spec);
    let mut run = Run::open(dir, None).unwrap();
    let error = run.repair(1, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, RunError::Evaluator(_)), "{error}");
    assert!(run.store().depths().iter().all(|record| record.kept));
    assert_eq!(tables(dir), before);
    let _registered = register();
    run.repair(1, &AtomicBool::new(false)).unwrap();
    assert!(run.store().verify().is_empty());
    assert_eq!(digests(&run), expected);
}

/// Returns the parameters of the conclusion of a run that was searched to its end.
fn search_end<'a>(cancel: &'a AtomicBool, progress: &'a Arc<AtomicU32>) -> SearchEnd<'a> {
    SearchEnd {
        name: "run",
        end: EndReason::Over,
        now: SystemTime::UNIX_EPOCH,
        threads: 1,
        cancel,
        progress,
        peak_memory: None,
    }
}

#[test]
fn cancelled_repair_at_the_end_is_an_interruption_and_can_be_continued() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let whole = to_end(dir, &spec(50), Retention::All, 1);
    let expected = best_game(&whole).unwrap();
    drop(whole);
    damage(dir, &[9]);
    let progress = Arc::new(AtomicU32::new(0));
    let mut run = Run::open(dir, None).unwrap();
    let stopped = run
        .conclude(&search_end(&AtomicBool::new(true), &progress), &mut |_| {})
        .unwrap();
    assert_eq!(stopped.end, EndReason::Interrupted);
    assert_eq!(stopped.game, None);
    assert_eq!(run.missing().collect::<Vec<_>>(), [9]);
    drop(run);
    // The game could be read back across one depth without tables, but not to its start without the first depths.
    let mut store = RunStore::open(dir).unwrap();
    for depth in 0..9 {
        store.drop_tables(depth).unwrap();
    }
    drop(store);
    let mut run = Run::open(dir, None).unwrap();
    let mut warnings = Vec::new();
    let result = run
        .conclude(
            &search_end(&AtomicBool::new(false), &progress),
            &mut |warning| warnings.push(warning),
        )
        .unwrap();
    assert_eq!(result.end, EndReason::Over);
    assert_eq!(result.game.unwrap().lines, expected.score);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("tables are missing"), "{warnings:?}");
}

#[test]
fn conclusion_recomputes_no_depth_that_the_first_retention_rule_dropped() {
    let dir = tempfile::tempdir().unwrap();
    drop(to_end(dir.path(), &spec(50), Retention::Last, 1));
    let mut run = Run::open(dir.path(), Some(Retention::All)).unwrap();
    let progress = Arc::new(AtomicU32::new(0));
    let cancel = AtomicBool::new(false);
    let end = search_end(&cancel, &progress);
    let result = run.conclude(&end, &mut |_| {}).unwrap();
    assert_eq!((result.end, result.game), (EndReason::Over, None));
    assert_eq!(kept(&run).len(), 1);
}

/// Returns the depths that have tables.
fn kept(run: &Run) -> Vec<u32> {
    let kept = run.store().depths().iter().filter(|record| record.kept);
    kept.map(|record| record.depth).collect()
}

/// A kill leaves a number of whole lines of `depths.jsonl`.
#[test]
fn each_line_of_records_marks_only_depths_that_the_rule_keeps_and_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    for keep in [Retention::Every(3), Retention::Last] {
        for depths in [1, 7] {
            let dir = folder.path().join(format!("{keep}-{depths}"));
            drop(to_end_in_groups(&dir, keep, depths));
            let text = fs::read_to_string(dir.join("depths.jsonl")).unwrap();
            let (mut kept, mut last) = (BTreeSet::new(), 0);
            for line in text.lines() {
                let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
                let records = match line["record"].take() {
                    serde_json::Value::Null => line["records"].take(),
                    record => serde_json::Value::Array(vec![record]),
                };
                let records: Vec<DepthRecord> = serde_json::from_value(records).unwrap();
                for record in records {
                    last = last.max(record.depth);
                    if record.kept {
                        kept.insert(record.depth);
                    } else {
                        kept.remove(&record.depth);
                    }
                }
                let expected = (0..=last).filter(|&depth| depth == last || keep.keeps(depth, 0));
                let expected: BTreeSet<u32> = expected.collect();
                assert_eq!(kept, expected, "{}", dir.display());
            }
            assert!(last > 20, "{last}");
        }
    }
}

#[test]
fn opening_for_writing_removes_unfinished_files_of_games() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    drop(Run::open_or_create(dir, &spec(50), None).unwrap());
    let replays = dir.join("replays");
    fs::create_dir(&replays).unwrap();
    let [game, unfinished] = ["game.txt", ".hatebeam-1-0.tmp"].map(|name| replays.join(name));
    for file in [&game, &unfinished] {
        fs::write(file, "1").unwrap();
    }
    drop(Run::open_read_only(dir).unwrap());
    assert!(unfinished.exists());
    drop(Run::open(dir, None).unwrap());
    assert!(game.exists() && !unfinished.exists());
}

#[test]
fn new_retention_rule_applies_from_the_last_depth_and_to_later_searches() {
    let folder = tempfile::tempdir().unwrap();
    let reference = to_end(&folder.path().join("whole"), &spec(200), Retention::All, 2);
    let dir = folder.path().join("run");
    drop(Run::open_or_create(&dir, &spec(200), None).unwrap());
    for (keep, max_depth) in [(None, 10), (Some(Retention::Every(4)), 20)] {
        let run = Run::open(&dir, keep).unwrap();
        search(run, &up_to(max_depth, settings(2)), &mut Notes::default());
    }
    // Only a search stores the rule.
    let run = Run::open(&dir, Some(Retention::Last)).unwrap();
    assert_eq!(run.keep(), Retention::Last);
    drop(run);
    let run = Run::open_or_create(&dir, &spec(200), None).unwrap();
    assert_eq!(run.keep(), Retention::Every(4));
    let (mut run, _) = search(run, &up_to(30, settings(2)), &mut Notes::default());
    let expected: Vec<u32> = (0..10).chain([12, 16, 20, 24, 28, 30]).collect();
    assert_eq!(kept(&run), expected);
    let rules = [0, 9, 10, 30].map(|depth| run.keep_at(depth).to_string());
    assert_eq!(rules, ["all", "all", "4", "4"]);
    assert_eq!(run.missing().count(), 0);
    assert_eq!(run.repair(2, &AtomicBool::new(false)).unwrap(), [0; 0]);
    assert_eq!(kept(&run), expected);
    assert_eq!(run.spec(), &spec(200));
    drop(run);
    let run = Run::open(&dir, Some(Retention::All)).unwrap();
    let (run, end) = search(run, &settings(2), &mut Notes::default());
    assert_eq!(end, EndReason::Over);
    assert_eq!(run.missing().count(), 0);
    assert!(kept(&run).starts_with(&[&expected[..], &[31, 32, 33]].concat()));
    assert_eq!(digests(&run), digests(&reference));
    assert_eq!(
        best_game(&run).unwrap().score,
        best_game(&reference).unwrap().score
    );
}

#[test]
fn repair_recomputes_the_depths_that_the_rule_of_their_time_keeps() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    drop(Run::open_or_create(dir, &spec(200), None).unwrap());
    for (keep, max_depth) in [(Retention::All, 24), (Retention::Last, 40)] {
        let run = Run::open(dir, Some(keep)).unwrap();
        search(run, &up_to(max_depth, in_groups(12)), &mut Notes::default());
    }
    let expected: Vec<u32> = (0..24).chain([40]).collect();
    // Depths 1 to 11 share a table, and are dropped together.
    damage(dir, &[9]);
    let mut run = Run::open(dir, None).unwrap();
    assert_eq!(kept(&run), expected);
    let repaired = run.repair(2, &AtomicBool::new(false)).unwrap();
    assert_eq!(repaired, Vec::from_iter(1..12));
    assert_eq!(kept(&run), expected);
    assert!(run.store().verify().is_empty());
}

#[test]
fn rule_applies_again_to_depths_that_a_search_repeats() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    drop(Run::open_or_create(dir, &spec(200), Some(Retention::Last)).unwrap());
    for (keep, max_depth) in [(Retention::All, 10), (Retention::Last, 20)] {
        let run = Run::open(dir, Some(keep)).unwrap();
        search(run, &up_to(max_depth, settings(2)), &mut Notes::default());
    }
    // The last depth is damaged, so the search continues from depth 9, the last one that was kept.
    damage(dir, &[20]);
    let run = Run::open(dir, Some(Retention::All)).unwrap();
    let (run, _) = search(run, &up_to(20, settings(2)), &mut Notes::default());
    assert_eq!(kept(&run), Vec::from_iter(0..=20));
    assert_eq!(run.keep_at(20), Retention::All);
    assert_eq!(run.missing().count(), 0);
}

#[test]
fn conclusion_counts_down_the_depths_that_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = to_end(folder.path(), &spec(50), Retention::All, 1);
    let progress = Arc::new(AtomicU32::new(0));
    let cancel = AtomicBool::new(false);
    run.conclude(&search_end(&cancel, &progress), &mut |_| {})
        .unwrap();
    assert_eq!(progress.load(Ordering::Relaxed), 1);
}

#[test]
fn run_can_start_from_replay_or_well() {
    let text = include_str!("../../examples/games/david-and-felipe-148.txt");
    let (keys, _) = decode(text).unwrap();
    let played = |keys| play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, keys);
    let piece = 371;
    let turn = played(&keys).turns[piece - 1];
    let folder = tempfile::tempdir().unwrap();

    let mut from_replay = spec(500);
    from_replay.start = Start::Replay {
        base2048: encode(&keys, Encoding::Base2048),
        piece: piece as u32,
    };
    let run = to_end(
        &folder.path().join("replay"),
        &from_replay,
        Retention::All,
        2,
    );
    assert_eq!(run.store().depths()[0].depth, piece as u32 - 1);
    let game = best_game(&run).unwrap();
    assert!(game.score >= turn.score);
    assert_eq!(game.wells[piece - 1], turn.well);
    // The game starts with the empty well, and the exact rules accept all of it.
    let record = played(&game.keys);
    assert!(record.is_finished());
    assert_eq!(record.score, game.score);

    let mut from_well = spec(500);
    from_well.start = Start::Well {
        hex: turn.well.to_hex(Geometry::STANDARD),
    };
    let run = to_end(&folder.path().join("well"), &from_well, Retention::All, 2);
    let of_well = best_game(&run).unwrap();
    assert_eq!(of_well.score + turn.score, game.score);
    assert_eq!(of_well.wells[0], turn.well);

    from_replay.start = Start::Replay {
        base2048: encode(&keys, Encoding::Base2048),
        piece: 100_000,
    };
    let error = from_replay.check().unwrap_err();
    assert!(matches!(error, SpecError::NoPiece { .. }), "{error}");
    from_well.start = Start::Well { hex: "fff".into() };
    assert!(matches!(from_well.check(), Err(SpecError::Well(_))));
}

#[test]
fn sampled_wells_of_all_kept_depths_can_be_read_back() {
    let folder = tempfile::tempdir().unwrap();
    for keep in [Retention::All, Retention::Every(4)] {
        let dir = folder.path().join(keep.to_string());
        let run = to_end(&dir, &spec(200), keep, 2);
        let mut children = Children::new();
        let mut read = 0;
        for record in run.store().depths().iter().filter(|record| record.kept) {
            for node in run.store().load(record.depth).unwrap().iter().step_by(67) {
                let well = node.well.unpack(Geometry::STANDARD).unwrap();
                let game = game_to(&run, record.depth, &well).unwrap();
                assert_eq!(game.wells.len(), record.depth as usize + 1);
                assert_eq!(game.score, u32::from(node.lines));
                assert_eq!(game.wells[0], Well::EMPTY);
                for pair in game.wells.windows(2) {
                    run.emulator().expand(&pair[0], &mut children);
                    assert!(children.wells().contains(&pair[1]));
                }
                read += 1;
            }
        }
        assert!(read > 30, "{read}");
    }
}

#[test]
fn run_can_be_opened_for_writing_only_once_and_with_its_own_specification() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let run = Run::open_or_create(&dir, &spec(100), None).unwrap();
    let error = Run::open_or_create(&dir, &spec(100), None).unwrap_err();
    assert!(
        matches!(error, RunError::Store(StoreError::InUse { .. })),
        "{error}"
    );
    Run::open_read_only(&dir).unwrap();
    drop(run);
    let error = Run::open_or_create(&dir, &spec(101), None).unwrap_err();
    assert!(matches!(error, RunError::OtherSpec { .. }), "{error}");
    // Weights with many decimal places are stored without loss.
    let mut odd = spec(100);
    odd.evaluator.weights.holes = 0.1 + 0.2;
    odd.evaluator.weights.score = -1.0 / 3.0;
    let dir = folder.path().join("odd");
    for _ in 0..2 {
        Run::open_or_create(&dir, &odd, None).unwrap();
    }
    assert_ne!(odd.name(), spec(100).name());
}

#[test]
fn error_for_invalid_specification_names_the_problem() {
    let refused = |change: fn(&mut RunSpec)| {
        let mut spec = spec(100);
        change(&mut spec);
        spec.check().unwrap_err().to_string()
    };
    assert!(refused(|spec| spec.width = 0).contains("width"));
    assert!(refused(|spec| spec.width = u64::MAX).contains("width"));
    assert!(refused(|spec| spec.well.columns = 3).contains('3'));
    assert!(refused(|spec| spec.well.columns = 16).contains("160 cells"));
    assert!(refused(|spec| spec.evaluator.weights.holes = f64::NAN).contains("holes"));
    assert!(refused(|spec| spec.evaluator.weights.score = 1e300).contains("score"));
}
