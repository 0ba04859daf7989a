//! What a person asks of a coordinator: submit, status, watch, wait, limit, cancel, drain.

use super::say::{RunJson, cost_text, print_json, run_text, worker_lines, worker_text};
use super::{TlsArgs, block_on};
use crate::output::{self, Failure};
use crate::run::{Screen, SpecArgs, parse_hours, spec_of};
use anyhow::{Context, anyhow};
use clap::ArgGroup;
use hatebeam_cost::Micros;
use hatebeam_dashboard::WorkerView;
use hatebeam_net::{self as wire, Bearer, Limits, MAX_MESSAGE, explain};
use hatebeam_proto::v1;
use hatebeam_proto::v1::runs_client::RunsClient;
use hatebeam_runs::{NameError, Observer, ProgressEstimator, Retention, RunSpec, find_by_name};
use hatebeam_store::DepthRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

pub(crate) const SUBMIT_EXAMPLES: &str = "\
A run is known by its specification, as with `hatebeam run`: to submit it twice does nothing the second time,
and to submit one that was cancelled has it go on. Runs are worked on one after the other.

Where the coordinator knows what machines cost (`hatebeam worker --help`), --max-cost keeps a run within a budget.

Examples:
  hatebeam submit --width 1M
  hatebeam submit --width 25M --max-cost 20 --max-hours 6
  hatebeam submit --width 25M --keep 4 --watch
  hatebeam submit --coordinator https://10.0.0.1:7800 --tls tls --width 250k --evaluator knewjade";

pub(crate) const STATUS_EXAMPLES: &str = "\
Without a run all runs are listed, the last submitted first, and the workers.

Examples:
  hatebeam status
  hatebeam status patterns-1000000-5f3a9c1e --json";

pub(crate) const WATCH_EXAMPLES: &str = "\
Shows what `hatebeam run` shows. With --json a line for each depth, and one for the run at the end. A
coordinator that goes away is waited for.

Examples:
  hatebeam watch
  hatebeam watch patterns-1000000-5f3a9c1e --json";

pub(crate) const WAIT_EXAMPLES: &str = "\
The exit code is 0 if the run is finished, and 1 if it failed or was cancelled.

Examples:
  hatebeam wait
  hatebeam wait patterns-1000000-5f3a9c1e --json";

pub(crate) const LIMIT_EXAMPLES: &str = "\
For a run that waits or is searched. Limits that are not named stay as they are. A run that has
ended by one of its limits goes on when it is submitted with more.

Examples:
  hatebeam limit patterns-1000000-5f3a9c1e --max-cost 30
  hatebeam limit patterns-25 --max-cost 40 --max-hours none";

pub(crate) const CANCEL_EXAMPLES: &str = "\
Examples:
  hatebeam cancel patterns-1000000-5f3a9c1e
  hatebeam cancel patterns-25 --coordinator https://10.0.0.1:7800 --tls tls";

pub(crate) const DRAIN_EXAMPLES: &str = "\
Examples:
  hatebeam drain node-17-4242
  hatebeam drain node-17-4242 --coordinator https://10.0.0.1:7800 --tls tls";

/// How long a call may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long a coordinator that went away is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Workers that have a line below the bar at most.
const WORKERS: usize = 16;

/// How the coordinator is reached.
#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    /// Where the coordinator is, as http://host:port, or https:// with certificates
    #[arg(
        long,
        value_name = "URI",
        default_value = "http://127.0.0.1:7800",
        env = "HATEBEAM_COORDINATOR"
    )]
    coordinator: String,
    #[command(flatten)]
    tls: TlsArgs,
}

/// What to submit.
#[derive(Debug, clap::Args)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    what: SpecArgs,
    /// Stop at this depth
    #[arg(
        long,
        value_name = "PIECES",
        default_value_t = 0,
        hide_default_value = true
    )]
    max_depth: u32,
    /// What it may cost at most, in dollars: before a depth that would cost more it is stopped, and its best game
    /// read back. Submitted again with more it goes on
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    max_cost: Option<Micros>,
    /// How many hours it may be worked on or wait for workers at most, likewise
    #[arg(long, value_name = "HOURS", value_parser = parse_hours)]
    max_hours: Option<f64>,
    /// Of which depths the wells stay in the object store: all; a number N for every Nth, 2 to 6; or last
    #[arg(long, value_name = "DEPTHS", default_value = "all")]
    keep: Retention,
    /// How many shards a depth has, 1 to 4096: many more than workers [default: 64, or one a million wells]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=4096))]
    shards: u32,
    /// Watch it at once
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    client: ClientArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn parse_dollars(text: &str) -> Result<Micros, String> {
    match text.parse() {
        Ok(dollars) if dollars > Micros::ZERO => Ok(dollars),
        _ => Err("give dollars from 0.000001 to 1000000000".to_owned()),
    }
}

