//! Playing a replay against an enemy, and checking whether it is a valid and complete game.

use crate::args::MatchArgs;
use crate::input::{Replay, ignored_keys};
use crate::output;
use anyhow::bail;
use hatebeam_game::{Encoding, Key, Record, ReplayFault, play};
use hatebeam_report::count;

/// A replay, and the record of playing it against an enemy.
pub(super) struct PlayedReplay {
    pub(super) replay: Replay,
    pub(super) record: Record,
}

impl PlayedReplay {
    pub(super) fn play(replay: Replay, game: &MatchArgs) -> anyhow::Result<PlayedReplay> {
        let (geometry, rules) = (game.variant.geometry()?, game.variant.rules());
        let record = play(geometry, rules, game.enemy, &replay.keys);
        Ok(PlayedReplay { replay, record })
    }

    /// Checks that the replay is a valid game against the enemy.
    pub(super) fn judge(&self, game: &MatchArgs) -> anyhow::Result<()> {
        let (geometry, rules) = (game.variant.geometry()?, game.variant.rules());
        let checked = self.record.check(geometry, rules, &self.replay.keys);
        if let Err(fault @ ReplayFault::Truncated { .. }) = checked {
            bail!("{fault} (it was read as {})", self.replay.encoding);
        }
        Ok(checked?)
    }

    /// Prints a warning if the replay is invalid. Otherwise, calls [`PlayedReplay::remark`].
    pub(super) fn warn(&self, game: &MatchArgs) {
        match self.judge(game) {
            Ok(()) => self.remark(),
            Err(error) => output::warn(error),
        }
    }

    /// Prints a note or a warning if a valid replay stops before the end of the game or continues after it.
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
            output::warn(ignored_keys(record));
        }
    }

    /// Returns whether the last key may be padding that the encoding added.
    fn has_padding(&self) -> bool {
        let added = match self.replay.encoding {
            Encoding::Raw => None,
            Encoding::Hex => Some(Key::Down),
            Encoding::Base65536 | Encoding::Base2048 => Some(Key::Left),
        };
        added.is_some() && self.replay.keys.last().copied() == added
    }
}
