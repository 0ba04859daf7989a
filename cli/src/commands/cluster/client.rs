//! Arguments and output of commands that call a coordinator.

use super::args::{CoordinatorAddressArgs, TlsArgs};
use crate::output;
use hatebeam_client::{Client, Endpoint, find, run_text};
use hatebeam_dashboard::StatusView;
use hatebeam_proto::v1;

/// The coordinator to call.
#[derive(Debug, clap::Args)]
pub(super) struct ClientArgs {
    #[command(flatten)]
    address: CoordinatorAddressArgs,
    #[command(flatten)]
    tls: TlsArgs,
}

impl ClientArgs {
    pub(super) fn endpoint(&self) -> anyhow::Result<Endpoint> {
        self.tls.endpoint(&self.address.coordinator)
    }

    pub(super) async fn connect(&self) -> anyhow::Result<Client> {
        Ok(self.endpoint()?.connect().await?)
    }

    /// Connects to the coordinator and finds a run.
    pub(super) async fn find(&self, run: Option<&str>) -> anyhow::Result<(Client, v1::RunStatus)> {
        let mut client = self.connect().await?;
        let found = find(&mut client, run).await?;
        Ok((client, found))
    }
}

/// A coordinator and one of its runs.
#[derive(Debug, clap::Args)]
pub(super) struct TargetArgs {
    /// Name of the run, or the beginning of the name [default: the running run, or else the
    /// next queued run, or else the most recently submitted run]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    pub(super) client: ClientArgs,
}

impl TargetArgs {
    /// Requests the full name of the run from the coordinator.
    pub(super) async fn name(&self) -> anyhow::Result<String> {
        let (_, run) = self.client.find(self.run.as_deref()).await?;
        Ok(run.name)
    }
}

/// Prints a run as text or as JSON.
pub(super) fn print_run(run: &v1::RunStatus, json: bool) -> anyhow::Result<()> {
    if json {
        output::print_json(&StatusView::of(run))
    } else {
        output::print(format_args!("{}\n", run_text(run)))
    }
}
