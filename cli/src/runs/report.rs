//! `hatebeam runs report`: a run as one HTML file that needs nothing else.

use crate::state::StateArgs;
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
    let _ = args;
    anyhow::bail!("not yet")
}
