//! Measures the seconds per depth of a cluster with many workers, in virtual time.
//!
//! The coordinator is real. The object store is in memory, with simulated latencies. The workers answer each order
//! after the time that the cost model predicts. Only the measured processor time of the coordinator is real time.
//!
//! Run it with `cargo run --release -p hatebeam-sim --example scale`.

use hatebeam_coordinator::{
    Coordinator, CoreSettings, NotifierSettings, ObjectStorePrices, Submission, TableSource,
    program_constants,
};
use hatebeam_cost::{
    Beam, DepthModel, Machine, MachineProfile, ModelInputs, PriceTable, model_depth,
};
use hatebeam_env::Env;
use hatebeam_metrics::Registry;
use hatebeam_objects::faults::{Before, Call, FaultPlan, Hook};
use hatebeam_objects::{Memory, Objects, Options};
use hatebeam_proto::messages::{
    Answer, AnswerKind, Count, CutVerdict, DigitCount, Expanded, Failed, FailureKind, FromWorker,
    Heartbeat, Hello, Histogram, Order, OrderKind, Prepare, Prepared, ToWorker,
};
use hatebeam_runs::{
    FrontierSummary, Limits, MemoryArchive, RUNS, Retention, RunSpec, Table, first_node,
    frontier_key, lease_id,
};
use hatebeam_search::{
    CountQuery, EvaluatorKind, EvaluatorSpec, Fingerprint, MIN_SHARD_WELLS, Quiescence,
};
use hatebeam_sim::Rng;
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_stream::wrappers::ReceiverStream;

/// Number of initial depths that are not measured.
const WARM_UP: u32 = 5;
/// Number of measured depths.
const DEPTHS: u32 = 40;
/// Type of the workers' machines.
const INSTANCE: &str = "c5d.18xlarge";
/// Standard deviation of the logarithm of a worker's time for a depth.
const WORKER_SPREAD: f64 = 0.02;
/// Number of candidates per unit of width.
const CANDIDATES: f64 = 1.3;
/// Number of different scores of the candidates.
const SCORES: u64 = 2000;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A generator of random times.
struct Times(Rng);

impl Times {
    /// Returns the next random number, scaled to the range from 0 to 1.
    fn unit(&self) -> f64 {
        (self.0.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a log-normally distributed work time whose mean is `mean` seconds.
    fn work(&self, mean: f64) -> Duration {
        let (radius, angle) = (1.0 - self.unit(), self.unit());
        let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        let spread = WORKER_SPREAD * normal - WORKER_SPREAD * WORKER_SPREAD / 2.0;
        Duration::from_secs_f64(mean * spread.exp())
    }

    /// Returns the duration of an object store request, whose variable part is exponentially distributed.
    fn request(&self, inputs: &ModelInputs) -> Duration {
        let variable = -(1.0 - self.unit()).ln() * inputs.put_variation;
        Duration::from_secs_f64(inputs.put_seconds * (1.0 - inputs.put_variation + variable))
    }
}

/// A fault plan that delays each object store request by [`Times::request`].
struct Latency {
    times: Arc<Times>,
    inputs: ModelInputs,
}

impl FaultPlan for Latency {
    fn before<'a>(&'a self, _: &'a Call<'a>) -> Hook<'a, Before> {
        Box::pin(async {
            sleep(self.times.request(&self.inputs)).await;
            Before::Proceed
        })
    }
}

/// Returns the processor time of the current thread, which runs all tasks.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// State that all workers of a cluster share.
struct Cluster {
    inputs: ModelInputs,
    machine: MachineProfile,
    model: DepthModel,
    /// The model without object store requests, rounds of messages and the coordinator's work, which are simulated
    /// instead.
    own: DepthModel,
    width: u64,
    workers: u64,
    times: Arc<Times>,
    /// Access to the store without latency.
    objects: Objects,
    spec: RunSpec,
    /// Total processor time of the workers' answers.
    answering: Mutex<Duration>,
}

