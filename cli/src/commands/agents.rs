//! `hatebeam agents`: play the game "dropped pieces" with agents.

use super::contest::{SeriesArgs, names};
use super::tune::TuningArgs;
use crate::input::answer_objects;
use crate::output::Failure;
use anyhow::{Context, ensure};
use clap::Subcommand;
use hatebeam_agents::drop::{AGENTS, Registered, find_agent, play_games};
use hatebeam_agents::json::drop_placements;
use hatebeam_agents::options::DropOptions;
use hatebeam_agents::text::drop as text;
use hatebeam_agents::tuning::GamesObjective;
use hatebeam_agents::{Contest, WeightsFile};
use hatebeam_host::stop_flag;
use std::path::{Path, PathBuf};

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
        /// Agent that plays [default: none if --weights is given, or else heuristic]
        #[arg(long, value_name = "NAME", value_parser = agent_names())]
        agent: Option<String>,
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
    /// Tune the weights of an agent
    #[command(after_help = text::TRAIN_HELP)]
    Train {
        #[command(flatten)]
        tuning: TuningArgs,
        /// Agent whose weights to tune
        #[arg(long, value_name = "NAME", default_value = "bcts", value_parser = agent_names())]
        agent: String,
        /// Weights file to start from; its agent replaces --agent [default: the published weights]
        #[arg(long, value_name = "FILE")]
        start: Option<PathBuf>,
        #[command(flatten)]
        options: DropOptions,
    },
    /// List the distinct actions of positions, with features and values
    #[command(after_help = text::PLACEMENTS_HELP)]
    Placements {
        /// Read and print JSON objects; this is the only format
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct GamesArgs {
    /// Weights file written by `train`: its agent plays with these weights, after the other agents; can be repeated
    #[arg(long, value_name = "FILE")]
    weights: Vec<PathBuf>,
    #[command(flatten)]
    options: DropOptions,
    #[command(flatten)]
    series: SeriesArgs,
}

impl GamesArgs {
    fn run(&self, agents: &[String]) -> anyhow::Result<()> {
        let run = self.options.rules()?;
        let games = self.options.games();
        let play = |name: &str, agent: &Registered, weights: &[f64]| {
            let play = |threads, on_game: &(dyn Fn() + Sync)| {
                play_games(
                    &run,
                    || agent.with_weights(weights),
                    games,
                    threads,
                    on_game,
                )
            };
            self.series.play(name, games, play)
        };
        let mut series = Vec::new();
        for name in agents {
            let agent = find_agent(name)?;
            series.push(play(name, agent, agent.weights));
        }
        for path in &self.weights {
            let (agent, weights) = read_weights(path)?;
            series.push(play(&path.display().to_string(), agent, &weights));
        }
        self.series.show(&Contest {
            series,
            unit: "lines",
            goal: None,
        })
    }
}

/// Reads a weights file, and returns its agent and the weights.
fn read_weights(path: &Path) -> anyhow::Result<(&'static Registered, Vec<f64>)> {
    let file = WeightsFile::read(path)?;
    let agent = find_agent(&file.player).with_context(|| path.display().to_string())?;
    Ok((agent, file.in_order(agent.weight_names, path)?))
}

fn agent_names() -> clap::builder::PossibleValuesParser {
    names(AGENTS.iter().map(|agent| (agent.name, agent.description)))
}

impl AgentsArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            AgentsCommand::Play { agent, games } => {
                let usual = games.weights.is_empty().then(|| "heuristic".to_owned());
                games.run(agent.clone().or(usual).as_slice())
            }
            AgentsCommand::Compare { agents, games } => games.run(agents),
            AgentsCommand::Train {
                tuning,
                agent,
                start,
                options,
            } => {
                let (mut agent, run) = (find_agent(agent)?, options.rules()?);
                let mut weights = agent.weights.to_vec();
                if let Some(path) = start {
                    (agent, weights) = read_weights(path)?;
                }
                ensure!(
                    !weights.is_empty(),
                    Failure::Usage(format!("{} has no weights to tune", agent.name))
                );
                let cancel = stop_flag()?;
                let objective =
                    GamesObjective::drop(agent, &weights, &run, options.games(), cancel);
                tuning.run(&objective, objective.unit())
            }
            AgentsCommand::Placements { .. } => answer_objects(|line| Ok(drop_placements(line)?)),
        }
    }
}
