//! `hatebeam splice`: find a longer game among the wells of given games.

use crate::args::{ThreadsArgs, number_in};
use crate::input::{read_replays, read_wells, warn_of_ignored_keys};
use crate::output::{self, Failure, OutputFile};
use anyhow::{Context, ensure};
use hatebeam_game::{
    Emulator, Encoding, Enemy, Geometry, Key, PathError, Record, Rules, Well, encode, play,
    replay_of_wells,
};
use hatebeam_host::stop_flag;
use hatebeam_report::{count, duration, grouped};
use hatebeam_splice::{MAX_WELLS, RoundProgress, Settings, Splicer, Step, TRIES, Watch};
use hatebeam_telemetry::show_progress;
use serde::Serialize;
use std::path::{Path, PathBuf, absolute};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
#[command(after_help = help!("splice"))]
pub(crate) struct SpliceArgs {
    /// Files with one replay per line, such as `own-games.txt` of a training
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Maximum number of rounds that add wells to the graph
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=100))]
    rounds: u8,
    /// Maximum number of steps; a step searches other ways for eight million parts of the game, or is a round [default: no
    /// limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Maximum time in seconds [default: 60, or no limit if --steps is given]
    #[arg(long, value_name = "S", value_parser = number_in(0.001..=1e8, "a number of seconds"))]
    seconds: Option<f64>,
    /// Seed of the random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the replay of the longest game so far to this file, at the start and after each step that makes it longer; the
    /// replay of an existing file is added to the given games
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Add the wells in this file to the graph, if it exists, and write those of the graph to it at the start and after each
    /// round
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct ResultJson {
    /// Number of wells in the graph.
    wells: usize,
    /// Upper bound for the pieces of games in the graph with the same excluded pieces.
    most_pieces: usize,
    score: u32,
    pieces: usize,
    /// Score of the longest game given.
    was_score: u32,
    was_pieces: usize,
    /// Number of parts for which another way was searched.
    tried: u64,
    seconds: f64,
    replay: String,
}

impl SpliceArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        let files = [
            OutputFile {
                argument: "--out",
                path: self.out.as_deref(),
            },
            OutputFile {
                argument: "--graph",
                path: self.graph.as_deref(),
            },
        ];
        output::check_files(&files)?;
        let cancel = stop_flag()?;
        let limits = Limits {
            cancel: &cancel,
            deadline: self.deadline(started),
        };
        let games = self.read_games()?;
        let longest = games.iter().rev().max_by_key(|game| game.turns.len());
        let longest = longest.context("the files contain no replays")?;
        let wells: Vec<Vec<Well>> = games.iter().map(|game| game.wells().collect()).collect();
        let settings = Settings {
            rounds: self.rounds.into(),
            tries: TRIES,
            seed: self.seed,
            threads: self.threads.count(),
        };
        show_progress("collecting wells");
        let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
        let is_over = || limits.is_over();
        let mut splicer = Splicer::new(&emulator, &wells, settings, &is_over)?;
        if let Some(path) = &self.graph {
            let known = read_wells(path, Geometry::STANDARD, MAX_WELLS)?;
            splicer.add(known.unwrap_or_default())?;
        }
        let improved = self.improve(&mut splicer, longest.over, started, limits);
        show_progress("");
        let keys = keys_of(&splicer, longest.over)?;
        let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
        let result = ResultJson {
            wells: splicer.graph().len(),
            most_pieces: splicer.most_pieces(),
            score: record.score,
            pieces: record.turns.len(),
            was_score: longest.score,
            was_pieces: longest.turns.len(),
            tried: splicer.tried(),
            seconds: started.elapsed().as_secs_f64(),
            replay: encode(&keys, Encoding::Base2048),
        };
        if self.json {
            output::print_json(&result)?;
        } else {
            output::print(result.text())?;
        }
        // A file could not be written. The game found so far is printed nevertheless, because it may have taken hours.
        improved?;
        if cancel.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted.into());
        }
        Ok(())
    }

    /// Reads and plays the replays of all files, including the file of --out if it exists. Otherwise, a shorter game could
    /// replace the longest game of an earlier search. Refuses a file of --out with several replays, which would be lost.
    fn read_games(&self) -> anyhow::Result<Vec<Record>> {
        let mut games = Vec::new();
        for file in &self.files {
            games.extend(games_in(file)?);
        }
        let is_given = |out: &PathBuf| {
            let mut files = self.files.iter();
            files.any(|file| absolute(file).ok() == absolute(out).ok())
        };
        if let Some(out) = &self.out
            && out.exists()
        {
            let found = games_in(out).with_context(|| {
                format!(
                    "--out would overwrite {}, which is not a file of replays: choose another file",
                    out.display()
                )
            })?;
            ensure!(
                found.len() <= 1,
                "--out would replace the {} replays of {} by one: choose another file",
                found.len(),
                out.display()
            );
            if !is_given(out) {
                games.extend(found);
            }
        }
        Ok(games)
    }

    /// Returns the time at which the search ends, unless it has no limit.
    fn deadline(&self, started: Instant) -> Option<Instant> {
        let seconds = self.seconds.or(self.steps.is_none().then_some(60.0));
        seconds.map(|seconds| started + Duration::from_secs_f64(seconds))
    }

    /// Improves the game until a limit is reached or the user cancels, and writes the files of --out and --graph. `over` is
    /// whether the game ends.
    fn improve(
        &self,
        splicer: &mut Splicer,
        over: bool,
        started: Instant,
        limits: Limits<'_>,
    ) -> anyhow::Result<()> {
        let mut steps = 0;
        let mut written = 0;
        let mut is_new_graph = true;
        loop {
            if let Some(out) = &self.out
                && splicer.pieces() > written
            {
                written = splicer.pieces();
                let replay = encode(&keys_of(splicer, over)?, Encoding::Base2048);
                output::write_file(out, (replay + "\n").as_bytes())?;
            }
            if let Some(path) = &self.graph
                && is_new_graph
            {
                let wells = splicer.graph().iter();
                let lines = wells.map(|well| well.to_hex(Geometry::STANDARD) + "\n");
                output::write_file(path, lines.collect::<String>().as_bytes())?;
            }
            let watch = StepWatch {
                limits,
                started,
                pieces: splicer.pieces(),
                wells: splicer.graph().len(),
                tried: splicer.tried(),
            };
            if self.steps.is_some_and(|limit| steps >= limit) || watch.is_cancelled() {
                return Ok(());
            }
            watch.show("");
            is_new_graph = matches!(splicer.advance(&watch), Step::Grew(_));
            steps += 1;
        }
    }
}

