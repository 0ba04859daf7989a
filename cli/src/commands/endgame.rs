//! `hatebeam endgame`: search the last moves of a game to the end.

use crate::args::{ReplayInput, VariantArgs, number_in};
use crate::input::Replay;
use crate::interrupt;
use crate::output::{self, Failure};
use anyhow::{Context, bail, ensure};
use hatebeam_game::{Emulator, Encoding, Enemy, Key, Record, Well, encode, play, replay_of_wells};
use hatebeam_report::count;
use hatebeam_runs::bring_to_end;
use hatebeam_search::endgame::{Endgame, EndgameLimits};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const HELP: &str = "\
Searches all continuations of a well under HATETRIS Mild for the most lines. From a replay without --from-piece it begins
with the last piece and goes back piece by piece until a limit is reached; results for later pieces speed up earlier ones.
The best game is played by the exact rules.

\"Proven\" means that no continuation from that piece scores more. With --nodes alone the result is always the same; with
--seconds it depends on the machine. Ctrl-C ends the search with the best result so far.

With --json: one object with from, score, was, proven_from (the first piece from which the game is proven best, or null),
proven, nodes, seconds, replay.

Examples:
  hatebeam endgame --file game.txt
  hatebeam endgame --file game.txt --from-piece 390 --seconds 600
  hatebeam endgame --well 0000000000003ff... --nodes 1000000 --json";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct EndgameArgs {
    #[command(flatten)]
    input: ReplayInput,
    /// Search from this well in hex instead of a replay
    #[arg(long, value_name = "HEX", conflicts_with_all = ["replay", "file", "from_piece"])]
    well: Option<String>,
    /// Search only from the well of this piece, counted from 1
    #[arg(long = "from-piece", value_name = "N")]
    from_piece: Option<usize>,
    #[command(flatten)]
    variant: VariantArgs,
    /// Maximum number of wells to expand
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    nodes: Option<u64>,
    /// Maximum time in seconds [default: 60 without --nodes, else none]
    #[arg(long, value_name = "S", value_parser = number_in(0.001..=1e8, "seconds"))]
    seconds: Option<f64>,
    /// Memory for the table of searched wells, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 512)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    memory: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct ResultJson {
    /// The earliest piece searched from; `None` from a well.
    from: Option<usize>,
    score: u32,
    /// Score of the replay.
    was: Option<u32>,
    proven_from: Option<usize>,
    proven: bool,
    nodes: u64,
    seconds: f64,
    replay: String,
}

/// A game and its score.
struct ScoredGame {
    score: u32,
    keys: Vec<Key>,
}

/// A search in progress.
struct Search {
    emulator: Emulator,
    endgame: Endgame,
    cancel: Arc<AtomicBool>,
    nodes: Option<u64>,
    deadline: Option<Instant>,
    started: Instant,
}

impl EndgameArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let emulator = Emulator::new(self.variant.geometry()?, self.variant.rules());
        let seconds = self.seconds.or(self.nodes.is_none().then_some(60.0));
        let started = Instant::now();
        let mut search = Search {
            endgame: Endgame::new(&emulator, self.memory << 20),
            emulator,
            cancel: interrupt::flag()?,
            nodes: self.nodes,
            deadline: seconds.map(|seconds| started + Duration::from_secs_f64(seconds)),
            started,
        };
        let result = match &self.well {
            Some(hex) => search.from_well(hex)?,
            None => search.from_replay(&Replay::read(&self.input)?, self.from_piece)?,
        };
        if self.json {
            output::print_json(&result)?;
        } else {
            output::print(result.text())?;
        }
        if search.cancel.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted.into());
        }
        Ok(())
    }
}

