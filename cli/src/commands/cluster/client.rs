//! Calls of a coordinator.

use super::args::TlsArgs;
use anyhow::{Context, anyhow, bail};
use hatebeam_net::{Bearer, Limits, MAX_MESSAGE, connect, explain};
use hatebeam_proto::v1;
use hatebeam_proto::v1::runs_client::RunsClient;
use hatebeam_runs::{NameError, find_by_name};
use std::time::{Duration, Instant};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// Time limit of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Time without an answer after which a coordinator counts as unreachable.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// Time between two attempts to connect.
const RECONNECT_WAIT: Duration = Duration::from_millis(500);

/// The coordinator to call.
#[derive(Debug, clap::Args)]
pub(super) struct ClientArgs {
    /// Address of the coordinator, as http://host:port, or https:// with certificates
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

/// A run of a coordinator.
#[derive(Debug, clap::Args)]
pub(super) struct TargetArgs {
    /// Run, or the beginning of its name [default: the running one, or else the last submitted]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    pub(super) client: ClientArgs,
}

/// A connected coordinator.
pub(super) type Client = RunsClient<InterceptedService<Channel, Bearer>>;

impl ClientArgs {
    pub(super) async fn connect(&self) -> anyhow::Result<Client> {
        let (tls, token) = (self.tls.client(), self.tls.token()?);
        let channel = connect(&self.coordinator, tls.as_ref(), &Limits::default())
            .await
            .with_context(|| format!("cannot connect to the coordinator {}", self.coordinator))?;
        let client = RunsClient::with_interceptor(channel, Bearer::new(token.as_ref()));
        Ok(client
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE))
    }

    /// Connects and finds a run.
    pub(super) async fn find(&self, run: Option<&str>) -> anyhow::Result<(Client, v1::RunStatus)> {
        let mut client = self.connect().await?;
        let found = find(&mut client, run).await?;
        Ok((client, found))
    }

    /// Watches a run until it ends, and reconnects to the coordinator if necessary. `show` gets every message, with all
    /// depths from `from_depth` on.
    pub(super) async fn watch(
        &self,
        run: &str,
        mut from_depth: u32,
        mut show: impl FnMut(&v1::WatchResponse) -> anyhow::Result<()>,
    ) -> anyhow::Result<v1::RunStatus> {
        let mut unreachable_since: Option<Instant> = None;
        loop {
            let request = v1::WatchRequest {
                run: run.to_owned(),
                from_depth,
            };
            let mut messages = Messages::open(self, request).await?;
            let lost = loop {
                let message = match messages.next().await {
                    Ok(message) => message,
                    Err(error) => break error,
                };
                unreachable_since = None;
                if let Some(last) = message.depths.last() {
                    from_depth = last.depth.saturating_add(1);
                }
                show(&message)?;
                if let Some(ended) = message.run.filter(|run| !run.is_open()) {
                    return Ok(ended);
                }
            };
            let since = *unreachable_since.get_or_insert_with(Instant::now);
            if since.elapsed() > RECONNECT_TIMEOUT {
                return Err(lost.context("the coordinator is unreachable"));
            }
            tokio::time::sleep(RECONNECT_WAIT).await;
        }
    }
}

impl TargetArgs {
    /// Returns the name of the run.
    pub(super) async fn name(&self) -> anyhow::Result<String> {
        let (_, run) = self.client.find(self.run.as_deref()).await?;
        Ok(run.name)
    }
}

/// The messages about a run, or why there are none.
struct Messages(Result<tonic::Streaming<v1::WatchResponse>, Option<anyhow::Error>>);

impl Messages {
    /// Opens the stream of messages. An unreachable coordinator shows with the first message.
    ///
    /// # Errors
    /// If the coordinator does not know the run.
    async fn open(args: &ClientArgs, request: v1::WatchRequest) -> anyhow::Result<Messages> {
        let mut client = match args.connect().await {
            Ok(client) => client,
            Err(error) => return Ok(Messages(Err(Some(error)))),
        };
        match client.watch(request).await {
            Ok(messages) => Ok(Messages(Ok(messages.into_inner()))),
            Err(status) if status.code() == Code::NotFound => Err(refused(status)),
            Err(status) => Ok(Messages(Err(Some(refused(status))))),
        }
    }

    async fn next(&mut self) -> anyhow::Result<v1::WatchResponse> {
        let closed = || anyhow!("the coordinator closed the connection");
        let stream = match &mut self.0 {
            Ok(stream) => stream,
            Err(error) => return Err(error.take().unwrap_or_else(closed)),
        };
        let message = stream.message().await.map_err(refused)?;
        message.ok_or_else(closed)
    }
}

/// Returns a request with the usual time limit.
pub(super) fn call<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL_TIMEOUT);
    request
}

/// Converts an error that the coordinator returned.
pub(super) fn refused(status: Status) -> anyhow::Error {
    anyhow!("the coordinator refuses: {}", explain(&status))
}

/// Returns all runs.
pub(super) async fn runs(client: &mut Client) -> anyhow::Result<Vec<v1::RunStatus>> {
    let listed = client.list(call(v1::ListRequest {})).await;
    Ok(listed.map_err(refused)?.into_inner().runs)
}

/// Returns the run with this name, or the only one whose name begins with it. Without a name, returns the run that is
/// searched, or else the next one in the queue, or else the last submitted one.
async fn find(client: &mut Client, name: Option<&str>) -> anyhow::Result<v1::RunStatus> {
    let all = runs(client).await?;
    let Some(name) = name else {
        let running = all.iter().find(|run| run.state() == v1::State::Running);
        let queued = all.iter().rfind(|run| run.state() == v1::State::Queued);
        let found = running.or(queued).or(all.first()).cloned();
        return found.context("there is no run: submit one with `hatebeam submit`");
    };
    match find_by_name(&all, |status| &status.name, name) {
        Ok(found) => Ok(found.clone()),
        Err(error @ NameError::Unknown(_)) => {
            bail!("{error}: list the runs with `hatebeam status`")
        }
        Err(error) => Err(error.into()),
    }
}
