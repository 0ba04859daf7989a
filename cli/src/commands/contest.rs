//! Options and output that the commands for series of games share.

use crate::args::ThreadsArgs;
use crate::output;
use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser};
use hatebeam_agents::{Contest, GameRecord, Series};
use hatebeam_telemetry::ProgressLine;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{fmt, fs};

#[derive(Debug, clap::Args)]
pub(super) struct SeriesArgs {
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Write the result of every game to this CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a plot of the sorted scores of every player to this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl SeriesArgs {
    /// Plays a series of games and shows its progress. `play` receives the number of threads, and a function that it must
    /// call after each game.
    pub(super) fn play<R: Into<GameRecord>>(
        &self,
        name: &str,
        games: usize,
        play: impl FnOnce(usize, &(dyn Fn() + Sync)) -> Vec<R>,
    ) -> Series {
        let done = Arc::<AtomicUsize>::default();
        let line = ProgressLine::start({
            let (done, name) = (Arc::clone(&done), name.to_owned());
            move || format!("{name}: game {} of {games}", done.load(Ordering::Relaxed))
        });
        let started = Instant::now();
        let on_game = || {
            done.fetch_add(1, Ordering::Relaxed);
        };
        let results = play(self.threads.count(), &on_game);
        drop(line);
        Series {
            name: name.to_owned(),
            games: results.into_iter().map(Into::into).collect(),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// Prints a text, unless --json is given.
    pub(super) fn show_text(&self, text: fmt::Arguments<'_>) -> anyhow::Result<()> {
        if self.json {
            Ok(())
        } else {
            output::print(text)
        }
    }

    /// Prints a contest, and writes the files of --csv and --svg.
    pub(super) fn show(&self, contest: &Contest) -> anyhow::Result<()> {
        let write = |path: &Option<PathBuf>, text: &dyn Fn() -> String| match path {
            Some(path) => {
                fs::write(path, text()).with_context(|| format!("cannot write {}", path.display()))
            }
            None => Ok(()),
        };
        write(&self.csv, &|| contest.csv())?;
        write(&self.svg, &|| contest.svg())?;
        if self.json {
            return output::print(contest.json()? + "\n");
        }
        output::print(contest.text())
    }
}

/// Returns a parser for names. The help shows the description of each name.
pub(super) fn names(
    all: impl Iterator<Item = (&'static str, &'static str)>,
) -> PossibleValuesParser {
    all.map(|(name, description)| PossibleValue::new(name).help(description))
        .into()
}
