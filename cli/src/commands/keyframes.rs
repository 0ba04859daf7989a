//! `hatebeam keyframes`: read back a game from the stored wells of a run.

use super::cluster::FromStoreArgs;
use super::open_run::OpenRun;
use crate::output;
use crate::state::LocalRunArgs;
use anyhow::{Context, anyhow, bail};
use hatebeam_game::{Encoding, Well, encode};
use hatebeam_runs::game_to;
use hatebeam_store::{DepthRecord, StoreError};
use serde::Serialize;
use std::time::Instant;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("keyframes"))]
pub(crate) struct KeyframesArgs {
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
    /// Print the keys of the game in Base2048 instead of the wells; the output of --json contains them too
    #[arg(long, conflicts_with = "json")]
    replay: bool,
    #[command(flatten)]
    local: LocalRunArgs,
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
}

impl KeyframesArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let run = if self.from.is_given() {
            self.from.open_run(&self.local.run)?
        } else {
            self.open_run()?
        };
        let Target { depth, well } = self.target(&run)?;
        let (geometry, rules) = (run.geometry, run.rules);
        let started = Instant::now();
        let game = (run.game_to)(depth, well);
        let game = game.map_err(|error| with_remedy(error, &run.depths, depth))?;
        let seconds = started.elapsed().as_secs_f64();
        let keys = || -> anyhow::Result<String> {
            let keys = game.keys(geometry, rules)?;
            Ok(encode(&keys, Encoding::Base2048))
        };
        let last = game.wells.len() - 1;
        let is_shown = |&(index, _): &(usize, _)| index % self.every as usize == 0 || index == last;
        let shown = game.wells.iter().enumerate().filter(is_shown);
        if self.json {
            let wells = shown.map(|(_, well)| well.to_hex(geometry));
            return output::print_json(&GameJson {
                depth,
                score: game.score,
                wells: wells.collect(),
                keys: keys()?,
                lookups: game.lookups,
                seconds,
            });
        }
        if self.replay {
            return output::print(format_args!("{}\n", keys()?));
        }
        for (index, well) in shown {
            let picture = well.picture(geometry);
            output::print(format_args!("after piece {index}\n{picture}\n"))?;
        }
        output::note(format_args!(
            "score {}, {} lookups, {seconds:.3} s",
            game.score, game.lookups
        ));
        Ok(())
    }

    /// Opens a run on this machine.
    fn open_run(&self) -> anyhow::Result<OpenRun> {
        let run = self.local.open_read_only()?;
        let selecting = self.local.state.selecting(run.store().dir());
        Ok(OpenRun::new(run, move |run, depth, well| {
            let game = game_to(&run, depth, &well);
            if let Err(StoreError::DamagedDepth { .. }) = &game {
                output::note(format_args!(
                    "recompute the depth with: hatebeam runs repair {selecting}"
                ));
            }
            Ok(game?)
        }))
    }

    fn target(&self, run: &OpenRun) -> anyhow::Result<Target> {
        let depths = &run.depths;
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
            bail!(
                "the run has depths {} to {}: pass one of them with --depth",
                first.depth,
                last.depth
            );
        };
        let hex = self.well.as_deref().unwrap_or(&record.best_well);
        Ok(Target {
            depth: record.depth,
            well: Well::from_hex(run.geometry, hex).context("invalid --well")?,
        })
    }
}

/// Adds the remedy to an error of reading back a game to `depth`, if the run has not kept the wells that the game needs.
fn with_remedy(error: anyhow::Error, depths: &[DepthRecord], depth: u32) -> anyhow::Error {
    let cause = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<StoreError>());
    match cause {
        Some(StoreError::Dropped { depth: dropped }) => {
            anyhow!(dropped_text(depths, depth, *dropped))
        }
        Some(StoreError::TooMany { kept, .. }) => {
            anyhow!("{error:#}: pass --depth {kept} or less")
        }
        _ => error,
    }
}

/// Describes why no game to `depth` can be read back: the wells of `dropped`, an earlier depth, and of those around it were not
/// kept.
fn dropped_text(depths: &[DepthRecord], depth: u32, dropped: u32) -> String {
    let needed = &depths[..depths.partition_point(|record| record.depth < depth)];
    let at = needed.partition_point(|record| record.depth < dropped);
    let kept = needed[..at].iter().rposition(|record| record.kept);
    let start = kept.map_or(0, |kept| kept + 1);
    let rest = needed[at..].iter().take_while(|record| !record.kept);
    let which = match &needed[start..at + rest.count()] {
        [first, .., last] => format!("depths {} to {}", first.depth, last.depth),
        _ => format!("depth {dropped}"),
    };
    let remedy = kept.map_or_else(String::new, |kept| {
        format!(": pass --depth {} or less", needed[kept].depth)
    });
    format!(
        "the wells of {which} were not kept, so no game can be read back from depth {depth}{remedy}"
    )
}
