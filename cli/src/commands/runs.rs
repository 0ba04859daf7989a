//! `hatebeam runs`: list, show, report, repair and remove runs.

use super::cluster::FromStoreArgs;
use crate::args::{NetworkArgs, ThreadsArgs};
use crate::output::{self, Failure};
use crate::spec::spec_text;
use crate::state::{LocalRunArgs, StateArgs, damage_remedy, is_damage, name_of};
use anyhow::{Context, bail};
use clap::Subcommand;
use hatebeam_host::stop_flag;
use hatebeam_report::bytes;
use hatebeam_runs::{Retention, Run, RunHead, copy_replays, remove_run_folder, result_of};
use hatebeam_store::{StoreError, UnreadableRun, bytes_below, list_runs};
use hatebeam_telemetry::{DepthView, ResultView, RunLine, depth_table, end_of, run_table};
use serde_json::Value;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("runs"), args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List the runs (default)
    #[command(after_help = help!("runs-list"))]
    List(ListArgs),
    /// Print a run's specification, progress and depths
    #[command(after_help = help!("runs-show"))]
    Show(ShowArgs),
    /// Write an HTML report with a run's plots and its best game
    #[command(after_help = help!("runs-report"))]
    Report(ReportArgs),
    /// Check the stored data of a run, and recompute damaged depths
    #[command(after_help = help!("runs-repair"))]
    Repair(RepairArgs),
    /// Remove a run and its data; its replays are kept
    #[command(after_help = help!("runs-rm"))]
    Rm(RmArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    from: FromStoreArgs,
    /// Print one JSON object per run
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// Also check all stored data of the run for damage
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    local: LocalRunArgs,
    #[command(flatten)]
    from: FromStoreArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ReportArgs {
    /// File to write, or `-` for standard output [default: RUN.html in the current folder]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    local: LocalRunArgs,
}

#[derive(Debug, clap::Args)]
struct RepairArgs {
    #[command(flatten)]
    local: LocalRunArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct RmArgs {
    /// Remove the run without asking for confirmation
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    local: LocalRunArgs,
    #[command(flatten)]
    from: FromStoreArgs,
}

impl RunsArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            None => self.list.run(),
            Some(RunsCommand::List(args)) => args.run(),
            Some(RunsCommand::Show(args)) => args.run(),
            Some(RunsCommand::Report(args)) => args.run(),
            Some(RunsCommand::Repair(args)) => args.run(),
            Some(RunsCommand::Rm(args)) => args.run(),
        }
    }
}

impl ListArgs {
    fn run(&self) -> anyhow::Result<()> {
        if self.from.is_given() {
            return self.from.list(self.json);
        }
        let folder = self.state.state()?.runs();
        let list = list_runs(&folder)?;
        for UnreadableRun { dir, error } in &list.unreadable {
            let remedy = match is_damage(error) {
                true => format!(": {}", damage_remedy(&self.state.selecting(dir))),
                false => String::new(),
            };
            output::warn(format_args!(
                "cannot read the run in {}: {error}{remedy}",
                dir.display()
            ));
        }
        let mut lines = list
            .runs
            .iter()
            .map(|summary| RunLine::of(&summary.dir, &summary.name));
        if self.json {
            return lines.try_for_each(|line| output::print_json(&line));
        }
        let lines: Vec<RunLine> = lines.collect();
        if lines.is_empty() && !list.unreadable.is_empty() {
            return Ok(());
        }
        if lines.is_empty() {
            let folder = folder.display();
            output::note(format_args!(
                "no runs in {folder}; `hatebeam run` starts one"
            ));
            return Ok(());
        }
        output::print(run_table(&lines))
    }
}

