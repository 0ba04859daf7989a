//! A client for a coordinator, and human-readable text about runs and workers.

mod display;
mod error;
mod text;
mod watch;

pub use display::RunDisplay;
pub use error::ClientError;
pub use text::{deadline_text, price_warning, run_text, worker_text};

use hatebeam_net::{Bearer, Limits, MAX_MESSAGE, Role, Tls, Token, connect};
use hatebeam_proto::v1;
use hatebeam_proto::v1::runs_client::RunsClient;
use hatebeam_runs::find_by_name;
use std::time::Duration;
use tonic::Request;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

/// Timeout of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A client that is connected to a coordinator.
pub type Client = RunsClient<InterceptedService<Channel, Bearer>>;

/// The address and the credentials with which a client connects to a coordinator.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Address of the coordinator: `http://host:port`, or `https://host:port` with TLS.
    pub uri: String,
    /// TLS settings of the client.
    pub tls: Option<Tls>,
    /// Token that authorizes the client.
    pub token: Option<Token>,
}

impl Endpoint {
    /// Connects to the coordinator.
    ///
    /// # Errors
    /// Returns [`ClientError::Connect`] if the connection fails.
    pub async fn connect(&self) -> Result<Client, ClientError> {
        let connected = connect(
            &self.uri,
            self.tls.as_ref(),
            Role::Coordinator,
            &Limits::default(),
        )
        .await;
        let channel = connected.map_err(|cause| ClientError::Connect(Box::new(cause)))?;
        let client = RunsClient::with_interceptor(channel, Bearer::new(self.token.as_ref()));
        Ok(client
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE))
    }
}

/// Returns a request with a timeout of 30 s.
pub fn call<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL_TIMEOUT);
    request
}

/// Fetches all pages of the runs that a request selects, most recently submitted first. The coordinator omits the
/// machines and the replays unless the request contains a name.
///
/// # Errors
/// Returns [`ClientError::Refused`] if a call fails.
pub async fn runs(
    client: &mut Client,
    request: v1::ListRequest,
) -> Result<Vec<v1::RunStatus>, ClientError> {
    let mut request = request;
    let mut runs = Vec::new();
    loop {
        let listed = client.list(call(request.clone())).await;
        let page = listed.map_err(ClientError::refused)?.into_inner();
        runs.extend(page.runs);
        if page.next.is_empty() {
            return Ok(runs);
        }
        request.page = page.next;
    }
}

/// Returns the run with this name, or the only run whose name begins with it. Without a name, returns the run in
/// progress, or else the next run in the queue, or else the most recently submitted run.
///
/// # Errors
/// Returns [`ClientError::Refused`] if the call fails, and [`ClientError::NoRun`] or [`ClientError::Name`] if there is no
/// such run.
pub async fn find(client: &mut Client, name: Option<&str>) -> Result<v1::RunStatus, ClientError> {
    let name = match name {
        Some(prefix) => {
            let prefix = prefix.to_owned();
            let request = v1::ListRequest {
                prefix: prefix.clone(),
                ..v1::ListRequest::default()
            };
            let all = runs(client, request).await?;
            let found = find_by_name(&all, |status| &status.name, &prefix);
            found.map_err(ClientError::Name)?.name.clone()
        }
        None => next_run(client).await?,
    };
    let request = v1::ListRequest {
        name,
        ..v1::ListRequest::default()
    };
    let found = runs(client, request).await?.into_iter().next();
    found.ok_or(ClientError::NoRun)
}

/// Returns the name of the run in progress, or else of the open run that was submitted first, or else of the most
/// recently submitted run.
async fn next_run(client: &mut Client) -> Result<String, ClientError> {
    let request = v1::ListRequest {
        open_only: true,
        ..v1::ListRequest::default()
    };
    let open = runs(client, request).await?;
    let running = open.iter().find(|run| run.state() == v1::State::Running);
    if let Some(run) = running.or(open.last()) {
        return Ok(run.name.clone());
    }
    let request = v1::ListRequest {
        max_runs: 1,
        ..v1::ListRequest::default()
    };
    let listed = client.list(call(request)).await;
    let last = listed.map_err(ClientError::refused)?.into_inner().runs;
    let last = last.into_iter().next().ok_or(ClientError::NoRun)?;
    Ok(last.name)
}
