//! `hatebeam replays`: list and download the replays of finished runs from the object store, and download the best game
//! so far of an open run from the coordinator.

use super::args::{StoreArgs, block_on};
use super::client::ClientArgs;
use super::stored::{manifests, named};
use crate::output;
use anyhow::{Context, bail};
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hatebeam_client::ClientError;
use hatebeam_proto::v1;
use hatebeam_report::{Format, GameFiles, date};
use hatebeam_runs::{GameResult, Manifest, RunSpec, end_in_words};
use serde::Serialize;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tonic::Request;

/// Maximum time that the coordinator may take to read back a game, that is, to find its wells in the stored depths.
const GAME_TIMEOUT: Duration = Duration::from_secs(150);

#[derive(Debug, clap::Args)]
#[command(after_help = help!("replays"), disable_help_subcommand = true)]
pub(crate) struct ReplaysArgs {
    #[command(subcommand)]
    command: ReplaysCommand,
}

#[derive(Debug, Subcommand)]
enum ReplaysCommand {
    /// List the finished runs, best first
    #[command(after_help = help!("replays-list"))]
    List(ListArgs),
    /// Download the replay of a finished run
    #[command(after_help = help!("replays-pull"))]
    Pull(PullArgs),
    /// Download the best game so far of a run that has not ended
    #[command(after_help = help!("replays-so-far"))]
    SoFar(SoFarArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct PullArgs {
    /// Name of the run, or the beginning of the name
    #[arg(
        value_name = "RUN",
        required_unless_present = "best",
        conflicts_with = "best"
    )]
    run: Option<String>,
    /// Download the replay with the highest score
    #[arg(long)]
    best: bool,
    /// Format; `all` writes a file in each format to the folder --out, or to the current folder
    #[arg(long, value_name = "FORMAT", default_value = "base2048", value_parser = formats_parser())]
    format: Formats,
    /// File to write, or a folder in which to write a file with a default name [default: standard output]
    #[arg(long, short, value_name = "PATH")]
    out: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, clap::Args)]
struct SoFarArgs {
    /// Name of the run, or the beginning of the name [default: the running run, or else the
    /// next queued run, or else the most recently submitted run]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Download the game that leads to the best well at this depth [default: the depth with the most lines cleared]
    #[arg(long, value_name = "DEPTH", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Format of the file
    #[arg(long, value_name = "FORMAT", default_value = "base2048")]
    #[arg(value_parser = format_parser(&[Format::Base2048, Format::Raw, Format::Json, Format::Svg]))]
    format: Format,
    /// File to write, or a folder in which to write a file with a default name [default: standard output]
    #[arg(long, short, value_name = "PATH")]
    out: Option<PathBuf>,
    #[command(flatten)]
    client: ClientArgs,
}

/// One format, or all formats.
#[derive(Clone, Copy, Debug)]
enum Formats {
    One(Format),
    All,
}

fn formats_parser() -> impl TypedValueParser<Value = Formats> {
    let names = Format::ALL.map(Format::name).into_iter().chain(["all"]);
    PossibleValuesParser::new(names).map(|name| name.parse().map_or(Formats::All, Formats::One))
}

fn format_parser(formats: &[Format]) -> impl TypedValueParser<Value = Format> + use<> {
    PossibleValuesParser::new(formats.iter().map(|format| format.name()))
        .map(|name| name.parse().unwrap_or(Format::Base2048))
}

/// The list entry for a finished run.
#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    best_lines: u32,
    pieces: u32,
    width: u64,
    /// UTC date on which the run ended; `None` if the date is unknown.
    date: Option<String>,
    replay: &'a str,
    files: &'a [String],
}

impl ReplaysArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            ReplaysCommand::List(args) => args.run(),
            ReplaysCommand::Pull(args) => args.run(),
            ReplaysCommand::SoFar(args) => args.run(),
        }
    }
}

/// Returns the runs that have a replay, best first.
fn finished(store: &StoreArgs) -> anyhow::Result<Vec<Manifest>> {
    let mut found = block_on(async { manifests(&store.open_existing().await?).await })?;
    found.retain(|manifest| manifest.result.is_some());
    found.sort_by_key(|manifest| {
        let lines = manifest.result.as_ref().map_or(0, |result| result.lines);
        (Reverse(lines), manifest.name.clone())
    });
    Ok(found)
}

/// Returns the UTC date on which a run ended, if the date is known.
fn end_date(result: &GameResult) -> Option<String> {
    let since = Duration::from_millis(result.ended_ms);
    let ended = UNIX_EPOCH.checked_add(since);
    ended.filter(|_| result.ended_ms > 0).map(date)
}

