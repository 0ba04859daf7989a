//! `hatebeam perft`: count the wells after each number of pieces.

use crate::args::VariantArgs;
use crate::output::{self, Failure};
use hatebeam_game::{Emulator, Geometry};
use hatebeam_search::perft::{LevelProgress, Perft};
use hatebeam_telemetry::show_progress;
use serde::Serialize;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("perft"))]
pub(crate) struct PerftArgs {
    /// Maximum number of pieces, 0 to 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    depth: u32,
    #[command(flatten)]
    variant: VariantArgs,
    /// Maximum memory in MiB; the command fails if it needs more
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=16_777_216))]
    memory: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Counts {
    width: usize,
    height: usize,
    depth: u32,
    /// Number of wells after each number of pieces; fewer than `depth` asks for if there is an error.
    counts: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl PerftArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let geometry = self.variant.geometry()?;
        let mut counts = Vec::new();
        let counted = self.count(geometry, &mut counts);
        if !self.json {
            return counted;
        }
        output::print_json(&Counts {
            width: geometry.width(),
            height: geometry.height(),
            depth: self.depth,
            counts,
            error: counted.as_ref().err().map(|error| format!("{error:#}")),
        })?;
        counted.map_err(|_| Failure::Printed.into())
    }

    /// Appends the number of wells after each number of pieces to `counts`, and prints it without --json.
    fn count(&self, geometry: Geometry, counts: &mut Vec<u64>) -> anyhow::Result<()> {
        let emulator = Emulator::new(geometry, self.variant.rules());
        let mut perft = Perft::new(emulator, self.memory << 20);
        let mut progress = |at: LevelProgress| {
            let LevelProgress {
                depth,
                shard,
                shards,
            } = at;
            show_progress(format_args!("level {depth}: shard {shard} of {shards}"));
        };
        if !self.json {
            output::print("pieces  wells\n")?;
        }
        for depth in 0..=self.depth {
            let count = perft.count(depth, depth == self.depth, &mut progress);
            show_progress("");
            let count = count?;
            counts.push(count);
            // Only the first empty level is printed, because all levels after it are empty too.
            let is_news = count > 0 || counts[counts.len().saturating_sub(2)] > 0;
            if !self.json && is_news {
                output::print(format_args!("{depth:>6}  {count}\n"))?;
            }
        }
        Ok(())
    }
}
