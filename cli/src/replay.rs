//! `hatebeam replay verify` and `hatebeam replay convert`.

use crate::args::{ConvertArgs, Form, MatchArgs, VerifyArgs};
use crate::input::Replay;
use crate::output::{self, Failure, count};
use anyhow::bail;
use hatebeam_game::{Encoding, Enemy, Game, Key, Record, better_enemy, decode, encode, play};
use hatebeam_report::{Film, picture};
use serde::Serialize;
use std::fmt::Write;

/// Keys that encodings may have added to the end of a replay: one each time it was converted.
const PADDING: usize = 2;

/// What `verify --json` prints.
#[derive(Debug, Serialize)]
struct Report {
    valid: bool,
    enemy: &'static str,
    score: u32,
    /// Pieces given: the last one is still under way, unless the game is over.
    pieces: usize,
    /// Keys used.
    keys: usize,
    over: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Report {
    fn new(record: &Record, verdict: &anyhow::Result<()>) -> Report {
        Report {
            valid: verdict.is_ok(),
            enemy: record.enemy.name(),
            score: record.score,
            pieces: record.turns.len(),
            keys: record.keys_used,
            over: record.over,
            error: verdict.as_ref().err().map(|error| format!("{error:#}")),
        }
    }

    /// The report on something that cannot be read as a replay: nothing was played.
    fn unreadable(enemy: Enemy, error: &anyhow::Error) -> Report {
        Report {
            valid: false,
            enemy: enemy.name(),
            score: 0,
            pieces: 0,
            keys: 0,
            over: false,
            error: Some(format!("{error:#}")),
        }
    }

    /// Prints the report; what is not valid makes the run fail.
    fn print(&self) -> anyhow::Result<()> {
        let printed = output::print(&format_args!("{}\n", serde_json::to_string(self)?));
        if self.valid {
            printed
        } else {
            Err(Failure::Printed.into())
        }
    }
}

/// Runs `hatebeam replay verify`.
pub(crate) fn verify(args: &VerifyArgs) -> anyhow::Result<()> {
    let replay = match Replay::read(&args.input) {
        Err(error) if args.json && !error.is::<Failure>() => {
            return Report::unreadable(args.game.enemy, &error).print();
        }
        replay => replay?,
    };
    let record = play_match(&replay, &args.game)?;
    let verdict = judge(&replay, &record, &args.game)
        .and_then(|()| expect_score(record.score, args.expect_score));
    if verdict.is_ok() {
        remark(&replay, &record);
    }
    if args.json {
        return Report::new(&record, &verdict).print();
    }
    verdict?;
    output::print(&summary(&replay, &record))
}

/// Plays a replay against the enemy that is claimed.
pub(crate) fn play_match(replay: &Replay, game: &MatchArgs) -> anyhow::Result<Record> {
    let variant = &game.variant;
    Ok(play(
        variant.geometry()?,
        variant.rules(),
        game.enemy,
        &replay.keys,
    ))
}

/// Whether a replay makes sense as a game against the enemy that is claimed.
///
/// A game whose keys end where it does (see [`Record::is_finished`]) is beyond doubt. Any other is
/// held against the same keys under the other enemies, where it must score more or be finished.
pub(crate) fn judge(replay: &Replay, record: &Record, game: &MatchArgs) -> anyhow::Result<()> {
    let variant = &game.variant;
    let better = better_enemy(variant.geometry()?, variant.rules(), record, &replay.keys);
    if let Some(other) = better
        && is_meant_for(record, &other)
    {
        bail!("{}", wrong_enemy(record, &other));
    }
    if keys_under_way(record) > PADDING {
        bail!(
            "the replay is truncated: it ends in the middle of piece {}, {} into it, and the game \
             is not over (it was read as {})",
            record.turns.len(),
            count(keys_under_way(record), "key"),
            replay.encoding
        );
    }
    Ok(())
}

/// Whether the keys were meant for the enemy of `other`, under whom they score more or are finished.
///
/// They were if they are finished there. If they are not, but score more: they were if the game lasts
/// to the last key there and ends before it here, or if it stops between two pieces only there.
fn is_meant_for(record: &Record, other: &Record) -> bool {
    other.is_finished()
        || record.keys_unused > PADDING && !other.over
        || !stops_cleanly(record) && stops_cleanly(other)
}

fn wrong_enemy(record: &Record, other: &Record) -> String {
    let keys = record.keys_used + record.keys_unused;
    let mut text = format!("the replay does not fit {}: that game ", record.enemy);
    let _ = if record.over {
        write!(
            text,
            "is over after {} of {}",
            record.keys_used,
            count(keys, "key")
        )
    } else {
        write!(text, "is not over after all {}", count(keys, "key"))
    };
    let _ = write!(
        text,
        ", with a score of {}; it seems to be a game against {}, with a score of {}",
        record.score, other.enemy, other.score
    );
    if let Some(piece) = record.first_difference(other) {
        let _ = write!(text, " (the two part at piece {piece})");
    }
    text
}

fn expect_score(score: u32, expected: Option<u32>) -> anyhow::Result<()> {
    match expected {
        Some(expected) if expected != score => {
            bail!("the score is {score}, not the {expected} expected")
        }
        _ => Ok(()),
    }
}

/// Says on standard error what is odd about a replay that is valid.
pub(crate) fn remark(replay: &Replay, record: &Record) {
    if !record.over {
        let under_way = match keys_under_way(record) {
            0 => String::new(),
            keys => format!(", {} into it", count(keys, "key")),
        };
        output::note(format_args!(
            "the game is not over: the replay ends with piece {} under way{under_way}",
            record.turns.len()
        ));
    }
    if record.keys_unused > usize::from(has_padding(replay)) {
        output::warn(format_args!(
            "{} after the end of the game, ignored: the game is over after key {}",
            count(record.keys_unused, "key"),
            record.keys_used
        ));
    }
}

/// Whether the last key can be one that the encoding has added.
fn has_padding(replay: &Replay) -> bool {
    let added = match replay.encoding {
        Encoding::Raw => None,
        Encoding::Hex => Some(Key::Down),
        Encoding::Base65536 | Encoding::Base2048 => Some(Key::Left),
    };
    added.is_some() && replay.keys.last().copied() == added
}

/// Keys pressed since the last lock, if the game is not over.
fn keys_under_way(record: &Record) -> usize {
    match record.turns.last() {
        Some(turn) if !record.over => record.keys_used - turn.first_key,
        _ => 0,
    }
}

/// Whether the keys end where the game does or between two pieces.
fn stops_cleanly(record: &Record) -> bool {
    record.keys_unused <= PADDING && keys_under_way(record) <= PADDING
}

fn summary(replay: &Replay, record: &Record) -> String {
    let (under_way, over) = if record.over {
        ("", "yes")
    } else {
        (" (the last one is under way)", "no")
    };
    format!(
        "valid\nencoding   {}\nenemy      {}\nscore      {}\npieces     {}{under_way}\n\
         keys       {} of {}\ngame over  {over}\n",
        replay.encoding,
        record.enemy,
        record.score,
        record.turns.len(),
        record.keys_used,
        replay.keys.len(),
    )
}

/// Runs `hatebeam replay convert`.
pub(crate) fn convert(args: &ConvertArgs) -> anyhow::Result<()> {
    let replay = Replay::read(&args.input)?;
    match args.to {
        Form::Keys(encoding) => rewrite(&replay, encoding),
        Form::Json => {
            let film = film(&replay, &args.game)?;
            output::print(&format_args!("{}\n", serde_json::to_string(&film)?))
        }
        Form::Svg => output::print(&picture(&film(&replay, &args.game)?, "")),
    }
}

fn rewrite(replay: &Replay, to: Encoding) -> anyhow::Result<()> {
    let text = encode(&replay.keys, to);
    if !matches!(decode(&text), Ok((_, encoding)) if encoding == to) {
        output::warn(format_args!(
            "a text this short can be taken for another encoding than {to}: read it with --from {to}"
        ));
    }
    output::print(&format_args!("{text}\n"))
}

/// The game of a replay. One that is not valid is shown nevertheless, with a warning.
fn film(replay: &Replay, game: &MatchArgs) -> anyhow::Result<Film> {
    let record = play_match(replay, game)?;
    match judge(replay, &record, game) {
        Ok(()) => remark(replay, &record),
        Err(error) => output::warn(error),
    }
    let variant = &game.variant;
    let begun = Game::new(variant.geometry()?, variant.rules(), game.enemy);
    Ok(Film::of_game(begun, &replay.keys)?)
}
