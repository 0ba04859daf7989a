//! `hatebeam agents`: play the game "dropped pieces" with agents.

use super::contest::{Named, SeriesArgs, names, players};
use super::tune::TuningArgs;
use crate::input::answer_objects;
use crate::output::{self, Failure};
use anyhow::ensure;
use clap::Subcommand;
use hatebeam_agents::drop::{AGENTS, DropRun, play_games};
use hatebeam_agents::json::drop_placements;
use hatebeam_agents::options::DropOptions;
use hatebeam_agents::tuning::GamesObjective;
use hatebeam_agents::{Contest, DropPlayer, SelectionRound, Series, select_weights};
use hatebeam_host::stop_flag;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, clap::Args)]
#[command(after_help = help!("agents"), arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// Play games with an agent
    #[command(after_help = help!("agents-play"))]
    Play {
        /// Agent that plays [default: none if --weights is given, or else heuristic]
        #[arg(long, value_name = "NAME", value_parser = agent_names(0))]
        agent: Option<String>,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// Play the same games with several agents
    #[command(after_help = help!("agents-compare"))]
    Compare {
        /// Agents to compare
        #[arg(value_name = "AGENT", required = true, value_parser = agent_names(0))]
        agents: Vec<String>,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// Tune the weights of an agent
    #[command(after_help = help!("agents-train"))]
    Train {
        #[command(flatten)]
        tuning: TuningArgs,
        /// Agent whose weights to tune
        #[arg(long, value_name = "NAME", default_value = "bcts", value_parser = agent_names(1))]
        agent: String,
        /// Weights file to start from; its agent replaces --agent [default: the published weights]
        #[arg(long, value_name = "FILE")]
        start: Option<PathBuf>,
        #[command(flatten)]
        options: DropOptions,
    },
    /// Remove the weights of an agent that do not make it better
    #[command(after_help = help!("agents-select"))]
    Select {
        /// Weights file to write, with zeros for the removed weights
        #[arg(value_name = "OUT")]
        file: PathBuf,
        /// Agent whose published weights to select, if --weights is not given
        #[arg(long, value_name = "NAME", default_value = "bcts", value_parser = agent_names(1))]
        agent: String,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// List the distinct actions of positions, with features and values
    #[command(after_help = help!("agents-placements"))]
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
        self.series.check_files(None)?;
        let players = players(agents, &self.weights, DropPlayer::find, DropPlayer::read)?;
        let stop = stop_flag()?;
        let play = |named: &Named<DropPlayer>| self.play(&run, &named.name, &named.player, &stop);
        let contest = Contest {
            series: players.iter().map(play).collect(),
            unit: "lines",
            goal: None,
        };
        self.series.show(contest, &stop)
    }

    fn play(&self, run: &DropRun, name: &str, player: &DropPlayer, stop: &AtomicBool) -> Series {
        let games = self.options.games();
        let make = || player.agent.with_weights(&player.weights);
        let play = |threads, on_game: &(dyn Fn() -> bool + Sync)| {
            play_games(run, make, games, threads, on_game)
        };
        self.series.play(name, games, stop, play)
    }

    /// Removes weights that do not make the player better, and writes the others to `file`. An output error does not end
    /// the selection, and an interruption ends it with the weights of the last complete round, because the selection may
    /// have taken long.
    fn select(&self, player: &DropPlayer, file: &Path) -> anyhow::Result<()> {
        let run = self.options.rules()?;
        self.series.check_files(Some(file))?;
        let stop = stop_flag()?;
        let play = |name: &str, weights: &[f64]| {
            let series = self.play(&run, name, &player.with_weights(weights), &stop);
            (!stop.load(Ordering::Relaxed)).then_some(series)
        };
        let mut removed = Vec::new();
        let mut shown = Ok(());
        let on_round = |round: &SelectionRound| {
            removed.extend(round.removed);
            let result = self.show_round(round);
            if shown.is_ok() {
                shown = result;
            }
        };
        let names = player.agent.weight_names;
        let weights = select_weights(names, &player.weights, "lines", play, on_round)?;
        let text = player.with_weights(&weights).file().text();
        output::write_file(file, text.as_bytes())?;
        shown?;
        if self.series.json {
            output::print_json(&json!({"removed": removed, "file": file.display().to_string()}))?;
        } else {
            output::print(format_args!("{}\n", file.display()))?;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted.into());
        }
        Ok(())
    }

    fn show_round(&self, round: &SelectionRound) -> anyhow::Result<()> {
        let text = if self.series.json {
            round.json()? + "\n"
        } else {
            let removed = round.removed.unwrap_or("nothing");
            format!("{}removed {removed}\n\n", round.contest.text())
        };
        self.series.show_as(&text, &round.contest)
    }
}

/// Returns a parser for the names of agents with at least `least` weights.
fn agent_names(least: usize) -> clap::builder::PossibleValuesParser {
    let agents = AGENTS.iter().filter(|agent| agent.weights.len() >= least);
    names(agents.map(|agent| (agent.name, agent.description)))
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
                let player = DropPlayer::open(start.as_deref(), agent)?;
                let (run, games, cancel) = (options.rules()?, options.games(), stop_flag()?);
                let objective = GamesObjective::drop(&player, &tuning.tuned, &run, games, cancel)?;
                tuning.run(&objective, objective.unit())
            }
            AgentsCommand::Select { file, agent, games } => {
                let one = Failure::Usage("select accepts only one --weights FILE".to_owned());
                ensure!(games.weights.len() < 2, one);
                let start = games.weights.first().map(PathBuf::as_path);
                games.select(&DropPlayer::open(start, agent)?, file)
            }
            AgentsCommand::Placements { .. } => answer_objects(|line| Ok(drop_placements(line)?)),
        }
    }
}