/// What to tell.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// The run, or the beginning of its name
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A run, and the coordinator that has it.
#[derive(Debug, clap::Args)]
struct WhichArgs {
    /// The run, or the beginning of its name [default: the one that is worked on, or else the last]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

/// What to watch.
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// Print a line of JSON for each depth, and one for the run
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// What to wait for.
#[derive(Debug, clap::Args)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What to limit, and to what.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("limits").required(true).multiple(true).args(["max_depth", "max_cost", "max_hours"])))]
pub(crate) struct LimitArgs {
    /// The run, or the beginning of its name
    #[arg(value_name = "RUN")]
    run: String,
    /// The depth to stop at, or none
    #[arg(long, value_name = "PIECES", value_parser = |text: &str| or_none(text, parse_depth))]
    max_depth: Option<u32>,
    /// What it may cost at most, all told, in dollars, or none
    #[arg(long, value_name = "DOLLARS")]
    #[arg(value_parser = |text: &str| or_none(text, |text| parse_dollars(text).map(|max| max.0)))]
    max_cost: Option<u64>,
    /// How many hours it may be worked on or wait for workers at most, all told, or none
    #[arg(long, value_name = "HOURS")]
    #[arg(value_parser = |text: &str| or_none(text, |text| parse_hours(text).map(seconds)))]
    max_hours: Option<u64>,
    #[command(flatten)]
    client: ClientArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn parse_depth(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(depth) if depth > 0 => Ok(depth),
        _ => Err(format!("give pieces from 1 to {}", u32::MAX)),
    }
}

/// A limit; 0 is none.
fn or_none<T: Default>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, String> {
    match text {
        "none" => Ok(T::default()),
        _ => parse(text).map_err(|error| format!("{error}, or none")),
    }
}

fn seconds(hours: f64) -> u64 {
    (hours * 3600.0).ceil() as u64
}

/// What to cancel.
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    /// The run, or the beginning of its name
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// Whom to drain.
#[derive(Debug, clap::Args)]
pub(crate) struct DrainArgs {
    /// The worker's name, as `hatebeam status` tells it
    #[arg(value_name = "WORKER")]
    worker: String,
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) type Client = RunsClient<InterceptedService<Channel, Bearer>>;

impl ClientArgs {
    pub(super) async fn connect(&self) -> anyhow::Result<Client> {
        connect(&self.coordinator, &self.tls).await
    }
}

/// Calls a coordinator as a client does.
pub(crate) async fn connect(coordinator: &str, tls: &TlsArgs) -> anyhow::Result<Client> {
    let (certificates, token) = (tls.client(), tls.token()?);
    let channel = wire::connect(coordinator, certificates.as_ref(), &Limits::default())
        .await
        .with_context(|| format!("the coordinator at {coordinator}"))?;
    let client = RunsClient::with_interceptor(channel, Bearer::new(token.as_ref()));
    Ok(client
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE))
}

impl WhichArgs {
    /// The run's name.
    async fn find(&self) -> anyhow::Result<String> {
        let mut client = self.client.connect().await?;
        Ok(find(&mut client, self.run.as_deref()).await?.name)
    }
}

fn call<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(DEADLINE);
    request
}

pub(super) fn failed(status: Status) -> anyhow::Error {
    anyhow!("the coordinator says: {}", explain(&status))
}

async fn runs(client: &mut Client) -> anyhow::Result<Vec<v1::RunStatus>> {
    let listed = client
        .list(call(v1::ListRequest {}))
        .await
        .map_err(failed)?;
    Ok(listed.into_inner().runs)
}

/// The run that a person means.
pub(super) async fn find(client: &mut Client, run: Option<&str>) -> anyhow::Result<v1::RunStatus> {
    let all = runs(client).await?;
    let Some(run) = run else {
        let running = all.iter().find(|run| run.state() == v1::State::Running);
        let queued = all.iter().rfind(|run| run.state() == v1::State::Queued);
        let found = running.or(queued).or(all.first()).cloned();
        return found.context("there is no run; `hatebeam submit` makes one");
    };
    let found = find_by_name(&all, |status| &status.name, run);
    found.cloned().map_err(|error| match error {
        NameError::Unknown(_) => anyhow!("{error}; `hatebeam status` lists them"),
        error => error.into(),
    })
}

