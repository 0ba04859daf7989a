//! `hatebeam coordinator` and `hatebeam worker`.

use super::dashboard::DashboardArgs;
use super::{COORDINATOR, StoreArgs, TlsArgs, block_on};
use crate::hooks::HookArgs;
use crate::logs::{LogFormat, SpanArgs};
use crate::machine::{available_memory, rss};
use crate::metrics::MetricsArgs;
use crate::output;
use crate::rent::{Metadata, RentArgs, object_store_prices};
use anyhow::{Context, bail};
use hatebeam_coordinator::{
    CoreSettings, EventSink, NotifierSettings, Settings, TableSource, coordinate,
};
use hatebeam_metrics::Registry;
use hatebeam_net::check_bind;
use hatebeam_worker::{Process, work};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tracing::level_filters::LevelFilter;

pub(crate) const COORDINATOR_EXAMPLES: &str = "\
A cluster is started by hand with three commands on three machines; any number of workers can follow,
and come and go while a run is searched:
  hatebeam coordinator --store s3://bucket/hatebeam --listen 10.0.0.1:7800 --tls tls
  hatebeam worker --store s3://bucket/hatebeam --coordinator https://10.0.0.1:7800 --listen 10.0.0.2:7801 --tls tls
  hatebeam submit --coordinator https://10.0.0.1:7800 --tls tls --width 25M

All that must not be lost is in the object store. A coordinator that was stopped or killed can be started
again anywhere with the same store, and goes on where it was; a second one beside it is refused. Without
certificates only this machine can reach it, unless --insecure-bind says otherwise.

Health and reflection are served to gRPC's own tools, with --metrics Prometheus is served, and browsers are
served a dashboard: at http://127.0.0.1:7880 unless --dashboard says otherwise.

Examples:
  hatebeam coordinator --store /shared/hatebeam
  hatebeam coordinator --store /shared/hatebeam --on-event 'echo $HATEBEAM_RUN $HATEBEAM_EVENT $HATEBEAM_SCORE >> events.log'
  hatebeam coordinator --store s3://bucket/x --s3-endpoint http://127.0.0.1:3900 --s3-path-style --single-coordinator";

pub(crate) const WORKER_EXAMPLES: &str = "\
One worker a machine is meant, or one a NUMA node (started with numactl --cpunodebind=N --membind=N). It
uses all cores, unless --threads says otherwise, and its folder is emptied when it starts: what counts is in
the object store.

Ctrl-C has it finish the depth, hand over its shards, and go; the second Ctrl-C ends it there and then.
Nothing is lost either way.

Examples:
  hatebeam worker --store /shared/hatebeam
  hatebeam worker --store /shared/hatebeam --metrics 127.0.0.1:9101
  hatebeam worker --store s3://bucket/hatebeam --coordinator https://10.0.0.1:7800 --listen 10.0.0.2:7801 --tls tls";

/// What a coordinator is told.
#[derive(Debug, clap::Args)]
pub(crate) struct CoordinatorArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Where it listens
    #[arg(long, value_name = "ADDRESS", default_value = COORDINATOR)]
    listen: SocketAddr,
    #[command(flatten)]
    tls: TlsArgs,
    /// Listen on more than the loopback without certificates: whoever reaches it can do anything. For
    /// --metrics, which knows no certificates, this is needed in any case: whoever reaches it can read them
    #[arg(long)]
    insecure_bind: bool,
    /// This is the only coordinator of the store, which need not honour conditional writes then
    #[arg(long)]
    single_coordinator: bool,
    /// Workers that a run is begun with at least
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    min_workers: u32,
    /// End, with exit code 0, when no run was open for so many minutes: for machines that are rented
    #[arg(long, value_name = "MINUTES", value_parser = parse_minutes)]
    idle_stop: Option<f64>,
    #[command(flatten)]
    rent: RentArgs,
    /// Seconds without a word after which a worker is lost
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = parse_seconds)]
    lost_after: f64,
    #[command(flatten)]
    hooks: HookArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    /// Stop when standard input ends, as it does with the process that holds the other end of it
    #[arg(long)]
    stop_with_stdin: bool,
    #[command(flatten)]
    dashboard: DashboardArgs,
    /// How log lines are written
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    #[command(flatten)]
    spans: SpanArgs,
}

/// What a worker is told.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Where the coordinator is, as http://host:port, or https:// with certificates
    #[arg(
        long,
        value_name = "URI",
        default_value = "http://127.0.0.1:7800",
        env = "HATEBEAM_COORDINATOR"
    )]
    coordinator: String,
    /// Where it listens for other workers; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where other workers reach it, if not there: http://host:port, or https:// with certificates
    #[arg(long, value_name = "URI")]
    advertise: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Listen on more than the loopback without certificates: whoever reaches it can do anything. For
    /// --metrics, which knows no certificates, this is needed in any case: whoever reaches it can read them
    #[arg(long)]
    insecure_bind: bool,
    /// What it is called, and no other is [default: the host's name and the process's number]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Threads that search [default: one a core]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
    /// A folder of its own, which is emptied [default: one of its name in the system's folder for such]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    rent: RentArgs,
    /// Compress what goes to other workers: where the network is slower than the cores
    #[arg(long)]
    compress: bool,
    #[command(flatten)]
    metrics: MetricsArgs,
    /// Stop when standard input ends, as it does with the process that holds the other end of it
    #[arg(long)]
    stop_with_stdin: bool,
    /// How log lines are written
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    #[command(flatten)]
    spans: SpanArgs,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.2..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds from 0.2 to 3600".to_owned()),
    }
}

fn parse_minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if (0.01..=1e6).contains(&minutes) => Ok(minutes),
        _ => Err("give minutes from 0.01 to 1000000".to_owned()),
    }
}

