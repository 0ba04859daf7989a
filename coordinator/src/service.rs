//! What clients and workers can call.

use crate::costs::now_ms;
use crate::games::Games;
use crate::queue::{RunQueue, RunUpdate};
use crate::registry::{OrderStream, WorkerRegistry};
use hatebeam_cost::Micros;
use hatebeam_objects::{Objects, check_key};
use hatebeam_proto::v1;
use hatebeam_proto::v1::members_server::Members;
use hatebeam_proto::v1::runs_server::Runs;
use hatebeam_runs::{
    Limits, Manifest, ManifestError, Retention, RunSpec, RunState, VersionedManifest,
};
use hatebeam_search::{MAX_SHARDS, ShardLayout};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// The longest run specification.
const MAX_SPEC: usize = 64 << 10;
/// Runs that wait or are worked on at most.
const MAX_OPEN: usize = 1000;
/// Records of depths in one message.
const RECORDS: usize = 1000;
/// A watcher hears at least so often, and not more often than a quarter of that.
const HEAR: Duration = Duration::from_millis(1000);
/// Messages that wait for a slow watcher.
const QUEUE: usize = 4;
/// What is wished is to be written down within that time; it is less than that of a client's call.
const FULFIL: Duration = Duration::from_secs(25);
const STOP: RunUpdate = RunUpdate {
    limits: None,
    stop_requested: Some(true),
};
const GO_ON: RunUpdate = RunUpdate {
    limits: None,
    stop_requested: Some(false),
};
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) registry: Arc<WorkerRegistry>,
    pub(crate) queue: Arc<RunQueue>,
    pub(crate) games: Arc<Games>,
    pub(crate) objects: Objects,
    pub(crate) conditional: bool,
}

fn no_run(name: &str) -> Status {
    Status::not_found(format!(
        "there is no run {name:?}; `hatebeam status` lists them"
    ))
}

#[tonic::async_trait]
impl Members for Service {
    type JoinStream = OrderStream;

    async fn join(
        &self,
        request: Request<Streaming<v1::FromWorker>>,
    ) -> Result<Response<OrderStream>, Status> {
        self.registry.run_session(request).await
    }
}

#[tonic::async_trait]
impl Runs for Service {
    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::SubmitResponse>, Status> {
        let request = request.into_inner();
        let bad = |reason: String| Status::invalid_argument(reason);
        if request.spec.len() > MAX_SPEC {
            return Err(bad(format!(
                "the specification is longer than {MAX_SPEC} bytes"
            )));
        }
        let spec: RunSpec = serde_json::from_str(&request.spec)
            .map_err(|error| bad(format!("the specification cannot be read: {error}")))?;
        spec.check().map_err(|error| bad(error.to_string()))?;
        let keep: Retention = match request.keep.as_str() {
            "" => Retention::All,
            keep => keep
                .parse()
                .map_err(|error| bad(format!("keep: {error}")))?,
        };
        let shards = match request.shards {
            0 => ShardLayout::default_shards(spec.width),
            shards if shards as usize <= MAX_SHARDS => shards,
            shards => return Err(bad(format!("{shards} shards: at most {MAX_SHARDS} can be"))),
        };
        let limits = Limits {
            max_depth: limit(request.max_depth),
            max_cost: limit(request.max_cost_micros).map(Micros),
            max_time: limit(request.max_seconds).map(Duration::from_secs),
        };
        let name = spec.name();
        check_key(&name).map_err(|error| bad(error.to_string()))?;
        if let Some(there) = self.queue.manifest(&name) {
            if there.spec != spec {
                return Err(Status::already_exists(format!(
                    "there is another run {name} with another specification"
                )));
            }
            if there.is_open() && limits.differ_from(&there.limits) {
                return Err(Status::failed_precondition(format!(
                    "run {name} goes on with other limits; `hatebeam limit {name}` changes them"
                )));
            }
            if goes_on(&there, limits) {
                self.reopen(&name, limits).await?;
            } else if there.is_open() && (there.stop_requested || self.queue.has_update(&name)) {
                self.fulfil(&name, GO_ON).await?;
            }
        } else {
            if self.open() >= MAX_OPEN {
                return Err(Status::resource_exhausted(format!(
                    "{MAX_OPEN} runs wait already"
                )));
            }
            let mut manifest = Manifest::new(name.clone(), spec, keep, shards, now_ms());
            manifest.limits = limits;
            let kept = VersionedManifest::create(&self.objects, manifest, self.conditional).await;
            let kept = kept.map_err(|error| in_the_store(&error))?;
            tracing::info!(run = name, "submitted");
            self.queue.put(&kept.manifest);
        }
        self.queue.told();
        let run = self.queue.status(&name);
        Ok(Response::new(v1::SubmitResponse { run }))
    }

