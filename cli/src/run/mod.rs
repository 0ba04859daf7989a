//! `hatebeam run` and `hatebeam resume`.

mod args;
#[cfg(feature = "cluster")]
mod counts;
#[cfg(feature = "cluster")]
mod hooks;
mod keep;
pub(crate) mod screen;
mod spec;

pub(crate) use args::{
    RESUME_EXAMPLES, RUN_EXAMPLES, ResumeArgs, RunArgs, kind_parser, parse_wells, quiescence_parser,
};
#[cfg(feature = "cluster")]
pub(crate) use args::{SpecArgs, parse_hours};
pub(crate) use keep::REPLAYS;
#[cfg(feature = "cluster")]
pub(crate) use spec::spec as spec_of;

use crate::interrupt;
use crate::machine::{available_memory, peak_rss};
use crate::output::{self, Failure, count};
use crate::state::State;
use anyhow::{Context, bail};
use args::HowArgs;
use hatebeam_game::{Encoding, Geometry, encode};
use hatebeam_runs::{
    EndReason, GameError, Limits, ProgressEstimator, Retention, Run, RunError, Settings, Start,
    best_game, end_in_words,
};
use hatebeam_store::{StoreError, free_bytes};
use keep::keep_game;
pub(crate) use screen::Screen;
use screen::{bytes, duration};
use serde::{Deserialize, Serialize};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Bytes of memory a well of width takes at most, and the process besides.
const MEMORY: (u64, u64) = (100, 200 << 20);
/// Bytes of disk a well takes in a table, roughly.
const WELL_ON_DISK: f64 = 12.0;
/// How many depths a run has, where nothing tells.
const DEPTHS: u32 = 300;

/// What there is to say of a run at its end; `--json` prints it as it is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    run: String,
    end: EndReason,
    /// Lines of the best game; `None` if it was not read back.
    #[serde(alias = "best_score")]
    best_lines: Option<u32>,
    /// Its pieces.
    pieces: Option<usize>,
    /// The last depth.
    depth: u32,
    /// The digest of its wells.
    digest: String,
    /// The best game in Base2048.
    replay: Option<String>,
    /// Its file.
    replay_file: Option<PathBuf>,
    /// All files of the game: the replay, its keys as letters, every well, a picture, a report.
    #[serde(default)]
    files: Vec<PathBuf>,
    /// The piece that HATETRIS changed in a better game, where there was one.
    parted_at: Option<usize>,
    /// Distinct children of each well, added up over all depths.
    children: u64,
    /// Seconds of searching, added up over all depths.
    seconds: f64,
    /// Seconds it took to read the best game back and to play it.
    replay_seconds: f64,
    peak_rss_bytes: Option<u64>,
    stored_bytes: u64,
    folder: PathBuf,
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
    let before = run
        .store()
        .result()
        .map(|result| serde_json::from_value::<Summary>(result.clone()));
    if let Some(Ok(summary)) = before
        && summary.end == EndReason::Over
    {
        return tell(&run, &summary, how);
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
            let summary = summarise_mended(&mut run, (end, threads), &name, &cancel)?;
            Ok((run, end, summary))
        });
    #[cfg(feature = "cluster")]
    tell_end(&hooks, &ended);
    let (mut run, end, summary) = ended?;
    if end == EndReason::Interrupted {
        if how.json {
            print_json(&summary)?;
        } else {
            output::note(format_args!(
                "run {name} stops after depth {}; go on with: hatebeam resume {name}",
                summary.depth
            ));
        }
        return Err(Failure::Interrupted.into());
    }
    tracing::info!(
        run = name,
        score = summary.best_lines,
        depth = summary.depth,
        end = summary.end.name(),
        "search ends"
    );
    run.store_mut().finish(&serde_json::to_value(&summary)?)?;
    tell(&run, &summary, how)
}

/// Tells those who want to know how a run ended.
#[cfg(feature = "cluster")]
fn tell_end(hooks: &hooks::Hooks, ended: &anyhow::Result<(Run, EndReason, Summary)>) {
    use hatebeam_notify::EventKind;
    match ended {
        Err(error) => hooks.tell(EventKind::Failed {
            reason: format!("{error:#}"),
        }),
        Ok((_, EndReason::Interrupted, _)) => hooks.tell(EventKind::Cancelled {}),
        Ok((run, _, summary)) => {
            let score = summary.best_lines.unwrap_or_else(|| most_lines(run));
            let what = EventKind::Finished {
                end: summary.end.name().to_owned(),
                pieces: summary.pieces.map(|pieces| pieces as u32),
                replay: summary.replay.clone(),
                files: summary
                    .files
                    .iter()
                    .map(|file| file.display().to_string())
                    .collect(),
            };
            hooks.tell_scored(score, what);
        }
    }
}

