//! Tests of run stores: commits, lookups, crashes and damaged files.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_files::write_whole;
use hatebeam_game::{Backward, Children, Emulator, Geometry, Rules, Well};
use hatebeam_search::{
    Digest, EvaluatorKind, EvaluatorSpec, Frontier, Node, NodeWell, Quiescence, ShardLayout, Step,
};
use hatebeam_store::{
    ColumnFamilies, DepthRecord, Lookup, NewDepth, PathSearch, RunStore, ShardTables, StoreError,
    list_runs,
};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

fn frontiers(geometry: Geometry, width: usize, depths: u32) -> Vec<Frontier> {
    let emulator = Emulator::new(geometry, Rules::default());
    let spec = EvaluatorSpec::new(EvaluatorKind::Knewjade, Quiescence::Off);
    let step = Step::new(&emulator, spec, ShardLayout::local(width), 2).unwrap();
    let root = Node::first(geometry, &Well::EMPTY, 0);
    let mut all = vec![Frontier::new(0, [root], ShardLayout::local(width))];
    for _ in 0..depths {
        let (cancel, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let (next, _) = step.run(all.last().unwrap(), &cancel, &progress).unwrap();
        if next.is_empty() {
            break;
        }
        all.push(next);
    }
    all
}

fn record(geometry: Geometry, frontier: &Frontier) -> DepthRecord {
    let best = frontier.nodes().max_by_key(|node| node.lines).unwrap();
    DepthRecord {
        depth: frontier.depth,
        count: frontier.len() as u64,
        digest: frontier.digest().to_string(),
        best_eval: 0,
        median_eval: 0,
        worst_eval: 0,
        best_lines: best.lines,
        best_well: best.well.unpack(geometry).unwrap().to_hex(geometry),
        children: 7,
        seconds: 0.5,
        bytes: 0,
        kept: false,
        changed: Vec::new(),
    }
}

fn shards(frontier: &Frontier) -> Vec<&[Node]> {
    frontier.shards.iter().map(Vec::as_slice).collect()
}

fn commit(store: &mut RunStore, frontier: &Frontier) -> Result<(), StoreError> {
    let record = record(store.geometry(), frontier);
    store.commit(record, &shards(frontier), 2)
}

fn filled(dir: &Path, geometry: Geometry, frontiers: &[Frontier]) -> RunStore {
    let mut store = RunStore::create(dir, geometry, &json!({"of": "a test"})).unwrap();
    for frontier in frontiers {
        commit(&mut store, frontier).unwrap();
    }
    store
}

fn sorted(nodes: impl IntoIterator<Item = Node>) -> Vec<Node> {
    let mut nodes: Vec<Node> = nodes.into_iter().collect();
    nodes.sort_by_key(|node| node.well);
    nodes
}

fn check(store: &RunStore, frontiers: &[Frontier]) {
    assert_eq!(store.depths().len(), frontiers.len());
    for frontier in frontiers {
        let loaded = store.load(frontier.depth).unwrap();
        assert_eq!(loaded, sorted(frontier.nodes().copied()));
    }
    assert_eq!(store.verify().len(), 0);
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
fn committed_depths_can_be_read_back() {
    let folder = tempfile::tempdir().unwrap();
    for (width, height, beam) in [(10, 16, 5000), (4, 5, 300), (6, 8, 300), (15, 10, 100)] {
        let geometry = Geometry::new(width, height).unwrap();
        let frontiers = frontiers(geometry, beam, 14);
        let dir = folder.path().join(geometry.to_string());
        let store = filled(&dir, geometry, &frontiers);
        check(&store, &frontiers);
        drop(store);
        let store = RunStore::open(&dir).unwrap();
        assert_eq!(
            (store.geometry(), store.spec()),
            (geometry, &json!({"of": "a test"}))
        );
        check(&store, &frontiers);
        for frontier in &frontiers {
            let nodes: Vec<Node> = frontier.nodes().copied().collect();
            let mut wells: Vec<NodeWell> = nodes.iter().map(|node| node.well).step_by(13).collect();
            wells.push(NodeWell([0xff; 20]));
            let found = store.multi_get(frontier.depth, &wells).unwrap();
            let expected: Vec<Option<Node>> = nodes.iter().copied().step_by(13).map(Some).collect();
            assert_eq!(found[..expected.len()], expected[..]);
            assert_eq!(found.last(), Some(&None));
            let one = store.get(frontier.depth, &nodes[0].well).unwrap();
            assert_eq!(one, Some(nodes[0]));
        }
        let reader = RunStore::open_read_only(&dir).unwrap();
        check(&reader, &frontiers);
    }
    assert_eq!(list_runs(folder.path()).unwrap().runs.len(), 4);
}

/// Commits frontiers together. Writes tables only for the depths for which `keep` returns `true`.
fn commit_group(
    store: &mut RunStore,
    frontiers: &[Frontier],
    keep: impl Fn(u32) -> bool,
) -> Result<(), StoreError> {
    let geometry = store.geometry();
    let depths = frontiers.iter().map(|frontier| NewDepth {
        record: record(geometry, frontier),
        shards: shards(frontier),
        keep: keep(frontier.depth),
    });
    store.commit_group(depths.collect(), None, 2)
}

#[test]
fn group_of_depths_can_be_read_back_dropped_and_truncated() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let geometry = Geometry::STANDARD;
    let frontiers = frontiers(geometry, 300, 40);
    let mut store = RunStore::create(&dir, geometry, &Value::Null).unwrap();
    for group in frontiers.chunks(15) {
        commit_group(&mut store, group, |_| true).unwrap();
    }
    check(&store, &frontiers);
    let stored: u64 = store.depths().iter().map(|record| record.bytes).sum();
    let files = tables(&dir);
    assert_eq!(files.len(), 6);
    let size = |path: &PathBuf| fs::metadata(path).unwrap().len();
    assert_eq!(stored, files.iter().map(size).sum::<u64>());
    assert_eq!(store.tables(3).unwrap(), store.tables(13).unwrap());
    assert_ne!(store.tables(13).unwrap(), store.tables(14).unwrap());
    let lines = fs::read_to_string(dir.join("depths.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 3);
    drop(store);
    check(&RunStore::open_read_only(&dir).unwrap(), &frontiers);
    let mut store = RunStore::open(&dir).unwrap();
    check(&store, &frontiers);

    // Depth 14 is the last depth of its group and has its own tables. Depths 15 to 28 share a table.
    store.drop_tables(14).unwrap();
    store.drop_tables(20).unwrap();
    let dropped = |depth: u32| matches!(store.load(depth), Err(StoreError::Dropped { .. }));
    let found: Vec<u32> = (0..=40).filter(|&depth| dropped(depth)).collect();
    assert_eq!(found, Vec::from_iter(14..29));
    assert!(store.verify().is_empty());

    // Truncating a group keeps its first depths.
    store.truncate(7).unwrap();
    check(&store, &frontiers[..8]);
    commit_group(&mut store, &frontiers[8..=40], |depth| depth % 8 == 0).unwrap();
    drop(store);
    let store = RunStore::open(&dir).unwrap();
    assert!(store.verify().is_empty());
    let kept = store.depths().iter().filter(|record| record.kept);
    let kept: Vec<u32> = kept.map(|record| record.depth).collect();
    assert_eq!(kept, [0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 32, 40]);
}

#[test]
fn crash_leaves_a_commit_and_its_drop_of_an_earlier_depth_or_none_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let geometry = Geometry::STANDARD;
    let frontiers = frontiers(geometry, 300, 12);
    let mut store = filled(&dir, geometry, &frontiers[..11]);
    let kept = |store: &RunStore| -> Vec<u32> {
        let kept = store.depths().iter().filter(|record| record.kept);
        kept.map(|record| record.depth).collect()
    };
    let next = |depth: usize| NewDepth {
        record: record(geometry, &frontiers[depth]),
        shards: shards(&frontiers[depth]),
        keep: true,
    };
    let error = store.commit_group(vec![next(11)], Some(99), 2);
    assert!(matches!(error, Err(StoreError::NoDepth { depth: 99 })));
    check(&store, &frontiers[..11]);

    let records = dir.join("depths.jsonl");
    let before = fs::read(&records).unwrap().len();
    let group = vec![next(11), next(12)];
    store.commit_group(group, Some(10), 2).unwrap();
    let expected: Vec<u32> = (0..10).chain([11, 12]).collect();
    assert_eq!(kept(&store), expected);
    assert!(matches!(store.load(10), Err(StoreError::Dropped { .. })));
    assert!(store.verify().is_empty());
    drop(store);
    let store = RunStore::open(&dir).unwrap();
    assert_eq!(kept(&store), expected);
    assert!(store.verify().is_empty());
    drop(store);
    // A crash can leave any part of the new line.
    let after = fs::read(&records).unwrap();
    for len in (before..after.len()).step_by(61).chain([after.len() - 1]) {
        fs::write(&records, &after[..len]).unwrap();
        let store = RunStore::open_read_only(&dir).unwrap();
        assert_eq!(kept(&store), Vec::from_iter(0..=10), "{len}");
    }
}

#[test]
fn truncation_to_any_depth_keeps_exactly_the_depths_up_to_it() {
    let geometry = Geometry::STANDARD;
    let frontiers = frontiers(geometry, 60, 24);
    let is_kept = |depth: u32| depth.is_multiple_of(3) || depth == 24;
    for start in [0, 4] {
        for depth in (0..=25).chain([u32::MAX - 1, u32::MAX]) {
            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path().join("run");
            let mut store = RunStore::create(&dir, geometry, &Value::Null).unwrap();
            for group in frontiers[start..].chunks(10) {
                commit_group(&mut store, group, is_kept).unwrap();
            }
            store.finish(&json!({})).unwrap();
            store.truncate(depth).unwrap();
            let check = |store: &RunStore| {
                let rest: Vec<u32> = store.depths().iter().map(|r| r.depth).collect();
                let expected = (start as u32..=24).filter(|&of| of <= depth);
                assert_eq!(rest, expected.collect::<Vec<_>>(), "{start} {depth}");
                for record in store.depths() {
                    assert_eq!(record.kept, is_kept(record.depth), "{start} {depth}");
                    if record.kept {
                        let nodes = frontiers[record.depth as usize].nodes().copied();
                        assert_eq!(store.load(record.depth).unwrap(), sorted(nodes));
                    }
                }
                assert!(store.verify().is_empty());
                assert!(store.result().is_none());
            };
            check(&store);
            drop(store);
            let mut store = RunStore::open(&dir).unwrap();
            check(&store);
            // The search continues from the last depth, or begins again.
            let next = store
                .depths()
                .last()
                .map_or(start, |r| r.depth as usize + 1);
            if let Some(frontier) = frontiers.get(next) {
                commit(&mut store, frontier).unwrap();
            }
            assert!(store.verify().is_empty());
        }
    }
}

#[test]
fn rejected_group_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let geometry = Geometry::STANDARD;
    let frontiers = frontiers(geometry, 300, 12);
    let dir = folder.path().join("run");
    let mut store = filled(&dir, geometry, &frontiers[..4]);
    let mut gap = frontiers[4..9].to_vec();
    gap.remove(2);
    let error = commit_group(&mut store, &gap, |_| true).unwrap_err();
    assert!(matches!(
        error,
        StoreError::NotNext {
            expected: 6,
            found: 7
        }
    ));
    let mut unsorted = frontiers[4..9].to_vec();
    unsorted[3].shards[0].swap(1, 2);
    let error = commit_group(&mut store, &unsorted, |_| true).unwrap_err();
    assert!(
        matches!(error, StoreError::Unsorted { depth: 7, .. }),
        "{error}"
    );
    let mut record_of_other = frontiers[4..9].to_vec();
    record_of_other[1].shards[0][0].score ^= 1;
    let depths = record_of_other.iter().zip(&frontiers[4..9]);
    let depths = depths.map(|(nodes, of)| NewDepth {
        record: record(geometry, of),
        shards: shards(nodes),
        keep: true,
    });
    let error = store.commit_group(depths.collect(), None, 2).unwrap_err();
    assert!(
        matches!(error, StoreError::BadRecord { depth: 5, .. }),
        "{error}"
    );
    check(&store, &frontiers[..4]);
    commit_group(&mut store, &frontiers[4..], |_| true).unwrap();
    check(&store, &frontiers);
}

#[test]
fn crash_leaves_all_depths_of_a_group_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let frontiers = frontiers(Geometry::STANDARD, 200, 30);
    let mut store = filled(&dir, Geometry::STANDARD, &frontiers[..10]);
    let records = dir.join("depths.jsonl");
    let before = fs::metadata(&records).unwrap().len() as usize;
    commit_group(&mut store, &frontiers[10..], |_| true).unwrap();
    drop(store);
    let whole = fs::read(&records).unwrap();
    let step = (whole.len() - before) / 20;
    for end in (before..whole.len()).step_by(step) {
        // The tables of the group have been ingested, but its line is missing or incomplete. Bytes that did not reach
        // the disk may be zero.
        let mut torn = whole.clone();
        torn[end..].fill(0);
        for left in [
            &whole[..end],
            &torn,
            &[&torn[..whole.len() - 1], b"\n"].concat(),
        ] {
            fs::write(&records, left).unwrap();
            check(&RunStore::open_read_only(&dir).unwrap(), &frontiers[..10]);
            let mut store = RunStore::open(&dir).unwrap();
            check(&store, &frontiers[..10]);
            assert_eq!(tables(&dir).len(), 10);
            commit_group(&mut store, &frontiers[10..], |_| true).unwrap();
            check(&store, &frontiers);
        }
    }
}

