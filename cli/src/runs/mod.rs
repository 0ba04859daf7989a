//! `hatebeam runs`: what runs there are, one of them, away with one, and a report of one.

mod report;

#[cfg(feature = "cluster")]
use crate::cluster::{FromStoreArgs, list_stored, show_stored};
use crate::output::{self, Failure};
use crate::run::screen::{bytes, duration};
use crate::run::{ResultJson, files_of};
use crate::state::StateArgs;
use anyhow::{Context, bail};
use clap::Subcommand;
use hatebeam_runs::{REPLAYS, Run, end_in_words, result_of};
use hatebeam_store::{DepthRecord, RunStore, list_runs};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) const RUNS_EXAMPLES: &str = "\
A run is named as `hatebeam runs` lists it, by the beginning of that name, or by the path of its folder.
All but `rm` can look at a run that another process is searching. The runs of a coordinator are in its object
store: --store looks there, whether there is a coordinator or not.

Examples:
  hatebeam runs
  hatebeam runs show patterns-1000000
  hatebeam runs show patterns-1000000 --verify
  hatebeam runs report patterns-1000000 --out report.html
  hatebeam runs repair patterns-1000000
  hatebeam runs rm patterns-1000-686dc88d --yes
  hatebeam runs --store s3://bucket/hatebeam
  hatebeam runs show patterns-25000000 --store s3://bucket/hatebeam";

const LIST_EXAMPLES: &str = "\
Examples:
  hatebeam runs list
  hatebeam runs list --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  hatebeam runs show patterns-1000000
  hatebeam runs show patterns-1000000 --verify";

const REPORT_EXAMPLES: &str = "\
Examples:
  hatebeam runs report patterns-1000000
  hatebeam runs report patterns-1000000 --out report.html";

const REPAIR_EXAMPLES: &str = "\
Examples:
  hatebeam runs repair patterns-1000000
  hatebeam runs repair patterns-1000000 --threads 8 --json";

const RM_EXAMPLES: &str = "\
Examples:
  hatebeam runs rm patterns-1000-686dc88d
  hatebeam runs rm patterns-1000-686dc88d --yes";

