//! Conversions of the messages with which workers exchange children.

use super::MessageError;
use super::orders::secret;
use crate::messages::{PeerRequest, PeerResponse, ShardFloor, StreamHeader};
use crate::v1;
use bytes::Bytes;

impl TryFrom<v1::SendRequest> for PeerRequest {
    type Error = MessageError;

    fn try_from(request: v1::SendRequest) -> Result<PeerRequest, MessageError> {
        let Some(header) = request.header else {
            return Ok(PeerRequest::Batch(request.batch));
        };
        if !request.batch.is_empty() {
            return Err(MessageError::new(
                "batch",
                "a message with a header must not contain a batch",
            ));
        }
        Ok(PeerRequest::Header(StreamHeader {
            run: header.run,
            epoch: header.epoch,
            depth: header.depth,
            attempt: header.attempt,
            from: header.from,
            secret: secret(&header.secret)?,
        }))
    }
}

impl From<PeerRequest> for v1::SendRequest {
    fn from(request: PeerRequest) -> v1::SendRequest {
        match request {
            PeerRequest::Batch(batch) => v1::SendRequest {
                header: None,
                batch,
            },
            PeerRequest::Header(header) => v1::SendRequest {
                header: Some(v1::StreamHeader {
                    run: header.run,
                    epoch: header.epoch,
                    depth: header.depth,
                    attempt: header.attempt,
                    from: header.from,
                    secret: header.secret.0.to_vec(),
                }),
                batch: Bytes::new(),
            },
        }
    }
}

impl TryFrom<v1::SendResponse> for PeerResponse {
    type Error = MessageError;

    fn try_from(response: v1::SendResponse) -> Result<PeerResponse, MessageError> {
        if response.shards.len() != response.floors.len() {
            return Err(MessageError::new(
                "floors",
                "there must be one floor for each shard",
            ));
        }
        let floors = response.shards.into_iter().zip(response.floors);
        Ok(PeerResponse {
            floors: floors
                .map(|(shard, floor)| ShardFloor { shard, floor })
                .collect(),
            received: response.received,
        })
    }
}

impl From<PeerResponse> for v1::SendResponse {
    fn from(response: PeerResponse) -> v1::SendResponse {
        let floors = response.floors.iter();
        let (shards, floors) = floors.map(|floor| (floor.shard, floor.floor)).unzip();
        v1::SendResponse {
            shards,
            floors,
            received: response.received,
        }
    }
}
