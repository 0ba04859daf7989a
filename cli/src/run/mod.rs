//! `hatebeam run` and `hatebeam resume`.

mod args;
#[cfg(feature = "cluster")]
mod counts;
#[cfg(feature = "cluster")]
mod hooks;
pub(crate) mod screen;
mod spec;

pub(crate) use args::{
    RESUME_EXAMPLES, RUN_EXAMPLES, ResumeArgs, RunArgs, kind_parser, parse_wells, quiescence_parser,
};
#[cfg(feature = "cluster")]
pub(crate) use args::{SpecArgs, parse_hours};
#[cfg(feature = "cluster")]
pub(crate) use spec::spec as spec_of;

use crate::interrupt;
use crate::machine::{available_memory, peak_rss};
use crate::output::{self, Failure, count};
use crate::state::State;
use anyhow::{Context, bail};
use args::HowArgs;
use hatebeam_game::Geometry;
use hatebeam_report::GameFile;
use hatebeam_runs::{
    EndReason, GameError, Limits, ProgressEstimator, Retention, Run, RunError, SearchResult,
    Settings, Start, best_game, end_in_words, result_of,
};
use hatebeam_store::{StoreError, free_bytes};
pub(crate) use screen::Screen;
use screen::{bytes, duration};
use serde::Serialize;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

/// Bytes of memory a well of width takes at most, and the process besides.
const MEMORY: (u64, u64) = (100, 200 << 20);
/// Bytes of disk a well takes in a table, roughly.
const WELL_ON_DISK: f64 = 12.0;
/// How many depths a run has, where nothing tells.
const DEPTHS: u32 = 300;

/// The result of a run as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct ResultJson<'a> {
    run: &'a str,
    end: EndReason,
    /// Lines of the best game; `None` if it was not read back.
    best_lines: Option<u32>,
    pieces: Option<u32>,
    depth: u32,
    digest: &'a str,
    /// The best game in Base2048.
    replay: Option<&'a str>,
    replay_file: Option<PathBuf>,
    /// Files of the game: the replay, its keys as letters, every well, a picture, a report.
    files: Vec<PathBuf>,
    /// The piece that HATETRIS changed in a better game.
    parted_at: Option<usize>,
    /// Children of all depths.
    children: u64,
    /// Seconds of searching.
    seconds: f64,
    /// Seconds that reading the best game back took.
    replay_seconds: f64,
    peak_rss_bytes: Option<u64>,
    stored_bytes: u64,
    folder: &'a Path,
}

impl<'a> ResultJson<'a> {
    /// The result of the run in this folder.
    pub(crate) fn new(result: &'a SearchResult, folder: &'a Path) -> ResultJson<'a> {
        let game = result.game.as_ref();
        let files = files_of(result, folder);
        ResultJson {
            run: &result.run,
            end: result.end,
            best_lines: game.map(|game| game.lines),
            pieces: game.map(|game| game.pieces),
            depth: result.depth,
            digest: &result.digest,
            replay: game.map(|game| game.replay.as_str()),
            replay_file: files.first().cloned(),
            files,
            parted_at: game.and_then(|game| game.parted_at),
            children: result.children,
            seconds: result.seconds,
            replay_seconds: game.map_or(0.0, |game| game.seconds),
            peak_rss_bytes: result.peak_rss_bytes,
            stored_bytes: result.stored_bytes,
            folder,
        }
    }
}

/// The files of a run's best game.
pub(crate) fn files_of(result: &SearchResult, folder: &Path) -> Vec<PathBuf> {
    let files = result.game.iter().flat_map(|game| &game.files);
    files.map(|file| folder.join(file)).collect()
}

