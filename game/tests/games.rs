//! Tests public replays of whole games, and key paths between wells.
#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::reference::Reference;
use hatebeam_game::{
    Board, Encoding, Enemy, Game, Geometry, Key, PathFinder, Piece, Position, Pressed, Record,
    Rules, Well, better_enemy, decode, encode, play, replay_of_wells,
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};

const STANDARD: Geometry = Geometry::STANDARD;

/// An entry of `games.json`.
#[derive(Deserialize)]
struct PublicGame {
    enemy: String,
    name: String,
    score: u32,
    ends_in_game_over: bool,
    keys: usize,
    pieces: String,
    replays: BTreeMap<String, String>,
}

impl PublicGame {
    fn enemy(&self) -> Enemy {
        match self.enemy.as_str() {
            "HATETRIS" => Enemy::Hatetris,
            "HATETRIS Mild" => Enemy::Mild,
            other => panic!("unknown enemy {other}"),
        }
    }

    /// Returns the keys of one of the game's replays, including padding.
    fn keys(&self) -> Vec<Key> {
        decode(self.replays.values().next().unwrap()).unwrap().0
    }

    fn record(&self) -> Record {
        play(STANDARD, Rules::default(), self.enemy(), &self.keys())
    }
}

fn games() -> Vec<PublicGame> {
    serde_json::from_str(include_str!("vectors/games.json")).unwrap()
}

/// A line of `expand_play.jsonl`.
#[derive(Deserialize)]
struct Expansion {
    well: String,
    piece: char,
    children: Vec<String>,
}

impl Expansion {
    fn well(&self) -> Well {
        Well::from_hex(STANDARD, &self.well).unwrap()
    }

    fn piece(&self) -> Piece {
        Piece::from_letter(self.piece).unwrap()
    }

    fn children(&self) -> impl Iterator<Item = Well> {
        let well = |text: &String| Well::from_hex(STANDARD, text.split('+').next().unwrap());
        self.children.iter().map(move |text| well(text).unwrap())
    }
}