impl ShowArgs {
    fn run(&self) -> anyhow::Result<()> {
        if self.from.is_given() {
            if self.verify {
                let text = "--verify cannot be used with --store: only runs on this machine can be verified";
                return Err(Failure::Usage(text.to_owned()).into());
            }
            return self.from.show(&self.local.run, self.json);
        }
        let run = self.local.open_read_only()?;
        let store = run.store();
        let checked = self.verify.then(|| Checked::of(&run));
        if self.json {
            let problems = |checked: &Checked| -> Vec<Value> {
                let problem = |(depth, error): &(u32, StoreError)| serde_json::json!({"depth": depth, "error": error.to_string()});
                checked.damaged.iter().map(problem).collect()
            };
            let result = result_of(store);
            let result = result.as_ref();
            let result = result.map(|result| ResultView::new(result, store.dir()));
            let depths = store.depths().iter();
            let depths: Vec<DepthView<'_>> =
                depths.map(|record| DepthView::new(record, None)).collect();
            output::print_json(&serde_json::json!({
                "folder": store.dir(), "spec": run.spec(), "keep": run.keep(), "depths": depths,
                "result": result, "stored_bytes": store.stored_bytes(),
                "damaged": checked.as_ref().map(problems),
                "missing": checked.as_ref().map(|checked| &checked.missing),
                "lost": checked.as_ref().and_then(|checked| checked.lost.as_ref()).map(|lost| [lost.start(), lost.end()]),
            }))?;
        } else {
            output::print(details(&run))?;
        }
        let Some(checked) = checked else {
            return Ok(());
        };
        match checked.problem(&run) {
            None if self.json => Ok(()),
            None => output::print("verified  all stored data is intact\n"),
            Some(_) if self.json => Err(Failure::Printed.into()),
            Some(problem) => {
                let selecting = self.local.state.selecting(run.store().dir());
                if checked.lost.is_some() {
                    bail!("{problem}: search them again with `hatebeam resume {selecting}`")
                }
                if !checked.can_be_repaired() {
                    bail!("{problem}")
                }
                bail!("{problem}: recompute these depths with `hatebeam runs repair {selecting}`")
            }
        }
    }
}

/// Returns a run's specification, sizes, end and depths as text.
fn details(run: &Run) -> String {
    let store = run.store();
    let result = result_of(store);
    let mut text = format!(
        "folder    {}\n{}keep      {}\nstored    {}\nend       {}\n",
        store.dir().display(),
        spec_text(run.spec()),
        run.keep(),
        bytes(store.stored_bytes()),
        end_of(store),
    );
    let result = result.as_ref();
    let result = result.map(|result| ResultView::new(result, store.dir()));
    if let Some(replay) = result.and_then(|result| result.replay_file) {
        text += &format!("replay    {}\n", replay.display());
    }
    depth_table(&mut text, store.depths().iter());
    text
}

/// What `runs show --verify` has found.
struct Checked {
    /// The damaged depths.
    damaged: Vec<(u32, StoreError)>,
    /// Depths without tables that their retention rule keeps.
    missing: Vec<u32>,
    /// Depths whose records are lost.
    lost: Option<RangeInclusive<u32>>,
}

impl Checked {
    fn of(run: &Run) -> Checked {
        Checked {
            damaged: run.store().verify(),
            missing: run.missing().collect(),
            lost: run.lost(),
        }
    }

    /// Returns whether a repair can recompute depths. It cannot if the tables are not damaged, but cannot be read.
    fn can_be_repaired(&self) -> bool {
        let is_damaged =
            |(_, error): &(u32, StoreError)| matches!(error, StoreError::DamagedDepth { .. });
        self.damaged.iter().all(is_damaged)
    }

    /// Describes the first problem and the number of others. Returns `None` if all depths are intact.
    fn problem(&self, run: &Run) -> Option<String> {
        let damaged = self.damaged.iter().map(|(_, error)| error.to_string());
        let missing = self.missing.iter().map(|depth| {
            let kept = kept(run.keep_at(*depth));
            format!("depth {depth} has no tables, although its retention rule keeps {kept}")
        });
        // The lost depths come first, because a repair does not find them.
        let lost = self.lost.iter().map(lost_in_words);
        let mut problems = lost.chain(damaged).chain(missing);
        let first = problems.next()?;
        Some(match problems.count() {
            0 => first,
            more => format!("{first} (and {more} more)"),
        })
    }
}

