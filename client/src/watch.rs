//! Watching a run until it ends.

use crate::{ClientError, Endpoint};
use hatebeam_proto::v1;
use std::time::{Duration, Instant};
use tonic::{Code, Streaming};

/// Time without an answer after which a coordinator counts as unreachable.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// Time between two attempts to connect.
const RECONNECT_WAIT: Duration = Duration::from_millis(500);

impl Endpoint {
    /// Watches a run until it ends, and reconnects if necessary. `show` gets every message, with all depths from
    /// `from_depth` on.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`], and [`ClientError::Refused`] if the coordinator does not know the run.
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
            let mut messages = self.messages(request).await?;
            let lost = loop {
                let message = match next(&mut messages).await {
                    Ok(message) => message,
                    Err(error) => break error,
                };
                unreachable_since = None;
                if let Some(last) = message.depths.last() {
                    from_depth = last.depth.saturating_add(1);
                }
                show(&message);
                if let Some(ended) = message.run.filter(|run| !run.is_open()) {
                    return Ok(ended);
                }
            };
            let since = *unreachable_since.get_or_insert_with(Instant::now);
            if since.elapsed() > RECONNECT_TIMEOUT {
                return Err(ClientError::Unreachable(Box::new(lost)));
            }
            tokio::time::sleep(RECONNECT_WAIT).await;
        }
    }

    /// Opens the stream of messages about a run. The inner error is temporary.
    async fn messages(&self, request: v1::WatchRequest) -> Result<Messages, ClientError> {
        let mut client = match self.connect().await {
            Ok(client) => client,
            Err(error) => return Ok(Err(Some(error))),
        };
        match client.watch(request).await {
            Ok(messages) => Ok(Ok(messages.into_inner())),
            Err(status) if status.code() == Code::NotFound => Err(ClientError::refused(status)),
            Err(status) => Ok(Err(Some(ClientError::refused(status)))),
        }
    }
}

/// The messages about a run, or why there are none now.
type Messages = Result<Streaming<v1::WatchResponse>, Option<ClientError>>;

async fn next(messages: &mut Messages) -> Result<v1::WatchResponse, ClientError> {
    let stream = match messages {
        Ok(stream) => stream,
        Err(error) => return Err(error.take().unwrap_or(ClientError::Closed)),
    };
    let message = stream.message().await.map_err(ClientError::refused)?;
    message.ok_or(ClientError::Closed)
}
