//! Options and output that the commands for series of games share.

use crate::args::ThreadsArgs;
use crate::output;
use clap::builder::{PossibleValue, PossibleValuesParser};
use hatebeam_agents::{Contest, GameRecord, Series};
use hatebeam_store::write_whole;
use hatebeam_telemetry::ProgressLine;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

#[derive(Debug, clap::Args)]
pub(super) struct SeriesArgs {
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
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

    /// Checks that the files of --csv and --svg can be written, before the games are played.
    pub(super) fn check_files(&self) -> anyhow::Result<()> {
        let mut files = self.csv.iter().chain(&self.svg);
        files.try_for_each(|file| output::check_writable(file))
    }

    /// Prints a contest, and writes the files of --csv and --svg.
    pub(super) fn show(&self, contest: &Contest) -> anyhow::Result<()> {
        let text = if self.json {
            contest.json()? + "\n"
        } else {
            contest.text()
        };
        self.show_as(&text, contest)
    }

    /// Prints the text of a contest, and writes the files of --csv and --svg. A failure of one of these outputs does not
    /// prevent the others, because the games may have taken long.
    pub(super) fn show_as(&self, text: &str, contest: &Contest) -> anyhow::Result<()> {
        let write = |path: &Option<PathBuf>, text: &dyn Fn() -> String| match path {
            Some(path) => Ok(write_whole(path, text().as_bytes())?),
            None => Ok(()),
        };
        let printed = output::print(text);
        let csv = write(&self.csv, &|| contest.csv());
        let svg = write(&self.svg, &|| contest.svg());
        csv.and(svg).and(printed)
    }
}

/// Returns a parser for names. The help shows the description of each name.
pub(super) fn names(
    all: impl Iterator<Item = (&'static str, &'static str)>,
) -> PossibleValuesParser {
    all.map(|(name, description)| PossibleValue::new(name).help(description))
        .into()
}
