//! `hatebeam solve`: search the whole game tree of a small well.

use crate::args::{ThreadsArgs, VariantArgs, enemy_parser};
use crate::output::{self, Failure};
use anyhow::{Context, ensure};
use hatebeam_game::{Encoding, Enemy, Well, encode, play, replay_of_wells};
use hatebeam_host::{available_memory, peak_memory, stop_flag};
use hatebeam_report::{bytes, duration};
use hatebeam_search::complete::{
    GameTree, MIN_MEMORY, Progress, Resources, SolveError, check_scratch, solve,
};
use hatebeam_telemetry::{ProgressLine, show_progress};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const HELP: &str = "\
Generates the whole game tree level by level. A level is the set of all wells after the same number of pieces. The search
uses HATETRIS Mild instead of HATETRIS; Mild chooses the same pieces until a well repeats. Then the best game and the
longest game are played by the exact rules.

Data that does not fit in half of --memory is written to files in --scratch, which are removed at the end. A well with ten
columns and six rows takes seconds. Seven rows take some minutes and 3 GB of memory or disk. Each further row takes about
thirty times as much time and memory or disk.

With --json, prints one object with best_lines, longest (number of pieces, without the fatal one), widest (number of wells
at the largest level), levels (number of wells after 0, 1, 2 ... pieces), best_replay, longest_replay (Base2048), seconds,
peak_rss_bytes, stored_bytes (of all levels), scratch_bytes (maximum size of the files).

Examples:
  hatebeam solve --width 10 --height 5
  hatebeam solve --width 10 --height 7 --memory 8000 --scratch /data/tmp
  hatebeam solve --width 8 --height 5 --clear-above-bar --json";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct SolveArgs {
    #[command(flatten)]
    variant: VariantArgs,
    /// Algorithm that chooses the pieces: hatetris, mild, lovetris or burgiel
    #[arg(long, value_name = "ENEMY", default_value = Enemy::Hatetris.name())]
    #[arg(value_parser = enemy_parser(), ignore_case = true)]
    enemy: Enemy,
    /// Maximum memory in MiB [default: half of the available memory]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(64..=16_777_216))]
    memory: Option<u64>,
    /// Folder for data that does not fit in memory [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct SolutionJson {
    width: usize,
    height: usize,
    enemy: &'static str,
    best_lines: u32,
    longest: usize,
    widest: u64,
    levels: Vec<u64>,
    best_replay: String,
    longest_replay: String,
    seconds: f64,
    peak_rss_bytes: Option<u64>,
    stored_bytes: u64,
    scratch_bytes: u64,
}

impl SolveArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let game = GameTree {
            geometry: self.variant.geometry()?,
            rules: self.variant.rules(),
            enemy: self.enemy,
        };
        let resources = self.resources()?;
        let started = Instant::now();
        let cancel = stop_flag()?;
        if !self.json {
            output::print("pieces           wells       time\n")?;
        }
        let mut printed = Ok(());
        let mut print_level = |level: usize, wells: u64| {
            if !self.json && printed.is_ok() {
                show_progress("");
                let time = duration(started.elapsed());
                printed = output::print(format_args!("{level:>6}  {wells:>14}  {time:>9}\n"));
            }
        };
        let progress = Arc::<Progress>::default();
        let shown = Arc::clone(&progress);
        let line = ProgressLine::start(move || progress_text(&shown));
        let solved = solve(game, &resources, &cancel, &progress, &mut print_level);
        drop(line);
        let solution = match solved {
            Err(SolveError::Cancelled) => return Err(Failure::Interrupted.into()),
            solution => solution?,
        };
        printed?;
        let solution = SolutionJson {
            width: game.geometry.width(),
            height: game.geometry.height(),
            enemy: game.enemy.name(),
            best_lines: solution.best_lines,
            longest: solution.longest.len() - 1,
            widest: solution.levels.iter().copied().max().unwrap_or(0),
            best_replay: replay(&game, &solution.best).context("cannot replay the best game")?,
            longest_replay: replay(&game, &solution.longest)
                .context("cannot replay the longest game")?,
            levels: solution.levels,
            seconds: started.elapsed().as_secs_f64(),
            peak_rss_bytes: peak_memory(),
            stored_bytes: solution.bytes,
            scratch_bytes: solution.scratch_bytes,
        };
        if self.json {
            return output::print_json(&solution);
        }
        output::print(solution.text())
    }

    fn resources(&self) -> anyhow::Result<Resources> {
        let scratch = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        check_scratch(&scratch)?;
        let half = || (available_memory().unwrap_or(4 << 30) / 2).max(MIN_MEMORY);
        Ok(Resources {
            threads: self.threads.count(),
            memory: self.memory.map_or_else(half, |mebibytes| mebibytes << 20),
            scratch,
        })
    }
}

impl SolutionJson {
    fn text(&self) -> String {
        format!(
            "\nbest score  {}\nlongest     {} pieces\nwidest      {} wells\nwells       {}\ntime        {}\n\
             memory      {}\nstored      {}\nscratch     {}\nbest        {}\nlongest     {}\n",
            self.best_lines,
            self.longest,
            self.widest,
            self.levels.iter().sum::<u64>(),
            duration(Duration::from_secs_f64(self.seconds)),
            self.peak_rss_bytes.map_or("unknown".to_owned(), bytes),
            bytes(self.stored_bytes),
            bytes(self.scratch_bytes),
            self.best_replay,
            self.longest_replay,
        )
    }
}

/// Returns the keys of the game through `wells`, in Base2048. If the next piece can end the game, the keys include that
/// piece. Returns an error if the game does not reach its last well when it is played by the exact rules.
fn replay(game: &GameTree, wells: &[Well]) -> anyhow::Result<String> {
    let &GameTree {
        geometry,
        rules,
        enemy,
    } = game;
    let keys = replay_of_wells(geometry, rules, enemy, wells, true)
        .or_else(|_| replay_of_wells(geometry, rules, enemy, wells, false))
        .with_context(|| {
            format!("the game is valid under HATETRIS Mild, but {enemy} chooses another piece")
        })?;
    let record = play(geometry, rules, enemy, &keys);
    let last = wells.len() - 1;
    let reached = record.turns.get(last).map(|turn| turn.well);
    ensure!(
        reached.as_ref() == wells.last(),
        "the game reaches another well when it is played: this is a bug in hatebeam"
    );
    Ok(encode(&keys, Encoding::Base2048))
}

/// Describes the progress of the current level.
fn progress_text(progress: &Progress) -> String {
    let level = progress.level.load(Ordering::Relaxed);
    let done = progress.expanded.load(Ordering::Relaxed);
    let all = progress.parents.load(Ordering::Relaxed).max(1);
    match 100 * done / all {
        100 => format!("level {level}: merging"),
        percent => format!("level {level}: {percent} %"),
    }
}