impl Cluster {
    fn histogram_seconds(&self, queries: usize) -> f64 {
        let ns = queries as f64 * self.inputs.ns_per_histogram * self.machine.threads;
        ns * 1e-9 / self.machine.core_speed
    }

    /// Returns the number of consecutive requests with which a worker uploads its tables.
    fn upload_requests(&self) -> u32 {
        let upload = self.model.stored_bytes / self.workers as f64;
        if upload > self.inputs.program.part_bytes as f64 {
            3
        } else {
            1
        }
    }

    /// Returns the histogram of a worker's candidates for a query. The candidates have equally frequent scores and
    /// uniform hashes.
    fn histogram(&self, query: CountQuery) -> Histogram {
        let mine = (self.width as f64 * CANDIDATES) as u64 / self.workers;
        let of_score = mine / SCORES;
        // Distributes `number` evenly among the 65,536 digits.
        let spread = |number: u64| {
            let digits = (0..=u16::MAX).map(move |digit| DigitCount {
                digit,
                count: number / 65_536 + u64::from(u64::from(digit) < number % 65_536),
            });
            digits.filter(|counted| counted.count > 0).collect()
        };
        let counts = match query.known {
            0 => vec![DigitCount {
                digit: 1 << 15,
                count: of_score * SCORES,
            }],
            1 => (0..SCORES as u16)
                .map(|digit| DigitCount {
                    digit,
                    count: of_score,
                })
                .collect(),
            2 => spread(of_score),
            _ => {
                let digit = query.prefix & 0xffff;
                spread(of_score / 65_536 + u64::from(digit < of_score % 65_536))
            }
        };
        Histogram { counts }
    }
}

/// A worker's part of a run.
#[derive(Default)]
struct Share {
    run: String,
    /// Number of shards of the epoch.
    count: u64,
    shards: Vec<u32>,
    is_first: bool,
}

impl Share {
    /// Returns the number of wells in a shard at a depth.
    fn wells(&self, width: u64, depth: u32, shard: u32) -> u64 {
        let shard = u64::from(shard);
        match depth {
            0 => u64::from(shard == 0),
            _ => width / self.count + u64::from(shard < width % self.count),
        }
    }
}

/// A worker that answers each order after the time that the model predicts.
struct Worker {
    cluster: Arc<Cluster>,
    name: String,
    share: Mutex<Share>,
    /// Last depth whose upload is complete.
    uploaded: watch::Sender<u32>,
}

impl Worker {
    fn own_wells(&self, depth: u32) -> u64 {
        let share = lock(&self.share);
        let wells = |&shard| share.wells(self.cluster.width, depth, shard);
        share.shards.iter().map(wells).sum()
    }