/// The name of this process among others.
fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let fine = |letter: &char| letter.is_ascii_alphanumeric() || "-_.".contains(*letter);
    let host: String = host.trim().chars().filter(fine).take(64).collect();
    let host = if host.is_empty() { "host" } else { &host };
    format!("{host}-{}", std::process::id())
}

/// Tells when a signal says that the process is to stop, or the end of its input if that is one; the second
/// signal ends it.
fn on_signals(stop_with_stdin: bool) -> anyhow::Result<watch::Receiver<bool>> {
    let flag = crate::interrupt::flag()?;
    if stop_with_stdin {
        crate::interrupt::at_end_of_input(&flag)?;
    }
    let (tell, told) = watch::channel(false);
    tokio::spawn(async move {
        while !flag.load(std::sync::atomic::Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let _ = tell.send(true);
        // The sender lives on: nobody is to take its end for a word.
        std::future::pending::<()>().await;
    });
    Ok(told)
}

/// Tells why a worker is to go: somebody says so, or its machine is about to be taken away.
fn reasons_to_go(
    mut stop: watch::Receiver<bool>,
    metadata: Option<Metadata>,
) -> watch::Receiver<Option<String>> {
    let (tell, told) = watch::channel(None);
    tokio::spawn(async move {
        let taken_away = async {
            match &metadata {
                Some(metadata) => metadata.is_to_go().await,
                None => std::future::pending().await,
            }
        };
        let reason = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => "it was told to stop".to_owned(),
            reason = taken_away => reason,
        };
        let _ = tell.send(Some(reason));
        // The sender lives on: nobody is to take its end for a word.
        std::future::pending::<()>().await;
    });
    told
}

/// Runs `hatebeam coordinator`.
pub(crate) fn coordinator(args: &CoordinatorArgs) -> anyhow::Result<()> {
    let (format, level) = (Some(args.log_format), LevelFilter::INFO);
    let _logs = args.spans.start(format, level, "coordinator")?;
    let tls = args.tls.tls("coordinator");
    check_bind(args.listen, tls.is_some(), args.insecure_bind)?;
    args.metrics.check(args.insecure_bind)?;
    let token = args.tls.token()?;
    let heralding = NotifierSettings {
        events: args
            .hooks
            .start()?
            .map(|events| Arc::new(events) as Arc<dyn EventSink>),
        every: args.hooks.every(),
    };
    block_on(async {
        let stop = on_signals(args.stop_with_stdin)?;
        let lost_after = Duration::from_secs_f64(args.lost_after);
        let (registry, objects) = (Registry::default(), args.store.open().await?);
        args.metrics
            .serve(&registry, "coordinator", &objects)
            .await?;
        let (machine, _) = args.rent.machine().await?;
        let rates = object_store_prices(args.store.is_of_aws());
        let dashboard = args.dashboard.open(&args.tls, args.insecure_bind, rates);
        let dashboard = dashboard.await?;
        let (dashboard, url) = dashboard.unzip();
        let core = CoreSettings {
            name: own_name(),
            address: String::new(),
            objects,
            prices: rates,
            machine,
            single: args.single_coordinator,
            idle_stop: args
                .idle_stop
                .map(|minutes| Duration::from_secs_f64(minutes * 60.0)),
            min_workers: args.min_workers as usize,
            heartbeat: (lost_after / 5).min(Duration::from_secs(1)),
            lost_after,
            tables: TableSource::scratch(std::env::temp_dir()),
            notifications: heralding,
        };
        let settings = Settings {
            core,
            listen: args.listen,
            tls,
            token,
            registry,
            dashboard,
        };
        let ready = |address: SocketAddr| {
            // A script can wait for this line; if it went away, the coordinator is still of use.
            let _ = output::print(&format_args!("listening on {address}\n"));
            if let Some(url) = &url {
                let _ = output::print(&format_args!("dashboard at {url}\n"));
            }
        };
        Ok(coordinate(settings, stop, ready).await?)
    })
}

/// Runs `hatebeam worker`.
pub(crate) fn worker(args: &WorkerArgs) -> anyhow::Result<()> {
    let (format, level) = (Some(args.log_format), LevelFilter::INFO);
    let _logs = args.spans.start(format, level, "worker")?;
    let tls = args.tls.tls("worker");
    check_bind(args.listen, tls.is_some(), args.insecure_bind)?;
    if args.listen.ip().is_unspecified() && args.advertise.is_none() {
        bail!(
            "a worker that listens on {} must say with --advertise where other workers reach it",
            args.listen
        );
    }
    args.metrics.check(args.insecure_bind)?;
    let token = args.tls.token()?;
    let name = args.name.clone().unwrap_or_else(own_name);
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => std::env::temp_dir().join(format!("hatebeam-worker-{name}")),
    };
    let dir = std::path::absolute(&dir).context("the worker's folder")?;
    std::fs::create_dir_all(&dir).with_context(|| format!("the folder {}", dir.display()))?;
    let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let started_ms = since_1970.as_millis() as u64;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    block_on(async {
        let (registry, objects) = (Registry::default(), args.store.open().await?);
        args.metrics.serve(&registry, "worker", &objects).await?;
        let (machine, metadata) = args.rent.machine().await?;
        let stop = on_signals(args.stop_with_stdin)?;
        let process = Process {
            name,
            listen: args.listen,
            advertise: args.advertise.clone(),
            coordinator: args.coordinator.clone(),
            threads: args.threads.map_or(cores, usize::from),
            memory_bytes: available_memory().unwrap_or(0),
            dir,
            objects,
            registry,
            tls,
            token,
            compress: args.compress,
            machine,
            started_ms,
            rss: || rss().unwrap_or(0),
        };
        Ok(work(process, reasons_to_go(stop, metadata)).await?)
    })
}
