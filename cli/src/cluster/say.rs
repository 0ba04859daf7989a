//! What is said of runs and workers, as text and as JSON.

use crate::output::{self, count};
use crate::run::screen::bytes;
use hatebeam_cost::Micros;
use hatebeam_dashboard::{CostView, ProjectionView};
use hatebeam_proto::v1;
use serde::Serialize;
use std::fmt::Write as _;

/// What `--json` prints of a run.
#[derive(Serialize)]
pub(super) struct RunJson<'a> {
    run: &'a str,
    state: &'static str,
    width: u64,
    shards: u32,
    depth: u32,
    /// Lines of the best game: of the one that was read back, or else of the best of all depths so far.
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
            max_dollars: (run.max_cost_micros > 0).then(|| dollars(run.max_cost_micros)),
            max_hours: (run.max_seconds > 0).then(|| run.max_seconds as f64 / 3600.0),
            projection: run.projection.as_ref().map(ProjectionView::of),
            pieces: result.map(|result| result.pieces),
            replay: result.map(|result| result.replay.as_str()),
            lookups: result.map(|result| result.lookups),
            keyframe_seconds: result.map(|result| result.keyframe_seconds),
        }
    }
}

fn dollars(micros: u64) -> f64 {
    Micros(micros).dollars()
}

/// What a run has cost, may cost and will cost; nothing where no price is known and no budget set.
pub(super) fn cost_text(run: &v1::RunStatus) -> String {
    let cost = run.cost.clone().unwrap_or_default();
    let mut text = String::new();
    if cost.micros > 0 || cost.micros_per_hour > 0 {
        let _ = write!(text, "${:.2} so far", dollars(cost.micros));
        let wells = run.width.saturating_mul(u64::from(run.depth)) as f64 / 1e6;
        if wells >= 1.0 {
            let _ = write!(
                text,
                " (${:.4} a million wells)",
                dollars(cost.micros) / wells
            );
        }
        if cost.micros_per_hour > 0 {
            let _ = write!(text, ", ${:.2} an hour", dollars(cost.micros_per_hour));
        }
        if let Some(projection) = &run.projection {
            let (low, high) = (projection.micros_low, projection.micros_high);
            let _ = write!(
                text,
                ", ${:.2} to ${:.2} in the end",
                dollars(low),
                dollars(high)
            );
        }
    }
    let mut limits = Vec::new();
    if run.max_cost_micros > 0 {
        limits.push(format!("${:.2}", dollars(run.max_cost_micros)));
    }
    if run.max_seconds > 0 {
        let hours = (run.max_seconds as f64 / 36.0).round() / 100.0;
        limits.push(format!("{hours} h"));
    }
    if run.max_depth > 0 {
        limits.push(format!("depth {}", run.max_depth));
    }
    if !limits.is_empty() {
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}the budget is {}", limits.join(" and "));
    }
    if cost.unpriced > 0 && (!text.is_empty()) {
        let _ = write!(
            text,
            "; the price of {} is not known",
            count(cost.unpriced as usize, "machine")
        );
    }
    text
}

pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    output::print(&format_args!("{}\n", serde_json::to_string(value)?))
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
            "\n  stopped by --{}; submitted again with more it goes on",
            run.stopped_by
        );
    }
    if let Some(result) = &run.result {
        let _ = write!(
            text,
            "\n  the best game: {} in {}",
            count(result.score as usize, "line"),
            count(result.pieces as usize, "piece")
        );
    }
    text
}

pub(super) fn worker_text(worker: &v1::WorkerStatus) -> String {
    let part = match worker.parents {
        0 => String::new(),
        of => format!("{:.0} %", worker.expanded as f64 * 100.0 / of as f64),
    };
    let mut text = format!(
        "{:<24}  {:<8}  {:>11}  {:>11}  {:>7}  {part:>5}",
        worker.name,
        worker.state,
        count(worker.threads as usize, "thread"),
        count(worker.shards as usize, "shard"),
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

/// A line for each worker, at most so many, the ones that want looking at first.
pub(super) fn worker_lines(workers: &[v1::WorkerStatus], most: usize) -> String {
    let mut sorted: Vec<&v1::WorkerStatus> = workers.iter().collect();
    sorted.sort_by_key(|worker| !worker.slow && worker.note.is_empty());
    let mut lines: Vec<String> = sorted.iter().take(most).map(|w| worker_text(w)).collect();
    if let Some(more) = sorted.len().checked_sub(most).filter(|more| *more > 0) {
        lines.push(format!("and {}", count(more, "more worker")));
    }
    lines.join("\n")
}