#[test]
fn rejected_commit_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let geometry = Geometry::STANDARD;
    let frontiers = frontiers(geometry, 5000, 9);
    let mut store = filled(&dir, geometry, &frontiers[..8]);
    let next = &frontiers[8];
    let good = record(geometry, next);
    let mut refused = |record: DepthRecord, shards: &[&[Node]]| {
        let error = store.commit(record, shards, 2).unwrap_err();
        check(&store, &frontiers[..8]);
        error
    };
    let error = refused(record(geometry, &frontiers[9]), &shards(&frontiers[9]));
    assert!(matches!(
        error,
        StoreError::NotNext {
            expected: 8,
            found: 9
        }
    ));
    let error = refused(record(geometry, &frontiers[7]), &shards(&frontiers[7]));
    assert!(matches!(error, StoreError::NotNext { .. }));
    for change in [
        |record: &mut DepthRecord| record.count += 1,
        |record: &mut DepthRecord| record.digest = "1".to_owned(),
        |record: &mut DepthRecord| record.digest = "no".to_owned(),
        |record: &mut DepthRecord| record.seconds = f64::NAN,
    ] {
        let mut bad = good.clone();
        change(&mut bad);
        let error = refused(bad, &shards(next));
        assert!(matches!(error, StoreError::BadRecord { .. }), "{error}");
    }
    let mut swapped = next.clone();
    swapped.shards[3].swap(5, 6);
    let error = refused(good.clone(), &shards(&swapped));
    assert!(
        matches!(
            error,
            StoreError::Unsorted {
                shard: 3,
                index: 6,
                ..
            }
        ),
        "{error}"
    );
    let mut duplicate = good.clone();
    let mut parts = shards(next);
    let again = [next.shards[0][0]];
    parts.push(&again);
    duplicate.count += 1;
    let mut digest = next.digest();
    digest.add(&again[0]);
    duplicate.digest = digest.to_string();
    let error = refused(duplicate, &parts);
    assert!(matches!(error, StoreError::DuplicateWell { .. }), "{error}");
    commit(&mut store, next).unwrap();
    check(&store, &frontiers[..9]);
    let mut reader = RunStore::open_read_only(&dir).unwrap();
    let error = commit(&mut reader, &frontiers[9]).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
}