/// Reads and plays the replays of a file.
fn games_in(file: &Path) -> anyhow::Result<Vec<Record>> {
    let mut games = Vec::new();
    for (number, keys) in read_replays(file)? {
        let game = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
        let name = || format!("{}, line {number}", file.display());
        game.check(Geometry::STANDARD, Rules::default(), &keys)
            .with_context(name)?;
        warn_of_ignored_keys(name(), &game);
        games.push(game);
    }
    Ok(games)
}

/// Returns the keys of the splicer's game.
fn keys_of(splicer: &Splicer, over: bool) -> Result<Vec<Key>, PathError> {
    replay_of_wells(
        Geometry::STANDARD,
        Rules::default(),
        Enemy::Hatetris,
        &splicer.wells(),
        over,
    )
}

/// What ends the search, apart from the number of steps.
#[derive(Clone, Copy)]
struct Limits<'a> {
    cancel: &'a AtomicBool,
    deadline: Option<Instant>,
}

impl Limits<'_> {
    /// Returns whether the time is over or the user has cancelled the search.
    fn is_over(&self) -> bool {
        let is_late = |deadline| Instant::now() >= deadline;
        self.cancel.load(Ordering::Relaxed) || self.deadline.is_some_and(is_late)
    }
}

/// Shows the progress of a step, and ends it if the time is over or the user cancels.
struct StepWatch<'a> {
    limits: Limits<'a>,
    started: Instant,
    /// Numbers before the step: pieces of the game, wells of the graph, and parts tried.
    pieces: usize,
    wells: usize,
    tried: u64,
}

impl StepWatch<'_> {
    fn show(&self, round: &str) {
        show_progress(format_args!(
            "{}, {} wells, {} parts tried, {}{round}",
            count(self.pieces as u64, "piece"),
            grouped(self.wells as u64),
            grouped(self.tried),
            duration(self.started.elapsed()),
        ));
    }
}

impl Watch for StepWatch<'_> {
    fn is_cancelled(&self) -> bool {
        self.limits.is_over()
    }

    fn progress(&self, progress: RoundProgress) {
        let RoundProgress {
            stage,
            stages,
            searched,
            wells,
        } = progress;
        let percent = 100 * searched / wells.max(1);
        self.show(&format!(
            ", searching wells: stage {stage} of {stages}, {percent} %"
        ));
    }
}

impl ResultJson {
    fn text(&self) -> String {
        format!(
            "score     {} (was {})\npieces    {} (was {}, at most {})\nwells     {}\ntried     {} parts\ntime      {}\nreplay    {}\n",
            self.score,
            self.was_score,
            self.pieces,
            self.was_pieces,
            self.most_pieces,
            grouped(self.wells as u64),
            grouped(self.tried),
            duration(Duration::from_secs_f64(self.seconds)),
            self.replay,
        )
    }
}
