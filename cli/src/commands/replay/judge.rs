//! Playing a replay against an enemy, and what is unusual about it.

use crate::args::MatchArgs;
use crate::input::Replay;
use crate::output;
use anyhow::bail;
use hatebeam_game::{Encoding, Key, Record, ReplayFault, play};
use hatebeam_report::count;

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
    pub(super) fn judge(&self, game: &MatchArgs) -> anyhow::Result<()> {
        let (geometry, rules) = (game.variant.geometry()?, game.variant.rules());
        let checked = self.record.check(geometry, rules, &self.replay.keys);
        if let Err(fault @ ReplayFault::Truncated { .. }) = checked {
            bail!("{fault} (it was read as {})", self.replay.encoding);
        }
        Ok(checked?)
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
            let keys = match record.keys_of_last_piece() {
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
