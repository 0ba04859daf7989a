//! What a person sees of a run while it goes on: a row a depth, and below them, on a terminal, a bar.
//! All of it goes to standard error; with `--json` a line a depth goes to standard output.

use crate::output;
pub(crate) use hatebeam_report::{bytes, duration};
use hatebeam_runs::{Observer, ProgressEstimator};
use hatebeam_store::{DepthRecord, StoreError};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);
/// Where there is no bar, or depths are quick, a row appears at most so often.
const ROW_EVERY: Duration = Duration::from_secs(1);
/// Rows between two heads.
const HEAD_EVERY: u32 = 40;

/// The line of `--json` for a depth.
#[derive(Debug, Serialize)]
struct DepthLine<'a> {
    depth: u32,
    wells: u64,
    best_lines: u16,
    best_eval: i32,
    median_eval: i32,
    worst_eval: i32,
    children: u64,
    children_per_second: f64,
    seconds: f64,
    bytes: u64,
    digest: &'a str,
    /// What it has cost, where somebody accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    dollars: Option<f64>,
}

/// Shows a run.
pub(crate) struct Screen {
    json: bool,
    shows_rows: bool,
    bar: Option<Bar>,
    pace: Option<ProgressEstimator>,
    begun: Instant,
    shown: Option<Instant>,
    rows: u32,
    stored: u64,
    /// What the next depth to be shown has cost.
    dollars: Option<f64>,
    /// The first failure to write a line of JSON: the run goes on, and says so at its end.
    failed: Option<anyhow::Error>,
}

impl Screen {
    /// A screen for a run whose depths so far take `stored` bytes; where its pace is not known, nothing is said
    /// of its end.
    pub(crate) fn new(
        json: bool,
        quiet: bool,
        pace: Option<ProgressEstimator>,
        stored: u64,
    ) -> Screen {
        let shows_rows = !quiet;
        Screen {
            json,
            shows_rows,
            bar: (shows_rows && io::stderr().is_terminal()).then(Bar::new),
            pace,
            begun: Instant::now(),
            shown: None,
            rows: 0,
            stored,
            dollars: None,
            failed: None,
        }
    }

    /// Takes the bar away, and gives what went wrong in writing.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        if let Some(bar) = self.bar {
            bar.close();
        }
        self.failed.map_or(Ok(()), Err)
    }

    /// Shows these lines below the bar, if there is one.
    #[cfg(feature = "cluster")]
    pub(crate) fn below(&self, lines: &str) {
        if let Some(bar) = &self.bar {
            bar.below(lines);
        }
    }

    /// Says something between the rows.
    #[cfg(feature = "cluster")]
    pub(crate) fn note(&self, text: &str) {
        if self.shows_rows {
            self.line(&format!("note: {text}"));
        }
    }

    /// What the next depth to be shown has cost.
    #[cfg(feature = "cluster")]
    pub(crate) fn cost(&mut self, dollars: f64) {
        self.dollars = Some(dollars);
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.bar.suspend(|| write_line(text)),
            None => write_line(text),
        }
    }

    fn row(&mut self, record: &DepthRecord, took: Duration) {
        // Enough rows to see it move, never so many that they fly by.
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= ROW_EVERY);
        if !due {
            return;
        }
        self.shown = Some(Instant::now());
        if self.rows.is_multiple_of(HEAD_EVERY) {
            self.line(" depth       wells   lines       best     median        cut  Mchild/s    stored     depth    elapsed");
        }
        self.rows += 1;
        self.line(&format!(
            "{:>6}  {:>10}  {:>6}  {:>9}  {:>9}  {:>9}  {:>8.2}  {:>8}  {:>8}  {:>9}",
            record.depth,
            record.count,
            record.best_lines,
            record.best_eval,
            record.median_eval,
            record.worst_eval,
            record.children as f64 / took.as_secs_f64().max(1e-9) / 1e6,
            bytes(self.stored),
            duration(took),
            duration(self.begun.elapsed()),
        ));
    }

    /// When the run may end, as far as that can be cut_verdict.
    fn end(&self) -> String {
        let projection = self.pace.as_ref().and_then(ProgressEstimator::projection);
        let Some(projection) = projection else {
            return "end not in sight".to_owned();
        };
        let time = |seconds: f64| duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
        let ((low, high), (soonest, latest)) = (projection.depths, projection.seconds);
        match low == high {
            true => format!("end in about {} (depth {high})", time(latest)),
            false => format!(
                "end in {} to {} (depth {low} to {high})",
                time(soonest),
                time(latest)
            ),
        }
    }
}

