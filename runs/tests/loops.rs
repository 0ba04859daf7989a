//! Tests of runs on one machine that apply the loop rule.

#![allow(clippy::unwrap_used)] // test helpers

use hatebeam_game::{
    Children, Emulator, Encoding, Enemy, EnemyState, Geometry, Rules, encode, play,
};
use hatebeam_runs::{
    EndReason, GameSearch, GroupLimits, Limits, LoopRule, Observer, ReadableRun, Retention, Run,
    RunError, RunSpec, Settings, SpecError, Start, WellSpec, best_game, game_to,
};
use hatebeam_search::{DepthRecord, EvaluatorKind, EvaluatorSpec, Quiescence};
use hatebeam_store::{RunStore, StoreError};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Returns the specification of a beam in four columns, where wells repeat within a few pieces.
fn spec(loops: LoopRule) -> RunSpec {
    RunSpec {
        well: WellSpec::new(Geometry::new(4, 16).unwrap(), Rules::default()),
        loops,
        ..RunSpec::new(
            20,
            EvaluatorSpec::new(EvaluatorKind::Plain, Quiescence::Off),
        )
    }
}

struct Quiet;

impl Observer for Quiet {
    fn damaged(&mut self, _: u32, error: &StoreError) {
        panic!("{error}");
    }
}

/// Searches a run up to a depth.
fn search(dir: &Path, loops: LoopRule, threads: usize, max_depth: Option<u32>) -> (Run, EndReason) {
    search_spec(dir, &spec(loops), threads, max_depth)
}

fn search_spec(
    dir: &Path,
    spec: &RunSpec,
    threads: usize,
    max_depth: Option<u32>,
) -> (Run, EndReason) {
    let settings = Settings {
        threads,
        limits: Limits {
            max_depth,
            ..Limits::default()
        },
        group: GroupLimits::default(),
    };
    let run = Run::open_or_create(dir, spec, None).unwrap();
    run.search(&settings, &AtomicBool::new(false), &mut Quiet)
        .unwrap()
}

/// Returns the parts of the records that do not depend on the time.
fn facts(run: &Run) -> Vec<DepthRecord> {
    let records = run.store().depths().iter();
    let facts = records.map(|record| DepthRecord {
        seconds: 0.0,
        bytes: 0,
        ..record.clone()
    });
    facts.collect()
}

#[test]
fn best_game_is_valid_without_being_cut_short() {
    let folder = tempfile::tempdir().unwrap();
    let (run, end) = search(&folder.path().join("exact"), LoopRule::Exact, 2, None);
    assert_eq!(end, EndReason::Over);
    let game = best_game(&run).unwrap();
    assert_eq!(game.parted_at, None);
    assert_eq!(game.score, run.best_lines());
    // The rule changes a piece of this game.
    let emulator = run.emulator();
    let (mut enemy, mut children) = (EnemyState::new(Enemy::Hatetris), Children::new());
    let changes = game
        .wells
        .iter()
        .any(|well| enemy.next_piece(emulator, well, &mut children) != emulator.piece(well));
    assert!(changes);

    // Without the rule, games in four columns can be endless, but the rule changes a piece of them.
    let dir = folder.path().join("ignore");
    let (ignoring, end) = search(&dir, LoopRule::Ignore, 2, Some(40));
    assert_eq!(end, EndReason::MaxDepth);
    let cut = best_game(&ignoring).unwrap();
    assert!(cut.parted_at.is_some());
    assert!(game.score > cut.score, "{} {}", game.score, cut.score);
}

#[test]
fn search_continues_a_repair_that_was_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (run, _) = search(dir, LoopRule::Exact, 1, Some(20));
    let expected = facts(&run);
    drop(run);
    RunStore::open(dir).unwrap().drop_tables(9).unwrap();
    let run = Run::open(dir, None).unwrap();
    let settings = Settings {
        threads: 1,
        limits: Limits::default(),
        group: GroupLimits::default(),
    };
    let stop = AtomicBool::new(true);
    let (run, end) = run.search(&settings, &stop, &mut Quiet).unwrap();
    assert_eq!(end, EndReason::Interrupted);
    drop(run);
    let (run, _) = search(dir, LoopRule::Exact, 1, Some(25));
    assert!(run.store().verify().is_empty());
    assert_eq!(run.missing().count(), 0);
    assert_eq!(facts(&run)[..expected.len()], expected);
}

