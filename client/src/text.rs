//! Human-readable text about runs and workers.

use hatebeam_cost::Micros;
use hatebeam_proto::v1;
use hatebeam_report::{bytes, count, duration};
use std::fmt::Write as _;
use std::time::Duration;

/// Describes the cost and the limits of a run. Returns an empty string if the run has neither a cost nor a limit.
pub(crate) fn cost_text(run: &v1::RunStatus) -> String {
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
        let workers = count(u64::from(cost.unpriced), "worker");
        let _ = write!(text, "; the price of {workers} is unknown");
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

/// Describes a run in one or more lines, without a final line break.
pub fn run_text(run: &v1::RunStatus) -> String {
    let mut text = format!(
        "{}  {}  depth {}  {}  {:.0} s  {}",
        run.name,
        run.state().name(),
        run.depth,
        count(u64::from(run.best_lines), "line"),
        run.seconds,
        bytes(run.stored_bytes)
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

/// Describes the connected workers whose price is unknown, if the cost of an open run is limited: the limit ignores them.
/// Returns `None` if there are none.
pub fn price_warning(run: &v1::RunStatus, workers: &[v1::WorkerStatus]) -> Option<String> {
    let price = |worker: &v1::WorkerStatus| worker.machine.as_ref()?.micros_per_hour;
    let unpriced = workers.iter().filter(|worker| price(worker).is_none());
    let unpriced = unpriced.count() as u64;
    let is_limited = run.is_open() && run.max_cost_micros > 0;
    (is_limited && unpriced > 0).then(|| {
        let workers = count(unpriced, "worker");
        format!(
            "--max-cost ignores {workers} whose price is unknown: start such workers with --price-per-hour"
        )
    })
}

/// Describes a worker in one line, without a final line break.
pub fn worker_text(worker: &v1::WorkerStatus) -> String {
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

/// Returns one line per worker, for at most `most` workers. Slow workers and workers with a note come first. If there
/// are more workers, the last line contains the number of the others.
pub(crate) fn worker_lines(workers: &[v1::WorkerStatus], most: usize) -> String {
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

/// Describes the time until all machines stop. Returns an empty string if `deadline_ms` is 0, which means that there
/// is no deadline. Both times are in milliseconds since the Unix epoch.
pub fn deadline_text(deadline_ms: u64, now_ms: u64) -> String {
    match deadline_ms.checked_sub(now_ms).map(Duration::from_millis) {
        _ if deadline_ms == 0 => String::new(),
        Some(left) => format!("\nAll machines stop in {}.\n", duration(left)),
        None => "\nThe deadline of the machines has passed: no worker starts.\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_text_counts_unpriced_workers() {
        let run = v1::RunStatus {
            cost: Some(v1::Cost {
                micros: 1_500_000,
                unpriced: 2,
                ..v1::Cost::default()
            }),
            ..v1::RunStatus::default()
        };
        let text = cost_text(&run);
        assert!(
            text.ends_with("; the price of 2 workers is unknown"),
            "{text}"
        );
    }

    #[test]
    fn workers_without_price_are_reported_if_the_cost_of_an_open_run_is_limited() {
        let run = |state: v1::State, max_cost_micros| v1::RunStatus {
            state: state.into(),
            max_cost_micros,
            ..v1::RunStatus::default()
        };
        let worker = |micros_per_hour| v1::WorkerStatus {
            machine: Some(v1::Machine {
                micros_per_hour,
                ..v1::Machine::default()
            }),
            ..v1::WorkerStatus::default()
        };
        let workers = [worker(Some(0)), worker(None), v1::WorkerStatus::default()];
        let queued = run(v1::State::Queued, 1);
        assert_eq!(
            price_warning(&queued, &workers).unwrap(),
            "--max-cost ignores 2 workers whose price is unknown: start such workers with --price-per-hour"
        );
        assert_eq!(price_warning(&queued, &workers[..1]), None);
        for other in [run(v1::State::Queued, 0), run(v1::State::Finished, 1)] {
            assert_eq!(price_warning(&other, &workers), None);
        }
    }

    #[test]
    fn run_text_rounds_stored_bytes_and_counts_lines() {
        let run = v1::RunStatus {
            best_lines: 1,
            stored_bytes: 508_000,
            ..v1::RunStatus::default()
        };
        let text = run_text(&run);
        assert!(text.contains("  1 line  "), "{text}");
        assert!(text.contains("508 kB"), "{text}");
    }

    #[test]
    fn deadline_text_describes_the_deadline_if_there_is_one() {
        assert_eq!(deadline_text(0, 5), "");
        let hour = 3_600_000;
        let left = deadline_text(3 * hour, hour);
        assert!(left.contains("stop in 2:00:00"), "{left}");
        assert!(deadline_text(hour, 3 * hour).contains("has passed"));
    }
}
