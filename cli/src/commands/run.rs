//! `hatebeam run` and `hatebeam resume`: search a run on this machine.

use super::cluster::ObserveArgs;
use crate::args::{
    NetworkArgs, SpanArgs, ThreadsArgs, log_format_parser, parse_depth, parse_hours,
};
use crate::output::{self, CANNOT_WRITE, Failure};
use crate::spec::{SpecArgs, differences};
use crate::state::{StateArgs, damage_remedy, is_damage, name_of};
use anyhow::{Context, anyhow, bail};
use hatebeam_files::create_dir_durably;
use hatebeam_host::{available_memory, peak_memory, stop_flag};
use hatebeam_report::bytes;
use hatebeam_runs::{
    EndReason, GroupLimits, Limits, Observer, ProgressEstimator, Retention, Run, RunError, RunHead,
    RunSpec, SearchEnd, SearchResult, Settings, StateFolder, disk_needed, max_width, memory_needed,
    memory_of_loops, memory_of_quiescence, result_of,
};
use hatebeam_store::{StoreError, free_bytes};
use hatebeam_telemetry::{
    LogFormat, Logs, Observers, ProgressLine, ResultView, Screen, ScreenOptions,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};
use tracing::level_filters::LevelFilter;

/// Least number of depths for which a run without --max-depth needs disk space. Wide beams of the stronger networks have
/// more than the usual number.
const LEAST_DEPTHS: u32 = 300;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("run"))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    spec: SpecArgs,
    /// Name of the run [default: derived from its specification]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    name: Option<String>,
    #[command(flatten)]
    search: SearchArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help!("resume"))]
pub(crate) struct ResumeArgs {
    /// Name of the run, the beginning of the name, or the path of the run's folder
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    search: SearchArgs,
}

/// Arguments for the search of a run and its output.
#[derive(Debug, clap::Args)]
struct SearchArgs {
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Stop at this depth, which includes the pieces placed before the start; the run can be resumed with a higher
    /// limit [default: no limit]
    #[arg(long, value_name = "PIECES", value_parser = parse_depth)]
    max_depth: Option<u32>,
    /// Stop after this many hours of searching in total, and read back the best game; the run can be resumed with a
    /// higher limit [default: no limit]
    #[arg(long, value_name = "HOURS", value_parser = parse_hours)]
    max_hours: Option<f64>,
    /// Depths whose wells are kept on disk: all; a number N from 2 to 6 for every Nth depth; or last for only the last
    /// depth, from which no game can be read back. The setting is stored with the run; for an existing run, it applies from
    /// its last depth on [default: all for a new run, 4 if it has more than 100 million wells; the stored setting for an
    /// existing run]
    #[arg(long, value_name = "DEPTHS")]
    keep: Option<Retention>,
    /// Start even if there seems to be too little memory or disk space
    #[arg(long)]
    ignore_limits: bool,
    #[command(flatten)]
    state: StateArgs,
    /// Print one JSON object per depth, and one object for the run
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    /// Log to standard error in this format instead of showing progress; the variable HATEBEAM_LOG selects levels and
    /// modules, such as debug or hatebeam_store=debug
    #[arg(long, value_name = "FORMAT", value_parser = log_format_parser())]
    log_format: Option<LogFormat>,
    #[command(flatten)]
    spans: SpanArgs,
    #[command(flatten)]
    observe: ObserveArgs,
}

/// Parses a run name, which must also be a valid folder name.
fn parse_name(text: &str) -> Result<String, String> {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if (1..=100).contains(&text.len()) && !text.starts_with('.') && text.chars().all(is_allowed) {
        return Ok(text.to_owned());
    }
    Err("a name has 1 to 100 letters, digits, dots, dashes and underscores, and does not begin with a dot".to_owned())
}