/// `hatebeam runs`, without a subcommand `list`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List the runs
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Show a run: what is searched, how far it is, its depths
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Write a run's plots and its best game into one HTML file
    #[command(after_help = REPORT_EXAMPLES)]
    Report(report::ReportArgs),
    /// Read all that a run stored, and make anew what is damaged
    #[command(after_help = REPAIR_EXAMPLES)]
    Repair(RepairArgs),
    /// Remove a run and all that it stored, but for its replay
    #[command(after_help = RM_EXAMPLES)]
    Rm(RmArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    state: StateArgs,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    from: FromStoreArgs,
    /// Print a line of JSON for each run
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    /// Read all that is stored and check it
    #[arg(long)]
    #[cfg_attr(feature = "cluster", arg(conflicts_with = "store"))]
    verify: bool,
    #[command(flatten)]
    state: StateArgs,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    from: FromStoreArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct RepairArgs {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    state: StateArgs,
    /// Threads that search [default: one a core]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct RmArgs {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    state: StateArgs,
}

/// Runs `hatebeam runs`.
pub(crate) fn runs(args: &RunsArgs) -> anyhow::Result<()> {
    match &args.command {
        None => list(&args.list),
        Some(RunsCommand::List(args)) => list(args),
        Some(RunsCommand::Show(args)) => show(args),
        Some(RunsCommand::Report(args)) => report::report(args),
        Some(RunsCommand::Repair(args)) => repair(args),
        Some(RunsCommand::Rm(args)) => remove(args),
    }
}

/// A run in a list.
#[derive(Debug, Serialize)]
struct Line {
    run: String,
    /// `over`, or as far as it is.
    end: String,
    depth: Option<u32>,
    best_lines: u16,
    width: Option<u64>,
    stored_bytes: u64,
    folder: String,
}

fn line(dir: &Path, name: &str) -> Option<Line> {
    // One that cannot be opened is listed all the same: somebody may want to remove it.
    let store = RunStore::open_read_only(dir).ok();
    let depths = store.as_ref().map_or(&[][..], RunStore::depths);
    let end = store.as_ref().map(|store| match result_of(store) {
        Some(result) => result.end.name().to_owned(),
        None => end_in_words(None).to_owned(),
    });
    Some(Line {
        run: name.to_owned(),
        end: end.unwrap_or_else(|| "cannot be read".to_owned()),
        depth: depths.last().map(|record| record.depth),
        best_lines: depths
            .iter()
            .map(|record| record.best_lines)
            .max()
            .unwrap_or(0),
        width: store
            .as_ref()
            .and_then(|store| store.spec()["search"]["width"].as_u64()),
        stored_bytes: store.as_ref().map_or(0, RunStore::stored_bytes),
        folder: dir.display().to_string(),
    })
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    #[cfg(feature = "cluster")]
    if args.from.store.is_some() {
        return list_stored(&args.from, args.json);
    }
    let folder = args.state.state()?.runs();
    let lines: Vec<Line> = list_runs(&folder)
        .iter()
        .filter_map(|summary| line(&summary.dir, &summary.name))
        .collect();
    if args.json {
        for line in &lines {
            output::print(&format_args!("{}\n", serde_json::to_string(line)?))?;
        }
        return Ok(());
    }
    if lines.is_empty() {
        output::note(format_args!(
            "there are no runs in {}; `hatebeam run` makes one",
            folder.display()
        ));
        return Ok(());
    }
    let longest = lines.iter().map(|line| line.run.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:<longest$}  {:>6}  {:>6}  {:>9}  end\n",
        "run", "lines", "depth", "stored"
    );
    for line in &lines {
        let depth = line.depth.map_or("-".to_owned(), |depth| depth.to_string());
        let stored = bytes(line.stored_bytes);
        let _ = writeln!(
            text,
            "{:<longest$}  {:>6}  {depth:>6}  {stored:>9}  {}",
            line.run, line.best_lines, line.end
        );
    }
    output::print(&text)
}

fn show(args: &ShowArgs) -> anyhow::Result<()> {
    #[cfg(feature = "cluster")]
    if args.from.store.is_some() {
        return show_stored(&args.from, &args.run, args.json);
    }
    let dir = args.state.state()?.find(&args.run)?;
    let run = Run::open_read_only(&dir).with_context(|| dir.display().to_string())?;
    let store = run.store();
    let damaged = if args.verify {
        store.verify()
    } else {
        Vec::new()
    };
    if args.json {
        let damaged: Vec<_> = damaged
            .iter()
            .map(|(depth, error)| serde_json::json!({"depth": depth, "error": error.to_string()}))
            .collect();
        let result = result_of(store);
        let result = result.as_ref().map(|result| ResultJson::new(result, &dir));
        let object = serde_json::json!({
            "folder": dir, "spec": run.spec(), "keep": run.keep(), "depths": store.depths(),
            "result": result, "stored_bytes": store.stored_bytes(),
            "damaged": if args.verify { serde_json::json!(damaged) } else { serde_json::Value::Null },
        });
        output::print(&format_args!("{object}\n"))?;
    } else {
        output::print(&text(&run, &dir))?;
        if args.verify && damaged.is_empty() {
            output::print(&"verified  all that is stored is whole\n")?;
        }
    }
    match damaged.as_slice() {
        [] => Ok(()),
        _ if args.json => Err(Failure::Printed.into()),
        [(_, first), rest @ ..] => bail!(
            "{first}{}; make it anew with: hatebeam runs repair",
            match rest.len() {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            }
        ),
    }
}

fn text(run: &Run, dir: &Path) -> String {
    let store = run.store();
    let spec = serde_json::to_string(run.spec()).unwrap_or_default();
    let mut text = format!(
        "folder    {}\nsearch    {spec}\nkeep      {}\nstored    {}\n",
        dir.display(),
        run.keep(),
        bytes(store.stored_bytes())
    );
    let result = result_of(store);
    let end = match &result {
        Some(result) => result.end.name(),
        None => end_in_words(None),
    };
    let _ = writeln!(text, "end       {end}");
    let files = result.map_or_else(Vec::new, |result| files_of(&result, dir));
    if let Some(replay) = files.first() {
        let _ = writeln!(text, "replay    {}", replay.display());
    }
    depth_table(&mut text, store.depths().iter());
    text
}