impl Observer for Screen {
    fn begun(&mut self, depth: u32, parents: u64, expanded: &Arc<AtomicU64>) {
        let end = self.end();
        if let Some(bar) = &self.bar {
            bar.begin(parents, expanded, format!("depth {depth}  {end}"));
        }
    }

    fn committed(&mut self, record: &DepthRecord) {
        let took = Duration::from_secs_f64(record.seconds.max(0.0));
        self.stored += record.bytes;
        if let Some(pace) = &mut self.pace {
            pace.add(record);
        }
        if self.json && self.failed.is_none() {
            let line = DepthLine {
                depth: record.depth,
                wells: record.count,
                best_lines: record.best_lines,
                best_eval: record.best_eval,
                median_eval: record.median_eval,
                worst_eval: record.worst_eval,
                children: record.children,
                children_per_second: record.children as f64 / record.seconds.max(1e-9),
                seconds: record.seconds,
                bytes: record.bytes,
                digest: &record.digest,
                dollars: self.dollars.take(),
            };
            let printed = serde_json::to_string(&line)
                .map_err(anyhow::Error::from)
                .and_then(|text| output::print(&format_args!("{text}\n")));
            self.failed = printed.err();
        }
        if self.shows_rows {
            self.row(record, took);
        }
    }

    fn damaged(&mut self, depth: u32, error: &StoreError) {
        self.line(&format!(
            "warning: {error}; depth {depth} is searched again, from the last one that is whole"
        ));
    }
}

fn write_line(text: &str) {
    // If even standard error is closed, there is nobody left to tell.
    let _ = writeln!(io::stderr(), "{text}");
}

/// What the bar shows the progress of.
type Shown = Arc<Mutex<Option<Arc<AtomicU64>>>>;

const TEMPLATE: &str = "{spinner} {msg}  {wide_bar} {percent:>3}%  {human_pos}/{human_len} wells";

/// A bar that moves by itself.
struct Bar {
    bar: ProgressBar,
    shown: Shown,
    stop: Arc<AtomicBool>,
    mover: JoinHandle<()>,
}

impl Bar {
    fn new() -> Bar {
        let bar = ProgressBar::new(0);
        set_template(&bar, TEMPLATE);
        let shown = Shown::default();
        let stop = Arc::new(AtomicBool::new(false));
        let mover = std::thread::spawn({
            let (bar, shown, stop) = (bar.clone(), Arc::clone(&shown), Arc::clone(&stop));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    if let Some(expanded) = lock(&shown).as_ref() {
                        bar.set_position(expanded.load(Ordering::Relaxed));
                    }
                    bar.tick();
                    std::thread::sleep(TICK);
                }
            }
        });
        Bar {
            bar,
            shown,
            stop,
            mover,
        }
    }

    fn begin(&self, parents: u64, expanded: &Arc<AtomicU64>, message: String) {
        self.bar.set_length(parents);
        self.bar.set_message(message);
        *lock(&self.shown) = Some(Arc::clone(expanded));
    }

    #[cfg(feature = "cluster")]
    fn below(&self, lines: &str) {
        set_template(&self.bar, &format!("{TEMPLATE}\n{{prefix}}"));
        self.bar.set_prefix(lines.to_owned());
    }

    fn close(self) {
        self.stop.store(true, Ordering::Relaxed);
        // It cannot fail in a way that matters: it only draws.
        let _ = self.mover.join();
        self.bar.finish_and_clear();
    }
}

fn set_template(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

fn lock(shown: &Shown) -> std::sync::MutexGuard<'_, Option<Arc<AtomicU64>>> {
    shown.lock().unwrap_or_else(|poison| poison.into_inner())
}