#[test]
fn open_removes_uncommitted_tables_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let frontiers = frontiers(Geometry::STANDARD, 3000, 10);
    drop(filled(&dir, Geometry::STANDARD, &frontiers));
    let records = dir.join("depths.jsonl");
    let whole = fs::read(&records).unwrap();
    // The tables of the last depth have been ingested, but its record is missing or incomplete.
    let before = whole[..whole.len() - 1]
        .iter()
        .rposition(|&byte| byte == b'\n');
    let before = before.unwrap() + 1;
    for end in [before, before + 1, before + 40, whole.len() - 1] {
        fs::write(&records, &whole[..end]).unwrap();
        fs::write(dir.join("tables/10-0.sst"), b"half a table").unwrap();
        let unfinished = dir.join(".hatebeam-1-0.tmp");
        fs::write(&unfinished, b"{").unwrap();
        let reader = RunStore::open_read_only(&dir).unwrap();
        check(&reader, &frontiers[..10]);
        let mut store = RunStore::open(&dir).unwrap();
        check(&store, &frontiers[..10]);
        assert_eq!(fs::read_dir(dir.join("tables")).unwrap().count(), 0);
        assert!(!unfinished.exists());
        commit(&mut store, &frontiers[10]).unwrap();
        check(&store, &frontiers);
    }
    // A crash can damage only the last line, so damage to another line is an error.
    let mut changed = fs::read(&records).unwrap();
    changed[30] ^= 1;
    fs::write(&records, changed).unwrap();
    let error = RunStore::open(&dir).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("line 1"), "{error}");
}

