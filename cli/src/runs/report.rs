//! `hatebeam runs report`.

use crate::output;
use crate::state::StateArgs;
use anyhow::Context;
use hatebeam_report::{Scores, page};
use hatebeam_runs::{EndReason, Run, best_game, end_in_words};
use hatebeam_store::write_whole;
use std::path::PathBuf;

/// Wells whose scores are counted, evenly chosen where there are more: enough for a smooth curve.
const MOST_SCORES: usize = 5_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    /// The file to write; `-` is standard output [default: the run's name and .html]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    state: StateArgs,
}

/// Runs `hatebeam runs report`.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<()> {
    let dir = args.state.state()?.find(&args.run)?;
    let run = Run::open_read_only(&dir).with_context(|| dir.display().to_string())?;
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let depths = run.store().depths().to_vec();
    let mut facts = run.spec().facts(&name, depths, end_in_words(end(&run)))?;
    facts.scores = scores(&run);
    let film = best_game(&run)
        .map_err(anyhow::Error::from)
        .and_then(|game| Ok(run.spec().film(&game.keys)?))
        .map_err(|error| format!("{error:#}"));
    let page = page(&facts, film.as_ref().map_err(String::as_str));
    let path = match &args.out {
        Some(path) if path.as_os_str() == "-" => return output::print(&page),
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{name}.html")),
    };
    let path = std::path::absolute(&path).with_context(|| path.display().to_string())?;
    write_whole(&path, page.as_bytes())?;
    output::print(&format_args!("{}\n", path.display()))
}

/// What a run came to, as its result says.
fn end(run: &Run) -> Option<EndReason> {
    run.store().result()?["end"]
        .as_str()
        .and_then(EndReason::from_name)
}

/// The scores of the last depth that is kept and has as many wells as may be.
pub(crate) fn scores(run: &Run) -> Option<Result<Scores, String>> {
    let store = run.store();
    let most = store.depths().iter().map(|record| record.count).max();
    let record = store
        .depths()
        .iter()
        .rfind(|record| record.kept && Some(record.count) == most)?;
    let nodes = match store.load(record.depth) {
        Ok(nodes) => nodes,
        Err(error) => return Some(Err(error.to_string())),
    };
    let step = nodes.len().div_ceil(MOST_SCORES).max(1);
    let at_cut = nodes.iter().filter(|node| node.score == record.worst_eval);
    Some(Ok(Scores {
        depth: record.depth,
        count: record.count,
        at_cut: at_cut.count(),
        median: record.median_eval,
        values: nodes.iter().step_by(step).map(|node| node.score).collect(),
    }))
}
