//! A cluster for tests: coordinators and simulated workers in one process.

use super::support::{Faults, direct, faulty};
use super::world::{Part, SHARDS, World};
use crate::outbox::{EventSink, NotifierSettings};
use crate::{
    Coordinator, CoordinatorError, CoreSettings, Machine, ObjectStorePrices, RunStatus, Submission,
    TableSource,
};
use hatebeam_env::Env;
use hatebeam_metrics::Registry;
use hatebeam_notify::Event;
use hatebeam_objects::{Memory, Objects};
use hatebeam_proto::LinkError;
use hatebeam_proto::messages::{
    Answer, AnswerKind, Failed, FailureKind, FromWorker, Heartbeat, Hello, Leaving, OrderKind,
    ToWorker,
};
use hatebeam_runs::{Limits, LoopRule, Manifest, Retention, RunState, VersionedManifest};
use hatebeam_search::{Fingerprint, MIN_SHARD_WELLS};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;

/// Time without a message after which a worker is lost.
pub(crate) const LOST_AFTER: Duration = Duration::from_secs(5);
/// Maximum virtual time for which a test waits for a condition.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Virtual time that a worker takes to expand a depth.
pub(crate) const DEPTH_TIME: Duration = Duration::from_secs(1);

/// A worker's reaction to an order.
pub(crate) enum Reaction {
    Obey,
    /// Answer with a failure.
    Fail(FailureKind),
    Disconnect,
    /// Send no answer.
    Ignore,
    /// Obey after a pause.
    Pause(Duration),
    /// Obey, but alter the answer.
    Alter(fn(&mut AnswerKind)),
}

pub(crate) type Script = Box<dyn FnMut(&OrderKind) -> Reaction + Send>;

pub(crate) fn obedient() -> Script {
    Box::new(|_| Reaction::Obey)
}

/// Returns the script of a worker that does not read games back.
pub(crate) fn unable_to_read_back() -> Script {
    Box::new(|order| match order {
        OrderKind::ReadBack(_) => Reaction::Fail(FailureKind::Worker),
        _ => Reaction::Obey,
    })
}

/// An event sink that records all events.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    pub(crate) received: Mutex<Vec<Event>>,
    /// Name of the event at which the sink panics, if any.
    pub(crate) panic_at: Mutex<Option<&'static str>>,
    /// Whether the delivery of each event fails.
    pub(crate) fails: bool,
}

impl EventSink for Hooks {
    fn send(&self, event: Event, done: Option<Box<dyn FnOnce(bool) + Send>>) {
        let panic_at = *self.panic_at.lock().unwrap();
        assert!(
            panic_at != Some(event.kind.name()),
            "injected panic in a hook"
        );
        self.received.lock().unwrap().push(event);
        if let Some(done) = done {
            done(!self.fails);
        }
    }

    fn close(&self, _: Duration) {}
}

impl Hooks {
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let received = self.received.lock().unwrap();
        received.iter().map(|event| event.kind.name()).collect()
    }
}

pub(crate) struct Process {
    pub(crate) coordinator: Coordinator,
    pub(crate) hooks: Arc<Hooks>,
    stop: oneshot::Sender<()>,
    pub(crate) running: JoinHandle<Result<(), CoordinatorError>>,
    _scratch: tempfile::TempDir,
}

impl Process {
    pub(crate) async fn stop(self) -> Result<(), CoordinatorError> {
        let _ = self.stop.send(());
        self.running.await.unwrap()
    }
}

/// An object store and a search, shared by the coordinators and workers of a test.
pub(crate) struct Cluster {
    pub(crate) memory: Memory,
    pub(crate) world: Arc<World>,
    pub(crate) run: String,
    pub(crate) min_workers: usize,
    pub(crate) min_shard_wells: usize,
    pub(crate) idle_stop: Option<Duration>,
    /// Fingerprint of the coordinators' search.
    pub(crate) search: Fingerprint,
}

/// Starts a coordinator with an obedient worker `w0`, and submits the run.
pub(crate) async fn searching(max_depth: u32) -> (Cluster, Process) {
    let cluster = Cluster::new();
    let process = cluster.coordinator("a").await;
    cluster.worker(&process, "w0", obedient());
    cluster.submit(&process, max_depth).await;
    (cluster, process)
}

impl Cluster {
    pub(crate) fn new() -> Cluster {
        Cluster::with(LoopRule::Ignore)
    }

    /// Creates a cluster whose run has this loop rule. The rule changes no piece in the first depths.
    pub(crate) fn with(loops: LoopRule) -> Cluster {
        let world = World::new(loops);
        Cluster {
            memory: Memory::new(),
            run: world.spec.name(),
            world,
            min_workers: 1,
            min_shard_wells: MIN_SHARD_WELLS,
            idle_stop: None,
            search: Fingerprint::current(),
        }
    }

    pub(crate) fn objects(&self) -> Objects {
        direct(&self.memory)
    }

