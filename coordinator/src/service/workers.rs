//! The gRPC service for workers.

use super::Service;
use hatebeam_net::{check_worker_address, check_worker_name};
use hatebeam_proto::messages::FromWorker;
use hatebeam_proto::v1;
use hatebeam_proto::v1::members_server::Members;
use hatebeam_proto::{BoxStream, LinkError};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// Maximum number of queued messages to a worker.
const QUEUE: usize = 16;

#[tonic::async_trait]
impl Members for Service {
    type JoinStream = BoxStream<Result<v1::ToWorker, Status>>;

    async fn join(
        &self,
        request: Request<Streaming<v1::FromWorker>>,
    ) -> Result<Response<Self::JoinStream>, Status> {
        let (metadata, extensions, stream) = request.into_parts();
        let caller = Request::from_parts(metadata, extensions, ());
        let mut inbound: BoxStream<Result<FromWorker, LinkError>> = Box::pin(stream.map(receive));
        let registry = self.0.registry();
        let limit = registry.lost_after();
        let first = tokio::time::timeout(limit, inbound.next()).await;
        let first =
            first.map_err(|_| Status::deadline_exceeded("the worker sent no hello message"))?;
        let hello = match first.transpose()? {
            Some(FromWorker::Hello(hello)) => *hello,
            _ => {
                let reason = "the first message of a worker must be a hello message";
                return Err(Status::invalid_argument(reason));
            }
        };
        check_worker_name(&caller, &hello.name)?;
        check_worker_address(&caller, &hello.address)?;
        let (outbound, messages) = mpsc::channel(QUEUE);
        registry.join(hello, inbound, outbound)?;
        let messages = ReceiverStream::new(messages).map(|message| Ok(message.into()));
        Ok(Response::new(Box::pin(messages)))
    }
}

fn receive(message: Result<v1::FromWorker, Status>) -> Result<FromWorker, LinkError> {
    match message {
        Ok(message) => {
            let message = FromWorker::try_from(message);
            message.map_err(|error| LinkError::bad_message(error.to_string()))
        }
        Err(status) => {
            let reason = status.message().to_owned();
            Err(LinkError::from_status(&status, reason))
        }
    }
}