    async fn list(
        &self,
        _: Request<v1::ListRequest>,
    ) -> Result<Response<v1::ListResponse>, Status> {
        Ok(Response::new(v1::ListResponse {
            runs: self.queue.statuses(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<v1::WatchResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let request = request.into_inner();
        let queue = Arc::clone(&self.queue);
        queue
            .status(&request.run)
            .ok_or_else(|| no_run(&request.run))?;
        let (say, stream) = mpsc::channel(QUEUE);
        tokio::spawn(async move {
            let mut changes = queue.changes();
            let mut from = request.from_depth;
            loop {
                changes.mark_unchanged();
                let Some(run) = queue.status(&request.run) else {
                    return;
                };
                let depths = queue.records(&request.run, from, RECORDS);
                let is_all = depths.len() < RECORDS;
                from = depths
                    .last()
                    .map_or(from, |last| last.depth.saturating_add(1));
                let has_ended = !run.is_open();
                let workers = queue.workers();
                let message = v1::WatchResponse {
                    alerts: queue.alerts(&run, &workers),
                    run: Some(run),
                    depths,
                    workers,
                };
                if say.send(Ok(message)).await.is_err() || has_ended && is_all {
                    return;
                }
                if is_all {
                    tokio::time::sleep(HEAR / 4).await;
                    // Either something has changed, or the workers have come a bit further.
                    let _ = tokio::time::timeout(HEAR * 3 / 4, changes.changed()).await;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelResponse>, Status> {
        let name = request.into_inner().run;
        let manifest = self.queue.manifest(&name).ok_or_else(|| no_run(&name))?;
        if manifest.is_open() {
            self.fulfil(&name, STOP).await?;
        }
        let run = self.queue.status(&name);
        Ok(Response::new(v1::CancelResponse { run }))
    }

    async fn limit(
        &self,
        request: Request<v1::LimitRequest>,
    ) -> Result<Response<v1::LimitResponse>, Status> {
        let request = request.into_inner();
        let name = request.run.as_str();
        let manifest = self.queue.manifest(name).ok_or_else(|| no_run(name))?;
        let limits = changed(manifest.limits, &request);
        let update = RunUpdate {
            limits: Some(limits),
            ..RunUpdate::default()
        };
        if !self.fulfil(name, update).await? {
            return Err(Status::failed_precondition(format!(
                "run {name} has ended; submitted again with other limits it goes on"
            )));
        }
        let run = self.queue.status(name);
        Ok(Response::new(v1::LimitResponse { run }))
    }

    async fn workers(
        &self,
        _: Request<v1::WorkersRequest>,
    ) -> Result<Response<v1::WorkersResponse>, Status> {
        let workers = self.queue.workers();
        Ok(Response::new(v1::WorkersResponse { workers }))
    }

    async fn drain(
        &self,
        request: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainResponse>, Status> {
        let name = request.into_inner().worker;
        match self.registry.drain(&name) {
            true => Ok(Response::new(v1::DrainResponse {})),
            false => Err(Status::not_found(format!("there is no worker {name:?}"))),
        }
    }

    async fn game(
        &self,
        request: Request<v1::GameRequest>,
    ) -> Result<Response<v1::GameResponse>, Status> {
        let v1::GameRequest { run, depth } = request.into_inner();
        let manifest = self.queue.manifest(&run).ok_or_else(|| no_run(&run))?;
        Ok(Response::new(self.games.game(manifest, depth).await?))
    }
}

impl Service {
    /// Waits until what is wished of a run is written down; whether it is, as one that has ended has no updates.
    async fn fulfil(&self, name: &str, update: RunUpdate) -> Result<bool, Status> {
        let mut changes = self.queue.changes();
        let is_there = |manifest: Arc<Manifest>| manifest.is_open();
        if self.queue.manifest(name).is_some_and(is_there) {
            self.queue.update(name, update);
        }
        let fulfilled = async {
            loop {
                changes.mark_unchanged();
                match self.queue.manifest(name) {
                    Some(now) if !now.is_open() => {
                        self.queue.take_update(name);
                        return Ok(false);
                    }
                    Some(now) if update.is_in(&now) && !self.queue.has_update(name) => {
                        return Ok(true);
                    }
                    Some(_) => {}
                    None => return Err(no_run(name)),
                }
                self.fulfil_queued(name).await?;
                let _ = changes.changed().await;
            }
        };
        tokio::time::timeout(FULFIL, fulfilled).await.map_err(|_| {
            Status::deadline_exceeded(format!(
                "that is not written down yet for run {name}, which is just ending, or the object store is slow or away; \
                     `hatebeam status {name}` tells what counts"
            ))
        })?
    }

    /// The same for a run that waits behind another, and is looked after by nobody else.
    async fn fulfil_queued(&self, name: &str) -> Result<(), Status> {
        let waits = self
            .queue
            .manifest(name)
            .is_some_and(|manifest| manifest.state == RunState::Queued);
        if !waits || self.queue.next().as_deref() == Some(name) {
            return Ok(());
        }
        let Some(update) = self.queue.take_update(name) else {
            return Ok(());
        };
        let kept = VersionedManifest::load(&self.objects, name, self.conditional).await;
        let mut kept = kept.map_err(|error| in_the_store(&error))?;
        update.put(&mut kept.manifest);
        kept.save().await.map_err(|error| in_the_store(&error))?;
        self.queue.put(&kept.manifest);
        Ok(())
    }

    fn open(&self) -> usize {
        let statuses = self.queue.statuses();
        statuses.iter().filter(|run| run.is_open()).count()
    }

    /// Puts a run that was stopped or failed into the queue again.
    async fn reopen(&self, name: &str, limits: Limits) -> Result<(), Status> {
        let kept = VersionedManifest::load(&self.objects, name, self.conditional).await;
        let mut kept = kept.map_err(|error| in_the_store(&error))?;
        kept.manifest.state = RunState::Queued;
        kept.manifest.note = String::new();
        kept.manifest.limits = limits;
        kept.manifest.end = None;
        kept.manifest.stop_requested = false;
        self.queue.take_update(name);
        kept.save().await.map_err(|error| in_the_store(&error))?;
        self.queue.put(&kept.manifest);
        Ok(())
    }
}

/// 0 is no limit.
fn limit<T: Default + PartialOrd>(limit: T) -> Option<T> {
    (limit > T::default()).then_some(limit)
}

/// Returns the limits after a request to change some of them.
fn changed(limits: Limits, asked: &v1::LimitRequest) -> Limits {
    let micros = asked.max_cost_micros;
    let seconds = asked.max_seconds;
    Limits {
        max_depth: asked.max_depth.map_or(limits.max_depth, limit),
        max_cost: micros.map_or(limits.max_cost, |max| limit(max).map(Micros)),
        max_time: seconds.map_or(limits.max_time, |max| limit(max).map(Duration::from_secs)),
    }
}

/// Returns whether a run that is submitted again, with these limits, continues.
fn goes_on(there: &Manifest, limits: Limits) -> bool {
    match (there.state, there.end) {
        (RunState::Cancelled | RunState::Failed, _) => true,
        (RunState::Finished, Some(end)) => limits.allow_more_than(&there.limits, end),
        (RunState::Finished, None) | (RunState::Queued | RunState::Running, _) => false,
    }
}

fn in_the_store(error: &ManifestError) -> Status {
    match error {
        ManifestError::Superseded { run } => Status::already_exists(format!(
            "run {run} is in the object store already, put there by another coordinator"
        )),
        error => Status::unavailable(format!("the object store: {error}")),
    }
}