/// Runs `hatebeam run`.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<()> {
    let _logs = args.how.start_logs()?;
    args.how.check()?;
    let spec = spec::spec(&args.what)?;
    let state = args.how.state.state()?;
    let name = args.name.clone().unwrap_or_else(|| spec.name());
    let dir = state.runs().join(&name);
    let is_new = !dir.exists();
    if is_new {
        check_limits(
            spec.width,
            spec.start_depth(),
            &args.how,
            args.how.keep,
            &state,
        )?;
    }
    fs::create_dir_all(state.runs())
        .with_context(|| format!("cannot keep runs in {}", state.runs().display()))?;
    let run = match Run::open_or_create(&dir, &spec, args.how.keep) {
        Err(error @ RunError::OtherSpec { .. }) => {
            return Err(error)
                .context("give the run another --name, or remove the one that lies there");
        }
        run => opened(run, &name)?,
    };
    search(run, &args.how)
}

/// Runs `hatebeam resume`.
pub(crate) fn resume(args: &ResumeArgs) -> anyhow::Result<()> {
    let _logs = args.how.start_logs()?;
    args.how.check()?;
    let state = args.how.state.state()?;
    let dir = state.find(&args.run)?;
    let run = opened(Run::open(&dir, args.how.keep), &args.run)?;
    search(run, &args.how)
}

fn opened(run: Result<Run, RunError>, name: &str) -> anyhow::Result<Run> {
    match run {
        Err(error @ RunError::Store(StoreError::InUse { .. })) => Err(error).context(format!(
            "another process searches it: wait for it, or stop it; `hatebeam runs show {name}` can look \
             at it meanwhile"
        )),
        Err(error @ RunError::Store(StoreError::DiskFull { .. })) => Err(error).context(format!(
            "nothing that was committed is lost; make room, and go on with: hatebeam resume {name}"
        )),
        run => Ok(run?),
    }
}

/// Refuses what cannot fit, before it has begun.
fn check_limits(
    width: u64,
    start: u32,
    how: &HowArgs,
    keep: Option<Retention>,
    state: &State,
) -> anyhow::Result<()> {
    let memory = width * MEMORY.0 + MEMORY.1;
    let depths = how
        .max_depth
        .map_or(DEPTHS, |max| max.saturating_sub(start))
        .max(1);
    let disk = |keep: Retention| {
        (width as f64 * WELL_ON_DISK * f64::from(depths) * keep.share(depths)) as u64
    };
    let keep = keep.unwrap_or(Retention::All);
    let free = free_bytes(state.root())?;
    if !how.is_quiet() && !how.json {
        output::note(format_args!(
            "a run of {width} wells takes up to {} of memory, and {} of disk if it has {depths} depths; {} are free",
            bytes(memory),
            bytes(disk(keep)),
            bytes(free)
        ));
    }
    if how.ignore_limits {
        return Ok(());
    }
    if let Some(available) = available_memory()
        && memory > available
    {
        let most = widest(available);
        bail!(
            "a width of {width} needs {} of memory, and {} are available: --width {most} fits \
             (--ignore-limits starts anyway)",
            bytes(memory),
            bytes(available)
        );
    }
    if disk(keep) > free {
        let thriftier = [
            Retention::Every(2),
            Retention::Every(4),
            Retention::Every(6),
            Retention::Last,
        ]
        .into_iter()
        .find(|&other| other.share(depths) < keep.share(depths) && disk(other) <= free);
        let way_out = thriftier.map_or(String::new(), |keep| {
            format!("--keep {keep} takes {}; ", bytes(disk(keep)))
        });
        bail!(
            "{depths} depths of {width} wells take {} of disk, and {} are free in {}: {way_out}--state \
             names another folder (--ignore-limits starts anyway; a full disk loses nothing committed)",
            bytes(disk(keep)),
            bytes(free),
            state.root().display()
        );
    }
    Ok(())
}

/// The widest beam that fits into so much memory.
pub(crate) fn widest(available: u64) -> u64 {
    available.saturating_sub(MEMORY.1) / MEMORY.0
}

