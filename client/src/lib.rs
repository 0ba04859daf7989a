//! A client for a coordinator.

mod error;
mod watch;

pub use error::ClientError;

use hatebeam_net::{Bearer, Limits, MAX_MESSAGE, Tls, Token, connect};
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
    /// Address of the coordinator, as http://host:port, or https:// with certificates.
    pub uri: String,
    /// Certificate of the client.
    pub tls: Option<Tls>,
    /// Token of the cluster.
    pub token: Option<Token>,
}

impl Endpoint {
    /// Connects to the coordinator.
    ///
    /// # Errors
    /// Returns [`ClientError::Connect`] if the connection fails.
    pub async fn connect(&self) -> Result<Client, ClientError> {
        let connected = connect(&self.uri, self.tls.as_ref(), &Limits::default()).await;
        let channel = connected.map_err(|source| ClientError::Connect {
            uri: self.uri.clone(),
            source: Box::new(source),
        })?;
        let client = RunsClient::with_interceptor(channel, Bearer::new(self.token.as_ref()));
        Ok(client
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE))
    }
}

/// Returns a request with the default timeout.
pub fn call<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL_TIMEOUT);
    request
}

/// Returns all runs, most recently submitted first.
///
/// # Errors
/// Returns [`ClientError::Refused`] if the call fails.
pub async fn runs(client: &mut Client) -> Result<Vec<v1::RunStatus>, ClientError> {
    let listed = client.list(call(v1::ListRequest {})).await;
    Ok(listed.map_err(ClientError::refused)?.into_inner().runs)
}

/// Returns the run with this name, or the only run whose name begins with it. Without a name, returns the running run, or
/// else the next run in the queue, or else the most recently submitted run.
///
/// # Errors
/// Returns [`ClientError::Refused`] if the call fails, and [`ClientError::NoRun`] or [`ClientError::Name`] if there is no
/// such run.
pub async fn find(client: &mut Client, name: Option<&str>) -> Result<v1::RunStatus, ClientError> {
    let all = runs(client).await?;
    let Some(name) = name else {
        let running = all.iter().find(|run| run.state() == v1::State::Running);
        let queued = all.iter().rfind(|run| run.state() == v1::State::Queued);
        let found = running.or(queued).or(all.first()).cloned();
        return found.ok_or(ClientError::NoRun);
    };
    let found = find_by_name(&all, |status| &status.name, name);
    found.cloned().map_err(ClientError::Name)
}
