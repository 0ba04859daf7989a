//! `hatebeam runs report`.

use crate::output;
use crate::state::StateArgs;
use anyhow::Context;
use hatebeam_report::page;
use hatebeam_runs::{Run, best_game, end_in_words, result_of};
use hatebeam_store::write_whole;
use std::path::PathBuf;

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
    let end = result_of(run.store()).map(|result| result.end);
    let depths = run.store().depths().to_vec();
    let mut facts = run.spec().facts(&name, depths, end_in_words(end))?;
    facts.scores = run.scores();
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
