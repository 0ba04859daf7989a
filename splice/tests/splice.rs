//! Splices games of this project's trainings, and random games in narrow wells.

#![allow(clippy::unwrap_used)] // the lint exempts test functions but not helper functions

use hatebeam_game::{
    Children, Emulator, Enemy, EnemyState, Geometry, Rules, Well, decode, play, replay_of_wells,
};
use hatebeam_splice::{RoundProgress, Settings, SpliceError, Splicer, Step, Watch};
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

fn running() -> bool {
    false
}

fn settings(rounds: usize, threads: usize) -> Settings {
    Settings {
        rounds,
        tries: 200_000,
        seed: 7,
        threads,
    }
}

/// Returns the wells of the first own games of a recipe.
fn own_games(recipe: &str) -> Vec<Vec<Well>> {
    let path = format!(
        "{}/../train/recipes/{recipe}.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let replays = text.lines().filter_map(|line| line.strip_prefix("    \""));
    replays
        .map(|line| {
            let (keys, _) = decode(line.trim_end_matches("\",")).unwrap();
            let game = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
            assert!(game.over);
            game.wells().collect()
        })
        .collect()
}

/// Plays the game of these wells by the exact rules.
#[track_caller]
fn assert_valid(geometry: Geometry, wells: &[Well], over: bool) {
    let rules = Rules::default();
    let keys = replay_of_wells(geometry, rules, Enemy::Hatetris, wells, over).unwrap();
    let record = play(geometry, rules, Enemy::Hatetris, &keys);
    assert_eq!(record.over, over);
    assert!(record.wells().eq(wells.iter().copied()));
}

/// Plays random locks until the game is over or has `limit` pieces. Returns the wells, and whether the game is over.
fn random_game(emulator: &Emulator, choices: &[u16], limit: usize) -> (Vec<Well>, bool) {
    let mut state = EnemyState::new(Enemy::Hatetris);
    let mut children = Children::new();
    let mut wells = vec![Well::EMPTY];
    for choice in choices.iter().cycle().take(limit) {
        let well = *wells.last().unwrap();
        let piece = state.next_piece(emulator, &well, &mut children);
        emulator.children(&well, piece, &mut children);
        let locks = children.wells();
        if locks.is_empty() {
            return (wells, true);
        }
        wells.push(locks[usize::from(*choice) % locks.len()]);
    }
    (wells, false)
}

fn splicer(games: &[Vec<Well>], settings: Settings) -> Result<Splicer, SpliceError> {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    Splicer::new(&emulator, games, settings, &running)
}

#[test]
fn spliced_game_is_longer_valid_and_the_same_for_any_number_of_threads() {
    let games = own_games("selftaught");
    let longest = games.iter().map(Vec::len).max().unwrap();
    assert_eq!(longest, 1939);
    let [mut one, mut three] = [1, 3].map(|threads| {
        let settings = Settings {
            seed: 2,
            ..settings(0, threads)
        };
        splicer(&games, settings).unwrap()
    });
    let crossed = one.pieces();
    assert!(crossed > longest, "a part of another game is longer");
    assert_valid(Geometry::STANDARD, &one.wells(), true);
    for _ in 0..4 {
        let before = one.pieces();
        let step = one.advance(&running);
        assert_eq!(step, Step::Searched(one.pieces() - before));
        assert_eq!(three.advance(&running), step);
        assert_eq!(one.wells(), three.wells());
    }
    assert_eq!(one.tried(), 4 * 8 * 200_000);
    assert!(one.pieces() > crossed, "{}", one.pieces());
    assert_valid(Geometry::STANDARD, &one.wells(), true);
}

#[test]
fn other_seed_gives_other_game() {
    let games = own_games("games-4");
    let spliced = |seed| {
        let settings = Settings {
            seed,
            ..settings(0, 2)
        };
        let mut splicer = splicer(&games, settings).unwrap();
        for _ in 0..3 {
            splicer.advance(&running);
        }
        splicer.wells()
    };
    assert!(spliced(1) == spliced(1));
    assert!(spliced(1) != spliced(2));
}

#[test]
fn cancelled_step_changes_nothing() {
    let games = own_games("games-4");
    let mut splicer = splicer(&games, settings(0, 1)).unwrap();
    let before = splicer.wells();
    assert_eq!(splicer.advance(&|| true), Step::Cancelled);
    assert_eq!(splicer.wells(), before);
}

#[test]
fn start_that_ends_early_takes_parts_of_fewer_games() {
    let games = own_games("selftaught");
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    let pieces = |most| {
        let calls = AtomicU32::new(0);
        let watch = || calls.fetch_add(1, Ordering::Relaxed) >= most;
        let splicer = Splicer::new(&emulator, &games, settings(0, 1), &watch).unwrap();
        splicer.pieces()
    };
    let longest = games.iter().map(Vec::len).max().unwrap();
    assert_eq!(pieces(0), longest);
    assert!(pieces(u32::MAX) > longest);
}

#[test]
fn step_that_ends_early_counts_the_tries_it_made() {
    let games = own_games("games-4");
    let mut splicer = splicer(&games, settings(0, 1)).unwrap();
    let calls = AtomicU32::new(0);
    splicer.advance(&|| calls.fetch_add(1, Ordering::Relaxed) >= 10);
    assert!(
        (1..8 * 200_000).contains(&splicer.tried()),
        "{}",
        splicer.tried()
    );
}

