//! `hatebeam keyframes`: read back a game from the stored wells of a run.

use super::cluster::FromStoreArgs;
use crate::output;
use crate::state::StateArgs;
use anyhow::{Context, bail};
use hatebeam_game::{Encoding, Enemy, Geometry, Rules, Well, encode, replay_of_wells};
use hatebeam_runs::{GameTo, ReadableRun, Run, game_to};
use hatebeam_store::{DepthRecord, StoreError};
use serde::Serialize;
use std::time::{Duration, Instant};

const HELP: &str = "\
Follows a game from a well back to the start of the run. For each well, the inverse emulator lists the few possible
predecessors, and a lookup in the table of the previous depth finds one that the search kept. This works while another
process searches the run.

Wells are written in hex as with `hatebeam well`.

With --store, reads a run in a coordinator's object store and fetches only the tables that it needs.

With --json, prints one object with depth, score, wells (in hex, from the start), keys, lookups, seconds.

Examples:
  hatebeam keyframes patterns-1000000
  hatebeam keyframes patterns-1000000 --depth 120 --every 10
  hatebeam keyframes patterns-1000000 --replay > game.txt
  hatebeam keyframes patterns-25000000 --store s3://bucket/hatebeam --replay";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct KeyframesArgs {
    /// Name of the run, the beginning of the name, or the path of the run's folder
    #[arg(value_name = "RUN")]
    run: String,
    /// Depth of the last well [default: the depth with the most lines cleared]
    #[arg(long, value_name = "DEPTH")]
    depth: Option<u32>,
    /// Last well, in hex [default: the well with the most lines cleared at the depth]
    #[arg(long, value_name = "HEX", requires = "depth")]
    well: Option<String>,
    /// Print only every Nth well and the last well
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "replay")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Print the keys of the game in Base2048 instead of the wells
    #[arg(long)]
    replay: bool,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    from: FromStoreArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct GameJson {
    depth: u32,
    score: u32,
    wells: Vec<String>,
    /// The keys that lead to the last well, in Base2048.
    keys: String,
    lookups: u64,
    seconds: f64,
}

/// The last well of the game.
struct Target {
    depth: u32,
    well: Well,
    geometry: Geometry,
    rules: Rules,
}

impl KeyframesArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if self.from.is_given() {
            let stored = self.from.open_run(&self.run)?;
            let target = self.target(stored.geometry(), stored.rules(), stored.depths())?;
            let started = Instant::now();
            let game = stored.game_to(target.depth, &target.well)?;
            return self.print(&target, &game, started.elapsed());
        }
        let dir = self.state.state()?.find(&self.run)?;
        let run = Run::open_read_only(&dir).with_context(|| dir.display().to_string())?;
        let store = run.store();
        let target = self.target(store.geometry(), run.emulator().rules(), store.depths())?;
        let started = Instant::now();
        let game = game_to(&run, target.depth, &target.well);
        if let Err(StoreError::DamagedDepth { .. }) = &game {
            output::note(format_args!(
                "recompute the depth with: hatebeam runs repair {}",
                self.run
            ));
        }
        self.print(&target, &game?, started.elapsed())
    }

    fn target(
        &self,
        geometry: Geometry,
        rules: Rules,
        depths: &[DepthRecord],
    ) -> anyhow::Result<Target> {
        let record = match self.depth {
            Some(depth) => depths.iter().find(|record| record.depth == depth),
            None => depths
                .iter()
                .max_by_key(|record| (record.best_lines, record.depth)),
        };
        let Some(record) = record else {
            let (Some(first), Some(last)) = (depths.first(), depths.last()) else {
                bail!("the run has not committed a depth yet");
            };
            bail!("the run has depths {} to {}", first.depth, last.depth);
        };
        let hex = self.well.as_deref().unwrap_or(&record.best_well);
        Ok(Target {
            depth: record.depth,
            well: Well::from_hex(geometry, hex).context("invalid --well")?,
            geometry,
            rules,
        })
    }

    fn print(&self, target: &Target, game: &GameTo, took: Duration) -> anyhow::Result<()> {
        let geometry = target.geometry;
        let keys = replay_of_wells(geometry, target.rules, Enemy::Mild, &game.wells, false)?;
        let keys = encode(&keys, Encoding::Base2048);
        if self.json {
            let wells = game.wells.iter().map(|well| well.to_hex(geometry));
            return output::print_json(&GameJson {
                depth: target.depth,
                score: game.score,
                wells: wells.collect(),
                keys,
                lookups: game.lookups,
                seconds: took.as_secs_f64(),
            });
        }
        if self.replay {
            return output::print(format_args!("{keys}\n"));
        }
        let last = game.wells.len() - 1;
        for (index, well) in game.wells.iter().enumerate() {
            if index % self.every as usize == 0 || index == last {
                let picture = well.picture(geometry);
                output::print(format_args!("after piece {index}\n{picture}\n"))?;
            }
        }
        output::note(format_args!(
            "score {}, {} lookups, {:.3} s",
            game.score,
            game.lookups,
            took.as_secs_f64()
        ));
        Ok(())
    }
}
