//! `hatebeam nes`: Nintendo Tetris without gravity.

use super::contest::{SeriesArgs, names};
use crate::input::answer_objects;
use crate::output::CANNOT_WRITE;
use anyhow::Context;
use clap::{Subcommand, ValueEnum};
use hatebeam_agents::json::nes_placements;
use hatebeam_agents::nes::{GameRules, SEARCHES, Widths, find_search, play_sets};
use hatebeam_agents::{Contest, Series};
use hatebeam_tetris::nes::{ARTICLE_GAME_LENGTH, ArticleSets, Cartridge, MAXOUT, Rows};
use hatebeam_tetris::{Piece, Rng};
use std::io::{self, BufWriter, Write};

const HELP: &str = "\
Examples:
  hatebeam nes play --search bfs
  hatebeam nes compare bfs branching --games 10
  hatebeam nes placements --json < positions.jsonl
  hatebeam nes pieces --generator article --seed 205 --games 150";

const PLAY_HELP: &str = "\
A game starts at level 19 and stops when 230 rows have been cleared, or when a piece cannot spawn. `maxout` is the
percentage of games with 999,999 points or more. The greatest possible score is 1,543,160. The defaults are the 150
published games, of which the published search `bfs` has median 1,066,910, mean 1,053,015.73 and maxout 81.33 %, and
`branching` median 1,230,460, mean 1,193,441.87 and maxout 94.67 %.

--csv has one line per game: player, game, score, lines, pieces, complete (230 rows cleared).

Examples:
  hatebeam nes play --search bfs
  hatebeam nes play --search branching --games 10 --widths 3/3/1
  hatebeam nes play --search bfs --rows 22 --generator cartridge --csv games.csv";

const COMPARE_HELP: &str = "\
Every search plays the same pieces. After the table, each search is compared with the first one, game by game.

Examples:
  hatebeam nes compare bfs branching --games 10";

const PLACEMENTS_HELP: &str = "\
Reads one JSON object per line with `rows` (text of X and _, the last row is the floor), `piece` and `field` (`20`, `22` or
`20+2` rows), and prints one object per line with `placements`. Each placement is [orientation, x, y]: the number of
clockwise turns and the centre, whose row 0 is the highest visible row. With `features` = true, it is [orientation, x, y,
[features], value]: the 17 features and the value with the published weights, where lower is better. For an invalid line,
the command prints an object with the line number and the reason, {\"line\":3,\"error\":\"...\"}, processes the other lines, and
exits with code 1.

Examples:
  echo '{\"rows\":[],\"piece\":\"T\",\"field\":\"20\"}' | hatebeam nes placements --json";

const PIECES_HELP: &str = "\
Prints the pieces of each game as letters on one line.

`article` is the generator of the published piece sets: two Mersenne Twisters whose state carries over from each game to
the next one, in which every game has 1,825 pieces. `cartridge` is the generator of the console: a 16-bit shift register
that makes one step per frame. A seed from 2 to 65535 is the state of the register at the start (35208 when the console is
switched on); any other seed selects one.

Examples:
  hatebeam nes pieces --generator article --seed 205 --games 2 --count 30
  hatebeam nes pieces --generator cartridge --seed 35208 --games 1 --frames 37 --count 40";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct NesArgs {
    #[command(subcommand)]
    command: NesCommand,
}

