//! `hatebeam pc`: perfect clears in guideline Tetris.

use crate::args::ThreadsArgs;
use crate::input::answer_objects;
use crate::output;
use anyhow::{Context, bail, ensure};
use clap::Subcommand;
use hatebeam_agents::json::{Finders, chance_answer, pc_chance, pc_placements};
use hatebeam_agents::pc::{BoardTable, PcFinder, PcGame, PcPosition, Solver, chance_text, chances};
use hatebeam_telemetry::show_progress;
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{Bag, DropMode, KickTable, Kicks, LowField, SrsPlacement, parse_field};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;

const HELP: &str = "\
A perfect clear fills all rows of a field and leaves it empty. Pieces move as in guideline Tetris without gravity.

Examples:
  hatebeam pc solve SOLTZJIZLSI
  hatebeam pc chance --seen IJLOSTZ
  hatebeam pc table srs.table
  hatebeam pc path TJZSLI --field XXXX______/XXXX_____X/XXXX_____X/XXXXX____X
  hatebeam pc placements --json < positions.jsonl";

const SOLVE_HELP: &str = "\
QUEUE has the current piece, or with --held the held piece, and the pieces after it. An empty field of four rows needs ten
pieces, and with hold the search also uses the eleventh. Prints the filled field with the letter of the piece in each cell,
the moves with their keys, and an address of the editor Fumen that shows the moves. The exit code is 1 if the queue has no
perfect clear.

Keys: left, right, down (one row), soft-drop (until the piece lands), cw, ccw, 180 (turns), hard-drop, hold.

With --json, prints one object with `picture` (rows), `moves` (`piece`, `cells` as column + 10 x row, `hold`, `keys`,
`lines`) and `fumen`.

Examples:
  hatebeam pc solve SOLTZJIZLSI
  hatebeam pc solve IO --lines 3 --field XXXX__XXXX/XXXX__XXXX/____XXXXXX
  hatebeam pc solve SOLTZJIZLSI --kicks srsplus --json";

const TABLE_HELP: &str = "\
Enumerates all boards that can be reached from the empty field and that can be cleared, and prints their number after each
number of pieces. Four rows take many minutes. Everything works without the table, but slower.

Examples:
  hatebeam pc table srs.table
  hatebeam pc table two.table --lines 2 --hard-drop";

const PATH_HELP: &str = "\
Prints the perfect clears of a queue whose filled fields differ, with one line of JSON for each with --json; see
`hatebeam pc solve --help`. The exit code is 1 if the queue has no perfect clear.

Examples:
  hatebeam pc path TJZSLI --field XXXX______/XXXX_____X/XXXX_____X/XXXXX____X
  hatebeam pc path SOLTZJIZLSI --limit 3";

