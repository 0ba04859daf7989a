//! The gRPC service for clients.

use super::Service;
use super::convert::{
    alert, depth_record, limit, limits_change, run_status, run_summary, worker_status,
};
use crate::clients::Submission;
use crate::coordinator::Coordinator;
use crate::queue::ListPosition;
use crate::request::RequestError;
use hatebeam_cost::Micros;
use hatebeam_net::{MAX_MESSAGE, check_full};
use hatebeam_proto::v1::runs_server::Runs;
use hatebeam_proto::{BoxStream, v1};
use hatebeam_runs::{Limits, Manifest, RunSpec};
use hatebeam_search::{Fingerprint, MAX_NETWORK_BYTES};
use prost::Message;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// Maximum length of a run specification in bytes.
const MAX_SPEC: usize = 64 << 10;
// A request with the largest network and the longest specification must fit into a message. 4096 bytes are reserved
// for the other fields.
const _: () = assert!(MAX_NETWORK_BYTES + MAX_SPEC + 4096 <= MAX_MESSAGE);
/// Maximum number of runs in a page of the list of runs.
const MAX_PAGE_RUNS: usize = 1000;
/// Maximum total size of the runs in a page, in bytes. A page with a single run may exceed it, up to the limit of a
/// message (4 MiB).
const MAX_PAGE_BYTES: usize = 1 << 20;
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
        check_full(&request)?;
        let search = &self.0.0.settings.search;
        let submission = submission(request.into_inner(), search)?;
        let run = self.0.submit(submission).await?;
        let run = Some(run_status(&run));
        Ok(Response::new(v1::SubmitResponse { run }))
    }

    async fn list(
        &self,
        request: Request<v1::ListRequest>,
    ) -> Result<Response<v1::ListResponse>, Status> {
        let page = page(&self.0, &request.into_inner())?;
        Ok(Response::new(page))
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
        self.0.0.env.spawn(watching);
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelResponse>, Status> {
        check_full(&request)?;
        let run = self.0.cancel(&request.into_inner().run).await?;
        let run = Some(run_status(&run));
        Ok(Response::new(v1::CancelResponse { run }))
    }

    async fn limit(
        &self,
        request: Request<v1::LimitRequest>,
    ) -> Result<Response<v1::LimitResponse>, Status> {
        check_full(&request)?;
        let request = request.into_inner();
        let change = limits_change(&request);
        let run = self.0.limit(&request.run, change).await?;
        let run = Some(run_status(&run));
        Ok(Response::new(v1::LimitResponse { run }))
    }

    async fn workers(
        &self,
        _: Request<v1::WorkersRequest>,
    ) -> Result<Response<v1::WorkersResponse>, Status> {
        let workers = self.0.workers().iter().map(worker_status).collect();
        Ok(Response::new(v1::WorkersResponse {
            workers,
            deadline_ms: self.0.deadline_ms().unwrap_or_default(),
        }))
    }

    async fn drain(
        &self,
        request: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainResponse>, Status> {
        check_full(&request)?;
        let v1::DrainRequest { worker, undo } = request.into_inner();
        match undo {
            false => self.0.drain(&worker)?,
            true => self.0.undrain(&worker)?,
        }
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

/// Returns a page of the list of runs. If the request contains a name, returns only that run, with all fields.
fn page(
    coordinator: &Coordinator,
    request: &v1::ListRequest,
) -> Result<v1::ListResponse, RequestError> {
    let mut response = v1::ListResponse {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..v1::ListResponse::default()
    };
    if !request.name.is_empty() {
        let run = coordinator.run(&request.name);
        response.runs.extend(run.iter().map(run_status));
        return Ok(response);
    }
    let invalid = || {
        RequestError::Invalid(format!(
            "invalid page {:?}: use `next` of the previous response",
            request.page
        ))
    };
    let after = match request.page.as_str() {
        "" => None,
        text => Some(ListPosition::parse(text).ok_or_else(invalid)?),
    };
    let wanted = |manifest: &Manifest| {
        manifest.name.starts_with(&request.prefix) && (manifest.is_open() || !request.open_only)
    };
    let max_runs = match request.max_runs {
        0 => MAX_PAGE_RUNS,
        max => (max as usize).min(MAX_PAGE_RUNS),
    };
    let mut bytes = 0;
    let mut last: Option<ListPosition> = None;
    for run in coordinator.list(after.as_ref(), wanted) {
        let summary = run_summary(&run);
        bytes += summary.encoded_len();
        let is_full = response.runs.len() == max_runs || bytes > MAX_PAGE_BYTES;
        if let Some(last) = last.as_ref().filter(|_| is_full) {
            response.next = last.to_string();
            break;
        }
        last = Some(ListPosition::of(&run.manifest));
        response.runs.push(summary);
    }
    Ok(response)
}

fn submission(
    request: v1::SubmitRequest,
    search: &Fingerprint,
) -> Result<Submission, RequestError> {
    let invalid = |reason: String| RequestError::Invalid(reason);
    if request.spec.len() > MAX_SPEC {
        let reason = format!("the specification is longer than {MAX_SPEC} bytes");
        return Err(invalid(reason));
    }
    let unreadable =
        |error: serde_json::Error| invalid(format!("the specification cannot be parsed: {error}"));
    let mut spec: Value = serde_json::from_str(&request.spec).map_err(unreadable)?;
    // If the client does not name a search fingerprint, use the one of this program.
    if let Value::Object(fields) = &mut spec {
        let own = || Value::from(search.as_str());
        fields.entry("search").or_insert_with(own);
    }
    let spec: RunSpec = serde_json::from_value(spec).map_err(unreadable)?;
    let keep = spec.keep(&request.keep);
    let keep = keep.map_err(|error| invalid(error.to_string()))?;
    Ok(Submission {
        spec,
        keep,
        shards: limit(request.shards),
        limits: Limits {
            max_depth: limit(request.max_depth),
            max_cost: limit(request.max_cost_micros).map(Micros),
            max_time: limit(request.max_seconds).map(Duration::from_secs),
        },
        network: request.network,
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
        // Depths are sent again if they were dropped and searched again.
        from = from.min(run.depth().saturating_add(1));
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
            // If the run does not change, send a message anyway, since the workers may have made progress.
            let _ = tokio::time::timeout(INTERVAL * 3 / 4, changes.changed()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::cluster::Cluster;
    use crate::tests::support::manifest;
    use hatebeam_runs::{GameResult, RunState};

    /// Returns the names of all runs that a request selects, and the number of pages.
    fn names(coordinator: &Coordinator, mut request: v1::ListRequest) -> (Vec<String>, usize) {
        let mut names = Vec::new();
        for pages in 1.. {
            let page = page(coordinator, &request).unwrap();
            assert!(page.encoded_len() < 2 * MAX_PAGE_BYTES);
            names.extend(page.runs.into_iter().map(|run| run.name));
            if page.next.is_empty() {
                return (names, pages);
            }
            request.page = page.next;
        }
        unreachable!()
    }

    #[tokio::test(start_paused = true)]
    async fn many_runs_are_listed_in_pages() {
        let cluster = Cluster::new();
        let process = cluster.coordinator("a").await;
        let coordinator = &process.coordinator;
        for number in 0..5000 {
            let mut run = manifest(&format!("r-{number:04}"), 1);
            run.submitted_ms = number / 10;
            run.state = match number % 100 {
                0 => RunState::Queued,
                _ => RunState::Finished,
            };
            run.note = "x".repeat(300);
            run.result = Some(GameResult {
                lines: 1,
                pieces: 7,
                replay: "x".repeat(1000),
                lookups: 8,
                seconds: 0.5,
                depth: 6,
                ended_ms: 0,
                files: Vec::new(),
                parted_at: None,
            });
            coordinator.0.queue.put(&run);
        }
        let (all, pages) = names(coordinator, v1::ListRequest::default());
        assert!(pages >= 5, "{pages}");
        let expected: Vec<String> = (0..5000)
            .rev()
            .map(|number| format!("r-{number:04}"))
            .collect();
        assert_eq!(all, expected);
        let request = v1::ListRequest {
            open_only: true,
            max_runs: 20,
            ..v1::ListRequest::default()
        };
        let (open, pages) = names(coordinator, request);
        assert_eq!((open.len(), pages), (50, 3));
        let request = v1::ListRequest {
            prefix: "r-123".to_owned(),
            ..v1::ListRequest::default()
        };
        assert_eq!(names(coordinator, request).0.len(), 10);
        let request = v1::ListRequest {
            name: "r-1234".to_owned(),
            ..v1::ListRequest::default()
        };
        let run = &page(coordinator, &request).unwrap().runs[0];
        assert_eq!(run.result.as_ref().unwrap().replay.len(), 1000);
        let wrong = v1::ListRequest {
            page: "x".to_owned(),
            ..v1::ListRequest::default()
        };
        page(coordinator, &wrong).unwrap_err();
    }
}