#[test]
fn damaged_tables_are_detected_and_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let frontiers = frontiers(Geometry::STANDARD, 3000, 12);
    let store = filled(&dir, Geometry::STANDARD, &frontiers);
    drop(store);
    let last = tables(&dir).pop().unwrap();
    let whole = fs::read(&last).unwrap();
    let mut damages: Vec<Option<Vec<u8>>> = vec![None];
    for at in (0..whole.len()).step_by(whole.len() / 60) {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        damages.push(Some(changed));
    }
    for length in [0, 1, 100, whole.len() / 2, whole.len() - 1] {
        damages.push(Some(whole[..length].to_vec()));
    }
    let mut found = 0;
    for damage in &damages {
        match damage {
            Some(bytes) => fs::write(&last, bytes).unwrap(),
            None => fs::remove_file(&last).unwrap(),
        }
        // Some bytes of a table are never read, so damage may go unnoticed. The nodes must then be correct.
        let store = RunStore::open(&dir).unwrap();
        match store.load(12) {
            Ok(nodes) => assert_eq!(nodes, sorted(frontiers[12].nodes().copied())),
            Err(error) => {
                assert!(
                    matches!(error, StoreError::DamagedDepth { depth: 12, .. }),
                    "{error}"
                );
                found += 1;
                let damaged: Vec<u32> = store.verify().iter().map(|(depth, _)| *depth).collect();
                assert_eq!(damaged, [12], "{error}");
            }
        }
        for node in frontiers[12].nodes().step_by(101) {
            if let Ok(Some(read)) = store.get(12, &node.well) {
                assert_eq!(read, *node);
            }
        }
        assert_eq!(
            store.load(11).unwrap(),
            sorted(frontiers[11].nodes().copied())
        );
    }
    assert!(found > damages.len() / 2, "{found} of {}", damages.len());

    let mut store = RunStore::open(&dir).unwrap();
    store.truncate(11).unwrap();
    check(&store, &frontiers[..12]);
    commit(&mut store, &frontiers[12]).unwrap();
    check(&store, &frontiers);
    drop(store);
    check(&RunStore::open(&dir).unwrap(), &frontiers);
}