const PLACEMENTS_HELP: &str = "\
Reads one JSON object per line with `rows` (text of X and _, the last row is the floor), `piece`, `kicks` (nokick, srs,
srs+180j, srs+180t, srsplus, or hard for SRS with hard drops only) and `lines`, and prints one object per line with
`placements`: the four cells of each reachable placement, as column + 10 x row, where row 0 is the floor. With `lines`, a
piece must rest wholly within that number of rows. For an invalid line, the command prints an object with the line number
and the reason, {\"line\":3,\"error\":\"...\"}, processes the other lines, and exits with code 1.

Examples:
  echo '{\"rows\":[],\"piece\":\"T\",\"kicks\":\"srs\",\"lines\":4}' | hatebeam pc placements --json";

const CHANCE_HELP: &str = "\
The clairvoyant chance of a first move is the probability that a perfect clear beginning with it exists. The adaptive
chance is the probability that a player has who chooses every later move best for the pieces seen by then; the player sees
one more piece after each move.

Prints the best move as a picture, and all moves, best first. Cells are numbered column + 10 x row. At most six pieces can
be unknown.

Without --seen, reads one JSON object per line with `rows` (text of X and _, the last row is the floor), `lines` to clear
(4), `seen` (the held or current piece and those after it), `left_in_bag` (empty for a new bag), `pieces_in_all` (one more
than the field needs) and `kicks` (srs), and prints one object per line with `best_adaptive`, `best_clairvoyant` and
`moves`, best first: `piece`, `cells`, `clairvoyant` and `adaptive`. For an invalid line, the command prints an object with
the line number and the reason, {\"line\":3,\"error\":\"...\"}, processes the other lines, and exits with code 1.

Examples:
  hatebeam pc chance --seen IJLOSTZ
  hatebeam pc chance --seen TI --left JLOSZ --field XXXXX____X/XXXXXX___X/XXXXXXX__X/XXXXXX___X
  echo '{\"rows\":[],\"seen\":\"IJLOSTZ\",\"left_in_bag\":\"\"}' | hatebeam pc chance --json";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct PcArgs {
    #[command(subcommand)]
    command: PcCommand,
}

#[derive(Debug, Subcommand)]
enum PcCommand {
    /// List the reachable placements of positions
    #[command(after_help = PLACEMENTS_HELP)]
    Placements {
        /// Read and print JSON objects, which is the only format
        #[arg(long)]
        json: bool,
    },
    /// Compute the chances of a perfect clear after each first move
    Chance(ChanceArgs),
    /// Find a perfect clear of a queue
    Solve(SolveArgs),
    /// Find different perfect clears of a queue
    Path(PathArgs),
    /// Build the table that makes `pc chance` faster
    Table(TableArgs),
}

/// The field and the rules of movement.
#[derive(Debug, clap::Args)]
struct FieldArgs {
    /// Rows of the field from top to bottom, such as XXXX______/XXXXXX____ [default: empty]
    #[arg(
        long,
        value_name = "ROWS",
        default_value = "",
        hide_default_value = true
    )]
    field: String,
    /// Number of rows to clear, 1 to 4
    #[arg(long, value_name = "N", default_value_t = 4)]
    lines: usize,
    /// Kick table: nokick, srs, srs+180j (Jstris), srs+180t, srsplus (TETR.IO), or a file of solution-finder
    #[arg(long, value_name = "TABLE", default_value = "srs")]
    kicks: String,
    /// Drop only from above, without moves below the surface
    #[arg(long)]
    hard_drop: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SOLVE_HELP)]
struct SolveArgs {
    /// Pieces in order, as letters
    #[arg(value_name = "QUEUE")]
    queue: String,
    #[command(flatten)]
    field: FieldArgs,
    /// Place the pieces in their order
    #[arg(long)]
    no_hold: bool,
    /// The first piece is in the hold slot
    #[arg(long, conflicts_with = "no_hold")]
    held: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = PATH_HELP)]
struct PathArgs {
    #[command(flatten)]
    solve: SolveArgs,
    /// Maximum number of perfect clears
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CHANCE_HELP)]
struct ChanceArgs {
    /// Pieces that the player sees: the held or current piece, and those after it [default: read JSON objects]
    #[arg(long, value_name = "PIECES")]
    seen: Option<String>,
    /// Pieces left in the bag after the seen ones [default: the first seen piece is the first one of a bag]
    #[arg(long, value_name = "PIECES", requires = "seen")]
    left: Option<String>,
    #[command(flatten)]
    field: FieldArgs,
    /// Table of `hatebeam pc table`, which makes the computation faster
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Read or print JSON objects
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadsArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = TABLE_HELP)]
struct TableArgs {
    /// File to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Number of rows to clear, 1 to 4
    #[arg(long, value_name = "N", default_value_t = 4)]
    lines: usize,
    /// Kick table: nokick, srs, srs+180j (Jstris), srs+180t or srsplus (TETR.IO)
    #[arg(long, value_name = "TABLE", default_value = "srs")]
    kicks: String,
    /// Drop only from above, without moves below the surface
    #[arg(long)]
    hard_drop: bool,
    #[command(flatten)]
    threads: ThreadsArgs,
}

impl FieldArgs {
    fn field(&self) -> anyhow::Result<LowField> {
        let rows: Vec<&str> = self
            .field
            .split('/')
            .filter(|row| !row.is_empty())
            .collect();
        let field = parse_field(&rows).context("invalid --field")?;
        LowField::of(&field, self.lines).context("invalid --field")
    }

