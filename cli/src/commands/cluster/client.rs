//! Arguments and output of commands that call a coordinator.

use super::args::{CoordinatorAddressArgs, TlsArgs};
use crate::output;
use hatebeam_client::{Client, Endpoint, call, find, price_warning, run_text};
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
    /// Connects to the coordinator and finds the run.
    pub(super) async fn find(&self) -> anyhow::Result<(Client, v1::RunStatus)> {
        self.client.find(self.run.as_deref()).await
    }

    /// Requests the full name of the run from the coordinator.
    pub(super) async fn name(&self) -> anyhow::Result<String> {
        let (_, run) = self.find().await?;
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

/// Prints a warning if the cost of a run is limited, but does not include that of all connected workers.
pub(super) async fn warn_of_unknown_prices(client: &mut Client, run: &v1::RunStatus) {
    if run.max_cost_micros == 0 {
        return;
    }
    // An error is ignored, because the command itself has succeeded.
    let workers = client.workers(call(v1::WorkersRequest {})).await;
    let workers = workers.map_or_else(|_| Vec::new(), |workers| workers.into_inner().workers);
    if let Some(warning) = price_warning(run, &workers) {
        output::warn(warning);
    }
}
