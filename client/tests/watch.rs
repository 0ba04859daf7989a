//! Tests of watching runs on a fake coordinator.

#![allow(clippy::unwrap_used)] // the lint exempts test functions but not helper functions

use hatebeam_client::Endpoint;
use hatebeam_net::{Role, listen, server};
use hatebeam_proto::v1;
use hatebeam_proto::v1::runs_server::{Runs, RunsServer};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

/// Maximum number of depth records in a message. The coordinator has the same limit.
const MAX_RECORDS: u32 = 1000;

type Answer<T> = Result<Response<T>, Status>;

/// A coordinator with one run, which has ended.
struct EndedRun {
    /// The last committed depth, or `None` if the run was cancelled before it began.
    last: Option<u32>,
    /// Number of streams that break after their first message.
    breaking: AtomicUsize,
}

impl EndedRun {
    /// Returns the messages about the depths from `from` on.
    fn messages(&self, from: u32) -> Vec<Result<v1::WatchResponse, Status>> {
        let depths: Vec<u32> = self
            .last
            .map_or_else(Vec::new, |last| (from..=last).collect());
        let message = |depths: &[u32]| {
            let record = |&depth: &u32| v1::DepthRecord {
                depth,
                ..v1::DepthRecord::default()
            };
            Ok(v1::WatchResponse {
                run: Some(v1::RunStatus {
                    state: v1::State::Finished.into(),
                    depth: self.last.unwrap_or(0),
                    ..v1::RunStatus::default()
                }),
                depths: depths.iter().map(record).collect(),
                ..v1::WatchResponse::default()
            })
        };
        match depths.is_empty() {
            true => vec![message(&[])],
            false => depths.chunks(MAX_RECORDS as usize).map(message).collect(),
        }
    }
}

#[tonic::async_trait]
impl Runs for EndedRun {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<v1::WatchResponse, Status>> + Send>>;

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Answer<Self::WatchStream> {
        let mut messages = self.messages(request.into_inner().from_depth);
        let left = self.breaking.load(Ordering::Relaxed);
        if left > 0 {
            self.breaking.store(left - 1, Ordering::Relaxed);
            messages.truncate(1);
            messages.push(Err(Status::unavailable("the connection was reset")));
        }
        Ok(Response::new(Box::pin(tokio_stream::iter(messages))))
    }

    async fn submit(&self, _: Request<v1::SubmitRequest>) -> Answer<v1::SubmitResponse> {
        Err(Status::unimplemented(""))
    }

    async fn list(&self, _: Request<v1::ListRequest>) -> Answer<v1::ListResponse> {
        Err(Status::unimplemented(""))
    }

    async fn limit(&self, _: Request<v1::LimitRequest>) -> Answer<v1::LimitResponse> {
        Err(Status::unimplemented(""))
    }

    async fn cancel(&self, _: Request<v1::CancelRequest>) -> Answer<v1::CancelResponse> {
        Err(Status::unimplemented(""))
    }

    async fn workers(&self, _: Request<v1::WorkersRequest>) -> Answer<v1::WorkersResponse> {
        Err(Status::unimplemented(""))
    }

    async fn drain(&self, _: Request<v1::DrainRequest>) -> Answer<v1::DrainResponse> {
        Err(Status::unimplemented(""))
    }

    async fn game(&self, _: Request<v1::GameRequest>) -> Answer<v1::GameResponse> {
        Err(Status::unimplemented(""))
    }
}

/// Watches an ended run from a depth on, and returns the depths that arrive.
async fn watched(run: EndedRun, from: u32) -> Vec<u32> {
    let incoming = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let endpoint = Endpoint {
        uri: format!("http://{}", incoming.local_addr().unwrap()),
        tls: None,
        token: None,
    };
    let mut server = server(None, Role::Coordinator).unwrap();
    let server = server.add_service(RunsServer::new(run));
    tokio::spawn(server.serve_with_incoming(incoming));
    let mut depths = Vec::new();
    let show = |message: &v1::WatchResponse| {
        depths.extend(message.depths.iter().map(|record| record.depth));
    };
    let ended = endpoint.watch("run", from, show).await.unwrap();
    assert_eq!(ended.state(), v1::State::Finished);
    depths
}

#[tokio::test]
async fn all_depths_of_an_ended_run_arrive() {
    for last in [0, MAX_RECORDS - 1, MAX_RECORDS, 2 * MAX_RECORDS + 500] {
        let run = EndedRun {
            last: Some(last),
            breaking: AtomicUsize::new(0),
        };
        let expected: Vec<u32> = (0..=last).collect();
        assert_eq!(watched(run, 0).await, expected, "{last}");
    }
}

#[tokio::test]
async fn remaining_depths_of_an_ended_run_arrive_after_a_lost_connection() {
    let run = EndedRun {
        last: Some(2 * MAX_RECORDS + 500),
        breaking: AtomicUsize::new(1),
    };
    let expected: Vec<u32> = (7..=2 * MAX_RECORDS + 500).collect();
    assert_eq!(watched(run, 7).await, expected);
}

#[tokio::test]
async fn run_that_ended_without_depths_ends_the_watch() {
    let run = EndedRun {
        last: None,
        breaking: AtomicUsize::new(0),
    };
    assert!(watched(run, 0).await.is_empty());
}