impl RunArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let _logs = self.search.start()?;
        let spec = self.spec.spec()?;
        let state = self.search.state.state()?;
        let name = self.name.clone().unwrap_or_else(|| spec.name());
        let dir = state.runs().join(&name);
        if !dir.exists() {
            self.search.check_limits(&spec, &state)?;
        }
        create_dir_durably(&state.runs()).map_err(StoreError::io(&state.runs()))?;
        let run = match Run::open_or_create(&dir, &spec, self.search.keep) {
            Err(RunError::OtherSpec { .. }) => {
                let existing = RunHead::read(&dir)?.spec;
                let selecting = self.search.state.selecting(&dir);
                bail!(
                    "run {name} has {}: pass another --name, or remove it with `hatebeam runs rm {selecting}`",
                    differences(&existing, &spec)
                );
            }
            Err(RunError::Store(StoreError::Exists { .. })) => {
                let selecting = self.search.state.selecting(&dir);
                bail!(
                    "{} is not empty, but contains no run: remove it with `hatebeam runs rm {selecting}`, or pass another \
                     --name",
                    dir.display()
                );
            }
            Err(RunError::Store(error)) if is_damage(&error) => {
                let remedy = damage_remedy(&self.search.state.selecting(&dir));
                bail!("{error}: {remedy}, or pass another --name");
            }
            run => opened(run, &self.search.state, &dir)?,
        };
        self.search.search(run)
    }
}

impl ResumeArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let _logs = self.search.start()?;
        let dir = self.search.state.state()?.find(&self.run)?;
        let state = &self.search.state;
        let head = RunHead::read(&dir).map_err(|error| state.opening_error(error, &dir))?;
        self.network.load(head.spec.evaluator.kind)?;
        let is_over = |result: &SearchResult| result.end == EndReason::Over;
        if head.result.as_ref().is_some_and(is_over) {
            let run = opened(Run::open_read_only(&dir), state, &dir)?;
            if let Some(result) = final_result(&run) {
                return self.search.print(&run, &result);
            }
        }
        // A run that this program cannot search is not opened, because that converts a run with an older format.
        head.check_search()?;
        let opening = Run::open(&dir, self.search.keep);
        let run = opened(opening, state, &dir)?;
        self.search.search(run)
    }
}

/// Returns the result of a run that needs no further search. A result without a game is not final while a repair can restore
/// tables that the game needs.
fn final_result(run: &Run) -> Option<SearchResult> {
    let result = result_of(run.store()).filter(|result| result.end == EndReason::Over)?;
    (result.game.is_some() || run.missing().next().is_none()).then_some(result)
}

/// Adds the remedy to an error of opening the run in `dir`.
fn opened(run: Result<Run, RunError>, state: &StateArgs, dir: &Path) -> anyhow::Result<Run> {
    let selecting = state.selecting(dir);
    match run {
        Err(error @ RunError::Store(StoreError::InUse { .. })) => bail!(
            "{error}: wait for it, stop it, or inspect the run with `hatebeam runs show {selecting}`"
        ),
        Err(error @ RunError::Store(StoreError::DiskFull { .. })) => bail!(
            "{error}, and all committed depths are intact: free some disk space, then resume the run with `hatebeam \
             resume {selecting}`"
        ),
        run => run.map_err(|error| state.opening_error(error, dir)),
    }
}

impl SearchArgs {
    /// Checks the arguments and starts the log. The default level is `INFO` with --log-format, and `WARN` without it.
    fn start(&self) -> anyhow::Result<Logs> {
        self.observe.check()?;
        let level = self
            .log_format
            .map_or(LevelFilter::WARN, |_| LevelFilter::INFO);
        let format = self.log_format.unwrap_or_default();
        self.spans.start_logs(format, level, "run")
    }

    fn has_notes(&self) -> bool {
        !self.json && !self.is_quiet()
    }

    fn is_quiet(&self) -> bool {
        self.quiet || self.log_format.is_some()
    }

    /// Returns an error if a new run does not fit in memory or on the disk, unless --ignore-limits is given.
    fn check_limits(&self, spec: &RunSpec, state: &StateFolder) -> anyhow::Result<()> {
        let width = spec.width;
        let keep = self.keep.unwrap_or_else(|| spec.default_keep());
        spec.check_keep(keep)?;
        let threads = self.threads.count();
        let least = memory_needed(width, threads);
        let memory = least
            + memory_of_loops(width, spec.loops)
            + memory_of_quiescence(width, spec.evaluator.quiescence);
        let depths = self
            .max_depth
            .map_or_else(
                || spec.loops.usual_depths().max(LEAST_DEPTHS),
                |max| max.saturating_sub(spec.start_depth()),
            )
            .max(1);
        let disk = |keep| disk_needed(width, depths, keep);
        let free = free_bytes(state.root())?;
        if self.has_notes() {
            output::note(format_args!(
                "a run of width {width} needs up to {} of memory, and {} of disk for {depths} depths; {} of disk is free",
                bytes(memory),
                bytes(disk(keep)),
                bytes(free)
            ));
        }
        if self.ignore_limits {
            return Ok(());
        }
        if let Some(available) = available_memory()
            && memory > available
        {
            let most = max_width(available, threads) as f64;
            let fits = (most * least as f64 / memory as f64) as u64;
            let (needed, available) = (bytes(memory), bytes(available));
            bail!(
                "a run of width {width} needs {needed} of memory, and {available} is available: {}",
                memory_remedy(fits)
            );
        }
        if disk(keep) > free {
            bail!(
                "{depths} depths of {width} wells need {} of disk, and {} is free in {}: {}name another \
                 folder with --state, or pass --max-depth or --ignore-limits (a full disk damages no committed depth)",
                bytes(disk(keep)),
                bytes(free),
                state.root().display(),
                keep_remedy(spec, keep, depths, free)
            );
        }
        Ok(())
    }