    async fn run(
        self: Arc<Self>,
        tx: mpsc::Sender<FromWorker>,
        mut orders: mpsc::Receiver<ToWorker>,
    ) {
        let mut beat = tokio::time::interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                biased;
                message = orders.recv() => match message {
                    Some(ToWorker::Order(order)) => {
                        tokio::spawn(Arc::clone(&self).answer(order, tx.clone()));
                    }
                    Some(ToWorker::Welcome(_)) => {}
                    Some(ToWorker::Released) | None => return,
                },
                _ = beat.tick() => {
                    let _ = tx.send(FromWorker::Heartbeat(Heartbeat::default())).await;
                }
            }
        }
    }

    async fn answer(self: Arc<Self>, order: Order, tx: mpsc::Sender<FromWorker>) {
        let Order { epoch, id, kind } = order;
        let cluster = &self.cluster;
        sleep(Duration::from_secs_f64(cluster.inputs.round_seconds)).await;
        self.work(epoch, &kind).await;
        let began = processor_time();
        let kind = self.result(epoch, kind);
        *lock(&cluster.answering) += processor_time() - began;
        let _ = tx
            .send(FromWorker::Answer(Answer { epoch, id, kind }))
            .await;
    }

    /// Waits for the time that an order takes. After a `Select` order, starts the upload of the depth.
    async fn work(self: &Arc<Self>, epoch: u64, order: &OrderKind) {
        let cluster = &self.cluster;
        let DepthModel {
            cores_seconds,
            network_seconds,
            disk_seconds,
            ..
        } = cluster.model;
        let seconds = match order {
            OrderKind::Expand(_) => cores_seconds.max(network_seconds).max(disk_seconds),
            OrderKind::Count(count) => cluster.histogram_seconds(count.queries.len()),
            OrderKind::Select(_) => cluster.own.rounds_seconds,
            OrderKind::WaitCommit(wait) => {
                let mut uploaded = self.uploaded.subscribe();
                let _ = uploaded.wait_for(|&depth| depth >= wait.depth).await;
                0.0
            }
            _ => 0.0,
        };
        sleep(cluster.times.work(seconds)).await;
        if let OrderKind::Select(select) = order {
            tokio::spawn(Arc::clone(self).upload(epoch, select.depth));
        }
    }

    async fn upload(self: Arc<Self>, epoch: u64, depth: u32) {
        let cluster = &self.cluster;
        sleep(cluster.times.work(cluster.own.commit_seconds)).await;
        for _ in 0..cluster.upload_requests() {
            sleep(cluster.times.request(&cluster.inputs)).await;
        }
        let key = {
            let share = lock(&self.share);
            let key = frontier_key(depth, epoch, &self.name);
            format!("{RUNS}/{}/{key}", share.run)
        };
        // The coordinator checks only the size, so one byte represents a table.
        let bytes = vec![0; lock(&self.share).shards.len()];
        if let Err(error) = cluster.objects.put(&key, bytes.into()).await {
            panic!("cannot store {key}: {error}");
        }
        self.uploaded.send_replace(depth);
    }

    fn result(&self, epoch: u64, order: OrderKind) -> AnswerKind {
        match order {
            OrderKind::Prepare(prepare) => AnswerKind::Prepared(self.prepare(&prepare)),
            OrderKind::Expand(_) => {
                let model = &self.cluster.model;
                let part = |total: f64| (total / self.cluster.workers as f64) as u64;
                AnswerKind::Expanded(Expanded {
                    children: part(model.children),
                    sent: part(model.sent),
                    sent_bytes: part(model.sent_bytes),
                    busy_micros: (model.cores_seconds * 1e6) as u64,
                    changed: Vec::new(),
                })
            }
            OrderKind::Count(Count { queries, .. }) => {
                let histograms = queries
                    .into_iter()
                    .map(|query| self.cluster.histogram(query));
                AnswerKind::Counted(histograms.collect())
            }
            OrderKind::ValidateCut(_) => AnswerKind::CutVerdict(CutVerdict {
                dropped: false,
                tied: Vec::new(),
            }),
            OrderKind::Rescore(_) => AnswerKind::Failed(Failed {
                reason: "this model has no quiescence search".to_owned(),
                kind: FailureKind::Worker,
            }),
            OrderKind::Select(select) => AnswerKind::Selected(self.summary(select.depth)),
            OrderKind::WaitCommit(wait) => AnswerKind::Committed(self.tables(epoch, wait.depth)),
            OrderKind::Halt => AnswerKind::Halted,
            OrderKind::ReadBack(_) => AnswerKind::Failed(Failed {
                reason: "this model stores no wells".to_owned(),
                kind: FailureKind::Worker,
            }),
        }
    }

    fn prepare(&self, prepare: &Prepare) -> Prepared {
        let own = prepare
            .members
            .iter()
            .position(|peer| peer.name == self.name);
        let own = own.unwrap_or(usize::MAX);
        let owners = prepare.owners.iter().enumerate();
        let shards = owners.filter(|&(_, &owner)| owner as usize == own);
        *lock(&self.share) = Share {
            run: prepare.run.clone(),
            count: prepare.owners.len() as u64,
            shards: shards.map(|(shard, _)| shard as u32).collect(),
            is_first: own == 0,
        };
        Prepared {
            wells: self.own_wells(prepare.depth),
            fetched: 0,
        }
    }

    fn summary(&self, depth: u32) -> FrontierSummary {
        let spec = &self.cluster.spec;
        let start = spec.check().and_then(|start| first_node(spec, &start));
        FrontierSummary {
            count: self.own_wells(depth),
            best_eval: 0,
            worst_eval: 0,
            best: start.ok().filter(|_| lock(&self.share).is_first),
            ..FrontierSummary::default()
        }
    }

    fn tables(&self, epoch: u64, depth: u32) -> Vec<Table> {
        let key = frontier_key(depth, epoch, &self.name);
        let share = lock(&self.share);
        let table = |(at, &shard): (usize, &u32)| Table {
            shard,
            key: key.clone(),
            offset: at as u64,
            bytes: 1,
            checksum: "0123456789abcdef".to_owned(),
            count: share.wells(self.cluster.width, depth, shard),
            digest: "0123456789abcdef0123456789abcdef".to_owned(),
        };
        share.shards.iter().enumerate().map(table).collect()
    }
}

