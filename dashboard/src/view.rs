//! What the service says, as JSON. Names are those of `hatebeam status --json`, which takes what is said of cost,
//! ends and machines from here; money is in dollars, and what is not known is null.

use hatebeam_proto::v1;
use serde::Serialize;

fn dollars(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Nothing for what was left empty.
fn said(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn state(state: v1::State) -> &'static str {
    match state {
        v1::State::Unspecified => "unknown",
        v1::State::Queued => "queued",
        v1::State::Running => "running",
        v1::State::Finished => "finished",
        v1::State::Cancelled => "cancelled",
        v1::State::Failed => "failed",
    }
}

/// Whether a run goes on.
pub(crate) fn is_open(run: &v1::RunStatus) -> bool {
    matches!(run.state(), v1::State::Queued | v1::State::Running)
}

/// A run in a list.
#[derive(Serialize)]
pub(crate) struct RunLine<'a> {
    run: &'a str,
    state: &'static str,
    width: u64,
    depth: u32,
    max_depth: u32,
    /// Lines of the best game: of the one that was read back, or of the best of all depths so far.
    points: u32,
    pieces: Option<u32>,
    seconds: f64,
    stored_bytes: u64,
    dollars: Option<f64>,
    max_dollars: Option<f64>,
    submitted_ms: u64,
    note: &'a str,
    stopped_by: &'a str,
}

impl<'a> RunLine<'a> {
    pub(crate) fn of(run: &'a v1::RunStatus) -> RunLine<'a> {
        let result = run.result.as_ref();
        RunLine {
            run: &run.name,
            state: state(run.state()),
            width: run.width,
            depth: run.depth,
            max_depth: run.max_depth,
            points: result.map_or(run.best_lines, |result| result.score),
            pieces: result.map(|result| result.pieces),
            seconds: run.seconds,
            stored_bytes: run.stored_bytes,
            dollars: run.cost.as_ref().map(|cost| dollars(cost.micros)),
            max_dollars: (run.max_cost_micros > 0).then(|| dollars(run.max_cost_micros)),
            submitted_ms: run.submitted_ms,
            note: &run.note,
            stopped_by: &run.stopped_by,
        }
    }
}

/// All of a run but its depths.
#[derive(Serialize)]
pub(crate) struct RunView<'a> {
    #[serde(flatten)]
    line: RunLine<'a>,
    spec: serde_json::Value,
    shards: u32,
    expanded: u64,
    parents: u64,
    epoch: u64,
    max_hours: Option<f64>,
    best_eval: Option<u32>,
    replay: Option<&'a str>,
    cost: Option<CostView<'a>>,
    projection: Option<ProjectionView<'a>>,
}

impl<'a> RunView<'a> {
    pub(crate) fn of(run: &'a v1::RunStatus) -> RunView<'a> {
        let result = run.result.as_ref();
        RunView {
            line: RunLine::of(run),
            spec: serde_json::from_str(&run.spec).unwrap_or_default(),
            shards: run.shards,
            expanded: run.expanded,
            parents: run.parents,
            epoch: run.epoch,
            max_hours: (run.max_seconds > 0).then(|| run.max_seconds as f64 / 3600.0),
            best_eval: result.map(|result| result.score),
            replay: result.and_then(|result| said(&result.replay)),
            cost: run.cost.as_ref().map(CostView::of),
            projection: run.projection.as_ref().map(ProjectionView::of),
        }
    }
}

/// What a run has cost.
#[derive(Debug, Serialize)]
pub struct CostView<'a> {
    dollars: f64,
    machine_dollars: f64,
    request_dollars: f64,
    storage_dollars: f64,
    dollars_per_hour: f64,
    storage_dollars_per_month: f64,
    /// Workers whose price is not known.
    unpriced: u32,
    machines: Vec<MachineCostView<'a>>,
}

impl<'a> CostView<'a> {
    /// As it is said.
    pub fn of(cost: &'a v1::Cost) -> CostView<'a> {
        CostView {
            dollars: dollars(cost.micros),
            machine_dollars: dollars(cost.machine_micros),
            request_dollars: dollars(cost.request_micros),
            storage_dollars: dollars(cost.storage_micros),
            dollars_per_hour: dollars(cost.micros_per_hour),
            storage_dollars_per_month: dollars(cost.storage_micros_per_month),
            unpriced: cost.unpriced,
            machines: cost.machines.iter().map(MachineCostView::of).collect(),
        }
    }
}

/// What one machine has cost.
#[derive(Debug, Serialize)]
struct MachineCostView<'a> {
    name: &'a str,
    machine: Option<MachineView<'a>>,
    seconds: f64,
    dollars: f64,
    attends: bool,
}

