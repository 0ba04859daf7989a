//! `hatebeam cancel`: stop a run.

use super::args::block_on;
use super::client::ClientArgs;
use crate::output;
use hatebeam_client::{ClientError, call};
use hatebeam_proto::v1;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("cancel"))]
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
            let (mut client, before) = self.client.find(Some(&self.run)).await?;
            let run = &before.name;
            let request = call(v1::CancelRequest { run: run.clone() });
            let answer = client.cancel(request).await.map_err(ClientError::refused)?;
            let after = answer.into_inner().run.unwrap_or_default();
            let state = after.state();
            // The run may also end by itself before the coordinator receives the request.
            let has_ended_itself = matches!(state, v1::State::Finished | v1::State::Failed);
            if !before.is_open() || has_ended_itself {
                let state = state.name();
                return output::print(format_args!("{run} has already ended ({state})\n"));
            }
            output::print(format_args!(
                "{run} stops and keeps its committed depths, but not the depth in progress; submit it again to resume it\n"
            ))
        })
    }
}
