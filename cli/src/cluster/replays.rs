//! `hatebeam replays`: what runs came to, straight from the object store; and what those that go on have come
//! to so far, from the coordinator.

use super::client::{ClientArgs, failed, find};
use super::stored::{manifests, named};
use super::{StoreArgs, block_on};
use crate::output;
use anyhow::{Context, bail, ensure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hatebeam_game::Encoding;
use hatebeam_proto::v1;
use hatebeam_report::{Facts, Film, Format, date, known_stem, stem};
use hatebeam_runs::{GameResult, Manifest, RunSpec, end_in_words};
use hatebeam_store::write_whole;
use serde::Serialize;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tonic::Request;

pub(crate) const REPLAYS_EXAMPLES: &str = "\
`list` and `pull` need no coordinator: all is in the object store. What is brought is played through the exact
rules first, and refused if it has not the score it should have. `so-far` asks the coordinator for the best game
of a run that goes on.

Formats: base2048 is what the original game prints and reads; raw has a letter a key; json every well and piece;
svg is a picture; html the whole run with its plots. In the object store the same files are under
runs/RUN/replays/.

Examples:
  hatebeam replays list --store s3://bucket/hatebeam
  hatebeam replays pull --store /shared/hatebeam --best --out record.txt
  hatebeam replays pull --store /shared/hatebeam --best --format all --out results/
  hatebeam replays pull --store /shared/hatebeam patterns-1000000-5f3a9c1e
  hatebeam replays so-far
  hatebeam replays so-far patterns-1000000-5f3a9c1e --depth 120 --format svg --out so-far.svg";

/// How long the coordinator may take to read a game back.
const DEADLINE: Duration = Duration::from_secs(150);

const LIST_EXAMPLES: &str = "\
Examples:
  hatebeam replays list --store s3://bucket/hatebeam
  hatebeam replays list --store /shared/hatebeam --json";

const SO_FAR_EXAMPLES: &str = "\
Examples:
  hatebeam replays so-far
  hatebeam replays so-far patterns-1000000-5f3a9c1e --depth 120 --format svg --out game.svg";

const PULL_EXAMPLES: &str = "\
Examples:
  hatebeam replays pull --store /shared/hatebeam --best --out record.txt
  hatebeam replays pull --store /shared/hatebeam patterns-1000000-5f3a9c1e";

/// What to do with replays.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplaysArgs {
    #[command(subcommand)]
    command: ReplaysCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ReplaysCommand {
    /// List the finished runs, the best first
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Bring a replay here
    #[command(after_help = PULL_EXAMPLES)]
    Pull(PullArgs),
    /// Bring the best game so far of a run that goes on here
    #[command(after_help = SO_FAR_EXAMPLES)]
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
    /// The run, or the beginning of its name
    #[arg(
        value_name = "RUN",
        required_unless_present = "best",
        conflicts_with = "best"
    )]
    run: Option<String>,
    /// The one with the most lines
    #[arg(long)]
    best: bool,
    /// In which form; all brings every one, into the folder --out or else into this one
    #[arg(long, value_name = "FORMAT", default_value = "base2048", value_parser = parse_formats())]
    format: Formats,
    /// Write it there rather than to standard output: to a file, or, under its own name, into a folder
    #[arg(long, short, value_name = "PATH")]
    out: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, clap::Args)]
struct SoFarArgs {
    /// The run, or the beginning of its name [default: the one that is worked on, or else the last]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// The game through the best well of this depth rather than the best of all
    #[arg(long, value_name = "DEPTH", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// In which form
    #[arg(long, value_name = "FORMAT", default_value = "base2048")]
    #[arg(value_parser = format_parser(&[Format::Base2048, Format::Raw, Format::Json, Format::Svg]))]
    format: Format,
    /// Write it there rather than to standard output: to a file, or, under its own name, into a folder
    #[arg(long, short, value_name = "PATH")]
    out: Option<PathBuf>,
    #[command(flatten)]
    client: ClientArgs,
}

/// One format, or all.
#[derive(Clone, Copy, Debug)]
enum Formats {
    One(Format),
    All,
}

fn parse_formats() -> impl TypedValueParser<Value = Formats> {
    let names = Format::ALL.map(Format::name).into_iter().chain(["all"]);
    PossibleValuesParser::new(names).map(|name| name.parse().map_or(Formats::All, Formats::One))
}

fn format_parser(formats: &[Format]) -> impl TypedValueParser<Value = Format> + use<> {
    PossibleValuesParser::new(formats.iter().map(|format| format.name()))
        .map(|name| name.parse().unwrap_or(Format::Base2048))
}

#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    best_lines: u32,
    pieces: u32,
    width: u64,
    /// By UTC; none if it was not written down.
    date: Option<String>,
    replay: &'a str,
    files: &'a [String],
}

/// Runs `hatebeam replays`.
pub(crate) fn replays(args: &ReplaysArgs) -> anyhow::Result<()> {
    match &args.command {
        ReplaysCommand::List(args) => list(args),
        ReplaysCommand::Pull(args) => pull(args),
        ReplaysCommand::SoFar(args) => so_far(args),
    }
}

/// The runs that have a replay, the best first.
async fn finished(store: &StoreArgs) -> anyhow::Result<Vec<Manifest>> {
    let mut found = manifests(&store.open().await?).await?;
    found.retain(|manifest| manifest.result.is_some());
    found.sort_by_key(|manifest| {
        let score = manifest.result.as_ref().map_or(0, |result| result.lines);
        (Reverse(score), manifest.name.clone())
    });
    Ok(found)
}