fn lost_in_words(lost: &RangeInclusive<u32>) -> String {
    let (first, last) = (lost.start(), lost.end());
    format!("the records of the depths {first} to {last} are lost, although the run has a result")
}

/// Describes the depths that a retention rule keeps.
fn kept(keep: Retention) -> String {
    match keep {
        Retention::All => "all depths".to_owned(),
        Retention::Every(every) => format!("every depth that is divisible by {every}"),
        Retention::Last => "the last depth".to_owned(),
    }
}

impl ReportArgs {
    fn run(&self) -> anyhow::Result<()> {
        let run = self.local.open_read_only()?;
        let name = name_of(run.store().dir());
        let page = run.report(&name)?;
        let path = match &self.out {
            Some(path) if path.as_os_str() == "-" => return output::print(page),
            Some(path) => path.clone(),
            None => PathBuf::from(format!("{name}.html")),
        };
        let path = std::path::absolute(&path).with_context(|| path.display().to_string())?;
        output::write_file(&path, page.as_bytes())?;
        output::print(format_args!("{}\n", path.display()))
    }
}

impl RepairArgs {
    fn run(&self) -> anyhow::Result<()> {
        let dir = self.local.dir()?;
        let failed = |error| self.local.opening_error(error, &dir);
        let head = RunHead::read(&dir).map_err(failed)?;
        self.network.load(head.spec.evaluator.kind)?;
        head.check_search()?;
        let mut run = Run::open(&dir, None).map_err(failed)?;
        let cancel = stop_flag()?;
        let repaired = run.repair(self.threads.count(), &cancel)?;
        if cancel.load(Ordering::Relaxed) {
            output::note(
                "stopped before all depths were repaired; run the same command again to continue",
            );
            return Err(Failure::Interrupted.into());
        }
        if self.json {
            output::print_json(&serde_json::json!({ "repaired": repaired }))?;
        }
        if let Some(lost) = run.lost() {
            let (problem, selecting) = (lost_in_words(&lost), self.local.state.selecting(&dir));
            bail!("{problem}: search them again with `hatebeam resume {selecting}`");
        }
        if self.json {
            return Ok(());
        }
        if repaired.is_empty() {
            return output::print("all stored data is intact\n");
        }
        let depths: Vec<String> = repaired.iter().map(u32::to_string).collect();
        output::print(format_args!("recomputed depth {}\n", depths.join(", ")))
    }
}

impl RmArgs {
    fn run(&self) -> anyhow::Result<()> {
        if self.from.is_given() {
            let confirm = |what: &str, stored| Ok(self.yes || confirm(what, stored)?);
            return self.from.remove(&self.local.run, confirm);
        }
        let state = self.local.state.state()?;
        let replays = state.replays();
        let dir = self.local.dir()?;
        // While the folder is locked, no other process can search the run. The store is not opened, because the run may be
        // damaged.
        let lock = state.lock_for_removal(&dir)?;
        if !self.yes && !confirm(&dir.display().to_string(), bytes_below(&dir))? {
            output::note("removed nothing");
            return Ok(());
        }
        let saved = copy_replays(&dir, &replays)
            .with_context(|| format!("cannot copy the replays to {}", replays.display()))?;
        remove_run_folder(&dir, lock)
            .with_context(|| format!("cannot remove {}", dir.display()))?;
        output::note(format_args!("removed {}", dir.display()));
        if let Some(saved) = saved {
            output::note(format_args!("saved its replays in {}", saved.display()));
        }
        Ok(())
    }
}

/// Asks the user whether to remove a run. Returns an error if standard input is not a terminal.
fn confirm(what: &str, bytes_stored: u64) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        let text = "standard input is not a terminal: pass --yes to remove the run without asking";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let size = bytes(bytes_stored);
    let _ = write!(io::stderr(), "remove {what} with {size}? [y/N] ");
    let mut answer = String::new();
    let mut input = io::stdin().lock();
    input
        .read_line(&mut answer)
        .context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