#[test]
fn table_that_cannot_be_opened_is_not_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let frontiers = frontiers(Geometry::STANDARD, 300, 12);
    drop(filled(&dir, Geometry::STANDARD, &frontiers));
    let last = tables(&dir).pop().unwrap();
    let whole = fs::read(&last).unwrap();
    // Opening a symbolic link to itself fails, but not because the file is missing or damaged.
    fs::remove_file(&last).unwrap();
    std::os::unix::fs::symlink(&last, &last).unwrap();
    let store = RunStore::open(&dir).unwrap();
    let well = frontiers[12].nodes().next().unwrap().well;
    let mut errors: Vec<StoreError> = store.verify().into_iter().map(|(_, error)| error).collect();
    assert_eq!(errors.len(), 1);
    errors.push(store.load(12).unwrap_err());
    errors.push(store.get(12, &well).unwrap_err());
    for error in errors {
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
    }
    drop(store);
    fs::remove_file(&last).unwrap();
    fs::write(&last, whole).unwrap();
    check(&RunStore::open(&dir).unwrap(), &frontiers);
}

#[test]
fn verification_ignores_depths_that_another_process_drops() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let frontiers = frontiers(Geometry::STANDARD, 300, 12);
    let mut store = filled(&dir, Geometry::STANDARD, &frontiers[..12]);
    let reader = RunStore::open_read_only(&dir).unwrap();
    store.drop_tables(3).unwrap();
    store.truncate(9).unwrap();
    commit(&mut store, &frontiers[10]).unwrap();
    commit(&mut store, &frontiers[11]).unwrap();
    commit(&mut store, &frontiers[12]).unwrap();
    assert!(reader.verify().is_empty());
    // The depths that still have their tables are verified.
    let damaged = store.tables(5).unwrap().pop().unwrap();
    drop(store);
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[30] ^= 0x40;
    fs::write(&damaged, bytes).unwrap();
    let found: Vec<u32> = reader.verify().iter().map(|(depth, _)| *depth).collect();
    assert_eq!(found, [5]);
}

