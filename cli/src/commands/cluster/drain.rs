//! `hatebeam drain`: keep a worker out of the search.

use super::args::block_on;
use super::client::ClientArgs;
use crate::output;
use hatebeam_client::{ClientError, call};
use hatebeam_proto::v1;

const HELP: &str = "\
The worker hands over its shards at the end of the current depth. It stays connected without shards, also after a restart
of its process, until --undo. A restart of the coordinator also ends this. To remove a worker, stop its process: it hands
over its shards first.

Examples:
  hatebeam drain node-17-4242
  hatebeam drain node-17-4242 --undo
  hatebeam drain node-17-4242 --coordinator https://10.0.0.1:7800 --tls tls";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct DrainArgs {
    /// Name of the worker, from the output of `hatebeam status`
    #[arg(value_name = "WORKER")]
    worker: String,
    /// Give a drained worker shards again
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    client: ClientArgs,
}

impl DrainArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        block_on(async {
            let mut client = self.client.connect().await?;
            let worker = self.worker.clone();
            let undo = self.undo;
            let request = call(v1::DrainRequest { worker, undo });
            client.drain(request).await.map_err(ClientError::refused)?;
            let name = &self.worker;
            output::print(match undo {
                false => format!("{name} gets no shards after the current depth\n"),
                true => format!("{name} gets shards again from the next depth on\n"),
            })
        })
    }
}