#[derive(Debug, Subcommand)]
enum NesCommand {
    /// Play games with a search
    #[command(after_help = PLAY_HELP)]
    Play {
        /// Search that plays
        #[arg(long, value_name = "NAME", default_value = "bfs", value_parser = search_names())]
        search: String,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// Play the same games with several searches
    #[command(after_help = COMPARE_HELP)]
    Compare {
        /// Searches to compare
        #[arg(value_name = "SEARCH", required = true, value_parser = search_names())]
        searches: Vec<String>,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// List the reachable placements of positions, with features and values on request
    #[command(after_help = PLACEMENTS_HELP)]
    Placements {
        /// Read and print JSON objects, which is the only format
        #[arg(long)]
        json: bool,
    },
    /// Print the pieces of games
    Pieces(PiecesArgs),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GeneratorName {
    Article,
    Cartridge,
}

#[derive(Debug, clap::Args)]
#[command(after_help = PIECES_HELP)]
struct PiecesArgs {
    #[command(flatten)]
    pieces: PiecesOptions,
    /// Number of pieces of a game; `article` has at most 1825
    #[arg(long, value_name = "N", default_value_t = ARTICLE_GAME_LENGTH)]
    count: usize,
    /// Frames before each piece with `cartridge` [default: a random number from 20 to 60]
    #[arg(long, value_name = "N")]
    frames: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct GamesArgs {
    /// Rows of the board: 20, 22 (two more rows above), or 20+2 (cells that lock above disappear)
    #[arg(long, value_name = "ROWS", default_value = "20", value_parser = ["20", "22", "20+2"])]
    rows: String,
    /// Level at the start
    #[arg(long, value_name = "N", default_value_t = GameRules::ARTICLE.start_level)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=29))]
    level: u32,
    /// Stop a game when this many rows have been cleared
    #[arg(long, value_name = "N", default_value_t = GameRules::ARTICLE.stop_lines)]
    stop_lines: u32,
    /// Widths and depth of `branching`: placements of the current piece, placements of the other pieces, unknown pieces
    #[arg(long, value_name = "N/N/N", default_value = "3/5/2")]
    widths: Widths,
    #[command(flatten)]
    pieces: PiecesOptions,
    #[command(flatten)]
    series: SeriesArgs,
}

impl GamesArgs {
    fn run(&self, searches: &[String]) -> anyhow::Result<()> {
        let rows: Rows = self.rows.parse()?;
        let rules = GameRules {
            rows,
            start_level: self.level,
            stop_lines: self.stop_lines,
        };
        let sets = self.pieces.sets(ARTICLE_GAME_LENGTH, None);
        let play = |name: &String| {
            let search = find_search(name)?;
            let make = || (search.make)(rows, self.widths);
            let play = |threads, on_game: &(dyn Fn() + Sync)| {
                play_sets(&sets, threads, &rules, make, on_game)
            };
            Ok(self.series.play(name, sets.len(), play))
        };
        let series: anyhow::Result<Vec<Series>> = searches.iter().map(play).collect();
        self.series.show(&Contest {
            series: series?,
            unit: "points",
            goal: Some(("maxout", u64::from(MAXOUT))),
        })
    }
}

#[derive(Debug, clap::Args)]
struct PiecesOptions {
    /// Generator of the pieces
    #[arg(long, value_enum, default_value_t = GeneratorName::Article)]
    generator: GeneratorName,
    /// Seed of the generator
    #[arg(long, value_name = "N", default_value_t = 205)]
    seed: u64,
    /// Number of games
    #[arg(long, value_name = "N", default_value_t = 150)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    games: u32,
}

impl PiecesOptions {
    /// Returns the pieces of each game.
    fn sets(&self, count: usize, frames: Option<u32>) -> Vec<Vec<Piece>> {
        let mut article = ArticleSets::new(self.seed as u32);
        let mut cartridge = Cartridge::from_seed(self.seed);
        let mut rng = Rng::new(self.seed);
        let mut game = || match self.generator {
            GeneratorName::Article => article.game().into_iter().take(count).collect(),
            GeneratorName::Cartridge => cartridge.game(count, frames, &mut rng),
        };
        (0..self.games).map(|_| game()).collect()
    }
}

fn search_names() -> clap::builder::PossibleValuesParser {
    names(
        SEARCHES
            .iter()
            .map(|search| (search.name, search.description)),
    )
}

impl NesArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            NesCommand::Play { search, games } => games.run(std::slice::from_ref(search)),
            NesCommand::Compare { searches, games } => games.run(searches),
            NesCommand::Placements { .. } => answer_objects(|line| Ok(nes_placements(line)?)),
            NesCommand::Pieces(args) => args.run(),
        }
    }
}

impl PiecesArgs {
    fn run(&self) -> anyhow::Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        for pieces in self.pieces.sets(self.count, self.frames) {
            let letters: String = pieces.into_iter().map(Piece::letter).collect();
            writeln!(out, "{letters}").context(CANNOT_WRITE)?;
        }
        out.flush().context(CANNOT_WRITE)
    }
}