#[test]
fn paths_cross_dropped_depths_and_depths_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let geometry = Geometry::STANDARD;
    let frontiers = frontiers(geometry, 2000, 40);
    let mut store = filled(&dir, geometry, &frontiers);
    let bytes = store.stored_bytes();
    for depth in (1..40).filter(|depth| depth % 4 != 0) {
        store.drop_tables(depth).unwrap();
        store.drop_tables(depth).unwrap();
    }
    assert!(store.stored_bytes() < bytes / 2);
    drop(store);
    let mut store = RunStore::open(&dir).unwrap();
    assert!(matches!(
        store.load(5),
        Err(StoreError::Dropped { depth: 5 })
    ));
    assert!(matches!(
        store.load(41),
        Err(StoreError::NoDepth { depth: 41 })
    ));
    assert_eq!(store.verify().len(), 0);
    let emulator = Emulator::new(geometry, Rules::default());
    let mut backward = Backward::new(&emulator);
    let mut children = Children::new();
    // Depths 40 and 36 have tables, but depth 39 was dropped.
    for frontier in [&frontiers[40], &frontiers[36], &frontiers[39]] {
        for node in frontier.nodes().step_by(271) {
            let mut path = PathSearch::new(frontier.depth, node.well);
            let path = path.resume(&store, &mut backward).unwrap();
            assert_eq!(path.wells.len(), frontier.depth as usize + 1);
            for pair in path.wells.windows(2) {
                emulator.expand(&pair[0], &mut children);
                assert!(children.wells().contains(&pair[1]));
            }
        }
    }
    store.finish(&json!({"score": 3})).unwrap();
    assert!(list_runs(folder.path()).unwrap().runs[0].finished);
    store.truncate(20).unwrap();
    assert_eq!((store.depths().len(), store.result()), (21, None));
    store.clear().unwrap();
    assert_eq!((store.depths().len(), tables(&dir).len()), (0, 0));
    commit(&mut store, &frontiers[7]).unwrap();
    drop(store);
    let store = RunStore::open(&dir).unwrap();
    assert_eq!(store.depths()[0].depth, 7);
}