fn search(run: Run, how: &HowArgs) -> anyhow::Result<()> {
    let threads = how.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        usize::from,
    );
    let settings = Settings {
        threads,
        limits: Limits {
            max_depth: how.max_depth,
            max_cost: None,
            max_time: how
                .max_hours
                .map(|hours| Duration::from_secs_f64(hours * 3600.0)),
        },
    };
    let name = name_of(run.store().dir());
    // A run that is over has nothing to search.
    if let Some(result) = result_of(run.store())
        && result.end == EndReason::Over
    {
        return tell(&run, &result, how);
    }
    let _inside = tracing::info_span!("run", run = name).entered();
    tracing::info!(run = name, threads, "search begins");
    let cancel = interrupt::flag()?;
    let depths = run.store().depths();
    let stored = depths.iter().map(|record| record.bytes).sum();
    if let Some(last) = depths.last()
        && !how.json
        && !how.is_quiet()
    {
        output::note(format_args!(
            "run {name} goes on after depth {}",
            last.depth
        ));
    }
    let pace = ProgressEstimator::new(run.spec(), how.max_depth);
    let mut screen = Screen::new(how.json, how.is_quiet(), Some(pace), stored);
    #[cfg(feature = "cluster")]
    let (searched, hooks) = {
        let registry = hatebeam_metrics::Registry::default();
        let mut counts = counts::Counts::new(&registry, &run, &name, &mut screen);
        let tell = !how.json && !how.is_quiet();
        how.metrics.serve_apart(&registry, tell)?;
        let mut hooks = hooks::Hooks::start(&how.hooks, &run, &name)?;
        let searched = run.search(&settings, &cancel, &mut hooks.observe(&mut counts));
        (searched, hooks)
    };
    #[cfg(not(feature = "cluster"))]
    let searched = run.search(&settings, &cancel, &mut screen);
    screen.close()?;
    let ended = searched
        .with_context(|| {
            format!(
                "run {name} stops here, with all that was committed; go on with: hatebeam resume {name}"
            )
        })
        .and_then(|(mut run, end)| {
            let result = conclude(&mut run, end, &name, threads, &cancel)?;
            Ok((run, result))
        });
    #[cfg(feature = "cluster")]
    tell_end(&hooks, &ended);
    let (mut run, result) = ended?;
    if result.end == EndReason::Interrupted {
        if how.json {
            print_json(&run, &result)?;
        } else {
            output::note(format_args!(
                "run {name} stops after depth {}; go on with: hatebeam resume {name}",
                result.depth
            ));
        }
        return Err(Failure::Interrupted.into());
    }
    tracing::info!(
        run = name,
        score = result.game.as_ref().map(|game| game.lines),
        depth = result.depth,
        end = result.end.name(),
        "search ends"
    );
    run.set_result(&result)?;
    tell(&run, &result, how)
}

/// Tells those who want to know how a run ended.
#[cfg(feature = "cluster")]
fn tell_end(hooks: &hooks::Hooks, ended: &anyhow::Result<(Run, SearchResult)>) {
    use hatebeam_notify::EventKind;
    match ended {
        Err(error) => hooks.send(EventKind::Failed {
            reason: format!("{error:#}"),
        }),
        Ok((_, result)) if result.end == EndReason::Interrupted => {
            hooks.send(EventKind::Cancelled {});
        }
        Ok((run, result)) => {
            let game = result.game.as_ref();
            let score = game.map_or_else(|| run.best_lines(), |game| game.lines);
            let what = EventKind::Finished {
                end: result.end.name().to_owned(),
                pieces: game.map(|game| game.pieces),
                replay: game.map(|game| game.replay.clone()),
                files: files_of(result, run.store().dir())
                    .iter()
                    .map(|file| file.display().to_string())
                    .collect(),
            };
            hooks.send_with_lines(score, what);
        }
    }
}

