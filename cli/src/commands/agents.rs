//! `hatebeam agents`: the game of dropped pieces.

use super::contest::{SeriesArgs, names};
use crate::input::answer_objects;
use anyhow::Context;
use clap::Subcommand;
use hatebeam_agents::drop::{AGENTS, DropRun, find_agent, play_games};
use hatebeam_agents::json::drop_placements;
use hatebeam_agents::{Contest, Series};
use hatebeam_tetris::drop::{DropGame, GeneratorKind, PieceSet};
use std::fs;

const HELP: &str = "\
The field has 10 x 20 cells. An action is a rotation and a column; the piece then falls straight down. A game is lost when
a cell comes to rest above the top row.

Examples:
  hatebeam agents play --agent heuristic --games 1000
  hatebeam agents compare heuristic two-piece --games 10 --max-pieces 5000
  hatebeam agents placements --json < positions.jsonl";

const PLAY_HELP: &str = "\
The games of a seed do not depend on the number of threads. --csv has one line per game: player, game, score (rows
cleared), lines, pieces, complete (stopped by --max-pieces). The interval of the mean is a normal approximation; the
lengths of games are close to exponentially distributed, so use 100 games or more.

Examples:
  hatebeam agents play --agent heuristic --games 1000
  hatebeam agents play --agent bcts --games 4 --max-pieces 100000 --csv games.csv
  hatebeam agents play --agent heuristic --pieces small";

const COMPARE_HELP: &str = "\
Every agent plays the same pieces. After the table, each agent is compared with the first one, game by game.

Examples:
  hatebeam agents compare heuristic two-piece --games 10 --max-pieces 5000
  hatebeam agents compare dellacherie bcts dt-20 --games 100 --max-pieces 10000 --json";

const PLACEMENTS_HELP: &str = "\
Reads one JSON object per line with `rows` (text of X and _, the last row is the floor), `piece` and `set` (`standard` or
`small`), and prints one object per line with `actions`. Each action is [rotation, column, [features], value]: rotation 0
none, 1 clockwise, 2 anticlockwise, 3 half turn; the seven features of Brenman's paper; and the value with the published
weights, whose features differ from the paper's in two slips of its program. For an invalid line, the command prints an
object with the line number and the reason, {\"line\":3,\"error\":\"...\"}, processes the other lines, and exits with code 1.

Examples:
  echo '{\"rows\":[\"XX________\"],\"piece\":\"T\",\"set\":\"standard\"}' | hatebeam agents placements --json";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// Play games with an agent
    #[command(after_help = PLAY_HELP)]
    Play {
        /// Agent that plays
        #[arg(long, value_name = "NAME", default_value = "heuristic", value_parser = agent_names())]
        agent: String,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// Play the same games with several agents
    #[command(after_help = COMPARE_HELP)]
    Compare {
        /// Agents to compare
        #[arg(value_name = "AGENT", required = true, value_parser = agent_names())]
        agents: Vec<String>,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// List the distinct actions of positions, with features and values
    #[command(after_help = PLACEMENTS_HELP)]
    Placements {
        /// Read and print JSON objects, which is the only format
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct GamesArgs {
    /// Number of games
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    games: u32,
    /// Seed of the pieces and of the agents
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of columns, 1 to 16
    #[arg(long, value_name = "N", default_value_t = 10)]
    width: usize,
    /// Number of rows, 1 to 56
    #[arg(long, value_name = "N", default_value_t = 20)]
    height: usize,
    /// Set of pieces: standard, small (one to four cells), or a file with pieces drawn in # and .
    #[arg(long, value_name = "SET", default_value = "standard")]
    pieces: String,
    /// Draw pieces from bags, each with every piece once, instead of independently
    #[arg(long)]
    bag: bool,
    /// Stop a game after this many pieces [default: when it is lost]
    #[arg(long, value_name = "N")]
    max_pieces: Option<u64>,
    #[command(flatten)]
    series: SeriesArgs,
}

impl GamesArgs {
    fn run(&self, agents: &[String]) -> anyhow::Result<()> {
        let run = DropRun {
            game: DropGame::new(self.width, self.height, self.piece_set()?)?,
            generator: if self.bag {
                GeneratorKind::Bag
            } else {
                GeneratorKind::Uniform
            },
            seed: self.seed,
            most_pieces: self.max_pieces.unwrap_or(u64::MAX),
        };
        let play = |name: &String| {
            let agent = find_agent(name)?;
            let games = self.games as usize;
            let play = |threads, on_game: &(dyn Fn() + Sync)| {
                play_games(&run, agent.make, games, threads, on_game)
            };
            Ok(self.series.play(name, games, play))
        };
        let series: anyhow::Result<Vec<Series>> = agents.iter().map(play).collect();
        self.series.show(&Contest {
            series: series?,
            unit: "lines",
            goal: None,
        })
    }

    fn piece_set(&self) -> anyhow::Result<PieceSet> {
        match self.pieces.as_str() {
            "standard" => Ok(PieceSet::standard()),
            "small" => Ok(PieceSet::small()),
            file => {
                let text = fs::read_to_string(file).with_context(|| {
                    format!("cannot read the piece set {file}: use standard, small or a file")
                })?;
                PieceSet::parse(&text).with_context(|| file.to_owned())
            }
        }
    }
}

fn agent_names() -> clap::builder::PossibleValuesParser {
    names(AGENTS.iter().map(|agent| (agent.name, agent.description)))
}

impl AgentsArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            AgentsCommand::Play { agent, games } => games.run(std::slice::from_ref(agent)),
            AgentsCommand::Compare { agents, games } => games.run(agents),
            AgentsCommand::Placements { .. } => answer_objects(|line| Ok(drop_placements(line)?)),
        }
    }
}
