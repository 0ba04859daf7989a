//! The gRPC service for clients.

use super::Service;
use super::convert::{alert, depth_record, limit, limits, run_status, worker_status};
use crate::clients::Submission;
use crate::coordinator::Coordinator;
use crate::request::RequestError;
use hatebeam_cost::Micros;
use hatebeam_proto::v1::runs_server::Runs;
use hatebeam_proto::{BoxStream, v1};
use hatebeam_runs::{Limits, Retention, RunSpec};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// Maximum length of a run specification in bytes.
const MAX_SPEC: usize = 64 << 10;
/// Maximum number of depth records in one message.
const RECORDS: usize = 1000;
/// Maximum interval between two messages to a watching client. The minimum is a quarter of this value.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of messages that are queued for a slow watching client.
const QUEUE: usize = 4;

#[tonic::async_trait]
impl Runs for Service {
    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::SubmitResponse>, Status> {
        let run = self.0.submit(submission(&request.into_inner())?).await?;
        let run = Some(run_status(&run));
        Ok(Response::new(v1::SubmitResponse { run }))
    }

    async fn list(
        &self,
        _: Request<v1::ListRequest>,
    ) -> Result<Response<v1::ListResponse>, Status> {
        Ok(Response::new(v1::ListResponse {
            runs: self.0.runs().iter().map(run_status).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }))
    }

    type WatchStream = BoxStream<Result<v1::WatchResponse, Status>>;

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let request = request.into_inner();
        if self.0.run(&request.run).is_none() {
            return Err(RequestError::NoRun(request.run).into());
        }
        let (tx, stream) = mpsc::channel(QUEUE);
        let coordinator = self.0.clone();
        let watching = watch(coordinator, request, tx);
        self.0.env().spawn(watching);
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelResponse>, Status> {
        let run = self.0.cancel(&request.into_inner().run).await?;
        let run = Some(run_status(&run));
        Ok(Response::new(v1::CancelResponse { run }))
    }

    async fn limit(
        &self,
        request: Request<v1::LimitRequest>,
    ) -> Result<Response<v1::LimitResponse>, Status> {
        let request = request.into_inner();
        let change = |current| limits(current, &request);
        let run = self.0.limit(&request.run, change).await?;
        let run = Some(run_status(&run));
        Ok(Response::new(v1::LimitResponse { run }))
    }

    async fn workers(
        &self,
        _: Request<v1::WorkersRequest>,
    ) -> Result<Response<v1::WorkersResponse>, Status> {
        let workers = self.0.workers().iter().map(worker_status).collect();
        Ok(Response::new(v1::WorkersResponse { workers }))
    }

    async fn drain(
        &self,
        request: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainResponse>, Status> {
        self.0.drain(&request.into_inner().worker)?;
        Ok(Response::new(v1::DrainResponse {}))
    }

    async fn game(
        &self,
        request: Request<v1::GameRequest>,
    ) -> Result<Response<v1::GameResponse>, Status> {
        let v1::GameRequest { run, depth } = request.into_inner();
        let game = self.0.game(&run, depth).await?;
        Ok(Response::new(v1::GameResponse {
            replay: game.replay,
            score: game.lines,
            pieces: game.pieces,
            depth: game.depth,
        }))
    }
}

/// Converts and validates a submission.
fn submission(request: &v1::SubmitRequest) -> Result<Submission, RequestError> {
    let invalid = |reason: String| RequestError::Invalid(reason);
    if request.spec.len() > MAX_SPEC {
        let reason = format!("the specification is longer than {MAX_SPEC} bytes");
        return Err(invalid(reason));
    }
    let spec: RunSpec = serde_json::from_str(&request.spec)
        .map_err(|error| invalid(format!("the specification cannot be parsed: {error}")))?;
    let keep: Retention = match request.keep.as_str() {
        "" => Retention::All,
        keep => match keep.parse() {
            Ok(keep) => keep,
            Err(error) => return Err(invalid(format!("{error}"))),
        },
    };
    Ok(Submission {
        spec,
        keep,
        shards: limit(request.shards),
        limits: Limits {
            max_depth: limit(request.max_depth),
            max_cost: limit(request.max_cost_micros).map(Micros),
            max_time: limit(request.max_seconds).map(Duration::from_secs),
        },
    })
}

/// Sends the status of a run periodically and when it changes, until the run has ended and all its depths are sent.
async fn watch(
    coordinator: Coordinator,
    request: v1::WatchRequest,
    tx: mpsc::Sender<Result<v1::WatchResponse, Status>>,
) {
    let mut changes = coordinator.changes();
    let mut from = request.from_depth;
    loop {
        changes.mark_unchanged();
        let Some(run) = coordinator.run(&request.run) else {
            return;
        };
        let depths = coordinator.depths(&request.run, from, RECORDS);
        let is_all = depths.len() < RECORDS;
        from = depths
            .last()
            .map_or(from, |last| last.record.depth.saturating_add(1));
        let workers = coordinator.workers();
        let alerts = coordinator.alerts(&run, &workers);
        let message = v1::WatchResponse {
            run: Some(run_status(&run)),
            depths: depths.iter().map(depth_record).collect(),
            workers: workers.iter().map(worker_status).collect(),
            alerts: alerts.into_iter().map(alert).collect(),
        };
        let is_last = is_all && !run.manifest.is_open();
        if tx.send(Ok(message)).await.is_err() || is_last {
            return;
        }
        if is_all {
            tokio::time::sleep(INTERVAL / 4).await;
            // If the run does not change, a message is still sent, since the workers have made progress.
            let _ = tokio::time::timeout(INTERVAL * 3 / 4, changes.changed()).await;
        }
    }
}