fn spec(width: u64) -> RunSpec {
    RunSpec::new(
        width,
        EvaluatorSpec::new(EvaluatorKind::Patterns, Quiescence::Off),
    )
}

/// Measured values per depth.
struct Measured {
    seconds: f64,
    /// Processor time of the coordinator in seconds.
    coordinator: f64,
    /// Mean seconds of each phase.
    phases: Vec<(&'static str, f64)>,
}

async fn measure(cluster: &Arc<Cluster>, memory: &Memory) -> Result<Measured, Box<dyn Error>> {
    let latency = Latency {
        times: Arc::clone(&cluster.times),
        inputs: cluster.inputs,
    };
    let settings = CoreSettings {
        name: "c".to_owned(),
        address: "model".to_owned(),
        objects: Objects::with_faults(memory, &Options::default(), Arc::new(latency))?,
        prices: ObjectStorePrices::default(),
        machine: Machine::default(),
        single: false,
        search: Fingerprint::current(),
        deadline: None,
        idle_stop: None,
        min_workers: cluster.workers as usize,
        min_shard_wells: MIN_SHARD_WELLS,
        heartbeat: Duration::from_secs(1),
        lost_after: Duration::from_secs(60),
        tables: TableSource::new(|_| Ok(Box::new(MemoryArchive::default()))),
        notifications: NotifierSettings::default(),
    };
    let registry = Registry::default();
    let objects = settings.objects.clone();
    let (coordinator, task) = Coordinator::start(&Env::system(), settings, &registry).await?;
    let running = tokio::spawn(task.run(Box::pin(std::future::pending())));
    let lease = lease_id(&objects).await?;
    for number in 0..cluster.workers {
        join(cluster, &coordinator, format!("w{number:03}"), &lease)?;
    }
    let submission = Submission {
        spec: cluster.spec.clone(),
        keep: Retention::All,
        shards: None,
        limits: Limits::default(),
        network: Vec::new(),
    };
    coordinator.submit(submission).await?;
    wait_for(&coordinator, &cluster.spec.name(), WARM_UP).await;
    let (began, before) = (Instant::now(), phases(&registry)?);
    let (used, answered) = (processor_time(), *lock(&cluster.answering));
    wait_for(&coordinator, &cluster.spec.name(), WARM_UP + DEPTHS).await;
    let used = processor_time() - used;
    let answered = *lock(&cluster.answering) - answered;
    let after = phases(&registry)?;
    running.abort();
    let depths = f64::from(DEPTHS);
    let phases = before.into_iter().zip(after);
    Ok(Measured {
        seconds: began.elapsed().as_secs_f64() / depths,
        coordinator: used.saturating_sub(answered).as_secs_f64() / depths,
        phases: phases
            .map(|((name, before), (_, after))| (name, (after - before) / depths))
            .collect(),
    })
}

fn join(
    cluster: &Arc<Cluster>,
    coordinator: &Coordinator,
    name: String,
    lease: &str,
) -> Result<(), Box<dyn Error>> {
    let (tx, inbound) = mpsc::channel(16);
    let (outbound, orders) = mpsc::channel(16);
    let hello = Hello {
        address: format!("http://{name}:1"),
        name: name.clone(),
        threads: cluster.machine.threads as u32,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_ms: 1,
        search: Fingerprint::current().to_string(),
        lease: lease.to_owned(),
        ..Hello::default()
    };
    let inbound = tokio_stream::StreamExt::map(ReceiverStream::new(inbound), Ok);
    let joined = coordinator
        .registry()
        .join(hello, Box::pin(inbound), outbound);
    joined.map_err(|error| error.reason)?;
    let worker = Arc::new(Worker {
        cluster: Arc::clone(cluster),
        name,
        share: Mutex::default(),
        uploaded: watch::Sender::new(0),
    });
    tokio::spawn(worker.run(tx, orders));
    Ok(())
}

async fn wait_for(coordinator: &Coordinator, run: &str, depth: u32) {
    let mut changes = coordinator.changes();
    loop {
        changes.mark_unchanged();
        if coordinator.run(run).is_some_and(|run| run.depth() >= depth) {
            return;
        }
        let _ = changes.changed().await;
    }
}

/// Returns the total seconds of each phase of the coordinator.
fn phases(registry: &Registry) -> Result<Vec<(&'static str, f64)>, Box<dyn Error>> {
    let text = registry.text()?;
    let sum = |phase: &'static str| {
        let start = format!("hatebeam_coordinator_phase_seconds_sum{{phase=\"{phase}\"}} ");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(start.as_str()));
        Ok((phase, line.ok_or(start)?.parse()?))
    };
    ["expand", "cut", "select", "commit"]
        .into_iter()
        .map(sum)
        .collect()
}

