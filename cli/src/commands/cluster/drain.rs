//! `hatebeam drain`: keep a worker out of the search.

use super::args::block_on;
use super::client::ClientArgs;
use crate::output;
use anyhow::bail;
use hatebeam_client::{Client, ClientError, call};
use hatebeam_proto::v1;
use tonic::Code;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("drain"))]
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
            let name = &self.worker;
            if let Err(status) = client.drain(request).await {
                let code = status.code();
                let error = ClientError::refused(status);
                let is_state = code == Code::FailedPrecondition;
                // The coordinator refuses --undo in the same way for a worker that it does not know.
                if is_state && undo && is_connected(&mut client, name).await? {
                    return output::print(format_args!("{name} is not drained\n"));
                }
                if is_state || code == Code::NotFound {
                    bail!("{error}: list the workers with `hatebeam status`");
                }
                return Err(error.into());
            }
            output::print(match undo {
                false => format!("{name} gets no shards after the current depth\n"),
                true => format!("{name} gets shards again from the next depth\n"),
            })
        })
    }
}

/// Returns whether a worker with this name is connected.
async fn is_connected(client: &mut Client, name: &str) -> anyhow::Result<bool> {
    let workers = client.workers(call(v1::WorkersRequest {})).await;
    let workers = workers.map_err(ClientError::refused)?.into_inner().workers;
    Ok(workers.iter().any(|worker| worker.name == name))
}
