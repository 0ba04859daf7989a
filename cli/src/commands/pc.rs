//! `hatebeam pc`: perfect clears in guideline Tetris.

use super::contest::SeriesArgs;
use crate::args::ThreadsArgs;
use crate::input::answer_objects;
use crate::output;
use anyhow::{Context, ensure};
use clap::{Arg, Subcommand};
use hatebeam_agents::Contest;
use hatebeam_agents::json::{
    Finders, PcFollower, best_answer, chance_answer, pc_chance, pc_placements,
};
use hatebeam_agents::options::{FieldOptions, RulesOptions, StreakOptions, TableOption};
use hatebeam_agents::pc::{
    BestMove, BoardTable, HoldSlot, PcGame, PcPosition, best_move, best_text, chance_text, chances,
    counts_text,
};
use hatebeam_host::stop_flag;
use hatebeam_telemetry::show_progress;
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{Bag, KickTable, Kicks};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("pc"), arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct PcArgs {
    #[command(subcommand)]
    command: PcCommand,
}

#[derive(Debug, Subcommand)]
enum PcCommand {
    /// List the reachable placements of positions
    #[command(after_help = help!("pc-placements"))]
    Placements {
        /// Read and print JSON objects; this is the only format
        #[arg(long)]
        json: bool,
    },
    /// Compute the chances of a perfect clear after each first move
    Chance(ChanceArgs),
    /// Find a perfect clear with the pieces of a queue
    Solve(SolveArgs),
    /// Find different perfect clears with the pieces of a queue
    Path(PathArgs),
    /// Play games of consecutive perfect clears
    #[command(after_help = help!("pc-play"))]
    Play {
        #[command(flatten)]
        options: StreakOptions,
        #[command(flatten)]
        series: SeriesArgs,
    },
    /// Follow a game piece by piece, with the chances of the moves that are still possible
    #[command(after_help = help!("pc-follow"))]
    Follow {
        /// Read and print JSON objects; this is the only format
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        table: TableOption,
        #[command(flatten)]
        threads: ThreadsArgs,
    },
    /// Build the table that makes `pc chance` faster
    Table(TableArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = help!("pc-solve"))]
struct SolveArgs {
    /// Pieces in order, as letters
    #[arg(value_name = "QUEUE")]
    queue: String,
    #[command(flatten)]
    field: FieldOptions,
    /// Do not use the hold slot: place the pieces in the given order
    #[arg(long)]
    no_hold: bool,
    /// Start with the first piece in the hold slot
    #[arg(long, conflicts_with = "no_hold")]
    held: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help!("pc-path"))]
struct PathArgs {
    #[command(flatten)]
    solve: SolveArgs,
    /// Maximum number of perfect clears to print
    #[arg(long, value_name = "N", default_value = "10")]
    limit: NonZeroUsize,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help!("pc-chance"), mut_args(refuse_without_seen))]
struct ChanceArgs {
    /// Pieces that the player sees: the held or current piece, then the next pieces [default: read JSON objects from
    /// standard input]
    #[arg(long, value_name = "PIECES")]
    seen: Option<String>,
    /// Pieces left in the bag after the pieces of --seen have been drawn [default: the pieces that remain if the bag was full
    /// before the first piece of --seen]
    #[arg(long, value_name = "PIECES", requires = "seen")]
    left: Option<String>,
    #[command(flatten)]
    field: FieldOptions,
    #[command(flatten)]
    table: TableOption,
    /// Find only the best move, which takes less time
    #[arg(long, requires = "seen")]
    best: bool,
    /// Print JSON; without --seen, the output is always JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadsArgs,
}

/// Refuses the settings of a position without --seen, because the objects on standard input have their own.
fn refuse_without_seen(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "field" | "lines" | "kicks" | "hard_drop" => arg.requires("seen"),
        _ => arg,
    }
}

/// Help text for the kick tables that `pc table` supports.
const TABLE_KICKS: &str =
    "Kick table: nokick, srs, srs+180j (Jstris), srs+180t or srsplus (TETR.IO)";

#[derive(Debug, clap::Args)]
#[command(after_help = help!("pc-table"), mut_arg("kicks", |kicks| kicks.help(TABLE_KICKS)))]
struct TableArgs {
    /// File to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    rules: RulesOptions,
    #[command(flatten)]
    threads: ThreadsArgs,
}