fn simulate(width: u64, workers: u32) -> Result<(), Box<dyn Error>> {
    let program = program_constants();
    let inputs = ModelInputs::measured(EvaluatorKind::Patterns, Quiescence::Off, program);
    let machine = PriceTable::get().find(INSTANCE)?.profile();
    let own_inputs = ModelInputs {
        rounds: 0.0,
        questions: 0.0,
        coordinator_seconds_per_worker: 0.0,
        put_seconds: 0.0,
        ..inputs
    };
    let model = |inputs| model_depth(inputs, &machine, Beam::new(width, None), workers);
    let (model, own) = (model(&inputs), model(&own_inputs));
    let memory = Memory::new();
    let cluster = Arc::new(Cluster {
        model,
        own,
        inputs,
        machine,
        width,
        workers: u64::from(workers),
        times: Arc::new(Times(Rng::seeded(1))),
        objects: Objects::in_memory(&memory, &Options::default())?,
        spec: spec(width),
        answering: Mutex::default(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let measured = runtime.block_on(measure(&cluster, &memory))?;
    let phases: Vec<String> = measured
        .phases
        .iter()
        .map(|(name, seconds)| format!("{name} {seconds:.3}"))
        .collect();
    println!(
        "{:>6}M {workers:>7} {:>8.3} {:<8} {:>8.3} {:>11.3}  {}",
        width / 1_000_000,
        model.seconds,
        model.limit.name(),
        measured.seconds,
        measured.coordinator,
        phases.join("  ")
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("  width workers    model limit    simulated coordinator  phases (seconds per depth)");
    for width in [25_000_000, 1_000_000_000] {
        for workers in [8, 64, 256] {
            simulate(width, workers)?;
        }
    }
    Ok(())
}
