//! Watching a run until it ends.

use crate::{ClientError, Endpoint};
use hatebeam_proto::v1;
use std::time::{Duration, Instant};
use tonic::{Code, Streaming};

/// Time after which the client stops reconnecting and returns an error, measured from the first failure since the
/// last message.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// Delay between attempts to connect.
const RECONNECT_WAIT: Duration = Duration::from_millis(500);

impl Endpoint {
    /// Watches a run until it has ended and all its depths have arrived, and returns its final status. Reconnects if the
    /// connection is lost. Calls `show` with every message. Together, the messages contain all committed depths from
    /// `from_depth` on.
    ///
    /// # Errors
    /// Returns [`ClientError::Unreachable`] if the coordinator remains unreachable, [`ClientError::Refused`] if the
    /// coordinator has no such run or refuses this client's token, and [`ClientError::Connect`] if the client cannot
    /// connect for a permanent reason, such as an invalid certificate.
    pub async fn watch(
        &self,
        run: &str,
        mut from_depth: u32,
        mut show: impl FnMut(&v1::WatchResponse),
    ) -> Result<v1::RunStatus, ClientError> {
        let mut unreachable_since: Option<Instant> = None;
        loop {
            let request = v1::WatchRequest {
                run: run.to_owned(),
                from_depth,
            };
            // The final status of the run, while more of its depths may follow.
            let mut ended: Option<v1::RunStatus> = None;
            let lost = match self.messages(request).await? {
                Err(error) => error,
                Ok(mut messages) => loop {
                    let message = match messages.message().await {
                        Ok(Some(message)) => message,
                        // The coordinator closes the stream after the last depth of a run that has ended.
                        Ok(None) => match ended.take() {
                            Some(run) => return Ok(run),
                            None => break ClientError::Closed,
                        },
                        Err(status) => break ClientError::refused(status),
                    };
                    unreachable_since = None;
                    if let Some(last) = message.depths.last() {
                        from_depth = last.depth.saturating_add(1);
                    }
                    show(&message);
                    ended = message.run.filter(|run| !run.is_open());
                    if let Some(run) = ended.take_if(|run| from_depth > run.depth) {
                        return Ok(run);
                    }
                },
            };
            let since = *unreachable_since.get_or_insert_with(Instant::now);
            if since.elapsed() > RECONNECT_TIMEOUT {
                return Err(ClientError::Unreachable(Box::new(lost)));
            }
            tokio::time::sleep(RECONNECT_WAIT).await;
        }
    }

    /// Opens the stream of messages about a run. Returns an outer error if another attempt is pointless: the
    /// coordinator has no such run, or refuses this client. An inner error may be temporary, so the caller can retry.
    async fn messages(
        &self,
        request: v1::WatchRequest,
    ) -> Result<Result<Streaming<v1::WatchResponse>, ClientError>, ClientError> {
        let mut client = match self.connect().await {
            Ok(client) => client,
            Err(error) if error.is_transient() => return Ok(Err(error)),
            Err(error) => return Err(error),
        };
        match client.watch(request).await {
            Ok(messages) => Ok(Ok(messages.into_inner())),
            Err(status) => match status.code() {
                Code::NotFound | Code::Unauthenticated | Code::PermissionDenied => {
                    Err(ClientError::refused(status))
                }
                _ => Ok(Err(ClientError::refused(status))),
            },
        }
    }
}
