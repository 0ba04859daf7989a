//! The progress of a run. Rows for depths (numbers of placed pieces) are printed on standard error, at most one per
//! second. If standard error is a terminal, a progress bar is shown below the rows. With [`ScreenOptions::json`], a
//! JSON line for each depth is printed on standard output.

use crate::result::{DepthView, children_per_second, time};
use hatebeam_report::{bytes, duration};
use hatebeam_runs::{Observer, ProgressEstimator};
use hatebeam_store::{DepthRecord, StoreError};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between updates of the bar.
const TICK: Duration = Duration::from_millis(100);
/// Minimum time between two rows. Depths that end earlier get no row.
const ROW_INTERVAL: Duration = Duration::from_secs(1);
/// Number of rows after which the heading is repeated.
const ROWS_PER_HEADING: u32 = 40;

const HEADING: &str = " depth       wells   lines       best     median        cut  Mchild/s    stored      time    elapsed";

/// Options of a screen.
#[derive(Debug, Default)]
pub struct ScreenOptions {
    /// Whether to print a JSON line for each depth on standard output.
    pub json: bool,
    /// Whether to hide the rows and the bar.
    pub quiet: bool,
    /// Estimator for the end of the run; `None` if the end cannot be estimated.
    pub estimator: Option<ProgressEstimator>,
    /// Total size in bytes of the depths that are already stored.
    pub stored: u64,
}

/// The progress display for a run.
pub struct Screen {
    options: ScreenOptions,
    bar: Option<Bar>,
    begun: Instant,
    last_row: Option<Instant>,
    rows: u32,
    /// Cost of the depth whose record is shown next.
    dollars: Option<f64>,
    /// The first error that occurred when writing a JSON line. The run continues, and [`Screen::close`] returns the error.
    failed: Option<io::Error>,
}

impl Screen {
    /// Creates a screen, and shows the bar if standard error is a terminal.
    pub fn new(options: ScreenOptions) -> Screen {
        Screen {
            bar: (!options.quiet && io::stderr().is_terminal()).then(Bar::new),
            options,
            begun: Instant::now(),
            last_row: None,
            rows: 0,
            dollars: None,
            failed: None,
        }
    }

    /// Removes the bar.
    ///
    /// # Errors
    /// Returns the first error that occurred when writing a JSON line.
    pub fn close(&mut self) -> io::Result<()> {
        if let Some(bar) = self.bar.take() {
            bar.close();
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Shows these lines below the bar.
    pub fn below(&self, lines: &str) {
        if let Some(bar) = &self.bar {
            bar.below(lines);
        }
    }

    /// Shows a note between the rows.
    pub fn note(&self, text: &str) {
        if !self.options.quiet {
            self.line(&format!("note: {text}"));
        }
    }

    /// Sets the cost of the depth whose record is shown next.
    pub fn cost(&mut self, dollars: f64) {
        self.dollars = Some(dollars);
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.bar.suspend(|| line(text)),
            None => line(text),
        }
    }

    fn row(&mut self, record: &DepthRecord) {
        let is_due = self
            .last_row
            .is_none_or(|last| last.elapsed() >= ROW_INTERVAL);
        if !is_due {
            return;
        }
        self.last_row = Some(Instant::now());
        if self.rows.is_multiple_of(ROWS_PER_HEADING) {
            self.line(HEADING);
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
            children_per_second(record) / 1e6,
            bytes(self.options.stored),
            time(record.seconds),
            duration(self.begun.elapsed()),
        ));
    }

    fn json_line(&mut self, record: &DepthRecord) -> io::Result<()> {
        let line = DepthView::new(record, self.dollars.take());
        let text = serde_json::to_string(&line).map_err(io::Error::other)?;
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    }

    /// Describes the time and the depth at which the run is likely to end.
    fn likely_end(&self) -> String {
        let estimator = self.options.estimator.as_ref();
        let Some(end) = estimator.and_then(ProgressEstimator::projection) else {
            return "end not known yet".to_owned();
        };
        let ((low, high), (soonest, latest)) = (end.depths, end.seconds);
        if low == high {
            format!("end in about {} (depth {high})", time(latest))
        } else {
            format!(
                "end in {} to {} (depth {low} to {high})",
                time(soonest),
                time(latest)
            )
        }
    }
}

impl Observer for Screen {
    fn begun(&mut self, depth: u32, parents: u64, expanded: &Arc<AtomicU64>) {
        let end = self.likely_end();
        if let Some(bar) = &self.bar {
            bar.begin(parents, expanded, format!("depth {depth}  {end}"));
        }
    }

    fn committed(&mut self, record: &DepthRecord) {
        self.options.stored += record.bytes;
        if let Some(estimator) = &mut self.options.estimator {
            estimator.add(record);
        }
        if self.options.json && self.failed.is_none() {
            self.failed = self.json_line(record).err();
        }
        if !self.options.quiet {
            self.row(record);
        }
    }

    fn damaged(&mut self, depth: u32, error: &StoreError) {
        self.line(&format!(
            "warning: {error}; searching depth {depth} again, from the last intact depth"
        ));
    }
}

/// The counter of expanded wells that the bar shows; `None` before the first depth.
type Shown = Arc<Mutex<Option<Arc<AtomicU64>>>>;

const TEMPLATE: &str = "{spinner} {msg}  {wide_bar} {percent:>3}%  {human_pos}/{human_len} wells";

/// Prints a line on standard error.
fn line(text: &str) {
    // A write error is ignored, because there is no other place to report it.
    let _ = writeln!(io::stderr(), "{text}");
}

/// A progress bar that a thread updates.
struct Bar {
    bar: ProgressBar,
    shown: Shown,
    stop: Arc<AtomicBool>,
    updater: JoinHandle<()>,
}

impl Bar {
    fn new() -> Bar {
        let bar = ProgressBar::new(0);
        set_template(&bar, TEMPLATE);
        let shown = Shown::default();
        let stop = Arc::new(AtomicBool::new(false));
        let updater = std::thread::spawn({
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
            updater,
        }
    }

    fn begin(&self, parents: u64, expanded: &Arc<AtomicU64>, message: String) {
        self.bar.set_length(parents);
        self.bar.set_message(message);
        *lock(&self.shown) = Some(Arc::clone(expanded));
    }

    fn below(&self, lines: &str) {
        set_template(&self.bar, &format!("{TEMPLATE}\n{{prefix}}"));
        self.bar.set_prefix(lines.to_owned());
    }

    fn close(self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic of the updater is ignored, because the thread only draws.
        let _ = self.updater.join();
        self.bar.finish_and_clear();
    }
}

fn set_template(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

fn lock(shown: &Shown) -> MutexGuard<'_, Option<Arc<AtomicU64>>> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