impl Search {
    fn is_over(&self) -> bool {
        let nodes = self.endgame.nodes();
        self.cancel.load(Ordering::Relaxed)
            || self.nodes.is_some_and(|limit| nodes >= limit)
            || self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns the limits that are left.
    fn limits(&self) -> EndgameLimits {
        let used = self.endgame.nodes();
        EndgameLimits {
            nodes: self.nodes.map(|nodes| nodes.saturating_sub(used)),
            deadline: self.deadline,
        }
    }

    fn result(&self, score: u32, keys: &[Key]) -> ResultJson {
        ResultJson {
            from: None,
            score,
            was: None,
            proven_from: None,
            proven: false,
            nodes: self.endgame.nodes(),
            seconds: self.started.elapsed().as_secs_f64(),
            replay: encode(keys, Encoding::Base2048),
        }
    }

    fn from_well(&mut self, hex: &str) -> anyhow::Result<ResultJson> {
        let (geometry, rules) = (self.emulator.geometry(), self.emulator.rules());
        let well = Well::from_hex(geometry, hex).context("--well")?;
        let limits = self.limits();
        let found = self.endgame.search(&well, &limits, &self.cancel);
        let mut wells = vec![well];
        wells.extend(found.wells);
        bring_to_end(&self.emulator, &mut wells)?;
        let keys = replay_of_wells(geometry, rules, Enemy::Hatetris, &wells, true)
            .context("HATETRIS changes a piece of the best game, because a well comes back")?;
        Ok(ResultJson {
            proven: found.proven,
            ..self.result(found.lines, &keys)
        })
    }

    fn from_replay(
        &mut self,
        replay: &Replay,
        from_piece: Option<usize>,
    ) -> anyhow::Result<ResultJson> {
        let (geometry, rules) = (self.emulator.geometry(), self.emulator.rules());
        let record = play(geometry, rules, Enemy::Hatetris, &replay.keys);
        let pieces = record.turns.len();
        ensure!(
            record.over,
            "the replay is not a finished game against HATETRIS: it ends with piece {pieces} falling"
        );
        let froms = match from_piece {
            Some(piece) if (1..=pieces).contains(&piece) => piece..=piece,
            Some(piece) => bail!("no piece {piece}: the replay has pieces 1 to {pieces}"),
            None => 1..=pieces,
        };
        let mut best = ScoredGame {
            score: record.score,
            keys: replay.keys.clone(),
        };
        let (mut proven_from, mut from) = (None, pieces);
        for piece in froms.rev() {
            if self.is_over() {
                break;
            }
            from = piece;
            let score = best.score;
            output::progress(format_args!(
                "piece {piece} of {pieces}, best score {score}"
            ));
            let turn = &record.turns[piece - 1];
            let limits = self.limits();
            let found = self.endgame.search(&turn.well, &limits, &self.cancel);
            if turn.score + found.lines > best.score
                && let Some(better) = self.played(&record, piece, found.wells)?
                && better.score > best.score
            {
                best = better;
            }
            // A proof for a piece is a proof for all later pieces.
            if !found.proven {
                break;
            }
            proven_from = Some(piece);
        }
        output::progress("");
        Ok(ResultJson {
            from: Some(from),
            was: Some(record.score),
            proven_from,
            proven: proven_from == Some(from),
            ..self.result(best.score, &best.keys)
        })
    }

    /// Plays the game by the exact rules, with other wells from a piece on. `None` if HATETRIS changes a piece.
    fn played(
        &self,
        record: &Record,
        piece: usize,
        continuation: Vec<Well>,
    ) -> anyhow::Result<Option<ScoredGame>> {
        let (geometry, rules) = (self.emulator.geometry(), self.emulator.rules());
        let mut wells: Vec<Well> = record.wells().take(piece).chain(continuation).collect();
        bring_to_end(&self.emulator, &mut wells)?;
        let Ok(keys) = replay_of_wells(geometry, rules, Enemy::Hatetris, &wells, true) else {
            output::warn("HATETRIS changes a piece of a better game, because a well comes back");
            return Ok(None);
        };
        let score = play(geometry, rules, Enemy::Hatetris, &keys).score;
        Ok(Some(ScoredGame { score, keys }))
    }
}

impl ResultJson {
    fn text(&self) -> String {
        let score = self.score;
        let found = if let (Some(from), Some(was)) = (self.from, self.was) {
            let change = if score > was {
                format!("was {was}")
            } else {
                "unchanged".to_owned()
            };
            let proof = match self.proven_from {
                Some(piece) => format!("proven best from piece {piece}"),
                None => "not proven".to_owned(),
            };
            format!(
                "score     {score} ({change})\nsearched  from piece {from}\nproof     {proof}\n"
            )
        } else {
            let proof = if self.proven {
                "proven best"
            } else {
                "not proven"
            };
            format!("lines     {score}\nproof     {proof}\n")
        };
        format!(
            "{found}nodes     {}\ntime      {:.1} s\nreplay    {}\n",
            count(self.nodes, "well"),
            self.seconds,
            self.replay
        )
    }
}