/// When a run ended.
fn ended(result: &GameResult) -> Option<SystemTime> {
    let since = Duration::from_millis(result.ended_ms);
    UNIX_EPOCH
        .checked_add(since)
        .filter(|_| result.ended_ms > 0)
}

fn line(manifest: &Manifest) -> Option<Line<'_>> {
    let result = manifest.result.as_ref()?;
    Some(Line {
        run: &manifest.name,
        best_lines: result.lines,
        pieces: result.pieces,
        width: manifest.spec.width,
        date: ended(result).map(date),
        replay: &result.replay,
        files: &result.files,
    })
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let found = block_on(finished(&args.store))?;
    let lines: Vec<Line<'_>> = found.iter().filter_map(line).collect();
    if args.json {
        return output::print(&format_args!("{}\n", serde_json::to_string(&lines)?));
    }
    let mut text = String::new();
    for line in &lines {
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
        text.push_str("No run has finished yet.\n");
    }
    output::print(&text)
}

/// A game that was played through the exact rules, with all that can be made of it.
struct Game {
    film: Film,
    facts: Facts,
    /// What its files are called.
    stem: String,
}

impl Game {
    /// Plays a replay, and sees whether it has the lines that it should have.
    fn checked(spec: &RunSpec, facts: Facts, replay: &str, score: u32) -> anyhow::Result<Game> {
        let keys = Encoding::Base2048.decode(replay).context("the replay")?;
        let film = spec.film(&keys)?;
        ensure!(
            film.score == score && film.over,
            "the replay of {} has {} lines when it is played{}, and should have {score}: it is not brought",
            facts.run,
            film.score,
            if film.over { "" } else { " and does not end" },
        );
        let stem = stem(&film, facts.width, &date(SystemTime::now()));
        Ok(Game { film, facts, stem })
    }

    /// The best game of a run that has ended. All its files are made here, from the replay once it is checked:
    /// so nothing that lies in the object store is taken on trust, and older runs have them too.
    fn of(manifest: &Manifest) -> anyhow::Result<Game> {
        let result = manifest.result.as_ref().context("the run has no replay")?;
        let facts = manifest.facts()?;
        let mut game = Game::checked(&manifest.spec, facts, &result.replay, result.lines)?;
        let names = result.files.iter().filter_map(|key| key.rsplit('/').next());
        game.stem = match (
            known_stem(&game.film, game.facts.width, names),
            ended(result),
        ) {
            (Some(known), _) => known,
            (None, Some(ended)) => stem(&game.film, game.facts.width, &date(ended)),
            (None, None) => game.stem,
        };
        Ok(game)
    }

    /// Writes it into a file or a folder, or prints it.
    fn bring(&self, format: Format, out: Option<&Path>) -> anyhow::Result<()> {
        let text = format.render(&self.film, &self.facts);
        let Some(out) = out else {
            output::print(&text)?;
            output::note(self.said());
            return Ok(());
        };
        let is_folder = out.is_dir() || out.as_os_str().as_encoded_bytes().ends_with(b"/");
        let path = match is_folder {
            true => {
                fs::create_dir_all(out).with_context(|| out.display().to_string())?;
                out.join(format!("{}.{}", self.stem, format.extension()))
            }
            false => out.to_owned(),
        };
        write_whole(&path, text.as_bytes())?;
        output::print(&format_args!("{}: {}\n", self.said(), path.display()))
    }

    fn said(&self) -> String {
        format!("{} lines, {} pieces", self.film.score, self.film.pieces)
    }
}

fn pull(args: &PullArgs) -> anyhow::Result<()> {
    let found = block_on(finished(&args.store))?;
    let manifest = match &args.run {
        Some(run) => named(&found, run)?,
        None => found
            .into_iter()
            .next()
            .context("no run has finished yet")?,
    };
    let game = Game::of(&manifest)?;
    match args.format {
        Formats::One(format) => game.bring(format, args.out.as_deref()),
        Formats::All => {
            let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("."));
            if folder.exists() && !folder.is_dir() {
                bail!("{} is no folder: all formats need one", folder.display());
            }
            fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
            let mut formats = Format::ALL.into_iter();
            formats.try_for_each(|format| game.bring(format, Some(folder.as_path())))
        }
    }
}

fn so_far(args: &SoFarArgs) -> anyhow::Result<()> {
    let (run, game) = block_on(async {
        let mut client = args.client.connect().await?;
        let run = find(&mut client, args.run.as_deref()).await?;
        let mut request = Request::new(v1::GameRequest {
            run: run.name.clone(),
            depth: args.depth.unwrap_or(0),
        });
        request.set_timeout(DEADLINE);
        let game = client.game(request).await.map_err(failed)?;
        Ok((run, game.into_inner()))
    })?;
    let spec: RunSpec = serde_json::from_str(&run.spec).context("the run's specification")?;
    let facts = spec.facts(&run.name, Vec::new(), end_in_words(None))?;
    output::note(format_args!(
        "run {}, through depth {}",
        run.name, game.depth
    ));
    Game::checked(&spec, facts, &game.replay, game.score)?.bring(args.format, args.out.as_deref())
}
