//! Text and JSON output for runs and workers.

use crate::output;
use hatebeam_cost::Micros;
use hatebeam_dashboard::{CostView, ProjectionView};
use hatebeam_proto::v1;
use hatebeam_report::{bytes, count};
use serde::Serialize;
use std::fmt::Write as _;

/// The JSON object for a run.
#[derive(Serialize)]
pub(super) struct RunJson<'a> {
    run: &'a str,
    state: &'static str,
    width: u64,
    shards: u32,
    depth: u32,
    /// Number of rows cleared in the game that was read back, or else on the way to the best well so far.
    best_lines: u32,
    epoch: u64,
    seconds: f64,
    stored_bytes: u64,
    note: &'a str,
    stopped_by: &'a str,
    cost: Option<CostView<'a>>,
    max_depth: Option<u32>,
    max_dollars: Option<f64>,
    max_hours: Option<f64>,
    projection: Option<ProjectionView<'a>>,
    pieces: Option<u32>,
    /// Lists of runs have no replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<&'a str>,
    lookups: Option<u64>,
    keyframe_seconds: Option<f64>,
}

impl<'a> RunJson<'a> {
    pub(super) fn of(run: &'a v1::RunStatus) -> RunJson<'a> {
        let result = run.result.as_ref();
        RunJson {
            run: &run.name,
            state: run.state().name(),
            width: run.width,
            shards: run.shards,
            depth: run.depth,
            best_lines: result.map_or(run.best_lines, |result| result.score),
            epoch: run.epoch,
            seconds: run.seconds,
            stored_bytes: run.stored_bytes,
            note: &run.note,
            stopped_by: &run.stopped_by,
            cost: run.cost.as_ref().map(CostView::of),
            max_depth: (run.max_depth > 0).then_some(run.max_depth),
            max_dollars: (run.max_cost_micros > 0).then(|| Micros(run.max_cost_micros).dollars()),
            max_hours: (run.max_seconds > 0).then(|| run.max_seconds as f64 / 3600.0),
            projection: run.projection.as_ref().map(ProjectionView::of),
            pieces: result.map(|result| result.pieces),
            replay: result
                .map(|result| result.replay.as_str())
                .filter(|replay| !replay.is_empty()),
            lookups: result.map(|result| result.lookups),
            keyframe_seconds: result.map(|result| result.keyframe_seconds),
        }
    }
}

/// Prints a run as text or as JSON.
pub(super) fn print_run(run: &v1::RunStatus, json: bool) -> anyhow::Result<()> {
    if json {
        output::print_json(&RunJson::of(run))
    } else {
        output::print(format_args!("{}\n", run_text(run)))
    }
}

/// Describes the cost of a run and its limits. Returns an empty string if no price is known and no limit is set.
pub(super) fn cost_text(run: &v1::RunStatus) -> String {
    let cost = run.cost.clone().unwrap_or_default();
    let dollars = |micros| Micros(micros).dollars();
    let mut text = String::new();
    // Writing to a string cannot fail.
    if cost.micros > 0 || cost.micros_per_hour > 0 {
        let _ = write!(text, "${:.2} so far", dollars(cost.micros));
        let wells = run.width.saturating_mul(u64::from(run.depth)) as f64 / 1e6;
        if wells >= 1.0 {
            let each = dollars(cost.micros) / wells;
            let _ = write!(text, " (${each:.4} per million wells)");
        }
        if cost.micros_per_hour > 0 {
            let _ = write!(text, ", ${:.2} per hour", dollars(cost.micros_per_hour));
        }
        if let Some(projection) = &run.projection {
            let (low, high) = (projection.micros_low, projection.micros_high);
            let _ = write!(
                text,
                ", ${:.2} to ${:.2} in total",
                dollars(low),
                dollars(high)
            );
        }
    }
    let limits = limits_of(run);
    if !limits.is_empty() {
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}limited to {}", limits.join(" and "));
    }
    if cost.unpriced > 0 && !text.is_empty() {
        let machines = count(u64::from(cost.unpriced), "machine");
        let _ = write!(text, "; the price of {machines} is unknown");
    }
    text
}

fn limits_of(run: &v1::RunStatus) -> Vec<String> {
    let mut limits = Vec::new();
    if run.max_cost_micros > 0 {
        limits.push(Micros(run.max_cost_micros).to_string());
    }
    if run.max_seconds > 0 {
        let hours = (run.max_seconds as f64 / 36.0).round() / 100.0;
        limits.push(format!("{hours} h"));
    }
    if run.max_depth > 0 {
        limits.push(format!("depth {}", run.max_depth));
    }
    limits
}

pub(super) fn run_text(run: &v1::RunStatus) -> String {
    let mut text = format!(
        "{}  {}  depth {}  {} lines  {:.0} s  {} MB",
        run.name,
        run.state().name(),
        run.depth,
        run.best_lines,
        run.seconds,
        run.stored_bytes / 1_000_000
    );
    if !run.note.is_empty() {
        let _ = write!(text, "\n  {}", run.note);
    }
    let cost = cost_text(run);
    if !cost.is_empty() {
        let _ = write!(text, "\n  {cost}");
    }
    if !run.stopped_by.is_empty() {
        let _ = write!(
            text,
            "\n  stopped by --{}; submit it again with a higher limit to resume it",
            run.stopped_by
        );
    }
    if let Some(result) = &run.result {
        let _ = write!(
            text,
            "\n  best game: {} in {}",
            count(u64::from(result.score), "line"),
            count(u64::from(result.pieces), "piece")
        );
    }
    text
}

pub(super) fn worker_text(worker: &v1::WorkerStatus) -> String {
    let progress = match worker.parents {
        0 => String::new(),
        of => format!("{:.0} %", worker.expanded as f64 * 100.0 / of as f64),
    };
    let mut text = format!(
        "{:<24}  {:<8}  {:>11}  {:>11}  {:>7}  {progress:>5}",
        worker.name,
        worker.state,
        count(u64::from(worker.threads), "thread"),
        count(u64::from(worker.shards), "shard"),
        bytes(worker.rss_bytes),
    );
    if worker.slow {
        text.push_str("  SLOW");
    }
    if !worker.note.is_empty() {
        let _ = write!(text, "  {}", worker.note);
    }
    text.trim_end().to_owned()
}

/// Returns one line per worker, for at most `most` workers. Slow workers and workers with a note come first.
pub(super) fn worker_lines(workers: &[v1::WorkerStatus], most: usize) -> String {
    let mut sorted: Vec<&v1::WorkerStatus> = workers.iter().collect();
    sorted.sort_by_key(|worker| !worker.slow && worker.note.is_empty());
    let shown = sorted.iter().take(most);
    let mut lines: Vec<String> = shown.map(|worker| worker_text(worker)).collect();
    let more = sorted.len().saturating_sub(most);
    if more > 0 {
        lines.push(format!("and {}", count(more as u64, "more worker")));
    }
    lines.join("\n")
}