#[test]
fn hints_reduce_lookups_to_about_one_per_depth() {
    let folder = tempfile::tempdir().unwrap();
    let geometry = Geometry::STANDARD;
    let frontiers = frontiers(geometry, 4000, 50);
    let store = filled(&folder.path().join("run"), geometry, &frontiers);
    let emulator = Emulator::new(geometry, Rules::default());
    let mut backward = Backward::new(&emulator);
    let (mut lookups, mut depths) = (0, 0);
    for node in frontiers[50].nodes().step_by(97) {
        let mut path = PathSearch::new(50, node.well);
        lookups += path.resume(&store, &mut backward).unwrap().lookups;
        depths += 51;
    }
    assert!(
        lookups * 10 < depths * 11,
        "{lookups} lookups in {depths} depths"
    );
    let mut path = PathSearch::new(50, NodeWell::default());
    let error = path.resume(&store, &mut backward).unwrap_err();
    assert!(matches!(error, StoreError::NoWell { .. }), "{error}");
}

#[test]
fn create_and_open_refuse_foreign_folders_and_invalid_manifests() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let create = || RunStore::create(&dir, Geometry::STANDARD, &Value::Null);
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("precious"), b"mine").unwrap();
    assert!(matches!(create(), Err(StoreError::Exists { .. })));
    assert_eq!(fs::read(dir.join("precious")).unwrap(), b"mine");
    fs::remove_file(dir.join("precious")).unwrap();
    assert!(matches!(
        RunStore::open(&dir),
        Err(StoreError::NoRun { .. })
    ));
    assert_eq!(
        fs::read_dir(&dir).unwrap().count(),
        0,
        "open created a file"
    );
    let store = create().unwrap();
    for error in [create().unwrap_err(), RunStore::open(&dir).unwrap_err()] {
        let in_use = matches!(error, StoreError::InUse { .. } | StoreError::Exists { .. });
        assert!(in_use, "{error}");
    }
    drop(store);
    assert!(matches!(create(), Err(StoreError::Exists { .. })));

    let manifest = dir.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    for (from, to, expected) in [
        ("\"format\": 5", "\"format\": 6", "format 6"),
        ("\"format\"", "\"form\"", "format number is missing"),
        ("\"width\": 10", "\"width\": 99", "damaged"),
        ("{", "", "damaged"),
    ] {
        write_whole(&manifest, text.replacen(from, to, 1).as_bytes()).unwrap();
        let error = RunStore::open(&dir).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let list = list_runs(folder.path()).unwrap();
        assert_eq!(list.runs, []);
        assert_eq!(list.unreadable[0].error.to_string(), error);
    }
    let too_large = Geometry::new(16, 16).unwrap();
    let error = RunStore::create(&folder.path().join("x"), too_large, &Value::Null).unwrap_err();
    assert!(matches!(error, StoreError::DoesNotFit { .. }), "{error}");
    let below_a_file = manifest.join("run");
    let error = RunStore::create(&below_a_file, Geometry::STANDARD, &Value::Null).unwrap_err();
    assert!(error.to_string().contains("manifest.json"), "{error}");
}

#[test]
fn create_replaces_files_of_an_interrupted_creation() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let create = || RunStore::create(&dir, Geometry::STANDARD, &Value::Null);
    fs::create_dir(&dir).unwrap();
    // Earlier versions gave temporary files the names `depths.jsonl.tmp` and `manifest.json.tmp`.
    for unfinished in [".hatebeam-1-0.tmp", "depths.jsonl.tmp", "manifest.json.tmp"] {
        let unfinished = dir.join(unfinished);
        fs::write(&unfinished, b"{").unwrap();
        // Only a folder with a lock contains an interrupted creation.
        assert!(matches!(create(), Err(StoreError::Exists { .. })));
        fs::write(dir.join("lock"), b"").unwrap();
        fs::write(dir.join("depths.jsonl"), b"").unwrap();
        drop(create().unwrap());
        assert_eq!(RunStore::open(&dir).unwrap().depths().len(), 0);
        fs::remove_dir_all(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
    }
}

