//! Conversions of the messages with which workers exchange children.

use super::orders::secret;
use super::{MessageError, pack_pieces, pack_wells, unpack_pieces, unpack_wells};
use crate::messages::{Batch, FrontierPart, PeerRequest, PeerResponse, ShardFloor, StreamHeader};
use crate::v1;
use bytes::Bytes;
use hatebeam_search::Origin;

impl TryFrom<v1::SendRequest> for PeerRequest {
    type Error = MessageError;

    fn try_from(request: v1::SendRequest) -> Result<PeerRequest, MessageError> {
        let batch = batch(request.batch, request.parents, &request.pieces)?;
        let is_empty = batch == Batch::default();
        match (request.header, request.frontier) {
            (None, None) => Ok(PeerRequest::Batch(batch)),
            (Some(header), None) if is_empty => Ok(PeerRequest::Header(StreamHeader {
                run: header.run,
                epoch: header.epoch,
                depth: header.depth,
                attempt: header.attempt,
                from: header.from,
                secret: secret(&header.secret)?,
            })),
            (None, Some(part)) if is_empty => Ok(PeerRequest::Frontier(part.try_into()?)),
            _ => Err(MessageError::new(
                "send_request",
                "a message must contain only a header, a part of a frontier, or a batch",
            )),
        }
    }
}

fn batch(children: Bytes, parents: Vec<u32>, pieces: &[u8]) -> Result<Batch, MessageError> {
    let pieces = unpack_pieces("pieces", pieces)?;
    if pieces.len() != parents.len() {
        return Err(MessageError::new(
            "pieces",
            "there must be one piece for each parent",
        ));
    }
    let origins = parents.into_iter().zip(pieces);
    let origins = origins.map(|(parent, piece)| Origin { parent, piece });
    Ok(Batch {
        children,
        origins: origins.collect(),
    })
}

impl TryFrom<v1::FrontierPart> for FrontierPart {
    type Error = MessageError;

    fn try_from(part: v1::FrontierPart) -> Result<FrontierPart, MessageError> {
        let wells = unpack_wells("frontier.wells", &part.wells)?;
        if wells.len() != part.parents.len() {
            return Err(MessageError::new(
                "frontier.parents",
                "there must be one parent for each well",
            ));
        }
        Ok(FrontierPart {
            shard: part.shard,
            wells,
            parents: part.parents,
            last: part.last,
        })
    }
}

impl From<PeerRequest> for v1::SendRequest {
    fn from(request: PeerRequest) -> v1::SendRequest {
        match request {
            PeerRequest::Batch(batch) => v1::SendRequest {
                batch: batch.children,
                parents: batch.origins.iter().map(|origin| origin.parent).collect(),
                pieces: pack_pieces(batch.origins.iter().map(|origin| origin.piece)),
                ..v1::SendRequest::default()
            },
            PeerRequest::Frontier(part) => v1::SendRequest {
                frontier: Some(v1::FrontierPart {
                    shard: part.shard,
                    wells: pack_wells(&part.wells),
                    parents: part.parents,
                    last: part.last,
                }),
                ..v1::SendRequest::default()
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
                ..v1::SendRequest::default()
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
