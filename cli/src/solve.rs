//! `hatebeam solve`: the whole game tree of a small well.

use crate::args::VariantArgs;
use crate::interrupt;
use crate::machine::{available_memory, peak_rss};
use crate::output::{self, Failure};
use crate::run::screen::{bytes, duration};
use anyhow::{Context, ensure};
use hatebeam_game::{Encoding, Enemy, Well, encode, play, replay_of_wells};
use hatebeam_search::complete::{
    GameTree, MIN_MEMORY, Progress, Resources, SolveError, check_scratch, solve,
};
use serde::Serialize;
use std::io::{self, IsTerminal, Write as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(crate) const SOLVE_EXAMPLES: &str = "\
Makes the whole game tree level by level, a level being all the wells there can be after so many pieces.
HATETRIS is taken for HATETRIS Mild, which gives the same pieces until a well comes back; the two games
found are played through the exact rules.

EventKind does not fit into half of --memory goes to files in --scratch that are gone when the search ends,
however it ends. Ten columns and six rows take seconds, seven rows some minutes, 3 GB of memory or disk;
each row more takes some thirty times as much.

With --json one object: best_lines, longest (pieces, the fatal one not counted), widest, levels (the wells
after 0, 1, 2 ... pieces), best_replay, longest_replay (Base2048), seconds, peak_rss_bytes,
stored_bytes (all levels), scratch_bytes (the most there was in files).

Examples:
  hatebeam solve --width 10 --height 5
  hatebeam solve --width 10 --height 7 --memory 8000 --scratch /data/tmp
  hatebeam solve --width 8 --height 5 --clear-above-bar --json";

#[derive(Debug, clap::Args)]
pub(crate) struct SolveArgs {
    #[command(flatten)]
    variant: VariantArgs,
    /// Who chooses the pieces: hatetris, mild, lovetris or burgiel
    #[arg(long, value_name = "ENEMY", default_value = Enemy::Hatetris.name())]
    #[arg(value_parser = crate::args::enemy_parser(), ignore_case = true)]
    enemy: Enemy,
    /// Memory to use at most, in MiB [default: half of what is available]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(64..=16_777_216))]
    memory: Option<u64>,
    /// The folder for what does not fit into memory [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Threads [default: one a core]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
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

/// Runs `hatebeam solve`.
pub(crate) fn run(args: &SolveArgs) -> anyhow::Result<()> {
    let game = GameTree {
        geometry: args.variant.geometry()?,
        rules: args.variant.rules(),
        enemy: args.enemy,
    };
    let scratch = args.scratch.clone().unwrap_or_else(std::env::temp_dir);
    check_scratch(&scratch)?;
    let memory = match args.memory {
        Some(mebibytes) => mebibytes << 20,
        None => (available_memory().unwrap_or(4 << 30) / 2).max(MIN_MEMORY),
    };
    let threads = args.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        usize::from,
    );
    let resources = Resources {
        threads,
        memory,
        scratch,
    };
    let started = Instant::now();
    let cancel = interrupt::flag()?;
    let screen = Screen::new();
    if !args.json {
        output::print(&"pieces           wells       time\n")?;
    }
    let mut printed = Ok(());
    let mut told = |level: usize, wells: u64| {
        if !args.json && printed.is_ok() {
            screen.clear();
            let time = duration(started.elapsed());
            printed = output::print(&format_args!("{level:>6}  {wells:>14}  {time:>9}\n"));
        }
    };
    let solved = solve(game, &resources, &cancel, &screen.progress, &mut told);
    drop(screen);
    let solution = match solved {
        Err(SolveError::Cancelled) => return Err(Failure::Interrupted.into()),
        solution => solution?,
    };
    printed?;
    let report = Report {
        width: game.geometry.width(),
        height: game.geometry.height(),
        enemy: game.enemy.name(),
        best_lines: solution.best_lines,
        longest: solution.longest.len() - 1,
        widest: solution.levels.iter().copied().max().unwrap_or(0),
        best_replay: replay(&game, &solution.best, "best").context("the best game")?,
        longest_replay: replay(&game, &solution.longest, "longest").context("the longest game")?,
        levels: solution.levels,
        seconds: started.elapsed().as_secs_f64(),
        peak_rss_bytes: peak_rss(),
        stored_bytes: solution.bytes,
        scratch_bytes: solution.scratch_bytes,
    };
    if args.json {
        return output::print(&format_args!("{}\n", serde_json::to_string(&report)?));
    }
    output::print(&format_args!(
        "\nbest score  {}\nlongest     {} pieces\nwidest      {} wells\nwells       {}\ntime        {}\n\
         memory      {}\nput aside   {}\nin files    {}\nbest        {}\nlongest     {}\n",
        report.best_lines,
        report.longest,
        report.widest,
        report.levels.iter().sum::<u64>(),
        duration(Duration::from_secs_f64(report.seconds)),
        report.peak_rss_bytes.map_or("unknown".to_owned(), bytes),
        bytes(report.stored_bytes),
        bytes(report.scratch_bytes),
        report.best_replay,
        report.longest_replay,
    ))
}

/// The keys of a game, brought to its end where the last well can do so at once, and played.
fn replay(game: &GameTree, wells: &[Well], name: &str) -> anyhow::Result<String> {
    let &GameTree {
        geometry,
        rules,
        enemy,
    } = game;
    let keys = replay_of_wells(geometry, rules, enemy, wells, true)
        .or_else(|_| replay_of_wells(geometry, rules, enemy, wells, false))
        .with_context(|| {
            format!("the {name} game holds under HATETRIS Mild; {enemy} changes a piece")
        })?;
    let record = play(geometry, rules, enemy, &keys);
    let last = wells.len() - 1;
    let reached = record.turns.get(last).map(|turn| turn.well);
    ensure!(
        reached.as_ref() == wells.last(),
        "it comes to another well when it is played: this is a fault of hatebeam"
    );
    Ok(encode(&keys, Encoding::Base2048))
}

/// One line on standard error that is written over.
struct Screen {
    progress: Arc<Progress>,
    stop: Arc<AtomicBool>,
    shown: bool,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Screen {
    fn new() -> Screen {
        let (progress, stop) = (
            Arc::new(Progress::default()),
            Arc::new(AtomicBool::new(false)),
        );
        let shown = io::stderr().is_terminal();
        let thread = shown.then(|| {
            let (progress, stop) = (Arc::clone(&progress), Arc::clone(&stop));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(200));
                    let level = progress.level.load(Ordering::Relaxed);
                    let done = progress.expanded.load(Ordering::Relaxed);
                    let all = progress.parents.load(Ordering::Relaxed).max(1);
                    let percent = 100 * done / all;
                    let step = match percent {
                        100 => "merging".to_owned(),
                        _ => format!("{percent} %"),
                    };
                    let _ = write!(io::stderr(), "\r\x1b[Klevel {level}: {step}");
                }
            })
        });
        Screen {
            progress,
            stop,
            shown,
            thread,
        }
    }

    fn clear(&self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
            self.clear();
        }
    }
}
