//! `hatebeam endgame`: the last moves of a game, searched to the end.

use crate::args::{ReplayInput, VariantArgs};
use crate::input::Replay;
use crate::interrupt;
use crate::output::{self, Failure, count};
use anyhow::{Context, bail, ensure};
use hatebeam_game::{Emulator, Encoding, Enemy, Record, Well, encode, play, replay_of_wells};
use hatebeam_runs::bring_to_end;
use hatebeam_search::endgame::{Endgame, EndgameLimits};
use serde::Serialize;
use std::io::{self, IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(crate) const ENDGAME_EXAMPLES: &str = "\
Searches all that can follow a well, as HATETRIS Mild would have it, for the most lines. From a replay
without --from-piece it begins with the last piece and goes back piece by piece until the limits are used up;
what was found for later pieces helps with earlier ones. The best game is played through the exact rules.

\"Proven\" means that nobody can do better from that piece on. With --nodes alone the answer is the same
each time; with --seconds it depends on the machine. Ctrl-C ends with the best so far.

With --json one object: from, score, was, proven_from (the first piece from which the game is proven best;
null if none), proven, nodes, seconds, replay.

Examples:
  hatebeam endgame --file game.txt
  hatebeam endgame --file game.txt --from-piece 390 --seconds 600
  hatebeam endgame --well 0000000000003ff... --nodes 1000000 --json";

#[derive(Debug, clap::Args)]
pub(crate) struct EndgameArgs {
    #[command(flatten)]
    input: ReplayInput,
    /// Search from this well in hex rather than from a replay
    #[arg(long, value_name = "HEX", conflicts_with_all = ["replay", "file", "from_piece"])]
    well: Option<String>,
    /// Search from the well that this piece, from 1, comes into, and from no other
    #[arg(long = "from-piece", value_name = "N")]
    from_piece: Option<usize>,
    #[command(flatten)]
    variant: VariantArgs,
    /// Wells expanded at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    nodes: Option<u64>,
    /// Seconds at most [default: 60, where --nodes is not given]
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    seconds: Option<f64>,
    /// Memory for the table of wells that were searched, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 512)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    memory: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=1e8).contains(&seconds) => Ok(seconds),
        _ => Err("give a number of seconds, at least 0.001".to_owned()),
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    /// The earliest piece searched from; `None` from a well.
    from: Option<usize>,
    score: u32,
    /// The score of the replay.
    was: Option<u32>,
    proven_from: Option<usize>,
    proven: bool,
    nodes: u64,
    seconds: f64,
    replay: String,
}

/// A search under way.
struct Search {
    emulator: Emulator,
    endgame: Endgame,
    cancel: std::sync::Arc<AtomicBool>,
    nodes: Option<u64>,
    deadline: Option<Instant>,
    started: Instant,
}

impl Search {
    fn is_over(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
            || self
                .nodes
                .is_some_and(|nodes| self.endgame.nodes() >= nodes)
            || self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The most lines from a well, a game that has them, and whether no game has more.
    fn from(&mut self, well: &Well) -> (u32, Vec<Well>, bool) {
        let left = self
            .nodes
            .map(|nodes| nodes.saturating_sub(self.endgame.nodes()));
        let limits = EndgameLimits {
            nodes: left,
            deadline: self.deadline,
        };
        let outcome = self.endgame.search(well, &limits, &self.cancel);
        (outcome.lines, outcome.wells, outcome.proven)
    }
}

/// Runs `hatebeam endgame`.
pub(crate) fn run(args: &EndgameArgs) -> anyhow::Result<()> {
    let emulator = Emulator::new(args.variant.geometry()?, args.variant.rules());
    let seconds = args.seconds.or(args.nodes.is_none().then_some(60.0));
    let started = Instant::now();
    let mut search = Search {
        endgame: Endgame::new(&emulator, args.memory << 20),
        emulator,
        cancel: interrupt::flag()?,
        nodes: args.nodes,
        deadline: seconds.map(|seconds| started + Duration::from_secs_f64(seconds)),
        started,
    };
    let report = match &args.well {
        Some(hex) => from_well(&mut search, hex)?,
        None => from_replay(&mut search, args)?,
    };
    if args.json {
        output::print(&format_args!("{}\n", serde_json::to_string(&report)?))?;
    } else {
        output::print(&text(&report))?;
    }
    match search.cancel.load(Ordering::Relaxed) {
        true => Err(Failure::Interrupted.into()),
        false => Ok(()),
    }
}

fn from_well(search: &mut Search, hex: &str) -> anyhow::Result<Report> {
    let well = Well::from_hex(search.emulator.geometry(), hex).context("--well")?;
    let (lines, more, proven) = search.from(&well);
    let mut wells = vec![well];
    wells.extend(more);
    bring_to_end(&search.emulator, &mut wells)?;
    let (geometry, rules) = (search.emulator.geometry(), search.emulator.rules());
    let keys = replay_of_wells(geometry, rules, Enemy::Hatetris, &wells, true)
        .context("HATETRIS changes a piece of the best game, because a well comes back")?;
    Ok(Report {
        from: None,
        score: lines,
        was: None,
        proven_from: None,
        proven,
        nodes: search.endgame.nodes(),
        seconds: search.started.elapsed().as_secs_f64(),
        replay: encode(&keys, Encoding::Base2048),
    })
}

fn from_replay(search: &mut Search, args: &EndgameArgs) -> anyhow::Result<Report> {
    let replay = Replay::read(&args.input)?;
    let (geometry, rules) = (search.emulator.geometry(), search.emulator.rules());
    let record = play(geometry, rules, Enemy::Hatetris, &replay.keys);
    ensure!(
        record.over,
        "the replay is no finished game against HATETRIS: piece {} is under way",
        record.turns.len()
    );
    let pieces = record.turns.len();
    let froms: Vec<usize> = match args.from_piece {
        Some(piece) if (1..=pieces).contains(&piece) => vec![piece],
        Some(piece) => bail!("the replay has pieces 1 to {pieces}, and no piece {piece}"),
        None => (1..=pieces).rev().collect(),
    };
    let mut best = (record.score, replay.keys.clone());
    let (mut proven_from, mut from) = (None, pieces);
    for piece in froms {
        if search.is_over() {
            break;
        }
        from = piece;
        show(&format_args!(
            "piece {piece} of {pieces}, best score {}",
            best.0
        ));
        let (lines, more, proven) = search.from(&record.turns[piece - 1].well);
        if record.turns[piece - 1].score + lines > best.0
            && let Some(better) = played(search, &record, piece, more)?
            && better.0 > best.0
        {
            best = better;
        }
        // A proof for a piece is one for all that come after it.
        if !proven {
            break;
        }
        proven_from = Some(piece);
    }
    show(&"");
    Ok(Report {
        from: Some(from),
        score: best.0,
        was: Some(record.score),
        proven_from,
        proven: proven_from == Some(from),
        nodes: search.endgame.nodes(),
        seconds: search.started.elapsed().as_secs_f64(),
        replay: encode(&best.1, Encoding::Base2048),
    })
}

/// The replay with another end, played through the exact rules; `None` if HATETRIS changes a piece.
fn played(
    search: &Search,
    record: &Record,
    piece: usize,
    more: Vec<Well>,
) -> anyhow::Result<Option<(u32, Vec<hatebeam_game::Key>)>> {
    let (geometry, rules) = (search.emulator.geometry(), search.emulator.rules());
    let mut wells: Vec<Well> = record.wells().take(piece).chain(more).collect();
    bring_to_end(&search.emulator, &mut wells)?;
    let Ok(keys) = replay_of_wells(geometry, rules, Enemy::Hatetris, &wells, true) else {
        output::warn("HATETRIS changes a piece of a better game, because a well comes back");
        return Ok(None);
    };
    let score = play(geometry, rules, Enemy::Hatetris, &keys).score;
    Ok(Some((score, keys)))
}

/// Shows how far the search is, on one line that is written over.
fn show(text: &dyn std::fmt::Display) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
    }
}

fn text(report: &Report) -> String {
    let mut text = match (report.from, report.was) {
        (Some(from), Some(was)) => {
            let change = match report.score.cmp(&was) {
                std::cmp::Ordering::Greater => format!("was {was}"),
                _ => "as before".to_owned(),
            };
            let proof = match report.proven_from {
                Some(piece) => format!("from piece {piece} on nothing is better: proven"),
                None => "nothing is proven".to_owned(),
            };
            format!(
                "score     {} ({change})\nsearched  from piece {from} on\nproof     {proof}\n",
                report.score
            )
        }
        _ => format!(
            "lines     {}\nproof     {}\n",
            report.score,
            if report.proven {
                "nothing is better: proven"
            } else {
                "not proven"
            }
        ),
    };
    text.push_str(&format!(
        "nodes     {}\ntime      {:.1} s\nreplay    {}\n",
        count(usize::try_from(report.nodes).unwrap_or(usize::MAX), "well"),
        report.seconds,
        report.replay
    ));
    text
}
