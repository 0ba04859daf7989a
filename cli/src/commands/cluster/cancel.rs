//! `hatebeam cancel`: stop a run.

use super::args::block_on;
use super::client::ClientArgs;
use crate::output;
use hatebeam_client::{ClientError, call};
use hatebeam_proto::v1;

const HELP: &str = "\
Examples:
  hatebeam cancel network-1000000-5f3a9c1e
  hatebeam cancel network-25 --coordinator https://10.0.0.1:7800 --tls tls";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CancelArgs {
    /// Name of the run, or the beginning of the name
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    client: ClientArgs,
}

impl CancelArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        block_on(async {
            let (mut client, run) = self.client.find(Some(&self.run)).await?;
            let run = run.name;
            let request = call(v1::CancelRequest { run: run.clone() });
            client.cancel(request).await.map_err(ClientError::refused)?;
            output::print(format_args!(
                "{run} stops after the current depth and keeps its committed depths; submit it again to resume it\n"
            ))
        })
    }
}