#[test]
fn search_can_start_after_changed_piece() {
    let folder = tempfile::tempdir().unwrap();
    let (exact, _) = search(&folder.path().join("exact"), LoopRule::Exact, 1, None);
    let game = best_game(&exact).unwrap();
    let (mut enemy, mut children) = (EnemyState::new(Enemy::Hatetris), Children::new());
    let mut changes = game.wells.iter().map(|well| {
        let piece = enemy.next_piece(exact.emulator(), well, &mut children);
        piece != exact.emulator().piece(well)
    });
    let before = changes.position(|changes| changes).unwrap() + 1;
    for loops in [LoopRule::Ignore, LoopRule::Exact] {
        let spec = RunSpec {
            start: Start::Replay {
                base2048: encode(&game.keys, Encoding::Base2048),
                piece: before as u32 + 1,
            },
            ..spec(loops)
        };
        let dir = folder.path().join(format!("again-{}", loops.name()));
        let (run, _) = search_spec(&dir, &spec, 1, Some(before as u32 + 10));
        let found = best_game(&run).unwrap();
        assert_eq!(found.wells[..=before], game.wells[..=before]);
        assert!(found.wells.len() > before + 1);
        assert!(found.parted_at.is_none_or(|piece| piece > before));
        assert_playable(run.emulator(), &found.wells);
        let (geometry, rules) = (run.emulator().geometry(), run.emulator().rules());
        let record = play(geometry, rules, Enemy::Hatetris, &found.keys);
        assert!(record.over);
        assert_eq!(record.score, found.score);
        // The path to a well is a game against HATETRIS, too.
        let depth = found.depth.min(before as u32 + 1);
        let path = game_to(&run, depth, &found.wells[depth as usize]).unwrap();
        let keys = path.keys(geometry, rules).unwrap();
        assert!(found.keys.starts_with(&keys));
    }
}

#[test]
fn games_that_are_cut_short_share_lookups() {
    let folder = tempfile::tempdir().unwrap();
    let depths = 150;
    let (run, _) = search(folder.path(), LoopRule::Ignore, 1, Some(depths));
    let best = best_game(&run).unwrap();
    // Without sharing, reading back a game takes at least one lookup per depth.
    let all = (1..=depths).map(|depth| {
        let mut search = GameSearch::through(&run, depth).unwrap();
        search.resume(&run).unwrap()
    });
    let all: Vec<_> = all.collect();
    let lookups: u64 = all.iter().map(|game| game.lookups).sum();
    assert!(10 * best.lookups < lookups, "{} {lookups}", best.lookups);
    let score = all.iter().map(|game| game.score).max().unwrap();
    assert_eq!(best.score, score);
}

/// Plays the wells of a game by the exact rules.
fn assert_playable(emulator: &Emulator, wells: &[hatebeam_game::Well]) {
    let (mut enemy, mut children) = (EnemyState::new(Enemy::Hatetris), Children::new());
    for pair in wells.windows(2) {
        let piece = enemy.next_piece(emulator, &pair[0], &mut children);
        emulator.children(&pair[0], piece, &mut children);
        assert!(children.wells().contains(&pair[1]));
    }
}

#[test]
fn path_to_every_well_is_a_valid_game() {
    let folder = tempfile::tempdir().unwrap();
    let (run, _) = search(folder.path(), LoopRule::Exact, 2, None);
    for record in run.store().depths().iter().rev().step_by(5) {
        for node in run.store().load(record.depth).unwrap() {
            let well = node.well.unpack(run.emulator().geometry()).unwrap();
            let game = game_to(&run, record.depth, &well).unwrap();
            assert_eq!(game.score, u32::from(node.lines));
            assert_playable(run.emulator(), &game.wells);
        }
    }
}

#[test]
fn resumed_run_matches_uninterrupted_run() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let (whole, _) = search(&whole, LoopRule::Exact, 1, None);
    let expected = facts(&whole);
    let changed = expected.iter().map(|record| record.changed.len());
    assert!(changed.sum::<usize>() > 10);
    let resumed = folder.path().join("resumed");
    for depth in [1, 2, 9, 10, 15] {
        let (run, end) = search(
            &resumed,
            LoopRule::Exact,
            1 + depth as usize % 3,
            Some(depth),
        );
        assert_eq!(end, EndReason::MaxDepth);
        assert_eq!(facts(&run), expected[..=depth as usize]);
    }
    let (run, end) = search(&resumed, LoopRule::Exact, 2, None);
    assert_eq!(end, EndReason::Over);
    assert_eq!(facts(&run), expected);
}

#[test]
fn repaired_depths_match_their_records() {
    let folder = tempfile::tempdir().unwrap();
    let (run, _) = search(folder.path(), LoopRule::Exact, 1, None);
    let expected = facts(&run);
    drop(run);
    // The depths share a table, so dropping one of them drops all but the last.
    let mut store = RunStore::open(folder.path()).unwrap();
    store.drop_tables(3).unwrap();
    drop(store);
    let mut run = Run::open(folder.path(), None).unwrap();
    let repaired = run.repair(2, &AtomicBool::new(false)).unwrap();
    assert!(repaired.len() > 10, "{repaired:?}");
    assert_eq!(facts(&run), expected);
    assert_eq!(best_game(&run).unwrap().score, run.best_lines());
}

#[test]
fn run_that_drops_tables_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    for keep in [Retention::Last, Retention::Every(2)] {
        let error = Run::open_or_create(&dir, &spec(LoopRule::Exact), Some(keep)).unwrap_err();
        assert!(
            matches!(error, RunError::Spec(SpecError::Keep(_))),
            "{error}"
        );
        assert!(!dir.exists());
    }
    drop(Run::open_or_create(&dir, &spec(LoopRule::Exact), None).unwrap());
    let error = Run::open(&dir, Some(Retention::Last)).unwrap_err();
    assert!(error.to_string().contains("keep all"), "{error}");
}