/// The run's name as a person gives it.
fn name_of(dir: &Path) -> String {
    dir.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Reads the best game back, saves its files and returns the result. Repairs the run if its tables are damaged.
fn conclude(
    run: &mut Run,
    end: EndReason,
    name: &str,
    threads: usize,
    cancel: &AtomicBool,
) -> anyhow::Result<SearchResult> {
    let started = Instant::now();
    let mut read = None;
    if end != EndReason::Interrupted {
        let mut game = best_game(run);
        if let Err(error @ GameError::Store(StoreError::DamagedDepth { .. })) = game {
            output::warn(format_args!(
                "{:#}; repairing it",
                anyhow::Error::from(error)
            ));
            run.repair(threads, cancel)?;
            game = best_game(run);
        }
        read = match game {
            Err(error) if error.is_dropped() => None,
            game => Some(game?),
        };
    }
    let skip = &mut |file: &GameFile, error: StoreError| {
        output::warn(format_args!("cannot write {}: {error}", file.name));
    };
    let game = match &read {
        Some(game) => {
            let (took, now) = (started.elapsed(), SystemTime::now());
            Some(run.save_game(name, game, end, took, now, skip)?)
        }
        None => None,
    };
    let result = run.summarize(name, end, game, peak_rss());
    result.context("the run has no depth")
}

fn print_json(run: &Run, result: &SearchResult) -> anyhow::Result<()> {
    let json = serde_json::to_string(&ResultJson::new(result, run.store().dir()))?;
    output::print(&format_args!("{json}\n"))
}

/// Tells the result of a run.
fn tell(run: &Run, result: &SearchResult, how: &HowArgs) -> anyhow::Result<()> {
    if let Some(piece) = result.game.as_ref().and_then(|game| game.parted_at) {
        output::warn(format_args!(
            "in a better game HATETRIS changes piece {piece}, because a well comes back; this is the \
             best game that holds"
        ));
    }
    if how.json {
        return print_json(run, result);
    }
    output::print(&text(run, result))
}

fn text(run: &Run, result: &SearchResult) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| text.push_str(&format!("{name:<9} {value}\n"));
    match &result.game {
        Some(game) => line(
            "score",
            format!(
                "{} in {}, played through the exact rules{}",
                game.lines,
                count(game.pieces as usize, "piece"),
                match run.spec().start {
                    Start::Well { .. } => " from the well that was given",
                    _ => "",
                }
            ),
        ),
        None => line(
            "score",
            format!(
                "{} (no replay: the wells of too many depths were not kept)",
                run.best_lines()
            ),
        ),
    }
    let why = end_in_words(Some(result.end));
    line("depth", format!("{}: {why}", result.depth));
    line("digest", result.digest.clone());
    line("children", result.children.to_string());
    let seconds = |seconds: f64| duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e12)));
    let read_back = result.game.as_ref().map(|game| game.seconds);
    line(
        "time",
        format!(
            "{}, and {} to read the game back",
            seconds(result.seconds),
            seconds(read_back.unwrap_or_default())
        ),
    );
    if let Some(peak) = result.peak_rss_bytes {
        line("memory", bytes(peak));
    }
    line("stored", bytes(result.stored_bytes));
    let folder = run.store().dir();
    line("folder", folder.display().to_string());
    let files = files_of(result, folder);
    if let Some(file) = files.first() {
        line("replay", file.display().to_string());
    }
    let is_page = |file: &&PathBuf| file.extension().is_some_and(|ending| ending == "html");
    if let Some(page) = files.iter().find(is_page) {
        line("report", page.display().to_string());
    }
    if let Some(game) = &result.game {
        text.push_str(&format!("\n{}\n{}\n", picture(run), game.replay));
    }
    text
}

/// The well with the most lines, as it was when it had them.
fn picture(run: &Run) -> String {
    let geometry: Geometry = run.store().geometry();
    let best = run
        .store()
        .depths()
        .iter()
        .max_by_key(|record| (record.best_lines, record.depth));
    let well =
        best.and_then(|record| hatebeam_game::Well::from_hex(geometry, &record.best_well).ok());
    well.map_or_else(String::new, |well| well.picture(geometry))
}
