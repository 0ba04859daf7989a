//! `hatebeam drain`: keep a worker out of the search.

use super::args::block_on;
use super::client::ClientArgs;
use crate::output;
use hatebeam_client::{ClientError, call};
use hatebeam_proto::v1;

const HELP: &str = include_str!("../../../help/drain.txt").trim_ascii_end();

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct DrainArgs {
    /// Name of the worker, from the output of `hatebeam status`
    #[arg(value_name = "WORKER")]
    worker: String,
    /// Assign shards to a drained worker again
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
                true => format!("{name} gets shards again from the next depth\n"),
            })
        })
    }
}
