//! JSON representations of the service's messages, for the dashboard and for `hatebeam status --json`. Money is in
//! dollars, and unknown values are null.

use hatebeam_cost::Micros;
use hatebeam_proto::v1;
use hatebeam_runs::RunSpec;
use serde::Serialize;

fn dollars(micros: u64) -> f64 {
    Micros(micros).dollars()
}

/// Returns `None` if the text is empty: the protocol represents unknown values by empty strings.
fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Fields that all JSON representations of a run contain.
#[derive(Serialize)]
struct RunFields<'a> {
    run: &'a str,
    state: &'static str,
    width: u64,
    depth: u32,
    /// Number of rows cleared in the result, if the run has a result; otherwise, the best number so far.
    best_lines: u32,
    pieces: Option<u32>,
    seconds: f64,
    stored_bytes: u64,
    max_dollars: Option<f64>,
    note: &'a str,
    stopped_by: &'a str,
    /// Whether the search has ended and the best game is being read back (its wells are found in the stored depths).
    reading_back: bool,
}

impl<'a> RunFields<'a> {
    fn of(run: &'a v1::RunStatus) -> RunFields<'a> {
        let result = run.result.as_ref();
        RunFields {
            run: &run.name,
            state: run.state().name(),
            width: run.width,
            depth: run.depth,
            best_lines: result.map_or(run.best_lines, |result| result.score),
            pieces: result.map(|result| result.pieces),
            seconds: run.seconds,
            stored_bytes: run.stored_bytes,
            max_dollars: (run.max_cost_micros > 0).then(|| dollars(run.max_cost_micros)),
            note: &run.note,
            stopped_by: &run.stopped_by,
            reading_back: run.reading_back,
        }
    }
}

/// Fields that both [`RunView`] and [`StatusView`] contain.
#[derive(Serialize)]
struct DetailFields<'a> {
    shards: u32,
    epoch: u64,
    /// Time that counts towards `max_hours`: searching and waiting for workers.
    used_seconds: Option<f64>,
    max_hours: Option<f64>,
    cost: Option<CostView<'a>>,
    projection: Option<ProjectionView<'a>>,
}

impl<'a> DetailFields<'a> {
    fn of(run: &'a v1::RunStatus) -> DetailFields<'a> {
        DetailFields {
            shards: run.shards,
            epoch: run.epoch,
            used_seconds: run.used_milliseconds.map(|millis| millis as f64 / 1e3),
            max_hours: (run.max_seconds > 0).then(|| run.max_seconds as f64 / 3600.0),
            cost: run.cost.as_ref().map(CostView::of),
            projection: run.projection.as_ref().map(ProjectionView::of),
        }
    }
}

/// Returns the replay of a run's best game.
fn replay(run: &v1::RunStatus) -> Option<&str> {
    non_empty(&run.result.as_ref()?.replay)
}

/// An entry in the list of runs.
#[derive(Serialize)]
pub(crate) struct RunLine<'a> {
    #[serde(flatten)]
    fields: RunFields<'a>,
    /// Depth limit; 0 means no limit.
    max_depth: u32,
    dollars: Option<f64>,
    submitted_ms: u64,
}

impl<'a> RunLine<'a> {
    pub(crate) fn of(run: &'a v1::RunStatus) -> RunLine<'a> {
        RunLine {
            fields: RunFields::of(run),
            max_depth: run.max_depth,
            dollars: run.cost.as_ref().map(|cost| dollars(cost.micros)),
            submitted_ms: run.submitted_ms,
        }
    }
}

/// The details of a run, without its depth records.
#[derive(Serialize)]
pub(crate) struct RunView<'a> {
    #[serde(flatten)]
    line: RunLine<'a>,
    #[serde(flatten)]
    details: DetailFields<'a>,
    spec: Option<RunSpec>,
    expanded: u64,
    parents: u64,
    replay: Option<&'a str>,
}

impl<'a> RunView<'a> {
    pub(crate) fn of(run: &'a v1::RunStatus) -> RunView<'a> {
        RunView {
            line: RunLine::of(run),
            details: DetailFields::of(run),
            spec: serde_json::from_str(&run.spec).ok(),
            expanded: run.expanded,
            parents: run.parents,
            replay: replay(run),
        }
    }
}

/// A run in the output of `hatebeam status --json` and similar commands.
#[derive(Serialize)]
pub struct StatusView<'a> {
    #[serde(flatten)]
    fields: RunFields<'a>,
    #[serde(flatten)]
    details: DetailFields<'a>,
    max_depth: Option<u32>,
    /// Replay of the best game. The field is absent if the message contains no replay, as in lists of runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<&'a str>,
    lookups: Option<u64>,
    keyframe_seconds: Option<f64>,
}