    fn settings(&self, name: &str, objects: Objects, hooks: &Arc<Hooks>) -> CoreSettings {
        CoreSettings {
            name: name.to_owned(),
            address: format!("{name}:7800"),
            objects,
            prices: ObjectStorePrices::default(),
            machine: Machine::default(),
            single: false,
            search: self.search.clone(),
            deadline: None,
            idle_stop: self.idle_stop,
            min_workers: self.min_workers,
            min_shard_wells: self.min_shard_wells,
            heartbeat: Duration::from_secs(1),
            lost_after: LOST_AFTER,
            tables: TableSource::scratch(std::env::temp_dir()),
            notifications: NotifierSettings {
                events: Some(hooks.clone()),
                every: 2,
            },
        }
    }

    pub(crate) async fn coordinator(&self, name: &str) -> Process {
        self.try_coordinator(name, self.objects()).await.unwrap()
    }

    /// Starts a coordinator whose store requests are subject to `faults`.
    pub(crate) async fn faulty_coordinator(&self, name: &str, faults: &Arc<Faults>) -> Process {
        let objects = faulty(&self.memory, faults.clone());
        self.try_coordinator(name, objects).await.unwrap()
    }

    pub(crate) async fn try_coordinator(
        &self,
        name: &str,
        objects: Objects,
    ) -> Result<Process, CoordinatorError> {
        let scratch = tempfile::tempdir().unwrap();
        let hooks = Arc::new(Hooks::default());
        let mut settings = self.settings(name, objects, &hooks);
        settings.tables = TableSource::scratch(scratch.path().to_owned());
        let registry = Registry::default();
        let (coordinator, task) = Coordinator::start(&Env::system(), settings, &registry).await?;
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(task.run(Box::pin(async {
            let _ = stopped.await;
        })));
        Ok(Process {
            coordinator,
            hooks,
            stop,
            running,
            _scratch: scratch,
        })
    }

    pub(crate) fn worker(&self, process: &Process, name: &str, script: Script) {
        self.try_worker(process, hello(name), script).unwrap();
    }

