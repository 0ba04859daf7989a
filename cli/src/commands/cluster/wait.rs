//! `hatebeam wait`: wait for a run to end.

use super::args::block_on;
use super::client::{TargetArgs, warn_of_unknown_prices};
use super::watch::print_end;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("wait"))]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl WaitArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        block_on(async {
            let (mut client, run) = self.target.find().await?;
            warn_of_unknown_prices(&mut client, &run).await;
            drop(client);
            let endpoint = self.target.client.endpoint()?;
            let ended = endpoint.watch(&run.name, u32::MAX, |_| {}).await?;
            print_end(&ended, self.json)
        })
    }
}