    /// Searches a run until it ends or reaches a limit, and prints its result. If the run is already finished, only
    /// prints its result.
    fn search(&self, run: Run) -> anyhow::Result<()> {
        let name = name_of(run.store().dir());
        let selecting = self.state.selecting(run.store().dir());
        if let Some(result) = final_result(&run) {
            return self.print(&run, &result);
        }
        let settings = Settings {
            threads: self.threads.count(),
            limits: self.limits(),
            group: GroupLimits::default(),
        };
        let _inside = tracing::info_span!("run", run = name).entered();
        tracing::info!(run = name, threads = settings.threads, "started the search");
        let cancel = stop_flag()?;
        let mut observers = self.observers(&run, &name)?;
        let searched = run.search(&settings, &cancel, &mut observers);
        // A write error is returned only at the end, so that a closed standard output does not prevent a result.
        let screen = observers.screen.take();
        let written = screen.map_or(Ok(()), |mut screen| screen.close());
        let ended = searched
            .map_err(|error| {
                let error = anyhow::Error::from(error);
                anyhow!(
                    "run {name} stopped: {error:#}; all committed depths are intact: resume it with `hatebeam resume \
                     {selecting}`"
                )
            })
            .and_then(|(mut run, end)| {
                let result = self.conclude(&mut run, end, &name, &cancel)?;
                Ok((run, result))
            });
        match &ended {
            Ok((_, result)) => observers.ended(Ok(result)),
            Err(error) => observers.ended(Err(&format!("{error:#}"))),
        }
        let (mut run, result) = ended?;
        if result.end == EndReason::Interrupted {
            return self.interrupted(&run, &result);
        }
        tracing::info!(
            run = name,
            best_lines = result.game.as_ref().map(|game| game.lines),
            depth = result.depth,
            end = result.end.name(),
            "finished the search"
        );
        run.set_result(&result)?;
        written.context(CANNOT_WRITE)?;
        self.print(&run, &result)
    }

    /// Reads back and saves the best game, and returns the result.
    fn conclude(
        &self,
        run: &mut Run,
        end: EndReason,
        name: &str,
        cancel: &AtomicBool,
    ) -> anyhow::Result<SearchResult> {
        let progress = Arc::<AtomicU32>::default();
        let _line = self.has_notes().then(|| reading_line(run, &progress));
        let end = SearchEnd {
            name,
            end,
            now: SystemTime::now(),
            threads: self.threads.count(),
            cancel,
            progress: &progress,
            peak_memory: peak_memory(),
        };
        Ok(run.conclude(&end, &mut |warning| output::warn(warning))?)
    }

    fn limits(&self) -> Limits {
        let hours = self.max_hours;
        Limits {
            max_depth: self.max_depth,
            max_cost: None,
            max_time: hours.map(|hours| Duration::from_secs_f64(hours * 3600.0)),
        }
    }

    fn observers(&self, run: &Run, name: &str) -> anyhow::Result<Observers> {
        let depths = run.store().depths();
        if let Some(last) = depths.last()
            && self.has_notes()
        {
            let depth = last.depth;
            output::note(match self.max_depth {
                Some(max) if max <= depth => {
                    format!(
                        "the run is already at depth {depth}: pass a greater --max-depth to continue it"
                    )
                }
                _ => format!("resuming run {name} after depth {depth}"),
            });
        }
        let screen = Screen::new(ScreenOptions {
            json: self.json,
            quiet: self.is_quiet(),
            estimator: Some(ProgressEstimator::new(run.spec(), self.max_depth)),
            stored: depths.iter().map(|record| record.bytes).sum(),
        });
        let mut observers = self.observe.start(run, name)?;
        if let Some(url) = &observers.metrics_url
            && self.has_notes()
        {
            output::note(format_args!("metrics at {url}"));
        }
        observers.screen = Some(screen);
        Ok(observers)
    }

