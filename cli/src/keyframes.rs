//! `hatebeam keyframes`: a game read back from a run, by look-ups alone.

#[cfg(feature = "cluster")]
use crate::cluster::{FromStoreArgs, archived_game, open_archive};
use crate::output;
use crate::state::StateArgs;
use anyhow::{Context, bail};
use hatebeam_game::{Encoding, Enemy, Geometry, Rules, Well, encode, replay_of_wells};
use hatebeam_runs::{GameTo, ReadableRun, Run, game_to};
use hatebeam_store::{Lookup, StoreError};
use serde::Serialize;
use std::time::{Duration, Instant};

pub(crate) const KEYFRAMES_EXAMPLES: &str = "\
Goes back from a well to the run's start with the emulator that runs backwards: of the few wells a well can
come from, the table of the depth before tells which was in the beam. Works while the run is searched, too.

Without --depth it starts from the depth with the most lines, without --well from the best well there. A
well is its rows below the bar from the top down as hex digits, as `hatebeam well` has them.

With --store a run is read in a coordinator's object store, of which only the tables are fetched that a
look-up asks for.

With --json one object: depth, score, wells (hex, from the start on), keys, lookups, seconds.

Examples:
  hatebeam keyframes patterns-1000000
  hatebeam keyframes patterns-1000000 --depth 120 --every 10
  hatebeam keyframes patterns-1000000 --replay > game.txt
  hatebeam keyframes patterns-25000000 --store s3://bucket/hatebeam --replay";

#[derive(Debug, clap::Args)]
pub(crate) struct KeyframesArgs {
    /// The run, as `hatebeam runs` lists it, or its folder
    #[arg(value_name = "RUN")]
    run: String,
    /// The depth of the well to go back from
    #[arg(long, value_name = "DEPTH")]
    depth: Option<u32>,
    /// The well to go back from, in hex
    #[arg(long, value_name = "HEX", requires = "depth")]
    well: Option<String>,
    /// Draw only every Nth well, and the last
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "replay")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Print the keys in Base2048 rather than the wells
    #[arg(long)]
    replay: bool,
    #[command(flatten)]
    state: StateArgs,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    from: FromStoreArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    depth: u32,
    score: u32,
    wells: Vec<String>,
    /// The keys that lead to the last well, in Base2048.
    keys: String,
    lookups: u64,
    seconds: f64,
}

/// Runs `hatebeam keyframes`.
pub(crate) fn keyframes(args: &KeyframesArgs) -> anyhow::Result<()> {
    #[cfg(feature = "cluster")]
    if args.from.store.is_some() {
        let archive = open_archive(&args.from, &args.run)?;
        let target = Target::find(args, &archive)?;
        let started = Instant::now();
        let game = archived_game(archive, target.depth, &target.well)?;
        return show(args, &target, &game, started.elapsed());
    }
    let dir = args.state.state()?.find(&args.run)?;
    let run = Run::open_read_only(&dir).with_context(|| dir.display().to_string())?;
    let target = Target::find(args, &run)?;
    let started = Instant::now();
    let game = game_to(&run, target.depth, &target.well);
    if let Err(StoreError::DamagedDepth { .. }) = &game {
        output::note(format_args!(
            "it is made anew with: hatebeam runs repair {}",
            args.run
        ));
    }
    show(args, &target, &game?, started.elapsed())
}

/// The well to go back from.
struct Target {
    depth: u32,
    well: Well,
    geometry: Geometry,
    rules: Rules,
}

impl Target {
    /// The well that the arguments name, or else the best one of the run.
    fn find(args: &KeyframesArgs, run: &impl ReadableRun) -> anyhow::Result<Target> {
        let geometry = run.store().geometry();
        let depths = run.store().depths();
        let record = match args.depth {
            Some(depth) => depths.iter().find(|record| record.depth == depth),
            None => depths
                .iter()
                .max_by_key(|record| (record.best_lines, record.depth)),
        };
        let Some(record) = record else {
            let (Some(first), Some(last)) = (depths.first(), depths.last()) else {
                bail!("the run has no depth yet");
            };
            bail!("the run has depths {} to {}", first.depth, last.depth);
        };
        let hex = args.well.as_deref().unwrap_or(&record.best_well);
        Ok(Target {
            depth: record.depth,
            well: Well::from_hex(geometry, hex).context("the well to go back from")?,
            geometry,
            rules: run.emulator().rules(),
        })
    }
}

/// Prints the game.
fn show(
    args: &KeyframesArgs,
    target: &Target,
    game: &GameTo,
    took: Duration,
) -> anyhow::Result<()> {
    let Target {
        geometry, rules, ..
    } = *target;
    let keys = replay_of_wells(geometry, rules, Enemy::Mild, &game.wells, false)?;
    let report = Report {
        depth: target.depth,
        score: game.score,
        wells: game
            .wells
            .iter()
            .map(|well| well.to_hex(geometry))
            .collect(),
        keys: encode(&keys, Encoding::Base2048),
        lookups: game.lookups,
        seconds: took.as_secs_f64(),
    };
    if args.json {
        return output::print(&format_args!("{}\n", serde_json::to_string(&report)?));
    }
    if args.replay {
        return output::print(&format_args!("{}\n", report.keys));
    }
    let last = game.wells.len() - 1;
    for (index, well) in game.wells.iter().enumerate() {
        if index % args.every as usize == 0 || index == last {
            let picture = well.picture(geometry);
            output::print(&format_args!("after piece {index}\n{picture}\n"))?;
        }
    }
    output::note(format_args!(
        "score {}, {} look-ups, {:.3} s",
        report.score, report.lookups, report.seconds
    ));
    Ok(())
}
