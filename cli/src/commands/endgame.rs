//! `hatebeam endgame`: search all possible endings of a game for the best one.

use crate::args::{ReplayInput, VariantArgs, number_in};
use crate::input::{Replay, warn_of_ignored_keys};
use crate::output::{self, Failure};
use anyhow::{Context, ensure};
use hatebeam_game::{Emulator, Encoding, Enemy, Geometry, Well, encode, play};
use hatebeam_host::{available_memory, stop_flag};
use hatebeam_report::count;
use hatebeam_runs::EndSearch;
use hatebeam_search::endgame::Endgame;
use hatebeam_telemetry::show_progress;
use serde::Serialize;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
#[command(after_help = help!("endgame"))]
pub(crate) struct EndgameArgs {
    #[command(flatten)]
    input: ReplayInput,
    /// Search from this well, in hex, instead of from a replay
    #[arg(long, value_name = "HEX", conflicts_with_all = ["replay", "file", "from_piece"])]
    well: Option<String>,
    /// Search only from the well in which this piece appears, counted from 1 [default: from each piece, starting with the
    /// last]
    #[arg(long = "from-piece", value_name = "N")]
    from_piece: Option<usize>,
    #[command(flatten)]
    variant: VariantArgs,
    /// Maximum number of wells to expand [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    nodes: Option<u64>,
    /// Maximum time in seconds [default: 60, or no limit if --nodes is given]
    #[arg(long, value_name = "S", value_parser = number_in(0.001..=1e8, "a number of seconds"))]
    seconds: Option<f64>,
    /// Memory for the table of searched wells, in MiB; at most the available memory
    #[arg(long, value_name = "MIB", default_value_t = 512)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    memory: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Where the search starts.
enum Start {
    Well(Well),
    Replay(Replay),
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct ResultJson {
    /// Number of the earliest piece from which the search ran; `None` if the search started from a well.
    from: Option<usize>,
    score: u32,
    /// Score of the given replay; `None` if the search started from a well.
    was: Option<u32>,
    proven_from: Option<usize>,
    proven: bool,
    nodes: u64,
    seconds: f64,
    replay: String,
}

impl EndgameArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let (geometry, rules) = (self.variant.geometry()?, self.variant.rules());
        let emulator = Emulator::new(geometry, rules);
        let seconds = self.seconds.or(self.nodes.is_none().then_some(60.0));
        let started = Instant::now();
        let deadline = seconds.map(|seconds| started + Duration::from_secs_f64(seconds));
        let cancel = stop_flag()?;
        let start = self.start(geometry)?;
        self.check_memory()?;
        let mut search = EndSearch {
            endgame: Endgame::new(&emulator, self.memory << 20),
            emulator: &emulator,
            cancel: &cancel,
            nodes: self.nodes,
            deadline,
        };
        let mut was = None;
        let best = match start {
            Start::Well(well) => search.from_well(well)?,
            Start::Replay(replay) => {
                let record = play(geometry, rules, Enemy::Hatetris, &replay.keys);
                warn_of_ignored_keys("the replay", &record);
                was = Some(record.score);
                let pieces = record.turns.len();
                let mut continues = |piece: usize, score: u32| {
                    show_progress(format_args!(
                        "piece {piece} of {pieces}, best score {score}"
                    ));
                    let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                    !is_late && !cancel.load(Ordering::Relaxed)
                };
                let best = search.from_game(&record, &replay.keys, self.from_piece, &mut continues);
                show_progress("");
                best?
            }
        };
        if best.changed {
            output::warn(
                "found a better game, but HATETRIS would replace one of its pieces because a well repeats",
            );
        }
        let result = ResultJson {
            from: was.map(|_| best.from),
            score: best.score,
            was,
            proven_from: best.proven_from.filter(|_| was.is_some()),
            proven: best.proven_from == Some(best.from),
            nodes: search.endgame.nodes(),
            seconds: started.elapsed().as_secs_f64(),
            replay: encode(&best.keys, Encoding::Base2048),
        };
        if self.json {
            output::print_json(&result)?;
        } else {
            output::print(result.text())?;
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted.into());
        }
        Ok(())
    }

    /// Reads the well or the replay from which to search.
    fn start(&self, geometry: Geometry) -> anyhow::Result<Start> {
        match &self.well {
            Some(hex) => Ok(Start::Well(
                Well::from_hex(geometry, hex).context("invalid --well")?,
            )),
            None => Ok(Start::Replay(Replay::read(&self.input)?)),
        }
    }

    /// Checks that the table fits in memory. The allocation of a larger table would end the process.
    fn check_memory(&self) -> anyhow::Result<()> {
        let Some(available) = available_memory() else {
            return Ok(());
        };
        let most = available >> 20;
        ensure!(
            self.memory <= most,
            "a table of {} MiB does not fit in memory, of which {most} MiB are available: pass --memory {most} or less",
            self.memory
        );
        Ok(())
    }
}

impl ResultJson {
    fn text(&self) -> String {
        let score = self.score;
        let found = if let (Some(from), Some(was)) = (self.from, self.was) {
            let change = if score > was {
                format!("was {was}")
            } else {
                "unchanged".to_owned()
            };
            let proof = match self.proven_from {
                Some(piece) => format!("proven best from piece {piece}"),
                None => "not proven".to_owned(),
            };
            format!(
                "score     {score} ({change})\nsearched  from piece {from}\nproof     {proof}\n"
            )
        } else {
            let proof = if self.proven {
                "proven best"
            } else {
                "not proven"
            };
            format!("lines     {score}\nproof     {proof}\n")
        };
        format!(
            "{found}nodes     {}\ntime      {:.1} s\nreplay    {}\n",
            count(self.nodes, "well"),
            self.seconds,
            self.replay
        )
    }
}
