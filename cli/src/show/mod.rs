//! `hatebeam replay show`: a game as a film in the terminal, or as text.

mod film;
mod player;
mod screen;
mod terminal;

use crate::args::ShowArgs;
use crate::input::Replay;
use crate::output::{self, CANNOT_WRITE, Failure, count};
use crate::replay::{judge, play_match, remark};
use anyhow::Context;
use film::Film;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZeroUsize;

/// Runs `hatebeam replay show`. A replay that is not valid is shown nevertheless, with a warning: it
/// may be looked at in order to see why.
pub(crate) fn show(args: &ShowArgs) -> anyhow::Result<()> {
    let replay = Replay::read(&args.input)?;
    let record = play_match(&replay, &args.game)?;
    match judge(&replay, &record, &args.game) {
        Ok(()) => remark(&replay, &record),
        Err(error) => output::warn(error),
    }
    let film = Film::new(args.game.variant.geometry()?, replay.keys, record);
    if let Some(number) = args.well {
        return print_wells(&film, [check_number(&film, number.get())?].into_iter());
    }
    if io::stdout().is_terminal() && args.every.is_none() {
        return terminal::watch(&film).context("cannot use the terminal");
    }
    let every = args.every.map_or(1, NonZeroUsize::get);
    let wells = (1..film.wells()).step_by(every).chain([film.wells()]);
    print_wells(&film, wells)
}

/// The number, if there is such a well.
fn check_number(film: &Film, number: usize) -> Result<usize, Failure> {
    if number <= film.wells() {
        return Ok(number);
    }
    let wells = count(film.wells(), "well");
    Err(Failure::Usage(format!(
        "there is no well {number}: this replay has {wells}, from 1 on"
    )))
}

/// Writes wells as text, each under a line that says what is about to happen in it.
fn print_wells(film: &Film, wells: impl Iterator<Item = usize>) -> anyhow::Result<()> {
    let print = || {
        let mut out = BufWriter::new(io::stdout().lock());
        for (index, number) in wells.enumerate() {
            let frame = film.frame(film.moment_of(number));
            let separator = if index > 0 { "\n" } else { "" };
            let next = match frame.falling {
                Some(falling) => format!("piece {}", falling.piece),
                None => "game over".to_owned(),
            };
            writeln!(
                out,
                "{separator}well {number} of {}: {next}, score {}, {}",
                film.wells(),
                frame.score,
                count(frame.keys, "key")
            )?;
            out.write_all(screen::picture(&frame.board).as_bytes())?;
        }
        out.flush()
    };
    print().context(CANNOT_WRITE)
}