fn expansions() -> impl Iterator<Item = Expansion> {
    let lines = include_str!("vectors/expand_play.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn published_replays_round_trip_in_every_encoding() {
    for game in games() {
        let used = &game.keys()[..game.keys];
        for (name, text) in &game.replays {
            let expected: Encoding = name.parse().unwrap();
            let (keys, encoding) = decode(text).unwrap();
            assert_eq!(encoding, expected, "{}", game.name);
            assert_eq!(&keys[..game.keys], used, "{} {name}", game.name);
            // There is at most one padding key, or two if a padded replay was converted.
            assert!(keys.len() <= game.keys + 2, "{} {name}", game.name);
            assert_eq!(
                encode(&keys, encoding),
                text.trim_end(),
                "{} {name}",
                game.name
            );
            if encoding != Encoding::Hex {
                assert_eq!(encode(used, encoding), *text, "{} {name}", game.name);
            }
        }
    }
}

#[test]
fn played_games_match_published_results() {
    for game in games() {
        let record = game.record();
        assert_eq!(record.score, game.score, "{}", game.name);
        assert_eq!(record.over, game.ends_in_game_over, "{}", game.name);
        assert_eq!(
            record.is_finished(),
            game.ends_in_game_over,
            "{}",
            game.name
        );
        assert_eq!(record.keys_used, game.keys, "{}", game.name);
        let pieces: String = record.pieces().map(Piece::letter).collect();
        assert_eq!(pieces, game.pieces, "{}", game.name);
    }
}

#[test]
fn replay_of_wells_plays_the_same_game() {
    for game in games() {
        let (record, enemy) = (game.record(), game.enemy());
        let wells: Vec<Well> = record.wells().collect();
        let keys = replay_of_wells(STANDARD, Rules::default(), enemy, &wells, record.over);
        let keys = keys.unwrap_or_else(|error| panic!("{}: {error}", game.name));
        let again = play(STANDARD, Rules::default(), enemy, &keys);
        assert!(again.wells().eq(record.wells()), "{}", game.name);
        assert!(again.pieces().eq(record.pieces()), "{}", game.name);
        let end = |record: &Record| (record.score, record.over);
        assert_eq!(end(&again), end(&record), "{}", game.name);
        assert_eq!(again.keys_unused, 0, "{}", game.name);
        assert!(
            keys.len() <= game.keys,
            "{}: {} keys",
            game.name,
            keys.len()
        );
    }
}

#[test]
fn better_enemy_finds_enemy_of_published_replay() {
    let mut differences = Vec::new();
    for game in games() {
        let keys = game.keys();
        let other = match game.enemy() {
            Enemy::Hatetris => Enemy::Mild,
            _ => Enemy::Hatetris,
        };
        for claimed in [other, Enemy::Burgiel, Enemy::Lovetris, Enemy::Brzustowski] {
            let claimed = play(STANDARD, Rules::default(), claimed, &keys);
            let better = better_enemy(STANDARD, Rules::default(), &claimed, &keys);
            match better.and_then(|better| Some((better.enemy, better.first_difference(&claimed)?)))
            {
                Some((enemy, piece)) => {
                    assert!(
                        claimed.enemy != other || enemy == game.enemy(),
                        "{}",
                        game.name
                    );
                    differences.push((game.name.clone(), claimed.enemy, piece));
                }
                // HATETRIS and Mild give different pieces only if a well can repeat (a loop). Most
                // games have no loops.
                None => assert!(claimed.is_finished(), "{} {}", game.name, claimed.enemy),
            }
        }
    }
    // In the two games with loops, the pieces of HATETRIS and Mild differ, but only after a long
    // identical start.
    for (name, claimed) in [
        ("knewjade loop basis", Enemy::Mild),
        ("knewjade loop", Enemy::Hatetris),
    ] {
        let of = |(other, enemy, _): &&(String, Enemy, usize)| other == name && *enemy == claimed;
        let piece = differences.iter().find(of).unwrap().2;
        assert!(piece > 100, "{name}: {piece}");
    }
}

#[test]
fn path_finder_finds_keys_to_each_child() {
    let mut finder = PathFinder::new(STANDARD, Rules::default());
    let mut keys = Vec::new();
    for expansion in expansions() {
        let (well, piece) = (expansion.well(), expansion.piece());
        let start = Game::from_well(STANDARD, Rules::default(), Enemy::Mild, &well).unwrap();
        assert_eq!(start.piece(), piece);
        for child in expansion.children() {
            keys.clear();
            assert!(
                finder.find(&well, piece, &child, &mut keys),
                "{well:?} {child:?}"
            );
            let mut game = start.clone();
            let (last, others) = keys.split_last().unwrap();
            // Every key of a shortest path has an effect.
            assert!(others.iter().all(|&key| game.press(key) == Pressed::Moved));
            assert!(matches!(
                game.press(*last),
                Pressed::Locked { over: false, .. }
            ));
            assert_eq!(game.well(), child);
        }
    }
}

/// Returns the length of the shortest key path to each child in which the game is not over, found by
/// pressing every key in every reachable position.
fn plain_search(well: &Well, piece: Piece) -> BTreeMap<Well, usize> {
    let board = Board::new(STANDARD, well);
    let mut lengths = BTreeMap::new();
    let mut seen = HashSet::from([Position::spawn(STANDARD)]);
    let mut now = vec![Position::spawn(STANDARD)];
    for length in 1.. {
        let mut next = Vec::new();
        for position in now {
            for key in Key::ALL {
                let to = position.moved(key);
                if board.is_free(piece, to) {
                    if seen.insert(to) {
                        next.push(to);
                    }
                } else if key == Key::Down {
                    let lock = board.lock(piece, position, Rules::default());
                    if !lock.over {
                        lengths.entry(lock.board.well()).or_insert(length);
                    }
                }
            }
        }
        if next.is_empty() {
            break;
        }
        now = next;
    }
    lengths
}

#[test]
fn path_finder_finds_shortest_key_paths() {
    let mut finder = PathFinder::new(STANDARD, Rules::default());
    let oracle = Reference::new(STANDARD, Rules::default());
    let mut keys = Vec::new();
    for expansion in expansions().step_by(8) {
        let well = expansion.well();
        for piece in Piece::ALL {
            let lengths = plain_search(&well, piece);
            for (child, &length) in &lengths {
                keys.clear();
                assert!(finder.find(&well, piece, child, &mut keys));
                assert_eq!(keys.len(), length, "{well:?} {piece} {child:?}");
            }
            let outcome = oracle.expand(&well, piece);
            assert_eq!(lengths.len(), outcome.children.len());
            assert_eq!(finder.find_end(&well, piece, &mut keys), outcome.can_die);
        }
    }
}