impl<'a> StatusView<'a> {
    /// Converts the protocol message.
    pub fn of(run: &'a v1::RunStatus) -> StatusView<'a> {
        let result = run.result.as_ref();
        StatusView {
            fields: RunFields::of(run),
            details: DetailFields::of(run),
            max_depth: (run.max_depth > 0).then_some(run.max_depth),
            replay: replay(run),
            lookups: result.map(|result| result.lookups),
            keyframe_seconds: result.map(|result| result.keyframe_seconds),
        }
    }
}

/// The cost of a run.
#[derive(Serialize)]
struct CostView<'a> {
    dollars: f64,
    machine_dollars: f64,
    request_dollars: f64,
    storage_dollars: f64,
    dollars_per_hour: f64,
    storage_dollars_per_month: f64,
    /// Number of machines whose price is unknown, including those that have left.
    unpriced: u32,
    /// Number of connected machines whose price is unknown. `dollars_per_hour` does not include them.
    unpriced_present: u32,
    machines: Vec<MachineCostView<'a>>,
}

impl<'a> CostView<'a> {
    fn of(cost: &'a v1::Cost) -> CostView<'a> {
        CostView {
            dollars: dollars(cost.micros),
            machine_dollars: dollars(cost.machine_micros),
            request_dollars: dollars(cost.request_micros),
            storage_dollars: dollars(cost.storage_micros),
            dollars_per_hour: dollars(cost.micros_per_hour),
            storage_dollars_per_month: dollars(cost.storage_micros_per_month),
            unpriced: cost.unpriced,
            unpriced_present: cost.unpriced_present,
            machines: cost.machines.iter().map(MachineCostView::of).collect(),
        }
    }
}

/// The cost of one machine.
#[derive(Serialize)]
struct MachineCostView<'a> {
    name: &'a str,
    machine: Option<MachineView<'a>>,
    seconds: f64,
    dollars: f64,
    active: bool,
}

impl<'a> MachineCostView<'a> {
    fn of(cost: &'a v1::MachineCost) -> MachineCostView<'a> {
        MachineCostView {
            name: &cost.name,
            machine: cost.machine.as_ref().map(MachineView::of),
            seconds: cost.milliseconds as f64 / 1e3,
            dollars: dollars(cost.micros),
            active: cost.active,
        }
    }
}

/// A rented machine.
#[derive(Serialize)]
struct MachineView<'a> {
    kind: Option<&'a str>,
    market: Option<&'a str>,
    region: Option<&'a str>,
    zone: Option<&'a str>,
    id: Option<&'a str>,
    dollars_per_hour: Option<f64>,
    price_from: Option<&'a str>,
}

impl<'a> MachineView<'a> {
    fn of(machine: &'a v1::Machine) -> MachineView<'a> {
        MachineView {
            kind: non_empty(&machine.kind),
            market: non_empty(&machine.market),
            region: non_empty(&machine.region),
            zone: non_empty(&machine.zone),
            id: non_empty(&machine.id),
            dollars_per_hour: machine.micros_per_hour.map(dollars),
            price_from: non_empty(&machine.price_from),
        }
    }
}

/// The projected end of a run. Each array contains the lowest and the highest likely value.
#[derive(Serialize)]
struct ProjectionView<'a> {
    depths: [u32; 2],
    seconds: [f64; 2],
    dollars: [f64; 2],
    basis: &'a str,
}

impl<'a> ProjectionView<'a> {
    fn of(projection: &'a v1::Projection) -> ProjectionView<'a> {
        ProjectionView {
            depths: [projection.depth_low, projection.depth_high],
            seconds: [projection.seconds_low, projection.seconds_high],
            dollars: [projection.micros_low, projection.micros_high].map(dollars),
            basis: &projection.basis,
        }
    }
}

/// The record of a committed depth.
#[derive(Serialize)]
pub(crate) struct DepthView<'a> {
    depth: u32,
    count: u64,
    best_eval: i32,
    median_eval: i32,
    worst_eval: i32,
    best_lines: u32,
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
            best_lines: depth.best_lines,
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

/// The status of a worker.
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
    /// Converts the protocol message.
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

/// A condition that needs attention.
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
            worker: non_empty(&alert.worker),
            text: &alert.text,
        }
    }
}
