//! Options and output that the commands for series of games share.

use crate::args::ThreadsArgs;
use crate::output::{self, Failure, OutputFile};
use clap::builder::{PossibleValue, PossibleValuesParser};
use hatebeam_agents::{Contest, GameRecord, Series};
use hatebeam_telemetry::ProgressLine;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

/// A player with the name that the results show.
pub(super) struct Named<P> {
    pub(super) name: String,
    pub(super) player: P,
}

/// Finds the players with the given names and reads those of the weights files, so that errors appear before games have
/// been played.
pub(super) fn players<P, F, R>(
    names: &[String],
    files: &[PathBuf],
    find: impl Fn(&str) -> Result<P, F>,
    read: impl Fn(&Path) -> Result<P, R>,
) -> anyhow::Result<Vec<Named<P>>>
where
    anyhow::Error: From<F> + From<R>,
{
    let mut players = Vec::with_capacity(names.len() + files.len());
    for name in names {
        players.push(Named {
            name: name.clone(),
            player: find(name)?,
        });
    }
    for path in files {
        players.push(Named {
            name: path.display().to_string(),
            player: read(path)?,
        });
    }
    Ok(players)
}

impl SeriesArgs {
    /// Plays a series of games and shows its progress. `play` receives the number of threads, and a function that it must
    /// call after each game. If this function returns `false`, because `stop` is set, no other game must begin.
    pub(super) fn play<R: Into<GameRecord>>(
        &self,
        name: &str,
        games: usize,
        stop: &AtomicBool,
        play: impl FnOnce(usize, &(dyn Fn() -> bool + Sync)) -> Vec<R>,
    ) -> Series {
        let is_stopped = || stop.load(Ordering::Relaxed);
        let done = Arc::<AtomicUsize>::default();
        let line = ProgressLine::start({
            let (done, name) = (Arc::clone(&done), name.to_owned());
            move || format!("{name}: game {} of {games}", done.load(Ordering::Relaxed))
        });
        let started = Instant::now();
        let on_game = || {
            done.fetch_add(1, Ordering::Relaxed);
            !is_stopped()
        };
        let results = if is_stopped() {
            Vec::new()
        } else {
            play(self.threads.count(), &on_game)
        };
        drop(line);
        Series {
            name: name.to_owned(),
            games: results.into_iter().map(Into::into).collect(),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// Checks that the files of --csv and --svg, and the file `out` of the argument OUT, can be written, before the games
    /// are played.
    pub(super) fn check_files(&self, out: Option<&Path>) -> anyhow::Result<()> {
        let files = [
            OutputFile {
                argument: "OUT",
                path: out,
            },
            OutputFile {
                argument: "--csv",
                path: self.csv.as_deref(),
            },
            OutputFile {
                argument: "--svg",
                path: self.svg.as_deref(),
            },
        ];
        output::check_files(&files)
    }

    /// Prints a contest, and writes the files of --csv and --svg. If `stop` is set, shows only the games that all players
    /// have finished, and returns [`Failure::Interrupted`].
    pub(super) fn show(&self, mut contest: Contest, stop: &AtomicBool) -> anyhow::Result<()> {
        let is_stopped = stop.load(Ordering::Relaxed);
        if is_stopped {
            contest.keep_common_games();
        }
        if !contest.series.is_empty() {
            let text = if self.json {
                contest.json()? + "\n"
            } else {
                contest.text()
            };
            self.show_as(&text, &contest)?;
        }
        if is_stopped {
            return Err(Failure::Interrupted.into());
        }
        Ok(())
    }

    /// Prints the text of a contest, and writes the files of --csv and --svg. A failure of one of these outputs does not
    /// prevent the others, because the games may have taken long.
    pub(super) fn show_as(&self, text: &str, contest: &Contest) -> anyhow::Result<()> {
        let write = |path: &Option<PathBuf>, text: &dyn Fn() -> String| match path {
            Some(path) => output::write_file(path, text().as_bytes()),
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
