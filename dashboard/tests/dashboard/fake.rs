//! A fake coordinator with runs, depths and workers that tests can change.

use hatebeam_dashboard::{Estimate, Estimator, Server, Settings, bind};
use hatebeam_game::{Enemy, Geometry};
use hatebeam_net::Tokens;
use hatebeam_proto::v1;
use hatebeam_proto::v1::runs_server::Runs;
use hatebeam_report::Film;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// Replay of a game with 148 lines.
pub(crate) const RECORD: &str = include_str!("../../../examples/games/david-and-felipe-148.txt");
pub(crate) const RUNNING: &str = "patterns-1000000-5f3a9c1e";
pub(crate) const FINISHED: &str = "patterns-10000-0f1e2d3c";
pub(crate) const QUEUED: &str = "knewjade-250000-00c0ffee";
/// Maximum number of depth records in a message. The coordinator has the same limit.
const MAX_RECORDS: usize = 1000;

/// State of the fake coordinator.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) runs: Vec<v1::RunStatus>,
    /// Depth records of the first run.
    pub(crate) depths: Vec<v1::DepthRecord>,
    pub(crate) workers: Vec<v1::WorkerStatus>,
    pub(crate) alerts: Vec<v1::Alert>,
    pub(crate) submitted: Vec<v1::SubmitRequest>,
    pub(crate) drained: Vec<String>,
    /// Whether the coordinator can read back games, that is, find their wells in the stored depths.
    pub(crate) has_games: bool,
    /// Wells of a real game. The best wells of the depths cycle through them.
    wells: Vec<String>,
}

/// A fake coordinator. Its clones share their state.
#[derive(Clone)]
pub(crate) struct FakeCoordinator {
    world: Arc<Mutex<World>>,
    changes: watch::Sender<u64>,
}