/// The most lines of any game of a run.
fn most_lines(run: &Run) -> u32 {
    let records = run.store().depths().iter();
    records
        .map(|record| u32::from(record.best_lines))
        .max()
        .unwrap_or(0)
}

/// The run's name as a person gives it.
fn name_of(dir: &Path) -> String {
    dir.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The same as [`summarise`]; if a depth turns out to be damaged, all that are damaged are made anew.
fn summarise_mended(
    run: &mut Run,
    (end, threads): (EndReason, usize),
    name: &str,
    cancel: &AtomicBool,
) -> anyhow::Result<Summary> {
    let error = match summarise(run, end, name) {
        Ok(summary) => return Ok(summary),
        Err(error) => error,
    };
    if !matches!(
        error.downcast_ref(),
        Some(GameError::Store(StoreError::DamagedDepth { .. }))
    ) {
        return Err(error);
    }
    output::warn(format_args!("{error:#}; what is damaged is made anew"));
    run.repair(threads, cancel)?;
    summarise(run, end, name)
}

/// Works out what there is to say of a run, and leaves the files of its best game.
fn summarise(run: &Run, end: EndReason, name: &str) -> anyhow::Result<Summary> {
    let started = std::time::Instant::now();
    let game = if end == EndReason::Interrupted {
        None
    } else {
        match best_game(run) {
            Err(GameError::Store(StoreError::Dropped { .. } | StoreError::TooMany { .. })) => None,
            game => Some(game?),
        }
    };
    let replay = game
        .as_ref()
        .map(|game| encode(&game.keys, Encoding::Base2048));
    let files = match &game {
        Some(game) => keep_game(run, name, game, end)?,
        None => Vec::new(),
    };
    let depths = run.store().depths();
    let last = depths.last().context("the run has no depth")?;
    Ok(Summary {
        run: name.to_owned(),
        end,
        best_lines: game.as_ref().map(|game| game.score),
        pieces: game.as_ref().map(|game| game.wells.len()),
        depth: last.depth,
        digest: last.digest.clone(),
        replay,
        replay_file: files.first().cloned(),
        files,
        parted_at: game.as_ref().and_then(|game| game.parted_at),
        children: depths.iter().map(|record| record.children).sum(),
        seconds: depths.iter().map(|record| record.seconds).sum(),
        replay_seconds: started.elapsed().as_secs_f64(),
        peak_rss_bytes: peak_rss(),
        stored_bytes: run.store().stored_bytes(),
        folder: run.store().dir().to_owned(),
    })
}

fn print_json(summary: &Summary) -> anyhow::Result<()> {
    output::print(&format_args!("{}\n", serde_json::to_string(summary)?))
}

/// Tells the result of a run.
fn tell(run: &Run, summary: &Summary, how: &HowArgs) -> anyhow::Result<()> {
    if let Some(piece) = summary.parted_at {
        output::warn(format_args!(
            "in a better game HATETRIS changes piece {piece}, because a well comes back; this is the \
             best game that holds"
        ));
    }
    if how.json {
        return print_json(summary);
    }
    output::print(&text(run, summary))
}

fn text(run: &Run, summary: &Summary) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| text.push_str(&format!("{name:<9} {value}\n"));
    match (&summary.best_lines, &summary.pieces) {
        (Some(score), Some(pieces)) => line(
            "score",
            format!(
                "{score} in {}, played through the exact rules{}",
                count(*pieces, "piece"),
                match run.spec().start {
                    Start::Well { .. } => " from the well that was given",
                    _ => "",
                }
            ),
        ),
        _ => line(
            "score",
            format!(
                "{} (no replay: the wells of too many depths were not kept)",
                most_lines(run)
            ),
        ),
    }
    let why = end_in_words(Some(summary.end));
    line("depth", format!("{}: {why}", summary.depth));
    line("digest", summary.digest.clone());
    line("children", summary.children.to_string());
    let seconds = Duration::from_secs_f64(summary.seconds.clamp(0.0, 1e12));
    let read_back = Duration::from_secs_f64(summary.replay_seconds.clamp(0.0, 1e12));
    line(
        "time",
        format!(
            "{}, and {} to read the game back",
            duration(seconds),
            duration(read_back)
        ),
    );
    if let Some(peak) = summary.peak_rss_bytes {
        line("memory", bytes(peak));
    }
    line("stored", bytes(summary.stored_bytes));
    line("folder", summary.folder.display().to_string());
    if let Some(file) = &summary.replay_file {
        line("replay", file.display().to_string());
    }
    let is_page = |file: &&PathBuf| file.extension().is_some_and(|ending| ending == "html");
    if let Some(page) = summary.files.iter().find(is_page) {
        line("report", page.display().to_string());
    }
    if let Some(replay) = &summary.replay {
        text.push_str(&format!("\n{}\n{replay}\n", picture(run)));
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
