//! `hatebeam nes`: play Nintendo Tetris.

use super::contest::{Named, SeriesArgs, names, players};
use super::tune::TuningArgs;
use crate::input::answer_objects;
use crate::output::{self, Failure};
use clap::Subcommand;
use hatebeam_agents::json::nes_placements;
use hatebeam_agents::nes::{GameRules, LearningProgress, SEARCHES, learn, play_sets};
use hatebeam_agents::options::{NesLearnOptions, NesOptions, NesPiecesOptions};
use hatebeam_agents::tuning::GamesObjective;
use hatebeam_agents::{Contest, NesPlayer};
use hatebeam_host::stop_flag;
use hatebeam_tetris::nes::MAXOUT;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("nes"), arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct NesArgs {
    #[command(subcommand)]
    command: NesCommand,
}

#[derive(Debug, Subcommand)]
enum NesCommand {
    /// Play games with a search
    #[command(after_help = help!("nes-play"))]
    Play {
        /// Search that plays [default: none if --weights is given, or else bfs]
        #[arg(long, value_name = "NAME", value_parser = search_names(0))]
        search: Option<String>,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// Play the same games with several searches
    #[command(after_help = help!("nes-compare"))]
    Compare {
        /// Searches to compare
        #[arg(value_name = "SEARCH", required = true, value_parser = search_names(0))]
        searches: Vec<String>,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// Tune the weights of a search
    #[command(after_help = help!("nes-train"))]
    Train {
        #[command(flatten)]
        tuning: TuningArgs,
        /// Search whose weights to tune; `learn` learns those of `learned`
        #[arg(long, value_name = "NAME", default_value = "bfs", value_parser = search_names(1))]
        search: String,
        /// Weights file to start from; its search replaces --search [default: the search's weights]
        #[arg(long, value_name = "FILE")]
        start: Option<PathBuf>,
        /// Half the width of each weight's range, as a multiple of the weight's absolute start value
        #[arg(long, value_name = "X", default_value_t = 0.5)]
        span: f64,
        #[command(flatten)]
        options: NesOptions,
    },
    /// Learn the weights of the search `learned` from games
    #[command(after_help = help!("nes-learn"))]
    Learn(NesLearnOptions),
    /// List the reachable placements of positions, with features and values on request
    #[command(after_help = help!("nes-placements"))]
    Placements {
        /// Read and print JSON objects; this is the only format
        #[arg(long)]
        json: bool,
    },
    /// Print the pieces of games
    #[command(after_help = help!("nes-pieces"))]
    Pieces(NesPiecesOptions),
}

#[derive(Debug, clap::Args)]
struct GamesArgs {
    /// Weights file written by `train`: its search plays with these weights, after the other searches; can be repeated
    #[arg(long, value_name = "FILE")]
    weights: Vec<PathBuf>,
    #[command(flatten)]
    options: NesOptions,
    #[command(flatten)]
    series: SeriesArgs,
}

impl GamesArgs {
    fn run(&self, searches: &[String]) -> anyhow::Result<()> {
        let (rules, sets) = (self.options.rules()?, self.options.sets()?);
        self.series.check_files(None)?;
        let players = players(searches, &self.weights, NesPlayer::find, NesPlayer::read)?;
        let stop = stop_flag()?;
        let play = |named: &Named<NesPlayer>| {
            let NesPlayer { search, weights } = &named.player;
            let make = || search.with_weights(rules.rows, self.options.widths, weights);
            let play = |threads, on_game: &(dyn Fn() -> bool + Sync)| {
                play_sets(&sets, threads, &rules, make, on_game)
            };
            self.series.play(&named.name, sets.len(), &stop, play)
        };
        let contest = Contest {
            series: players.iter().map(play).collect(),
            unit: "points",
            goal: Some(("maxout", u64::from(MAXOUT))),
        };
        self.series.show(contest, &stop)
    }
}

/// Returns a parser for the names of searches with at least `least` named weights.
fn search_names(least: usize) -> clap::builder::PossibleValuesParser {
    let searches = SEARCHES
        .iter()
        .filter(|search| search.weight_names.len() >= least);
    names(searches.map(|search| (search.name, search.description)))
}

impl NesArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            NesCommand::Play { search, games } => {
                let usual = games.weights.is_empty().then(|| "bfs".to_owned());
                games.run(search.clone().or(usual).as_slice())
            }
            NesCommand::Compare { searches, games } => games.run(searches),
            NesCommand::Train {
                tuning,
                search,
                start,
                span,
                options,
            } => {
                let player = NesPlayer::open(start.as_deref(), search)?;
                let (rules, sets) = (options.rules()?, options.sets()?);
                let cancel = stop_flag()?;
                let (tuned, widths) = (&tuning.tuned, options.widths);
                let objective =
                    GamesObjective::nes(&player, *span, tuned, &rules, widths, &sets, cancel)?;
                tuning.run(&objective, objective.unit())
            }
            NesCommand::Learn(options) => {
                let (settings, stop) = (options.settings(), stop_flag()?);
                let on_save = |progress: &LearningProgress| {
                    // A write error on standard output does not stop the learning, because its result is in files.
                    let _ = output::print(format_args!("{progress}\n"));
                    !stop.load(Ordering::Relaxed)
                };
                match learn(&options.folder, &GameRules::ARTICLE, &settings, on_save)? {
                    true => Ok(()),
                    false => Err(Failure::Interrupted.into()),
                }
            }
            NesCommand::Placements { .. } => answer_objects(|line| Ok(nes_placements(line)?)),
            NesCommand::Pieces(options) => {
                let lines = options.lines();
                for line in lines.map_err(|error| Failure::Usage(error.to_string()))? {
                    output::print(format_args!("{line}\n"))?;
                }
                Ok(())
            }
        }
    }
}