fn line(manifest: &Manifest) -> Option<Line<'_>> {
    let result = manifest.result.as_ref()?;
    Some(Line {
        run: &manifest.name,
        best_lines: result.lines,
        pieces: result.pieces,
        width: manifest.spec.width,
        date: end_date(result),
        replay: &result.replay,
        files: &result.files,
    })
}

impl ListArgs {
    fn run(&self) -> anyhow::Result<()> {
        let found = finished(&self.store)?;
        let lines: Vec<Line<'_>> = found.iter().filter_map(line).collect();
        if self.json {
            return output::print_json(&lines);
        }
        let mut text = String::new();
        for line in &lines {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{:<10}  {:>6} lines  {:>6} pieces  {:>11} wide  {}",
                line.date.as_deref().unwrap_or("-"),
                line.best_lines,
                line.pieces,
                line.width,
                line.run
            );
        }
        if lines.is_empty() {
            output::note("no run has finished yet");
        }
        output::print(text)
    }
}

/// Checks the replay of a finished run's best game, and makes all files from it. The stored files are not downloaded,
/// because old runs lack some of them.
fn files_of(manifest: &Manifest) -> anyhow::Result<GameFiles> {
    let result = manifest.result.as_ref();
    let result = result.context("the run has no replay")?;
    let names = result.files.iter().filter_map(|key| key.rsplit('/').next());
    let date = end_date(result).unwrap_or_else(|| date(SystemTime::now()));
    let film = manifest.spec.checked_film(&result.replay, result.lines);
    let film = film.with_context(|| refused_replay(&manifest.name))?;
    Ok(GameFiles::new(film, manifest.facts()?, names, &date))
}

fn refused_replay(run: &str) -> String {
    format!("refused the replay of {run}")
}

/// Writes a game in one format to the file or folder `out`. Prints the game if `out` is `None`.
fn write(files: &GameFiles, format: Format, out: Option<&Path>) -> anyhow::Result<()> {
    let file = files.file(format);
    let game = format!("{} lines, {} pieces", files.film.score, files.film.pieces);
    let Some(out) = out else {
        output::print(file.text)?;
        output::note(game);
        return Ok(());
    };
    let is_folder = out.is_dir() || out.as_os_str().as_encoded_bytes().ends_with(b"/");
    let path = if is_folder {
        create_folder(out)?;
        out.join(file.name)
    } else {
        out.to_owned()
    };
    output::write_file(&path, file.text.as_bytes())?;
    output::print(format_args!("{game}: {}\n", path.display()))
}

fn create_folder(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))
}

impl PullArgs {
    fn run(&self) -> anyhow::Result<()> {
        let found = finished(&self.store)?;
        let manifest = match &self.run {
            Some(run) => named(&found, run)?,
            None => {
                let best = found.into_iter().next();
                best.context("no run has finished yet")?
            }
        };
        let files = files_of(&manifest)?;
        if let Formats::One(format) = self.format {
            return write(&files, format, self.out.as_deref());
        }
        let folder = self.out.clone().unwrap_or_else(|| PathBuf::from("."));
        if folder.exists() && !folder.is_dir() {
            bail!(
                "{} is not a folder: name a folder with --out to write all formats",
                folder.display()
            );
        }
        create_folder(&folder)?;
        let mut formats = Format::ALL.into_iter();
        formats.try_for_each(|format| write(&files, format, Some(folder.as_path())))
    }
}

impl SoFarArgs {
    fn run(&self) -> anyhow::Result<()> {
        let (run, game) = block_on(async {
            let (mut client, run) = self.client.find(self.run.as_deref()).await?;
            let mut request = Request::new(v1::GameRequest {
                run: run.name.clone(),
                depth: self.depth.unwrap_or(0),
            });
            request.set_timeout(GAME_TIMEOUT);
            let game = client.game(request).await.map_err(ClientError::refused)?;
            Ok((run, game.into_inner()))
        })?;
        let spec: RunSpec =
            serde_json::from_str(&run.spec).context("cannot read the run's specification")?;
        output::note(format_args!("run {}, up to depth {}", run.name, game.depth));
        let film = spec.checked_film(&game.replay, game.score);
        let film = film.with_context(|| refused_replay(&run.name))?;
        let facts = spec.facts(&run.name, Vec::new(), end_in_words(None))?;
        let files = GameFiles::new(film, facts, std::iter::empty(), &date(SystemTime::now()));
        write(&files, self.format, self.out.as_deref())
    }
}