    fn interrupted(&self, run: &Run, result: &SearchResult) -> anyhow::Result<()> {
        if self.json {
            let printed = output::print_json(&ResultView::new(result, run.store().dir()));
            if let Err(error) = printed {
                output::warn(format_args!("{error:#}"));
            }
        } else {
            let selecting = self.state.selecting(run.store().dir());
            output::note(format_args!(
                "run {} stopped after depth {}; resume it with: hatebeam resume {selecting}",
                result.run, result.depth
            ));
        }
        Err(Failure::Interrupted.into())
    }

    fn print(&self, run: &Run, result: &SearchResult) -> anyhow::Result<()> {
        let result = ResultView::new(result, run.store().dir());
        if let Some(piece) = result.parted_at {
            output::warn(format_args!(
                "found a better game, but HATETRIS would replace its piece {piece} because a well repeats; the result is \
                 the best game that HATETRIS allows; --loops exact searches with the loop rule"
            ));
        }
        if self.json {
            return output::print_json(&result);
        }
        output::print(result.text(run))
    }
}

/// Returns the remedy for a run that does not fit in memory. `fits` is the greatest width that does.
fn memory_remedy(fits: u64) -> String {
    match fits {
        0 => "this does not suffice for any width; free some memory, or pass --ignore-limits"
            .to_owned(),
        fits => format!("pass --width {fits} or less, or --ignore-limits"),
    }
}

/// Returns the part of a remedy that suggests a retention rule with which a run fits on a disk with `free` bytes. It is empty
/// if the run accepts no such rule.
fn keep_remedy(spec: &RunSpec, keep: Retention, depths: u32, free: u64) -> String {
    let disk = |keep| disk_needed(spec.width, depths, keep);
    let fits = |other: &Retention| {
        let is_smaller = other.share(depths) < keep.share(depths) && disk(*other) <= free;
        is_smaller && spec.check_keep(*other).is_ok()
    };
    let all = [2, 4, 6].map(Retention::Every);
    let alternative = all.into_iter().chain([Retention::Last]).find(fits);
    alternative.map_or(String::new(), |keep| {
        let limitation = match keep {
            Retention::Last => " (no game can then be read back)",
            _ => "",
        };
        format!("pass --keep {keep} for {}{limitation}, ", bytes(disk(keep)))
    })
}

/// Shows how far reading the best game back has come. With few columns, a well has thousands of possible parents, so
/// reading back can take minutes.
fn reading_line(run: &Run, progress: &Arc<AtomicU32>) -> ProgressLine {
    let last = run.store().depths().last().map_or(0, |last| last.depth);
    let progress = Arc::clone(progress);
    ProgressLine::start(move || match progress.load(Ordering::Relaxed) {
        0 => String::new(),
        depth => format!("reading back the best game: depth {depth} of {last}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_runs::LoopRule;
    use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Quiescence};

    #[test]
    fn remedy_for_too_little_memory_names_only_possible_widths() {
        assert_eq!(
            memory_remedy(7),
            "pass --width 7 or less, or --ignore-limits"
        );
        assert!(!memory_remedy(0).contains("--width"));
    }

    #[test]
    fn remedy_for_full_disk_names_only_rules_that_the_run_accepts() {
        let evaluator = EvaluatorSpec::new(EvaluatorKind::Plain, Quiescence::Off);
        let mut spec = RunSpec::new(1_000_000, evaluator);
        let free = |keep| disk_needed(spec.width, 300, keep);
        let (quarter, last) = (free(Retention::Every(4)), free(Retention::Last));
        let remedy = keep_remedy(&spec, Retention::All, 300, quarter);
        assert!(remedy.starts_with("pass --keep 4 for "), "{remedy}");
        let remedy = keep_remedy(&spec, Retention::All, 300, last);
        assert!(remedy.contains("--keep last"), "{remedy}");
        assert!(remedy.contains("no game can then be read back"), "{remedy}");
        spec.loops = LoopRule::Exact;
        assert_eq!(keep_remedy(&spec, Retention::All, 300, quarter), "");
    }

    #[test]
    fn parse_name_accepts_only_plain_folder_names() {
        assert!(parse_name("my-run_2.1").is_ok());
        for text in ["", ".", "..", "a/b", "/a", ".a", "a b", "ä"] {
            assert!(parse_name(text).is_err(), "{text}");
        }
    }
}