/// Runs `hatebeam submit`.
pub(crate) fn submit(args: &SubmitArgs) -> anyhow::Result<()> {
    let spec = spec_of(&args.what)?;
    block_on(async {
        let mut client = args.client.connect().await?;
        let request = v1::SubmitRequest {
            spec: serde_json::to_string(&spec)?,
            shards: args.shards,
            keep: args.keep.to_string(),
            max_depth: args.max_depth,
            max_cost_micros: args.max_cost.map_or(0, |max| max.0),
            max_seconds: args.max_hours.map_or(0, seconds),
        };
        let submitted = client.submit(call(request)).await.map_err(failed)?;
        let run = submitted
            .into_inner()
            .run
            .context("the coordinator names no run")?;
        if args.watch {
            return follow(&args.client, &run.name, args.json, false).await;
        }
        match args.json {
            true => print_json(&RunJson::of(&run)),
            false => output::print(&format_args!("{}\n", run_text(&run))),
        }
    })
}

/// Runs `hatebeam status`.
pub(crate) fn status(args: &StatusArgs) -> anyhow::Result<()> {
    block_on(async {
        let mut client = args.client.connect().await?;
        let runs = match &args.run {
            Some(run) => vec![find(&mut client, Some(run)).await?],
            None => runs(&mut client).await?,
        };
        let workers = client
            .workers(call(v1::WorkersRequest {}))
            .await
            .map_err(failed)?;
        let workers = workers.into_inner().workers;
        if args.json {
            let runs: Vec<RunJson<'_>> = runs.iter().map(RunJson::of).collect();
            let workers: Vec<WorkerView<'_>> = workers.iter().map(WorkerView::of).collect();
            return print_json(&serde_json::json!({ "runs": runs, "workers": workers }));
        }
        let mut text = String::new();
        for run in &runs {
            let _ = writeln!(text, "{}", run_text(run));
        }
        if runs.is_empty() {
            text.push_str("There is no run. `hatebeam submit` makes one.\n");
        }
        text.push('\n');
        for worker in &workers {
            let _ = writeln!(text, "{}", worker_text(worker));
        }
        if workers.is_empty() {
            text.push_str("There is no worker. `hatebeam worker` starts one.\n");
        }
        output::print(&text)
    })
}

/// Runs `hatebeam limit`.
pub(crate) fn limit(args: &LimitArgs) -> anyhow::Result<()> {
    block_on(async {
        let mut client = args.client.connect().await?;
        let request = call(v1::LimitRequest {
            run: find(&mut client, Some(&args.run)).await?.name,
            max_depth: args.max_depth,
            max_cost_micros: args.max_cost,
            max_seconds: args.max_hours,
        });
        let limited = client.limit(request).await.map_err(failed)?.into_inner();
        let run = limited.run.context("the coordinator names no run")?;
        match args.json {
            true => print_json(&RunJson::of(&run)),
            false => output::print(&format_args!("{}\n", run_text(&run))),
        }
    })
}

/// Runs `hatebeam cancel`.
pub(crate) fn cancel(args: &CancelArgs) -> anyhow::Result<()> {
    block_on(async {
        let mut client = args.client.connect().await?;
        let run = find(&mut client, Some(&args.run)).await?.name;
        let request = call(v1::CancelRequest { run: run.clone() });
        client.cancel(request).await.map_err(failed)?;
        output::print(&format_args!(
            "{run} is stopped at the end of its depth; what is committed stays, and submitting it again goes on\n"
        ))
    })
}

/// Runs `hatebeam drain`.
pub(crate) fn drain(args: &DrainArgs) -> anyhow::Result<()> {
    block_on(async {
        let mut client = args.client.connect().await?;
        let worker = args.worker.clone();
        client
            .drain(call(v1::DrainRequest { worker }))
            .await
            .map_err(failed)?;
        output::print(&format_args!(
            "{} goes at the end of the depth\n",
            args.worker
        ))
    })
}

/// Runs `hatebeam watch`.
pub(crate) fn watch(args: &WatchArgs) -> anyhow::Result<()> {
    block_on(async {
        let run = args.which.find().await?;
        follow(&args.which.client, &run, args.json, args.quiet).await
    })
}

/// Runs `hatebeam wait`.
pub(crate) fn wait(args: &WaitArgs) -> anyhow::Result<()> {
    block_on(async {
        let run = args.which.find().await?;
        let ended = until_ended(&args.which.client, &run, u32::MAX, |_| Ok(())).await?;
        end(&ended, args.json)
    })
}

