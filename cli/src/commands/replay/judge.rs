//! Whether a replay makes sense as a game against an enemy.

use crate::args::MatchArgs;
use crate::input::Replay;
use crate::output;
use anyhow::bail;
use hatebeam_game::{Encoding, Key, Record, better_enemy, play};
use hatebeam_report::count;

/// Number of keys that encodings may have added to the end of a replay: one per conversion.
const PADDING: usize = 2;

/// A replay that was played against the given enemy.
pub(super) struct PlayedReplay {
    pub(super) replay: Replay,
    pub(super) record: Record,
}

impl PlayedReplay {
    /// Plays a replay.
    pub(super) fn play(replay: Replay, game: &MatchArgs) -> anyhow::Result<PlayedReplay> {
        let (geometry, rules) = (game.variant.geometry()?, game.variant.rules());
        let record = play(geometry, rules, game.enemy, &replay.keys);
        Ok(PlayedReplay { replay, record })
    }

    /// Checks that the replay makes sense as a game against its enemy.
    ///
    /// A game whose keys end with it (see [`Record::is_finished`]) is certain. Any other game is compared with the same
    /// keys against the other enemies, where it must score more or be finished.
    pub(super) fn judge(&self, game: &MatchArgs) -> anyhow::Result<()> {
        let (record, keys) = (&self.record, &self.replay.keys);
        let (geometry, rules) = (game.variant.geometry()?, game.variant.rules());
        if let Some(other) = better_enemy(geometry, rules, record, keys)
            && is_meant_for(record, &other)
        {
            bail!("{}", wrong_enemy(record, &other));
        }
        if keys_of_last_piece(record) > PADDING {
            bail!(
                "the replay is truncated: it ends {} into piece {}, and the game is not over (it was read as {})",
                count(keys_of_last_piece(record) as u64, "key"),
                record.turns.len(),
                self.replay.encoding
            );
        }
        Ok(())
    }

    /// Judges a replay that is shown even if it is not valid: problems become warnings.
    pub(super) fn warn(&self, game: &MatchArgs) {
        match self.judge(game) {
            Ok(()) => self.remark(),
            Err(error) => output::warn(error),
        }
    }

    /// Prints what is unusual about a valid replay.
    pub(super) fn remark(&self) {
        let record = &self.record;
        if !record.over {
            let keys = match keys_of_last_piece(record) {
                0 => String::new(),
                keys => format!(" after {}", count(keys as u64, "key")),
            };
            output::note(format_args!(
                "the game is not over: the replay ends with piece {} falling{keys}",
                record.turns.len()
            ));
        }
        if record.keys_unused > usize::from(self.has_padding()) {
            output::warn(format_args!(
                "ignored {} after the end of the game, which is over after key {}",
                count(record.keys_unused as u64, "key"),
                record.keys_used
            ));
        }
    }

    /// Returns whether the encoding may have added the last key.
    fn has_padding(&self) -> bool {
        let added = match self.replay.encoding {
            Encoding::Raw => None,
            Encoding::Hex => Some(Key::Down),
            Encoding::Base65536 | Encoding::Base2048 => Some(Key::Left),
        };
        added.is_some() && self.replay.keys.last().copied() == added
    }
}

/// Returns whether the keys were meant for the enemy of `other`, against which they score more or are finished.
///
/// They were if they are finished there. Otherwise they were if the game lasts to the last key there and ends earlier
/// here, or if it stops between two pieces only there.
fn is_meant_for(record: &Record, other: &Record) -> bool {
    other.is_finished()
        || record.keys_unused > PADDING && !other.over
        || !stops_cleanly(record) && stops_cleanly(other)
}

fn wrong_enemy(record: &Record, other: &Record) -> String {
    let keys = count((record.keys_used + record.keys_unused) as u64, "key");
    let end = if record.over {
        format!("is over after {} of {keys}", record.keys_used)
    } else {
        format!("is not over after all {keys}")
    };
    let difference = match record.first_difference(other) {
        Some(piece) => format!(" (the games differ from piece {piece})"),
        None => String::new(),
    };
    format!(
        "the replay does not fit {}: that game {end}, with a score of {}; it seems to be a game against {}, with a \
         score of {}{difference}",
        record.enemy, record.score, other.enemy, other.score
    )
}

/// Returns the number of keys since the last lock; 0 if the game is over.
fn keys_of_last_piece(record: &Record) -> usize {
    match record.turns.last() {
        Some(turn) if !record.over => record.keys_used - turn.first_key,
        _ => 0,
    }
}

/// Returns whether the keys end with the game or between two pieces.
fn stops_cleanly(record: &Record) -> bool {
    record.keys_unused <= PADDING && keys_of_last_piece(record) <= PADDING
}