/// A row a depth.
pub(crate) fn depth_table<'a>(text: &mut String, records: impl Iterator<Item = &'a DepthRecord>) {
    text.push_str(
        "\n depth       wells   lines       best     median        cut  Mchild/s     bytes      time\n",
    );
    for record in records {
        let kept = match record.kept {
            true => bytes(record.bytes),
            false => "-".to_owned(),
        };
        let _ = writeln!(
            text,
            "{:>6}  {:>10}  {:>6}  {:>9}  {:>9}  {:>9}  {:>8.2}  {kept:>8}  {:>8}",
            record.depth,
            record.count,
            record.best_lines,
            record.best_eval,
            record.median_eval,
            record.worst_eval,
            record.children as f64 / record.seconds.max(1e-9) / 1e6,
            duration(Duration::from_secs_f64(record.seconds.clamp(0.0, 1e9))),
        );
    }
}

fn repair(args: &RepairArgs) -> anyhow::Result<()> {
    let dir = args.state.state()?.find(&args.run)?;
    let mut run = Run::open(&dir, None).with_context(|| dir.display().to_string())?;
    let cancel = crate::interrupt::flag()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or(cores, usize::from);
    let repaired = run.repair(threads, &cancel)?;
    if cancel.load(Ordering::Relaxed) {
        output::note("not all was made anew; the same again goes on");
        return Err(Failure::Interrupted.into());
    }
    if args.json {
        let object = serde_json::json!({ "repaired": repaired });
        return output::print(&format_args!("{object}\n"));
    }
    if repaired.is_empty() {
        return output::print(&"all that is stored is whole\n");
    }
    let depths: Vec<String> = repaired.iter().map(u32::to_string).collect();
    output::print(&format_args!("made anew: depth {}\n", depths.join(", ")))
}

fn remove(args: &RmArgs) -> anyhow::Result<()> {
    let state = args.state.state()?;
    let dir = state.find(&args.run)?;
    // Whoever removes a run holds it, so that nobody is searching it.
    let store = RunStore::open(&dir).with_context(|| dir.display().to_string())?;
    if !args.yes {
        if !io::stdin().is_terminal() {
            let text = "nobody can be asked here: --yes removes without asking".to_owned();
            return Err(Failure::Usage(text).into());
        }
        let _ = write!(
            io::stderr(),
            "remove {} with {}? [y/N] ",
            dir.display(),
            bytes(store.stored_bytes())
        );
        let mut answer = String::new();
        io::stdin()
            .lock()
            .read_line(&mut answer)
            .context("cannot read the answer")?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            output::note("nothing was removed");
            return Ok(());
        }
    }
    let saved = save_replays(&dir, &state.replays())?;
    fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    drop(store);
    output::note(format_args!("removed {}", dir.display()));
    if let Some(saved) = saved {
        output::note(format_args!("what it found is in {}", saved.display()));
    }
    Ok(())
}

/// Puts what a run found where it outlives the run: into a folder of the run's name; where that is.
fn save_replays(dir: &Path, replays: &Path) -> anyhow::Result<Option<PathBuf>> {
    let Ok(found) = fs::read_dir(dir.join(REPLAYS)) else {
        return Ok(None);
    };
    let folder = replays.join(dir.file_name().unwrap_or_default());
    let save = || {
        fs::create_dir_all(&folder)?;
        for file in found {
            let file = file?;
            // The run may lie on another disk, where renaming does not lead.
            fs::copy(file.path(), folder.join(file.file_name()))?;
        }
        Ok::<_, io::Error>(())
    };
    save().with_context(|| format!("cannot save its replays in {}", folder.display()))?;
    Ok(Some(folder))
}