#[test]
fn damaged_run_never_returns_nodes_that_differ_from_their_record() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let frontiers = frontiers(Geometry::STANDARD, 50, 6);
    drop(filled(&dir, Geometry::STANDARD, &frontiers));
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for name in ["depths.jsonl", "manifest.json"] {
        let path = dir.join(name);
        let whole = fs::read(&path).unwrap();
        for round in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..1 + round % 5 {
                let at = random() as usize % bytes.len();
                match random() % 4 {
                    0 => bytes[at] = random() as u8,
                    1 => bytes.truncate(at.max(1)),
                    2 => bytes.insert(at, b'"'),
                    _ => drop(bytes.drain(at..bytes.len().min(at + 7))),
                }
                if bytes.is_empty() {
                    bytes.push(b'{');
                }
            }
            let mut file = fs::File::create(&path).unwrap();
            file.write_all(&bytes).unwrap();
            if let Ok(store) = RunStore::open_read_only(&dir) {
                for record in store.depths() {
                    let nodes = store.load(record.depth);
                    if let Ok(nodes) = nodes {
                        assert_eq!(record.digest.parse(), Ok(Digest::of(&nodes)));
                    }
                }
            }
            list_runs(folder.path()).unwrap();
        }
        fs::write(&path, whole).unwrap();
    }
    check(&RunStore::open(&dir).unwrap(), &frontiers);
}

#[test]
fn missing_folder_has_no_runs_but_unreadable_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let list = list_runs(&folder.path().join("runs")).unwrap();
    assert!(list.runs.is_empty() && list.unreadable.is_empty());
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = list_runs(&file).unwrap_err().to_string();
    assert!(error.contains("file"), "{error}");
}

fn nodes_of(tables: &ShardTables, depth: u32) -> Result<Vec<Node>, StoreError> {
    let mut nodes = Vec::new();
    tables.visit(depth, &mut |node| nodes.push(*node))?;
    Ok(nodes)
}

#[test]
fn shard_table_that_cannot_be_opened_is_not_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let tables =
        ShardTables::create(dir.path(), Geometry::STANDARD, ColumnFamilies::Shared).unwrap();
    let [damaged, looped] = ["7-0.sst", "7-1.sst"].map(|name| tables.path(name));
    fs::write(&damaged, "no table").unwrap();
    // Opening a symbolic link to itself fails, but not because the file is missing or damaged.
    std::os::unix::fs::symlink(&looped, &looped).unwrap();
    let error = tables.ingest(7, vec![looped]).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(!error.is_damage(), "{error}");
    for path in [damaged, tables.path("missing.sst")] {
        let error = tables.ingest(7, vec![path]).unwrap_err();
        assert!(error.is_damage(), "{error}");
    }
}

#[test]
fn shard_tables_can_be_read_back_and_dropped() {
    let all = frontiers(Geometry::STANDARD, 20_000, 12);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("left"), "over").unwrap();
    let tables =
        ShardTables::create(dir.path(), Geometry::STANDARD, ColumnFamilies::PerDepth).unwrap();
    assert!(!dir.path().join("left").exists());
    for frontier in &all[10..12] {
        let depth = frontier.depth;
        for (shard, nodes) in frontier.shards.iter().enumerate() {
            let name = format!("{depth}-{shard}.sst");
            let written = tables.write(&name, depth, shard, nodes).unwrap();
            assert_eq!(written.count, nodes.len() as u64);
            assert_eq!(written.digest, Digest::of(nodes));
            tables.ingest(depth, vec![written.path.clone()]).unwrap();
            assert!(!written.path.exists());
        }
        let mut expected: Vec<Node> = frontier.nodes().copied().collect();
        expected.sort_by_key(|node| node.well);
        assert_eq!(nodes_of(&tables, depth).unwrap(), expected);
        let wells = [expected[7].well, NodeWell::default()];
        let found = tables.multi_get(depth, &wells).unwrap();
        assert_eq!(found, [Some(expected[7]), None]);
    }
    tables.drop_depth(10).unwrap();
    tables.drop_depth(10).unwrap();
    assert!(matches!(
        nodes_of(&tables, 10),
        Err(StoreError::NoDepth { depth: 10 })
    ));
    assert_eq!(nodes_of(&tables, 11).unwrap().len(), all[11].len());
    let mut unsorted = all[11].shards[0].clone();
    unsorted.swap(3, 4);
    let error = tables.write("x.sst", 11, 0, &unsorted).unwrap_err();
    assert!(
        matches!(error, StoreError::Unsorted { index: 4, .. }),
        "{error}"
    );
}