impl<'a> MachineCostView<'a> {
    fn of(cost: &'a v1::MachineCost) -> MachineCostView<'a> {
        MachineCostView {
            name: &cost.name,
            machine: cost.machine.as_ref().map(MachineView::of),
            seconds: cost.milliseconds as f64 / 1e3,
            dollars: dollars(cost.micros),
            attends: cost.active,
        }
    }
}

/// A machine that is rented.
#[derive(Debug, Serialize)]
pub struct MachineView<'a> {
    kind: Option<&'a str>,
    market: Option<&'a str>,
    region: Option<&'a str>,
    zone: Option<&'a str>,
    id: Option<&'a str>,
    dollars_per_hour: Option<f64>,
    price_from: Option<&'a str>,
}

impl<'a> MachineView<'a> {
    /// As it is said.
    pub fn of(machine: &'a v1::Machine) -> MachineView<'a> {
        MachineView {
            kind: said(&machine.kind),
            market: said(&machine.market),
            region: said(&machine.region),
            zone: said(&machine.zone),
            id: said(&machine.id),
            dollars_per_hour: machine.micros_per_hour.map(dollars),
            price_from: said(&machine.price_from),
        }
    }
}

/// Where a run may end, from the least that is likely to the most.
#[derive(Debug, Serialize)]
pub struct ProjectionView<'a> {
    depths: [u32; 2],
    seconds: [f64; 2],
    dollars: [f64; 2],
    judged_by: &'a str,
}

impl<'a> ProjectionView<'a> {
    /// As it is said.
    pub fn of(projection: &'a v1::Projection) -> ProjectionView<'a> {
        ProjectionView {
            depths: [projection.depth_low, projection.depth_high],
            seconds: [projection.seconds_low, projection.seconds_high],
            dollars: [projection.micros_low, projection.micros_high].map(dollars),
            judged_by: &projection.judged_by,
        }
    }
}

/// A committed depth.
#[derive(Serialize)]
pub(crate) struct DepthView<'a> {
    depth: u32,
    count: u64,
    best_eval: i32,
    median_eval: i32,
    worst_eval: i32,
    points: u32,
    best_well: &'a str,
    children: u64,
    seconds: f64,
    bytes: u64,
    kept: bool,
    sent_bytes: u64,
    dollars: f64,
    digest: &'a str,
}

impl<'a> DepthView<'a> {
    pub(crate) fn of(depth: &'a v1::DepthRecord) -> DepthView<'a> {
        DepthView {
            depth: depth.depth,
            count: depth.count,
            best_eval: depth.best_eval,
            median_eval: depth.median_eval,
            worst_eval: depth.worst_eval,
            points: depth.best_lines,
            best_well: &depth.best_well,
            children: depth.children,
            seconds: depth.seconds,
            bytes: depth.bytes,
            kept: depth.kept,
            sent_bytes: depth.sent_bytes,
            dollars: dollars(depth.cost_micros),
            digest: &depth.digest,
        }
    }
}

/// A worker.
#[derive(Serialize)]
pub struct WorkerView<'a> {
    worker: &'a str,
    address: &'a str,
    state: &'a str,
    threads: u32,
    shards: u32,
    expanded: u64,
    parents: u64,
    rss_bytes: u64,
    memory_bytes: u64,
    disk_bytes: u64,
    disk_free_bytes: u64,
    uploading_bytes: u64,
    silent_ms: u64,
    slow: bool,
    note: &'a str,
    machine: Option<MachineView<'a>>,
}

impl<'a> WorkerView<'a> {
    /// As it is said.
    pub fn of(worker: &'a v1::WorkerStatus) -> WorkerView<'a> {
        WorkerView {
            worker: &worker.name,
            address: &worker.address,
            state: &worker.state,
            threads: worker.threads,
            shards: worker.shards,
            expanded: worker.expanded,
            parents: worker.parents,
            rss_bytes: worker.rss_bytes,
            memory_bytes: worker.memory_bytes,
            disk_bytes: worker.disk_bytes,
            disk_free_bytes: worker.disk_free_bytes,
            uploading_bytes: worker.uploading_bytes,
            silent_ms: worker.silent_ms,
            slow: worker.slow,
            note: &worker.note,
            machine: worker.machine.as_ref().map(MachineView::of),
        }
    }
}

/// What a person should look at.
#[derive(Serialize)]
pub(crate) struct AlertView<'a> {
    kind: &'a str,
    worker: Option<&'a str>,
    text: &'a str,
}

impl<'a> AlertView<'a> {
    pub(crate) fn of(alert: &'a v1::Alert) -> AlertView<'a> {
        AlertView {
            kind: &alert.kind,
            worker: said(&alert.worker),
            text: &alert.text,
        }
    }
}
