//! `hatebeam replay show`: play a replay in the terminal, or print its wells.

use super::judge::PlayedReplay;
use crate::args::{MatchArgs, ReplayInput};
use crate::input::Replay;
use crate::output::CANNOT_WRITE;
use anyhow::{Context, ensure};
use clap::builder::RangedU64ValueParser;
use hatebeam_player::{Timeline, picture, watch};
use hatebeam_report::count;
use std::io::{self, BufWriter, IsTerminal, Write};

#[derive(Debug, clap::Args)]
#[command(after_help = help!("replay-show"))]
pub(super) struct ShowArgs {
    #[command(flatten)]
    input: ReplayInput,
    #[command(flatten)]
    game: MatchArgs,
    /// Print well number N as text: the well in which piece N appears
    #[arg(long, value_name = "N", conflicts_with = "every")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    well: Option<usize>,
    /// Print every Nth well and the last well as text
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    every: Option<usize>,
}

impl ShowArgs {
    /// Shows the replay. An invalid replay only causes a warning, so that the user can find the mistake.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let played = PlayedReplay::play(Replay::read(&self.input)?, &self.game)?;
        played.warn(&self.game);
        let geometry = self.game.variant.geometry()?;
        let timeline = Timeline::new(geometry, played.replay.keys, played.record);
        if let Some(number) = self.well {
            let wells = timeline.wells();
            ensure!(
                number <= wells,
                "there is no well {number}: the replay has {}, numbered from 1",
                count(wells as u64, "well")
            );
            return print_wells(&timeline, [number].into_iter());
        }
        if io::stdout().is_terminal() && self.every.is_none() {
            return watch(&timeline).context("cannot use the terminal");
        }
        let every = self.every.unwrap_or(1);
        let last = timeline.wells();
        print_wells(&timeline, (1..last).step_by(every).chain([last]))
    }
}

/// Prints wells as text. A line above each well gives its number, the piece, the score and the number of keys.
fn print_wells(timeline: &Timeline, wells: impl Iterator<Item = usize>) -> anyhow::Result<()> {
    let print = || {
        let mut out = BufWriter::new(io::stdout().lock());
        for (index, number) in wells.enumerate() {
            let frame = timeline.frame(timeline.moment_of(number));
            let separator = if index > 0 { "\n" } else { "" };
            let next = match frame.falling {
                Some(falling) => format!("piece {}", falling.piece),
                None => "game over".to_owned(),
            };
            writeln!(
                out,
                "{separator}well {number} of {}: {next}, score {}, {}",
                timeline.wells(),
                frame.score,
                count(frame.keys as u64, "key")
            )?;
            out.write_all(picture(&frame.board).as_bytes())?;
        }
        out.flush()
    };
    print().context(CANNOT_WRITE)
}
