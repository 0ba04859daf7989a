//! `hatebeam drain`: make a worker hand over its shards and stop.

use super::args::block_on;
use super::client::ClientArgs;
use crate::output;
use hatebeam_client::{ClientError, call};
use hatebeam_proto::v1;

const HELP: &str = "\
Examples:
  hatebeam drain node-17-4242
  hatebeam drain node-17-4242 --coordinator https://10.0.0.1:7800 --tls tls";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct DrainArgs {
    /// Name of the worker, from the output of `hatebeam status`
    #[arg(value_name = "WORKER")]
    worker: String,
    #[command(flatten)]
    client: ClientArgs,
}

impl DrainArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        block_on(async {
            let mut client = self.client.connect().await?;
            let worker = self.worker.clone();
            let request = call(v1::DrainRequest { worker });
            client.drain(request).await.map_err(ClientError::refused)?;
            output::print(format_args!(
                "{} stops after the current depth\n",
                self.worker
            ))
        })
    }
}
