//! Connection to the coordinator over gRPC.

use super::{CoordinatorLink, Session, failed};
use hatebeam_net::{self as net, Bearer, Limits, MAX_ANSWER, MAX_MESSAGE, Role, Tls, Token};
use hatebeam_objects::Objects;
use hatebeam_proto::messages::{
    Answer, AnswerKind, Failed, FailureKind, FromWorker, Hello, ToWorker,
};
use hatebeam_proto::v1;
use hatebeam_proto::v1::members_client::MembersClient;
use hatebeam_proto::{BoxStream, LinkError, LinkErrorKind};
use hatebeam_runs::{coordinator_uri, lease_id};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

/// Timeout for connecting, idle time after which the connection is pinged, and timeout for the response to a ping.
const COORDINATOR_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of queued messages to the coordinator.
const QUEUE: usize = 64;

/// Connector to the coordinator at a URI.
#[derive(Debug)]
pub(crate) struct GrpcCoordinator {
    pub(crate) uri: String,
    /// The object store. Its lease contains the URI of the active coordinator, and shows that both use the same store.
    pub(crate) objects: Objects,
    pub(crate) tls: Option<Tls>,
    pub(crate) token: Option<Token>,
}

#[tonic::async_trait]
impl CoordinatorLink for GrpcCoordinator {
    async fn open(&self, mut hello: Hello) -> Result<Session, LinkError> {
        let channel = self.connect().await?;
        hello.lease = lease_id(&self.objects).await.map_err(|error| {
            LinkError::transient(format!("cannot read the coordinator's lease: {error}"))
        })?;
        let mut client: MembersClient<InterceptedService<Channel, Bearer>> =
            MembersClient::with_interceptor(channel, Bearer::new(self.token.as_ref()))
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_ANSWER);
        let (outbound, messages) = mpsc::channel(QUEUE);
        // The queue is empty, so this cannot fail.
        let _ = outbound.try_send(FromWorker::Hello(Box::new(hello)));
        let messages = ReceiverStream::new(messages).map(v1::FromWorker::from);
        let inbound = client
            .join(messages)
            .await
            .map_err(|error| failed(&error))?;
        let inbound = read_all(inbound.into_inner(), outbound.clone());
        Ok(Session { outbound, inbound })
    }
}

impl GrpcCoordinator {
    /// Connects to the coordinator at the configured URI. If the coordinator is unreachable there, connects to the
    /// URI in the object store, because the coordinator may have moved to another machine.
    async fn connect(&self) -> Result<Channel, LinkError> {
        let error = match self.connect_to(&self.uri).await {
            Err(error) if error.kind == LinkErrorKind::Transient => error,
            connected => return connected,
        };
        match coordinator_uri(&self.objects).await {
            Some(uri) if uri != self.uri => {
                tracing::info!(
                    uri,
                    "connecting to the coordinator that the object store names"
                );
                // An unusable URI in the store must not end the worker, so this returns the transient error of the
                // first attempt.
                self.connect_to(&uri).await.map_err(|_| error)
            }
            _ => Err(error),
        }
    }

    async fn connect_to(&self, uri: &str) -> Result<Channel, LinkError> {
        let limits = Limits {
            connect_timeout: COORDINATOR_TIMEOUT,
            ping_timeout: COORDINATOR_TIMEOUT,
            ..Limits::default()
        };
        let channel = net::connect(uri, self.tls.as_ref(), Role::Coordinator, &limits).await;
        channel.map_err(|error| {
            let reason = error.to_string();
            if error.is_transient() {
                LinkError::transient(reason)
            } else {
                LinkError::refused(reason)
            }
        })
    }
}

/// Converts messages from the coordinator. If an order is invalid, sends a failure as its answer.
fn read_all(
    messages: Streaming<v1::ToWorker>,
    answers: mpsc::Sender<FromWorker>,
) -> BoxStream<Result<ToWorker, LinkError>> {
    Box::pin(messages.filter_map(move |message| {
        let message = match message {
            Ok(message) => message,
            Err(status) => return Some(Err(failed(&status))),
        };
        match read(message) {
            Ok(message) => Some(Ok(message)),
            Err(Unreadable::Message(error)) => Some(Err(error)),
            Err(Unreadable::Order(answer)) => {
                // If the queue is full, the answer is dropped. In that case, the coordinator is not reading messages,
                // and soon considers this worker lost.
                let _ = answers.try_send(FromWorker::Answer(answer));
                None
            }
        }
    }))
}

enum Unreadable {
    /// An invalid order, and the answer to send.
    Order(Answer),
    /// Any other invalid message.
    Message(LinkError),
}

fn read(message: v1::ToWorker) -> Result<ToWorker, Unreadable> {
    let order = match &message.message {
        Some(v1::to_worker::Message::Order(order)) => Some((order.epoch, order.id)),
        _ => None,
    };
    ToWorker::try_from(message).map_err(|error| match order {
        Some((epoch, id)) => Unreadable::Order(Answer {
            epoch,
            id,
            kind: AnswerKind::Failed(Failed {
                reason: error.to_string(),
                kind: FailureKind::BadOrder,
            }),
        }),
        None => Unreadable::Message(LinkError::bad_message(error.to_string())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_order_is_answered_with_a_failure() {
        let bad_spec = v1::order::Kind::Prepare(v1::Prepare {
            spec: "{}".to_owned(),
            ..v1::Prepare::default()
        });
        for kind in [None, Some(bad_spec)] {
            let order = v1::Order {
                epoch: 7,
                id: 9,
                kind,
            };
            let message = Some(v1::to_worker::Message::Order(order));
            let Err(Unreadable::Order(answer)) = read(v1::ToWorker { message }) else {
                panic!("the invalid order was accepted");
            };
            assert_eq!((answer.epoch, answer.id), (7, 9));
            assert!(
                matches!(&answer.kind, AnswerKind::Failed(failed) if failed.kind == FailureKind::BadOrder),
                "{answer:?}"
            );
        }
    }

    #[test]
    fn empty_message_is_a_session_error() {
        let read = read(v1::ToWorker::default());
        assert!(matches!(read, Err(Unreadable::Message(_))));
    }
}
