//! `hatebeam watch`: show the progress of a run until it ends.

use super::args::block_on;
use super::client::{ClientArgs, TargetArgs, print_run};
use crate::output::{self, CANNOT_WRITE, Failure};
use anyhow::Context;
use hatebeam_client::RunDisplay;
use hatebeam_proto::v1;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("watch"))]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Print one JSON object per depth, and one object for the run
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

impl WatchArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        block_on(async {
            let run = self.target.name().await?;
            follow(&self.target.client, &run, self.json, self.quiet).await
        })
    }
}

/// Shows the progress of a run until it ends, and prints its result.
pub(super) async fn follow(
    client: &ClientArgs,
    run: &str,
    json: bool,
    quiet: bool,
) -> anyhow::Result<()> {
    let mut display = RunDisplay::new(json, quiet);
    let endpoint = client.endpoint()?;
    let ended = endpoint.watch(run, 0, |message| display.show(message));
    let ended = ended.await?;
    display.close().context(CANNOT_WRITE)?;
    print_end(&ended, json)
}

/// Prints the result of an ended run. Returns [`Failure::Printed`] if the run did not finish.
pub(super) fn print_end(run: &v1::RunStatus, json: bool) -> anyhow::Result<()> {
    print_run(run, json)?;
    if let Some(result) = run.result.as_ref().filter(|_| !json) {
        output::print(format_args!("{}\n", result.replay))?;
    }
    match run.state() {
        v1::State::Finished => Ok(()),
        _ => Err(Failure::Printed.into()),
    }
}