    /// Adds a worker that restarts whenever it disconnects. Each restart gets a new script.
    pub(crate) fn restarting_worker(
        self: &Arc<Self>,
        process: &Process,
        name: &'static str,
        script: fn() -> Script,
    ) {
        let (cluster, coordinator) = (Arc::clone(self), process.coordinator.clone());
        tokio::spawn(async move {
            for start in 1.. {
                let mut hello = hello(name);
                hello.started_ms = start;
                if let Ok((_, running)) = cluster.join(&coordinator, hello, script()) {
                    running.await.unwrap();
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }

    pub(crate) fn try_worker(
        &self,
        process: &Process,
        hello: Hello,
        script: Script,
    ) -> Result<mpsc::Sender<FromWorker>, LinkError> {
        let (tx, _) = self.join(&process.coordinator, hello, script)?;
        tx.upgrade()
            .ok_or_else(|| LinkError::transient("the worker has disconnected"))
    }

    pub(crate) fn join(
        &self,
        coordinator: &Coordinator,
        mut hello: Hello,
        script: Script,
    ) -> Result<(mpsc::WeakSender<FromWorker>, JoinHandle<()>), LinkError> {
        coordinator
            .registry()
            .settings
            .lease
            .clone_into(&mut hello.lease);
        let (tx, inbound) = mpsc::channel(16);
        let (outbound, orders) = mpsc::channel(16);
        let inbound = tokio_stream::StreamExt::map(ReceiverStream::new(inbound), Ok);
        let name = hello.name.clone();
        coordinator
            .registry()
            .join(hello, Box::pin(inbound), outbound)?;
        let worker = Worker {
            name,
            world: Arc::clone(&self.world),
            objects: self.objects(),
            part: Part::default(),
            tx: tx.clone(),
            script,
        };
        Ok((tx.downgrade(), tokio::spawn(worker.run(orders))))
    }

    pub(crate) fn submission(&self, max_depth: u32) -> Submission {
        Submission {
            spec: self.world.spec.clone(),
            keep: Retention::All,
            shards: Some(SHARDS),
            limits: Limits {
                max_depth: Some(max_depth),
                ..Limits::default()
            },
            network: Vec::new(),
        }
    }

    pub(crate) async fn submit(&self, process: &Process, max_depth: u32) -> RunStatus {
        let submission = self.submission(max_depth);
        process.coordinator.submit(submission).await.unwrap()
    }

    /// Deletes a table of a committed depth.
    pub(crate) async fn delete_table(&self, depth: u32) {
        let (objects, manifest) = (self.objects(), self.saved().await);
        let mut depths = manifest.depths.iter();
        let committed = depths.find(|committed| committed.record.depth == depth);
        let list = manifest.tables(&objects, committed.unwrap()).await.unwrap();
        let key = format!("{}/{}", manifest.prefix(), list.tables[0].key);
        objects.delete(&key).await.unwrap();
    }

    pub(crate) async fn wait(
        &self,
        process: &Process,
        condition: impl Fn(&RunStatus) -> bool,
    ) -> RunStatus {
        let mut changes = process.coordinator.changes();
        let waiting = async {
            loop {
                changes.mark_unchanged();
                let run = process.coordinator.run(&self.run);
                match run.filter(|run| condition(run)) {
                    Some(run) => return run,
                    None => drop(changes.changed().await),
                }
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("{:?}", process.coordinator.run(&self.run)))
    }

    pub(crate) async fn wait_for(&self, process: &Process, state: RunState) -> RunStatus {
        self.wait(process, |run| run.manifest.state == state).await
    }

    pub(crate) async fn load(&self) -> VersionedManifest {
        let loaded = VersionedManifest::load(&self.objects(), &self.run, true).await;
        loaded.unwrap()
    }

    pub(crate) async fn saved(&self) -> Manifest {
        self.load().await.manifest
    }

    /// Waits until the run is finished, and checks it with [`assert_finished`](Cluster::assert_finished).
    pub(crate) async fn finish(&self, process: &Process, depth: u32) {
        self.wait_for(process, RunState::Finished).await;
        self.assert_finished(depth).await;
    }

    /// Asserts that the run is finished at `depth` with the digests of the single-threaded search. Also asserts that
    /// the files of its best game exist, and that the store contains no leftover table lists or events.
    pub(crate) async fn assert_finished(&self, depth: u32) {
        let manifest = self.saved().await;
        assert_eq!(manifest.state, RunState::Finished, "{}", manifest.note);
        let result = manifest.result.as_ref().unwrap();
        assert!(result.pieces > depth, "{result:?}");
        self.assert_digests(&manifest, depth);
        let objects = self.objects();
        let prefix = manifest.prefix();
        let lists = objects.list(&format!("{prefix}/tables")).await.unwrap();
        assert_eq!(lists.len(), depth as usize);
        for file in &result.files {
            objects.size(&format!("{prefix}/{file}")).await.unwrap();
        }
        assert!(objects.list("events").await.unwrap().is_empty());
    }

    pub(crate) fn assert_digests(&self, manifest: &Manifest, depth: u32) {
        let depths: Vec<u32> = manifest.depths.iter().map(|d| d.record.depth).collect();
        assert_eq!(depths, (0..=depth).collect::<Vec<_>>());
        for depth in &manifest.depths {
            let record = &depth.record;
            assert_eq!(record.digest, self.world.digest(record.depth));
        }
    }
}

/// Returns a valid hello message from a worker with this name.
pub(crate) fn hello(name: &str) -> Hello {
    Hello {
        name: name.to_owned(),
        address: format!("http://{name}:1"),
        threads: 2,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_ms: 1,
        search: Fingerprint::current().to_string(),
        ..Hello::default()
    }
}

struct Worker {
    name: String,
    world: Arc<World>,
    objects: Objects,
    part: Part,
    tx: mpsc::Sender<FromWorker>,
    script: Script,
}

impl Worker {
    async fn run(mut self, mut orders: mpsc::Receiver<ToWorker>) {
        let mut beat = tokio::time::interval(Duration::from_secs(1));
        let mut heartbeat = Heartbeat::default();
        loop {
            let message = tokio::select! {
                biased;
                message = orders.recv() => message,
                _ = beat.tick() => {
                    let _ = self.tx.send(FromWorker::Heartbeat(heartbeat)).await;
                    continue;
                }
            };
            let order = match message {
                None | Some(ToWorker::Released) => return,
                Some(ToWorker::Welcome(_)) => continue,
                Some(ToWorker::Order(order)) => order,
            };
            heartbeat.epoch = order.epoch;
            let (epoch, id) = (order.epoch, order.id);
            if matches!(order.kind, OrderKind::Expand(_)) {
                tokio::time::sleep(DEPTH_TIME).await;
            }
            let kind = match (self.script)(&order.kind) {
                Reaction::Obey => self.obey(epoch, order.kind).await,
                Reaction::Fail(kind) => AnswerKind::Failed(Failed {
                    reason: "it cannot".to_owned(),
                    kind,
                }),
                Reaction::Disconnect => return,
                Reaction::Ignore => continue,
                Reaction::Pause(pause) => {
                    tokio::time::sleep(pause).await;
                    self.obey(epoch, order.kind).await
                }
                Reaction::Alter(alter) => {
                    let mut answer = self.obey(epoch, order.kind).await;
                    alter(&mut answer);
                    answer
                }
            };
            let answer = FromWorker::Answer(Answer { epoch, id, kind });
            if self.tx.send(answer).await.is_err() {
                return;
            }
        }
    }

    async fn obey(&mut self, epoch: u64, order: OrderKind) -> AnswerKind {
        let part = &mut self.part;
        part.answer(&self.world, &self.name, &self.objects, epoch, order)
            .await
    }
}

pub(crate) fn leaving() -> FromWorker {
    FromWorker::Leaving(Leaving {
        reason: "its machine is being reclaimed".to_owned(),
    })
}
