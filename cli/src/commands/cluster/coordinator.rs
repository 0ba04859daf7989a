//! `hatebeam coordinator`: run the coordinator of a cluster.

use super::args::{COORDINATOR, block_on};
use super::dashboard::DashboardArgs;
use super::observe::HookArgs;
use super::server::ServerArgs;
use crate::args::number_in;
use crate::output;
use hatebeam_coordinator::{
    CoreSettings, EventSink, NotifierSettings, Settings, TableSource, coordinate, follow_deadline,
};
use hatebeam_cost::PriceTable;
use hatebeam_host::{process_name, stop_channel};
use hatebeam_metrics::Registry;
use hatebeam_search::{Fingerprint, MIN_SHARD_WELLS};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("coordinator"))]
pub(crate) struct CoordinatorArgs {
    /// Address to listen on for workers and clients
    #[arg(long, value_name = "ADDRESS", default_value = COORDINATOR)]
    listen: SocketAddr,
    #[command(flatten)]
    server: ServerArgs,
    /// Assume that no other coordinator uses the store; the store then does not need to support conditional writes
    #[arg(long)]
    single_coordinator: bool,
    /// Number of workers to wait for before a run starts
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    min_workers: u32,
    /// URI at which workers reach this coordinator, in the form https://host:port. A worker whose --coordinator does not
    /// answer finds this URI in the store [default: none]
    #[arg(long, value_name = "URI")]
    advertise: Option<String>,
    /// File with the time at which the machines will be stopped, such as 2026-11-22T06:00:00Z. `status` shows the
    /// remaining time, and `watch` and the dashboard warn during the last hour. The file is read every 30 seconds
    #[arg(long, value_name = "FILE")]
    deadline_file: Option<PathBuf>,
    /// Exit with code 0 after this many minutes without an open run, to release rented machines [default: never]
    #[arg(long, value_name = "MINUTES", value_parser = number_in(0.01..=1e6, "a number of minutes"))]
    idle_stop: Option<f64>,
    /// Seconds without a heartbeat after which a worker is considered lost
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = number_in(0.2..=3600.0, "a number of seconds"))]
    lost_after: f64,
    #[command(flatten)]
    hooks: HookArgs,
    #[command(flatten)]
    dashboard: DashboardArgs,
}

impl CoordinatorArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let server = &self.server;
        let _logs = server.start("coordinator", self.listen)?;
        server.check_advertised(self.advertise.as_deref())?;
        let tokens = server.tls.tokens()?;
        let events = self.hooks.start()?;
        block_on(async {
            let stop = stop_channel(server.stop_with_stdin)?;
            let (registry, objects) = (Registry::default(), server.store.open().await?);
            let metrics = &server.metrics;
            metrics.serve(&registry, "coordinator", &objects).await?;
            server.tls.watch_expiry(&registry, "coordinator")?;
            let machine = server.rent.given().complete().await.machine;
            let prices = PriceTable::get().object_store(server.store.is_aws());
            let dashboard = self
                .dashboard
                .open(&server.tls, server.insecure_bind, prices)
                .await?;
            let url = dashboard.as_ref().map(|opened| opened.server.url());
            let lost_after = Duration::from_secs_f64(self.lost_after);
            let idle_stop = self.idle_stop.map(|minutes| minutes * 60.0);
            let core = CoreSettings {
                name: process_name(),
                address: String::new(),
                objects,
                prices,
                machine,
                single: self.single_coordinator,
                search: Fingerprint::current(),
                deadline: self.deadline_file.clone().map(follow_deadline),
                idle_stop: idle_stop.map(Duration::from_secs_f64),
                min_workers: self.min_workers as usize,
                min_shard_wells: MIN_SHARD_WELLS,
                heartbeat: (lost_after / 5).min(Duration::from_secs(1)),
                lost_after,
                tables: TableSource::scratch(std::env::temp_dir()),
                notifications: NotifierSettings {
                    events: events.map(|events| Arc::new(events) as Arc<dyn EventSink>),
                    every: self.hooks.event_every,
                },
            };
            let settings = Settings {
                core,
                listen: self.listen,
                advertise: self.advertise.clone(),
                tls: server.tls.member("coordinator"),
                tokens,
                registry,
                dashboard,
            };
            let ready = Box::new(move |address: SocketAddr| {
                // Write errors are ignored, because standard output may be closed.
                let _ = output::print(format_args!("listening on {address}\n"));
                if let Some(url) = &url {
                    let _ = output::print(format_args!("dashboard at {url}\n"));
                }
            });
            Ok(coordinate(settings, stop, ready).await?)
        })
    }
}