impl TableArgs {
    fn run(&self) -> anyhow::Result<()> {
        let kicks: Kicks = self.rules.kicks.parse()?;
        let (table, drop) = (KickTable::built_in(kicks), self.rules.drop_mode());
        output::check_writable(&self.file)?;
        let threads = self.threads.count();
        let progress = |step: &str| show_progress(step);
        let built = BoardTable::build(
            self.rules.lines,
            kicks.name(),
            &table,
            drop,
            threads,
            progress,
        )?;
        show_progress("");
        output::write_file(&self.file, &built.bytes())?;
        output::print(counts_text(built.header()))
    }
}

impl SolveArgs {
    fn run(&self, limit: NonZeroUsize) -> anyhow::Result<()> {
        let game = PcGame {
            field: self.field.field()?,
            queue: Piece::parse_sequence(&self.queue).context("invalid QUEUE")?,
            hold: match (self.no_hold, self.held) {
                (true, _) => HoldSlot::Disabled,
                (false, true) => HoldSlot::Full,
                (false, false) => HoldSlot::Empty,
            },
            kicks: self.field.rules.kicks()?,
            drop: self.field.rules.drop_mode(),
        };
        let solutions = game.solutions(limit)?;
        ensure!(
            !solutions.is_empty(),
            "queue {} has no perfect clear of this field",
            self.queue
        );
        for (number, solution) in solutions.iter().enumerate() {
            if self.json {
                output::print(game.json(solution)? + "\n")?;
            } else {
                let line_between = if number > 0 { "\n" } else { "" };
                output::print(format_args!("{line_between}{}", game.text(solution)?))?;
            }
        }
        Ok(())
    }
}

impl ChanceArgs {
    fn run(&self) -> anyhow::Result<()> {
        let threads = self.threads.count();
        let Some(seen) = &self.seen else {
            let mut finders = Finders::new(self.table.read()?);
            return answer_objects(|line| Ok(pc_chance(line, &mut finders, threads)?));
        };
        let seen = Piece::parse_sequence(seen).context("invalid --seen")?;
        let bag = match &self.left {
            Some(left) => Bag::of(&Piece::parse_sequence(left).context("invalid --left")?),
            None => Bag::after(&seen),
        };
        let field = self.field.field()?;
        let position = PcPosition {
            field,
            seen,
            bag: bag.context("impossible pieces: name the pieces left in the bag with --left")?,
            pieces_in_all: field.pieces_left() + 1,
        };
        let finder = self.table.finder(&self.field.rules)?;
        if self.best {
            let progress = |best: &BestMove| show_progress(format!("at least {}", best.adaptive));
            let best = best_move(&position, &finder, threads, progress)?;
            show_progress("");
            return match (best, self.json) {
                (best, true) => output::print(best_answer(best.as_ref())? + "\n"),
                (Some(best), false) => output::print(best_text(&field, &best)),
                (None, false) => output::print(chance_text(&field, &[])),
            };
        }
        let moves = chances(&position, &finder, threads)?;
        if self.json {
            return output::print(chance_answer(&moves)? + "\n");
        }
        output::print(chance_text(&field, &moves))
    }
}

impl PcArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            PcCommand::Placements { .. } => answer_objects(|line| Ok(pc_placements(line)?)),
            PcCommand::Chance(args) => args.run(),
            PcCommand::Solve(args) => args.run(NonZeroUsize::MIN),
            PcCommand::Path(args) => args.solve.run(args.limit),
            PcCommand::Play { options, series } => {
                let games = options.games()?;
                series.check_files(None)?;
                let stop = stop_flag()?;
                let play =
                    |threads, on_game: &(dyn Fn() -> bool + Sync)| games.play(threads, on_game);
                let contest = Contest {
                    series: vec![series.play("best move", games.games, &stop, play)],
                    unit: "clears",
                    goal: Some(("all", games.clears as u64)),
                };
                series.show(contest, &stop)
            }
            PcCommand::Follow { table, threads, .. } => {
                let mut follower = PcFollower::new(table.read()?, threads.count());
                answer_objects(|line| Ok(follower.answer(line)?))
            }
            PcCommand::Table(args) => args.run(),
        }
    }
}
