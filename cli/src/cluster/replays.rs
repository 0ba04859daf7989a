//! `hatebeam replays`: what runs came to, straight from the object store.

use super::stored::{manifests, named};
use super::{StoreArgs, block_on};
use crate::output;
use anyhow::Context;
use hatebeam_store::write_whole;
use hatebeam_worker::cluster::Manifest;
use serde::Serialize;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::path::PathBuf;

pub(crate) const REPLAYS_EXAMPLES: &str = "\
No coordinator is needed: all is in the object store.

Examples:
  hatebeam replays list --store s3://bucket/hatebeam
  hatebeam replays pull --store /shared/hatebeam --best --out record.txt
  hatebeam replays pull --store /shared/hatebeam patterns-1000000-5f3a9c1e";

const LIST_EXAMPLES: &str = "\
Examples:
  hatebeam replays list --store s3://bucket/hatebeam
  hatebeam replays list --store /shared/hatebeam --json";

const PULL_EXAMPLES: &str = "\
Examples:
  hatebeam replays pull --store /shared/hatebeam --best --out record.txt
  hatebeam replays pull --store /shared/hatebeam patterns-1000000-5f3a9c1e";

/// What to do with replays.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplaysArgs {
    #[command(subcommand)]
    command: ReplaysCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ReplaysCommand {
    /// List the finished runs, the best first
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Bring a replay here
    #[command(after_help = PULL_EXAMPLES)]
    Pull(PullArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct PullArgs {
    /// The run, or the beginning of its name
    #[arg(
        value_name = "RUN",
        required_unless_present = "best",
        conflicts_with = "best"
    )]
    run: Option<String>,
    /// The one with the most lines
    #[arg(long)]
    best: bool,
    /// Write it to this file rather than to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    best_score: u32,
    pieces: u32,
    width: u64,
    replay: &'a str,
}

/// Runs `hatebeam replays`.
pub(crate) fn replays(args: &ReplaysArgs) -> anyhow::Result<()> {
    match &args.command {
        ReplaysCommand::List(args) => list(args),
        ReplaysCommand::Pull(args) => pull(args),
    }
}

/// The runs that have a replay, the best first.
async fn finished(store: &StoreArgs) -> anyhow::Result<Vec<Manifest>> {
    let mut found = manifests(&store.open().await?).await?;
    found.retain(|manifest| manifest.outcome.is_some());
    found.sort_by_key(|manifest| {
        let score = manifest.outcome.as_ref().map_or(0, |outcome| outcome.score);
        (Reverse(score), manifest.name.clone())
    });
    Ok(found)
}

fn line(manifest: &Manifest) -> Option<Line<'_>> {
    let outcome = manifest.outcome.as_ref()?;
    Some(Line {
        run: &manifest.name,
        best_score: outcome.score,
        pieces: outcome.pieces,
        width: manifest.spec.width,
        replay: &outcome.replay,
    })
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let found = block_on(finished(&args.store))?;
    let lines: Vec<Line<'_>> = found.iter().filter_map(line).collect();
    if args.json {
        return output::print(&format_args!("{}\n", serde_json::to_string(&lines)?));
    }
    let mut text = String::new();
    for line in &lines {
        let _ = writeln!(
            text,
            "{:>6} lines  {:>6} pieces  {}",
            line.best_score, line.pieces, line.run
        );
    }
    if lines.is_empty() {
        text.push_str("No run has finished yet.\n");
    }
    output::print(&text)
}

fn pull(args: &PullArgs) -> anyhow::Result<()> {
    let found = block_on(finished(&args.store))?;
    let manifest = match &args.run {
        Some(run) => named(found, run)?,
        None => found
            .into_iter()
            .next()
            .context("no run has finished yet")?,
    };
    let line = line(&manifest).context("the run has no replay")?;
    let text = format!("{}\n", line.replay);
    match &args.out {
        None => output::print(&text),
        Some(path) => {
            write_whole(path, text.as_bytes())?;
            output::print(&format_args!(
                "{} lines, {} pieces: {}\n",
                line.best_score,
                line.pieces,
                path.display()
            ))
        }
    }
}