/// Watches a run to its end, through whatever becomes of the coordinator meanwhile.
async fn until_ended(
    args: &ClientArgs,
    run: &str,
    mut from_depth: u32,
    mut show: impl FnMut(&v1::WatchResponse) -> anyhow::Result<()>,
) -> anyhow::Result<v1::RunStatus> {
    let mut away: Option<Instant> = None;
    loop {
        let request = v1::WatchRequest {
            run: run.to_owned(),
            from_depth,
        };
        let lost = match args.connect().await {
            Err(error) => error,
            Ok(mut client) => match client.watch(request).await {
                Err(status) if status.code() == tonic::Code::NotFound => {
                    return Err(failed(status));
                }
                Err(status) => failed(status),
                Ok(messages) => {
                    let mut messages = messages.into_inner();
                    loop {
                        match messages.message().await {
                            Err(status) => break failed(status),
                            Ok(None) => break anyhow!("the coordinator hung up"),
                            Ok(Some(message)) => {
                                away = None;
                                if let Some(last) = message.depths.last() {
                                    from_depth = last.depth.saturating_add(1);
                                }
                                show(&message)?;
                                let ended = message.run.filter(|run| !run.is_open());
                                if let Some(run) = ended {
                                    return Ok(run);
                                }
                            }
                        }
                    }
                }
            },
        };
        let since = *away.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE {
            return Err(lost.context("the coordinator is away"));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn follow(args: &ClientArgs, run: &str, json: bool, quiet: bool) -> anyhow::Result<()> {
    let mut screen: Option<Screen> = None;
    let expanded = Arc::new(AtomicU64::new(0));
    let mut begun = None;
    let mut said = String::new();
    let mut alerts: BTreeSet<(String, String)> = BTreeSet::new();
    let ended = until_ended(args, run, 0, |message| {
        let Some(run) = &message.run else {
            return Ok(());
        };
        let screen = screen.get_or_insert_with(|| {
            let spec: Option<RunSpec> = serde_json::from_str(&run.spec).ok();
            let pace = spec.map(|spec| ProgressEstimator::new(&spec, max_depth(run)));
            Screen::new(json, quiet, pace, 0)
        });
        for record in &message.depths {
            screen.cost(Micros(record.cost_micros).dollars());
            screen.committed(&record_of(record));
        }
        expanded.store(run.expanded, Ordering::Relaxed);
        let goes_on = max_depth(run).is_none_or(|max| run.depth < max);
        if goes_on && run.parents > 0 && begun != Some((run.depth, run.epoch)) {
            begun = Some((run.depth, run.epoch));
            screen.begun(run.depth + 1, run.parents, &expanded);
        }
        screen.below(&below(run, &message.workers));
        if run.note != said {
            said.clone_from(&run.note);
            if !said.is_empty() {
                screen.note(&said);
            }
        }
        // Each is said when it comes up, whatever its numbers become; what holds the run up is its note.
        let now: BTreeMap<(String, String), &str> = message
            .alerts
            .iter()
            .filter(|alert| alert.kind != "held-up")
            .map(|alert| {
                (
                    (alert.kind.clone(), alert.worker.clone()),
                    alert.text.as_str(),
                )
            })
            .collect();
        for (about, text) in now.iter().filter(|(about, _)| !alerts.contains(*about)) {
            screen.note(format!("{} {text}", about.1).trim());
        }
        alerts = now.into_keys().collect();
        Ok(())
    })
    .await?;
    if let Some(screen) = screen {
        screen.close()?;
    }
    end(&ended, json)
}

/// What is shown below the bar.
fn below(run: &v1::RunStatus, workers: &[v1::WorkerStatus]) -> String {
    let cost = cost_text(run);
    let lines = worker_lines(workers, WORKERS);
    match cost.is_empty() {
        true => lines,
        false => format!("{cost}\n{lines}"),
    }
}

fn max_depth(run: &v1::RunStatus) -> Option<u32> {
    (run.max_depth > 0).then_some(run.max_depth)
}

/// Says what a run came to.
fn end(run: &v1::RunStatus, json: bool) -> anyhow::Result<()> {
    if json {
        print_json(&RunJson::of(run))?;
    } else {
        output::print(&format_args!("{}\n", run_text(run)))?;
        if let Some(result) = &run.result {
            output::print(&format_args!("{}\n", result.replay))?;
        }
    }
    match run.state() {
        v1::State::Finished => Ok(()),
        _ => Err(Failure::Printed.into()),
    }
}

fn record_of(record: &v1::DepthRecord) -> DepthRecord {
    DepthRecord {
        depth: record.depth,
        count: record.count,
        digest: record.digest.clone(),
        best_eval: record.best_eval,
        median_eval: record.median_eval,
        worst_eval: record.worst_eval,
        best_lines: u16::try_from(record.best_lines).unwrap_or(u16::MAX),
        best_well: record.best_well.clone(),
        children: record.children,
        seconds: record.seconds,
        bytes: record.bytes,
        kept: record.kept,
    }
}