impl FakeCoordinator {
    /// Returns a coordinator that has no runs and no workers.
    pub(crate) fn empty() -> FakeCoordinator {
        FakeCoordinator {
            world: Arc::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// Returns a coordinator that has workers, a run in progress with `depths` depths, and queued and ended runs.
    pub(crate) fn busy(depths: u32) -> FakeCoordinator {
        let fake = FakeCoordinator::empty();
        let film = Film::of(RECORD, Enemy::Hatetris, Geometry::STANDARD).unwrap();
        let mut guard = fake.world();
        let world = &mut *guard;
        world.wells = film.turns.iter().map(|turn| turn.well.clone()).collect();
        world.has_games = true;
        world.runs = vec![
            run(RUNNING, 1_000_000, v1::State::Running),
            run(QUEUED, 250_000, v1::State::Queued),
            finished(&film),
            v1::RunStatus {
                note: "the object store rejected a write: 403 Forbidden".to_owned(),
                ..run("plain-1000-deadbeef", 1000, v1::State::Failed)
            },
        ];
        world.workers = vec![
            worker("c5d-1", "working", Some(3_456_000)),
            v1::WorkerStatus {
                slow: true,
                ..worker("c5d-2", "working", Some(1_380_000))
            },
            v1::WorkerStatus {
                note: "cannot write to its scratch directory".to_owned(),
                ..worker("under-the-desk", "quarantined", None)
            },
        ];
        world.alerts = vec![v1::Alert {
            kind: "slow-worker".to_owned(),
            worker: "c5d-2".to_owned(),
            text: "needs three times as long for a depth as the other workers".to_owned(),
        }];
        for _ in 0..depths {
            world.grow();
        }
        drop(guard);
        fake
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Adds a depth and notifies all watchers.
    pub(crate) fn grow(&self) {
        self.world().grow();
        self.notify();
    }

    pub(crate) fn notify(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

impl World {
    fn grow(&mut self) {
        let depth = self.depths.len() as u32 + 1;
        let at = f64::from(depth);
        let wave = (at / 40.0).sin() * 90.0;
        let cost_micros = 3500 + (wave.abs() * 10.0) as u64;
        let lines = depth * 2 / 5;
        self.depths.push(v1::DepthRecord {
            depth,
            count: 1_000_000.min(30 * u64::from(depth).pow(4)),
            digest: format!("{depth:032x}"),
            best_eval: (at.sqrt() * 400.0 + wave) as i32,
            median_eval: (at.sqrt() * 380.0 + wave - 500.0) as i32,
            worst_eval: (at.sqrt() * 370.0 + wave - 900.0) as i32,
            best_lines: lines,
            best_well: self.wells[depth as usize % self.wells.len()].clone(),
            children: 19_000_000,
            seconds: 4.1 + wave / 300.0,
            bytes: 10_400_000 + (wave * 3000.0) as u64,
            kept: true,
            cost_micros,
            ..v1::DepthRecord::default()
        });
        let run = &mut self.runs[0];
        run.depth = depth;
        run.best_lines = lines;
        run.seconds += 4.1;
        run.stored_bytes += 10_400_000;
        let cost = run.cost.get_or_insert_default();
        cost.machine_micros += cost_micros;
        cost.request_micros += 40;
        cost.storage_micros += 8;
        cost.micros += cost_micros + 48;
        run.projection = Some(v1::Projection {
            depth_low: depth + 60,
            depth_high: depth + 110,
            seconds_low: 240.0,
            seconds_high: 455.0,
            micros_low: cost.micros + 210_000,
            micros_high: cost.micros + 400_000,
            basis: "the last 20 depths".to_owned(),
        });
    }

    pub(crate) fn find(&mut self, name: &str) -> Result<&mut v1::RunStatus, Status> {
        let found = self.runs.iter_mut().find(|run| run.name == name);
        found.ok_or_else(|| Status::not_found(format!("there is no run {name:?}")))
    }
}

fn run(name: &str, width: u64, state: v1::State) -> v1::RunStatus {
    let spec = format!(
        r#"{{"width":{width},"well":{{"columns":10,"rows":16,"clear_above_bar":false}},"start":"empty","evaluator":{{"kind":"patterns","quiescence":"off"}}}}"#
    );
    let mut status = v1::RunStatus {
        name: name.to_owned(),
        spec,
        width,
        shards: 64,
        epoch: 1,
        submitted_ms: 1_760_000_000_000,
        ..v1::RunStatus::default()
    };
    status.set_state(state);
    if state == v1::State::Running {
        (status.expanded, status.parents) = (640_000, 1_000_000);
        status.max_cost_micros = 2_000_000;
        status.max_seconds = 7200;
        status.used_milliseconds = Some(6_480_000);
        status.cost = Some(v1::Cost {
            micros_per_hour: 4_836_000,
            unpriced: 2,
            unpriced_present: 1,
            storage_micros_per_month: 57_000,
            machines: vec![v1::MachineCost {
                name: "c5d-1".to_owned(),
                machine: Some(machine("c5d-1", Some(3_456_000))),
                milliseconds: 1_200_000,
                micros: 1_152_000,
                active: true,
            }],
            ..v1::Cost::default()
        });
    }
    status
}

fn finished(film: &Film) -> v1::RunStatus {
    v1::RunStatus {
        depth: 430,
        best_lines: film.score,
        seconds: 5321.0,
        stored_bytes: 40_000_000,
        stopped_by: "max-cost".to_owned(),
        result: Some(v1::Result {
            score: film.score,
            pieces: film.pieces as u32,
            replay: film.base2048.clone(),
            lookups: 900,
            keyframe_seconds: 0.2,
        }),
        ..run(FINISHED, 10_000, v1::State::Finished)
    }
}

fn machine(name: &str, micros_per_hour: Option<u64>) -> v1::Machine {
    v1::Machine {
        kind: "c5d.18xlarge".to_owned(),
        market: "spot".to_owned(),
        region: "us-east-1".to_owned(),
        zone: "us-east-1a".to_owned(),
        id: format!("i-{name}"),
        micros_per_hour,
        price_from: "the table of 2025-01-01".to_owned(),
    }
}

fn worker(name: &str, state: &str, micros_per_hour: Option<u64>) -> v1::WorkerStatus {
    v1::WorkerStatus {
        name: name.to_owned(),
        address: "http://10.0.0.2:7801".to_owned(),
        state: state.to_owned(),
        threads: 72,
        shards: 32,
        expanded: 320_000,
        parents: 500_000,
        rss_bytes: 60 << 30,
        memory_bytes: 144 << 30,
        disk_bytes: 1_800_000_000_000,
        disk_free_bytes: 1_500_000_000_000,
        machine: micros_per_hour.map(|micros| machine(name, Some(micros))),
        ..v1::WorkerStatus::default()
    }
}

#[tonic::async_trait]
impl Runs for FakeCoordinator {
    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::SubmitResponse>, Status> {
        let request = request.into_inner();
        let spec: serde_json::Value = serde_json::from_str(&request.spec)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        let width = spec["width"].as_u64().filter(|&width| width > 0);
        let width = width.ok_or_else(|| Status::invalid_argument("the width is 0"))?;
        let name = format!("patterns-{width}-fake");
        let run = run(&name, width, v1::State::Queued);
        let mut world = self.world();
        world.submitted.push(request);
        world.runs.retain(|other| other.name != name);
        let at = world.runs.len().min(1);
        world.runs.insert(at, run.clone());
        drop(world);
        self.notify();
        Ok(Response::new(v1::SubmitResponse { run: Some(run) }))
    }

    async fn list(
        &self,
        request: Request<v1::ListRequest>,
    ) -> Result<Response<v1::ListResponse>, Status> {
        // Each page contains one run.
        let page = request.into_inner().page.parse().unwrap_or(0);
        let runs = self.world().runs.clone();
        let next = match page + 1 < runs.len() {
            true => (page + 1).to_string(),
            false => String::new(),
        };
        let runs = runs.into_iter().skip(page).take(1).collect();
        let version = "fake".to_owned();
        Ok(Response::new(v1::ListResponse {
            runs,
            version,
            next,
        }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<v1::WatchResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let request = request.into_inner();
        self.world().find(&request.run)?;
        let (updates, stream) = mpsc::channel(4);
        let this = self.clone();
        tokio::spawn(async move {
            let mut changes = this.changes.subscribe();
            let mut from = request.from_depth;
            loop {
                changes.mark_unchanged();
                let update = {
                    let mut world = this.world();
                    let Ok(run) = world.find(&request.run).cloned() else {
                        return;
                    };
                    let is_first = world.runs[0].name == run.name;
                    let of_run = world
                        .depths
                        .iter()
                        .filter(|depth| is_first && depth.depth >= from);
                    v1::WatchResponse {
                        depths: of_run.take(MAX_RECORDS).cloned().collect(),
                        run: Some(run),
                        workers: world.workers.clone(),
                        alerts: world.alerts.clone(),
                    }
                };
                let is_all = update.depths.len() < MAX_RECORDS;
                from = update.depths.last().map_or(from, |last| last.depth + 1);
                let state = update.run.as_ref().unwrap().state();
                let has_ended = !matches!(state, v1::State::Queued | v1::State::Running);
                if updates.send(Ok(update)).await.is_err() || has_ended && is_all {
                    return;
                }
                if is_all {
                    let _ = tokio::time::timeout(Duration::from_secs(1), changes.changed()).await;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn limit(
        &self,
        request: Request<v1::LimitRequest>,
    ) -> Result<Response<v1::LimitResponse>, Status> {
        let request = request.into_inner();
        let mut world = self.world();
        let run = world.find(&request.run)?;
        run.max_depth = request.max_depth.unwrap_or(run.max_depth);
        run.max_cost_micros = request.max_cost_micros.unwrap_or(run.max_cost_micros);
        run.max_seconds = request.max_seconds.unwrap_or(run.max_seconds);
        let run = Some(run.clone());
        drop(world);
        self.notify();
        Ok(Response::new(v1::LimitResponse { run }))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelResponse>, Status> {
        let mut world = self.world();
        let run = world.find(&request.into_inner().run)?;
        run.set_state(v1::State::Cancelled);
        let run = Some(run.clone());
        drop(world);
        self.notify();
        Ok(Response::new(v1::CancelResponse { run }))
    }

    async fn workers(
        &self,
        _: Request<v1::WorkersRequest>,
    ) -> Result<Response<v1::WorkersResponse>, Status> {
        let workers = self.world().workers.clone();
        Ok(Response::new(v1::WorkersResponse {
            workers,
            deadline_ms: 0,
        }))
    }

    async fn drain(
        &self,
        request: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainResponse>, Status> {
        let v1::DrainRequest { worker: name, undo } = request.into_inner();
        let mut guard = self.world();
        let world = &mut *guard;
        let found = world.workers.iter_mut().find(|worker| worker.name == name);
        let Some(worker) = found else {
            return Err(Status::not_found(format!("there is no worker {name:?}")));
        };
        worker.state = if undo { "idle" } else { "draining" }.to_owned();
        world.drained.push(name);
        drop(guard);
        self.notify();
        Ok(Response::new(v1::DrainResponse {}))
    }

    async fn game(
        &self,
        request: Request<v1::GameRequest>,
    ) -> Result<Response<v1::GameResponse>, Status> {
        let request = request.into_inner();
        let mut world = self.world();
        world.find(&request.run)?;
        if !world.has_games {
            return Err(Status::unimplemented("games are not read back yet"));
        }
        Ok(Response::new(v1::GameResponse {
            replay: RECORD.trim().to_owned(),
            score: 148,
            depth: request.depth,
            ..v1::GameResponse::default()
        }))
    }
}

/// Returns an estimator that fails for a width of one million and returns made-up numbers for other widths.
pub(crate) fn estimator() -> Estimator {
    Arc::new(|request| {
        let width = request.form.spec.width;
        if width == 1_000_000 {
            return Err("no speed is known".to_owned());
        }
        Ok(Estimate {
            depths: [140, 190],
            seconds: [60.0, 150.0],
            dollars: Some([0.08, 0.2]),
            dollars_per_hour: Some(4.836),
            stored_bytes: width as f64 * 1700.0,
            storage_dollars_per_month: 0.01,
            workers: request.workers.len() as u32,
            basis: format!("{} fake runs", request.runs.len()),
            warnings: Vec::new(),
        })
    })
}

/// Returns settings that use any free loopback port, without TLS and without a token.
pub(crate) fn settings() -> Settings {
    Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        tokens: Tokens::default(),
        insecure_bind: false,
    }
}

/// Starts a dashboard, and returns its address and its task.
pub(crate) async fn serve(
    fake: &FakeCoordinator,
    settings: Settings,
) -> (SocketAddr, JoinHandle<()>) {
    let server: Server = bind(settings).await.unwrap();
    let url = server.url();
    let address = url.split("//").nth(1).unwrap().trim_end_matches('/');
    let address = address.parse().unwrap();
    (
        address,
        tokio::spawn(server.serve(fake.clone(), estimator())),
    )
}
