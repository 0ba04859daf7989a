//! Tests public replays of whole games.
#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::{
    Encoding, Enemy, Geometry, Key, Piece, Record, Rules, Well, better_enemy, decode, encode, play,
    replay_of_wells,
};
use serde::Deserialize;
use std::collections::BTreeMap;

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
