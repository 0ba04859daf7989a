//! `hatebeam worker`: run a worker of a cluster.

use super::args::{CoordinatorAddressArgs, block_on};
use super::server::ServerArgs;
use crate::args::{ThreadsArgs, folder_parser};
use anyhow::{Context, bail};
use hatebeam_host::{
    available_memory, create_scratch, is_shared, memory_in_use, process_name, stop_channel,
    stop_reason,
};
use hatebeam_metrics::Registry;
use hatebeam_worker::{Process, work};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

/// Help of --log-format, whose example for the coordinator names another module.
const LOG_FORMAT_HELP: &str = "Format of log lines; the variable HATEBEAM_LOG selects levels and modules, such as debug or \
                               hatebeam_worker=debug,info";

#[derive(Debug, clap::Args)]
#[command(after_help = help!("worker"), mut_arg("log_format", |format| format.help(LOG_FORMAT_HELP)))]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    address: CoordinatorAddressArgs,
    /// Address to listen on for other workers; use port 0 to pick any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Address at which other workers reach this worker, in the form http://host:port, or https://host:port with
    /// certificates [default: the address of --listen]
    #[arg(long, value_name = "URI")]
    advertise: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    /// Unique name of the worker [default: the host name and the process ID]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Scratch directory; the worker deletes its folder `tables` when it joins a search [default:
    /// $TMPDIR/hatebeam-worker-NAME]
    #[arg(long, value_name = "DIR", value_parser = folder_parser())]
    dir: Option<PathBuf>,
    /// Compress the data sent to other workers; use this if the network limits the speed of the search
    #[arg(long)]
    compress: bool,
}

impl WorkerArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let server = &self.server;
        let _logs = server.start("worker", self.listen)?;
        if self.listen.ip().is_unspecified() && self.advertise.is_none() {
            bail!(
                "other workers cannot reach {}: pass an address that they can reach with --advertise",
                self.listen
            );
        }
        let tls = server.tls.member("worker");
        server.check_advertised(self.advertise.as_deref())?;
        let token = server.tls.token()?;
        let name = self.name.clone().unwrap_or_else(process_name);
        let dir = self.scratch_dir(&name)?;
        let since_1970 = UNIX_EPOCH.elapsed().unwrap_or_default();
        block_on(async {
            let (registry, objects) = (Registry::default(), server.store.open().await?);
            let metrics = &server.metrics;
            metrics.serve(&registry, "worker", &objects).await?;
            server.tls.watch_expiry(&registry, "worker")?;
            let rented = server.rent.given().complete().await;
            let stop = stop_channel(server.stop_with_stdin)?;
            let process = Process {
                name,
                listen: self.listen,
                advertise: self.advertise.clone(),
                coordinator: self.address.coordinator.clone(),
                threads: self.threads.count(),
                memory_bytes: available_memory().unwrap_or(0),
                dir,
                objects,
                registry,
                tls,
                token,
                compress: self.compress,
                machine: rented.machine,
                started_ms: since_1970.as_millis() as u64,
                rss: || memory_in_use().unwrap_or(0),
            };
            Ok(work(process, stop_reason(stop, rented.metadata)).await?)
        })
    }

    fn scratch_dir(&self, name: &str) -> anyhow::Result<PathBuf> {
        let default = || std::env::temp_dir().join(format!("hatebeam-worker-{name}"));
        let dir = self.dir.clone().unwrap_or_else(default);
        let dir = std::path::absolute(&dir)
            .with_context(|| format!("cannot use the scratch directory {}", dir.display()))?;
        create_scratch(&dir)
            .with_context(|| format!("cannot create the scratch directory {}", dir.display()))?;
        if self.dir.is_none() && is_shared(&dir)? {
            bail!(
                "other users can change the scratch directory {}: name another one with --dir",
                dir.display()
            );
        }
        Ok(dir)
    }
}