    fn kicks(&self) -> anyhow::Result<KickTable> {
        let error = match self.kicks.parse::<Kicks>() {
            Ok(kicks) => return Ok(KickTable::built_in(kicks)),
            Err(error) => error,
        };
        match fs::read_to_string(&self.kicks) {
            Ok(text) => KickTable::parse(&text).with_context(|| self.kicks.clone()),
            Err(_) => bail!(error),
        }
    }

    fn drop_mode(&self) -> DropMode {
        drop_mode(self.hard_drop)
    }
}

fn drop_mode(hard: bool) -> DropMode {
    if hard { DropMode::Hard } else { DropMode::Soft }
}

impl TableArgs {
    fn run(&self) -> anyhow::Result<()> {
        let kicks: Kicks = self.kicks.parse()?;
        let (table, drop) = (KickTable::built_in(kicks), drop_mode(self.hard_drop));
        let threads = self.threads.count();
        let progress = |step: &str| show_progress(step);
        let built = BoardTable::build(self.lines, kicks.name(), &table, drop, threads, progress)?;
        show_progress("");
        let name = || self.file.display().to_string();
        let file = File::create(&self.file).with_context(name)?;
        built.write(BufWriter::new(file)).with_context(name)?;
        let header = built.header();
        output::print("pieces      boards\n")?;
        for (pieces, count) in header.counts.iter().enumerate() {
            output::print(format_args!("{pieces:>6}  {count:>10}\n"))?;
        }
        let sum: usize = header.counts.iter().sum();
        output::print(format_args!(
            "   sum  {sum:>10}\nsha256 {}\n",
            header.sha256
        ))
    }
}

impl SolveArgs {
    fn run(&self, limit: usize) -> anyhow::Result<()> {
        let game = PcGame {
            field: self.field.field()?,
            queue: Piece::parse_sequence(&self.queue).context("invalid QUEUE")?,
            hold: !self.no_hold,
            starts_held: self.held,
            kicks: self.field.kicks()?,
            drop: self.field.drop_mode(),
        };
        let mut solver = Solver::new(&game.kicks, game.drop);
        let mut solutions: Vec<Vec<SrsPlacement>> = Vec::new();
        if limit == 1 {
            solutions.extend(solver.solve(&game.field, &game.queue, game.hold)?);
        } else {
            let mut pictures = BTreeSet::new();
            solver.solve_each(&game.field, &game.queue, game.hold, |solution| {
                if pictures.insert(game.picture(solution)) {
                    solutions.push(solution.to_vec());
                }
                solutions.len() < limit
            })?;
        }
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
        let table = self.table()?;
        let Some(seen) = &self.seen else {
            let mut finders = Finders::new(table);
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
            bag: bag.context("impossible pieces: name those left in the bag with --left")?,
            pieces_in_all: field.pieces_left() + 1,
        };
        let mode = self.field.drop_mode();
        let mut finder = PcFinder::new(&self.field.kicks()?, mode);
        if let Some(table) = table {
            table.check_rules(&self.field.kicks, mode)?;
            finder = finder.with_table(table);
        }
        let moves = chances(&position, &finder, threads)?;
        if self.json {
            return output::print(chance_answer(&moves)? + "\n");
        }
        output::print(chance_text(&field, &moves))
    }

    fn table(&self) -> anyhow::Result<Option<BoardTable>> {
        let Some(path) = &self.table else {
            return Ok(None);
        };
        let name = || path.display().to_string();
        let file = File::open(path).with_context(name)?;
        Ok(Some(BoardTable::read(file).with_context(name)?))
    }
}

impl PcArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            PcCommand::Placements { .. } => answer_objects(|line| Ok(pc_placements(line)?)),
            PcCommand::Chance(args) => args.run(),
            PcCommand::Solve(args) => args.run(1),
            PcCommand::Path(args) => args.solve.run(args.limit),
            PcCommand::Table(args) => args.run(),
        }
    }
}
