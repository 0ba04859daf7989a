//! `hatebeam solve`: search the whole game tree of a small well.

use crate::args::{ThreadsArgs, VariantArgs, folder_parser, solved_enemy_parser};
use crate::output::{self, Failure};
use anyhow::Context;
use hatebeam_game::{Encoding, Enemy, encode};
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

/// Default number of rows. A well with 10 columns and the standard number of rows has more cells than a search supports.
const DEFAULT_ROWS: &str = "6";

const ROWS_HELP: &str =
    "Rows of the well below the bar, 1 to 16; the well can have at most 128 cells";

#[derive(Debug, clap::Args)]
#[command(after_help = help!("solve"), mut_arg("rows", |rows| rows.default_value(DEFAULT_ROWS).help(ROWS_HELP)))]
pub(crate) struct SolveArgs {
    #[command(flatten)]
    variant: VariantArgs,
    /// Algorithm that chooses the pieces: hatetris, mild, lovetris or burgiel
    #[arg(long, value_name = "ENEMY", default_value = Enemy::Hatetris.name())]
    #[arg(value_parser = solved_enemy_parser(), ignore_case = true)]
    enemy: Enemy,
    /// Maximum memory in MiB [default: half of the available memory]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(64..=16_777_216))]
    memory: Option<u64>,
    /// Folder for data that does not fit in memory [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", value_parser = folder_parser())]
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
        let mut printed = Ok(());
        let mut print_level = |level: usize, wells: u64| {
            if !self.json && printed.is_ok() {
                show_progress("");
                let time = duration(started.elapsed());
                // The header is printed only now, so that it does not precede the error for an unsupported search.
                let header = match level {
                    0 => "pieces           wells       time\n",
                    _ => "",
                };
                printed =
                    output::print(format_args!("{header}{level:>6}  {wells:>14}  {time:>9}\n"));
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
        let [best, longest] = [&solution.best, &solution.longest].map(|wells| game.replay(wells));
        let solution = SolutionJson {
            width: game.geometry.width(),
            height: game.geometry.height(),
            enemy: game.enemy.name(),
            best_lines: solution.best_lines,
            longest: solution.longest.len() - 1,
            widest: solution.levels.iter().copied().max().unwrap_or(0),
            best_replay: encode(
                &best.context("cannot replay the best game")?,
                Encoding::Base2048,
            ),
            longest_replay: encode(
                &longest.context("cannot replay the longest game")?,
                Encoding::Base2048,
            ),
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

fn progress_text(progress: &Progress) -> String {
    let level = progress.level.load(Ordering::Relaxed);
    let done = progress.expanded.load(Ordering::Relaxed);
    let all = progress.parents.load(Ordering::Relaxed).max(1);
    match 100 * done / all {
        100 => format!("level {level}: merging"),
        percent => format!("level {level}: {percent} %"),
    }
}