/// Keeps the progress that rounds report.
#[derive(Default)]
struct Recorder(Mutex<Vec<RoundProgress>>);

impl Watch for Recorder {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&self, progress: RoundProgress) {
        self.0.lock().unwrap().push(progress);
    }
}

#[test]
fn round_reports_its_progress() {
    let games = vec![own_games("selftaught").swap_remove(0)];
    let mut splicer = splicer(&games, settings(2, 2)).unwrap();
    // A round of detours and one of transplants.
    let [detours, transplants] = std::array::from_fn(|_| {
        let recorder = Recorder::default();
        while !splicer.grows_next() {
            splicer.advance(&recorder);
        }
        assert!(recorder.0.lock().unwrap().is_empty());
        let wells = splicer.graph().len();
        assert!(matches!(splicer.advance(&recorder), Step::Grew(1..)));
        let reports = recorder.0.into_inner().unwrap();
        let order = |report: &RoundProgress| (report.stage, report.searched);
        assert!(reports.is_sorted_by(|a, b| order(a) < order(b)));
        assert!(reports.iter().all(|report| report.searched < report.wells));
        assert!(reports.iter().all(|report| report.stage <= report.stages));
        (wells, reports)
    });
    assert!(!transplants.1.is_empty());
    let (wells, reports) = detours;
    let last = reports.last().unwrap();
    assert_eq!((last.stage, last.wells), (last.stages, wells));
    let stages: HashSet<usize> = reports.iter().map(|report| report.stage).collect();
    assert_eq!(stages, (1..=last.stages).collect());
}

/// The wells of a single game allow no other way, so the first round comes after four steps. It adds detours, and the second
/// one transplants.
#[test]
fn graph_grows_when_nothing_longer_is_found() {
    let games = vec![own_games("games-3").swap_remove(0)];
    let mut one = splicer(&games, settings(2, 1)).unwrap();
    let mut three = splicer(&games, settings(2, 3)).unwrap();
    assert_eq!(one.graph().len(), games[0].len());
    for _ in 0..4 {
        assert!(!one.grows_next());
        assert_eq!(one.advance(&running), Step::Searched(0));
        three.advance(&running);
    }
    let mut rounds = 0;
    for _ in 0..16 {
        if one.grows_next() {
            assert_eq!(one.advance(&|| true), Step::Cancelled);
            rounds += 1;
        }
        let wells = one.graph().len();
        let step = one.advance(&running);
        assert_eq!(three.advance(&running), step);
        if let Step::Grew(added) = step {
            assert_eq!(one.graph().len(), wells + added);
            assert!(
                added > 0 && (rounds > 1 || added > games[0].len() / 2),
                "{added}"
            );
        }
    }
    assert!(rounds > 0);
    assert_eq!(one.wells(), three.wells());
    assert!(one.wells().iter().any(|well| !games[0].contains(well)));
    assert_valid(Geometry::STANDARD, &one.wells(), true);
}

#[test]
fn unusable_games_are_refused() {
    assert!(matches!(
        splicer(&[], settings(0, 1)),
        Err(SpliceError::NoGame)
    ));
    assert!(matches!(
        splicer(&[vec![]], settings(0, 1)),
        Err(SpliceError::NoGame)
    ));
    // The third well does not follow from the second one.
    let mut game = own_games("games-3").swap_remove(0);
    game.remove(2);
    let error = splicer(&[game], settings(0, 1)).err().unwrap();
    assert!(matches!(error, SpliceError::Excluded(1)), "{error}");
    assert!(error.to_string().contains("after piece 1"), "{error}");
}

#[test]
fn shortest_games_stay_the_same() {
    let game = own_games("games-3").swap_remove(0);
    for pieces in 1..=3 {
        let start = game[..pieces].to_vec();
        let mut splicer = splicer(std::slice::from_ref(&start), settings(0, 1)).unwrap();
        splicer.advance(&running);
        assert_eq!(splicer.wells(), start);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// In narrow wells, HATETRIS excludes pieces after a few pieces already.
    #[test]
    fn random_games_are_spliced_to_valid_games(
        width in 4..=6_usize,
        height in 4..=8_usize,
        choices in prop::collection::vec(prop::collection::vec(any::<u16>(), 40), 1..8),
        rounds in 0..=1_usize,
    ) {
        let geometry = Geometry::new(width, height).unwrap();
        let emulator = Emulator::new(geometry, Rules::default());
        let games: Vec<(Vec<Well>, bool)> =
            choices.iter().map(|choices| random_game(&emulator, choices, 60)).collect();
        let wells: Vec<Vec<Well>> = games.iter().map(|(wells, _)| wells.clone()).collect();
        let longest = games.iter().rev().max_by_key(|(wells, _)| wells.len()).unwrap();
        let settings = Settings { tries: 3000, ..settings(rounds, 1) };
        match Splicer::new(&emulator, &wells, settings, &running) {
            Err(SpliceError::Excluded(pieces)) => prop_assert!(pieces < longest.0.len()),
            Err(error) => prop_assert!(false, "{error}"),
            Ok(mut splicer) => {
                for _ in 0..10 {
                    splicer.advance(&running);
                }
                prop_assert!(splicer.pieces() >= longest.0.len());
                assert_valid(geometry, &splicer.wells(), longest.1);
            }
        }
    }
}
