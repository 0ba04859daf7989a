//! Conversions between the coordinator's types and the generated protobuf types.

use crate::alerts::Alert;
use crate::costs::Cost;
use crate::registry::WorkerStatus;
use crate::status::{CostProjection, RunStatus};
use crate::update::LimitsChange;
use hatebeam_cost::{MachineUsage, Micros};
use hatebeam_proto::v1;
use hatebeam_runs::{CommittedDepth, EndReason, GameResult};
use std::time::Duration;

pub(super) fn run_status(run: &RunStatus) -> v1::RunStatus {
    let manifest = &run.manifest;
    let limit = manifest.end.filter(|end| end.is_limit());
    let limit = limit.filter(|_| !manifest.is_open());
    v1::RunStatus {
        name: manifest.name.clone(),
        state: v1::State::from(manifest.state).into(),
        spec: serde_json::to_string(&manifest.spec).unwrap_or_default(),
        width: manifest.spec.width,
        shards: manifest.shards,
        depth: run.depth(),
        best_lines: manifest.best_lines(),
        expanded: run.expansion.expanded,
        parents: run.expansion.parents,
        epoch: manifest.epoch,
        seconds: manifest.seconds,
        stored_bytes: manifest.stored_bytes(),
        note: run.note.clone(),
        result: manifest.result.as_ref().map(result),
        submitted_ms: manifest.submitted_ms,
        max_depth: manifest.limits.max_depth.unwrap_or(0),
        cost: Some(cost(&run.cost)),
        max_cost_micros: manifest.limits.max_cost.map_or(0, |max| max.0),
        max_seconds: manifest.limits.max_time.map_or(0, |max| max.as_secs()),
        stopped_by: limit.map_or("", EndReason::name).to_owned(),
        projection: run.projection.as_ref().map(projection),
        reading_back: manifest.reading_back().is_some(),
        used_milliseconds: Some(run.cost.ledger.milliseconds),
    }
}

/// Converts the status of a run for a list. Omits the machines and the replay, which can be large.
pub(super) fn run_summary(run: &RunStatus) -> v1::RunStatus {
    let mut summary = run_status(run);
    if let Some(cost) = &mut summary.cost {
        cost.machines = Vec::new();
    }
    if let Some(result) = &mut summary.result {
        result.replay = String::new();
    }
    summary
}

fn result(result: &GameResult) -> v1::Result {
    v1::Result {
        score: result.lines,
        pieces: result.pieces,
        replay: result.replay.clone(),
        lookups: result.lookups,
        keyframe_seconds: result.seconds,
    }
}

fn projection(projection: &CostProjection) -> v1::Projection {
    let CostProjection {
        projection,
        cost_low,
        cost_high,
    } = projection;
    v1::Projection {
        depth_low: projection.depths.0,
        depth_high: projection.depths.1,
        seconds_low: projection.seconds.0,
        seconds_high: projection.seconds.1,
        micros_low: cost_low.0,
        micros_high: cost_high.0,
        basis: projection.basis.to_owned(),
    }
}

fn cost(cost: &Cost) -> v1::Cost {
    let (parts, rate) = (cost.parts(), cost.rate());
    let machine = |usage: &MachineUsage| v1::MachineCost {
        name: usage.name.clone(),
        machine: Some(usage.machine.clone().into()),
        milliseconds: usage.milliseconds,
        micros: usage.cost().unwrap_or_default().0,
        active: cost.is_present(usage),
    };
    v1::Cost {
        micros: cost.total().0,
        machine_micros: parts.machines.0,
        request_micros: parts.requests.0,
        storage_micros: parts.storage.0,
        micros_per_hour: rate.per_hour.0,
        unpriced: cost.unpriced(),
        machines: cost.ledger.machines.iter().map(machine).collect(),
        storage_micros_per_month: cost.storage_per_month().0,
        unpriced_present: rate.unpriced,
    }
}

pub(super) fn depth_record(depth: &CommittedDepth) -> v1::DepthRecord {
    let record = &depth.record;
    v1::DepthRecord {
        depth: record.depth,
        count: record.count,
        digest: record.digest.clone(),
        best_eval: record.best_eval,
        median_eval: record.median_eval,
        worst_eval: record.worst_eval,
        best_lines: u32::from(record.best_lines),
        best_well: record.best_well.clone(),
        children: record.children,
        seconds: record.seconds,
        bytes: record.bytes,
        kept: record.kept,
        sent: depth.sent,
        sent_bytes: depth.sent_bytes,
        cost_micros: depth.cost.0,
    }
}

pub(super) fn worker_status(worker: &WorkerStatus) -> v1::WorkerStatus {
    v1::WorkerStatus {
        name: worker.name.clone(),
        address: worker.address.clone(),
        state: worker.state.name().to_owned(),
        note: worker.note.clone(),
        threads: worker.threads,
        shards: worker.shards,
        expanded: worker.expanded,
        parents: worker.parents,
        rss_bytes: worker.rss_bytes,
        memory_bytes: worker.memory_bytes,
        disk_free_bytes: worker.disk_free_bytes,
        silent_ms: worker.silent.as_millis() as u64,
        slow: worker.slow,
        machine: Some(worker.machine.clone().into()),
        uploading_bytes: worker.uploading_bytes,
        disk_bytes: worker.disk_bytes,
        uploads_behind: worker.uploads_behind,
    }
}

pub(super) fn alert(alert: Alert) -> v1::Alert {
    v1::Alert {
        kind: alert.kind.name().to_owned(),
        worker: alert.worker,
        text: alert.text,
    }
}

/// Converts a limit from a message, in which 0 means no limit.
pub(super) fn limit<T: Default + PartialOrd>(limit: T) -> Option<T> {
    (limit > T::default()).then_some(limit)
}

/// Returns the changes from a request.
pub(super) fn limits_change(request: &v1::LimitRequest) -> LimitsChange {
    let (micros, seconds) = (request.max_cost_micros, request.max_seconds);
    LimitsChange {
        max_depth: request.max_depth.map(limit),
        max_cost: micros.map(|max| limit(max).map(Micros)),
        max_time: seconds.map(|max| limit(max).map(Duration::from_secs)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support;
    use hatebeam_runs::RunState;
    use std::sync::Arc;

    #[test]
    fn used_time_is_that_of_the_ledger_and_not_of_the_search() {
        let mut run = support::run_status(RunState::Running, "");
        Arc::make_mut(&mut run.manifest).seconds = 1.0;
        run.cost.ledger.milliseconds = 5000;
        let status = run_status(&run);
        assert_eq!(
            (status.seconds, status.used_milliseconds),
            (1.0, Some(5000))
        );
    }
}
