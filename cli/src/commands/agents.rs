//! `hatebeam agents`: the game of dropped pieces.

use super::contest::{SeriesArgs, names};
use crate::input::answer_objects;
use clap::Subcommand;
use hatebeam_agents::drop::{AGENTS, find_agent, play_games};
use hatebeam_agents::json::drop_placements;
use hatebeam_agents::options::DropOptions;
use hatebeam_agents::text::drop as text;
use hatebeam_agents::{Contest, Series};

#[derive(Debug, clap::Args)]
#[command(after_help = text::HELP, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// Play games with an agent
    #[command(after_help = text::PLAY_HELP)]
    Play {
        /// Agent that plays
        #[arg(long, value_name = "NAME", default_value = "heuristic", value_parser = agent_names())]
        agent: String,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// Play the same games with several agents
    #[command(after_help = text::COMPARE_HELP)]
    Compare {
        /// Agents to compare
        #[arg(value_name = "AGENT", required = true, value_parser = agent_names())]
        agents: Vec<String>,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// List the distinct actions of positions, with features and values
    #[command(after_help = text::PLACEMENTS_HELP)]
    Placements {
        /// Read and print JSON objects, which is the only format
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct GamesArgs {
    #[command(flatten)]
    options: DropOptions,
    #[command(flatten)]
    series: SeriesArgs,
}

impl GamesArgs {
    fn run(&self, agents: &[String]) -> anyhow::Result<()> {
        let run = self.options.rules()?;
        let play = |name: &String| {
            let agent = find_agent(name)?;
            let games = self.options.games();
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
