//! `hatebeam nes`: play Nintendo Tetris without gravity.

use super::contest::{SeriesArgs, names};
use super::tune::TuningArgs;
use crate::input::answer_objects;
use crate::output;
use anyhow::Context;
use clap::Subcommand;
use hatebeam_agents::json::nes_placements;
use hatebeam_agents::nes::{RegisteredSearch, SEARCHES, find_search, play_sets};
use hatebeam_agents::options::{NesOptions, NesPiecesOptions};
use hatebeam_agents::text::nes as text;
use hatebeam_agents::tuning::GamesObjective;
use hatebeam_agents::{Contest, WeightsFile};
use hatebeam_host::stop_flag;
use hatebeam_tetris::nes::MAXOUT;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = text::HELP, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct NesArgs {
    #[command(subcommand)]
    command: NesCommand,
}

#[derive(Debug, Subcommand)]
enum NesCommand {
    /// Play games with a search
    #[command(after_help = text::PLAY_HELP)]
    Play {
        /// Search that plays [default: none if --weights is given, or else bfs]
        #[arg(long, value_name = "NAME", value_parser = search_names())]
        search: Option<String>,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// Play the same games with several searches
    #[command(after_help = text::COMPARE_HELP)]
    Compare {
        /// Searches to compare
        #[arg(value_name = "SEARCH", required = true, value_parser = search_names())]
        searches: Vec<String>,
        #[command(flatten)]
        games: GamesArgs,
    },
    /// Tune the weights of a search
    #[command(after_help = text::TRAIN_HELP)]
    Train {
        #[command(flatten)]
        tuning: TuningArgs,
        /// Search whose weights to tune
        #[arg(long, value_name = "NAME", default_value = "bfs", value_parser = search_names())]
        search: String,
        /// Weights file to start from; its search replaces --search [default: the search's weights]
        #[arg(long, value_name = "FILE")]
        start: Option<PathBuf>,
        #[command(flatten)]
        options: NesOptions,
    },
    /// List the reachable placements of positions, with features and values on request
    #[command(after_help = text::PLACEMENTS_HELP)]
    Placements {
        /// Read and print JSON objects; this is the only format
        #[arg(long)]
        json: bool,
    },
    /// Print the pieces of games
    #[command(after_help = text::PIECES_HELP)]
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
        let (rules, sets) = (self.options.rules()?, self.options.sets());
        let play = |name: &str, search: &RegisteredSearch, weights: &[f64]| {
            let make = || search.with_weights(rules.rows, self.options.widths, weights);
            let play = |threads, on_game: &(dyn Fn() + Sync)| {
                play_sets(&sets, threads, &rules, make, on_game)
            };
            self.series.play(name, sets.len(), play)
        };
        let mut series = Vec::new();
        for name in searches {
            let search = find_search(name)?;
            series.push(play(name, search, search.weights));
        }
        for path in &self.weights {
            let (search, weights) = read_weights(path)?;
            series.push(play(&path.display().to_string(), search, &weights));
        }
        self.series.show(&Contest {
            series,
            unit: "points",
            goal: Some(("maxout", u64::from(MAXOUT))),
        })
    }
}

/// Reads a weights file, and returns its search and the weights.
fn read_weights(path: &Path) -> anyhow::Result<(&'static RegisteredSearch, Vec<f64>)> {
    let file = WeightsFile::read(path)?;
    let search = find_search(&file.player).with_context(|| path.display().to_string())?;
    Ok((search, file.in_order(search.weight_names, path)?))
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
            NesCommand::Play { search, games } => {
                let usual = games.weights.is_empty().then(|| "bfs".to_owned());
                games.run(search.clone().or(usual).as_slice())
            }
            NesCommand::Compare { searches, games } => games.run(searches),
            NesCommand::Train {
                tuning,
                search,
                start,
                options,
            } => {
                let (search, weights) = match start {
                    Some(path) => read_weights(path)?,
                    None => {
                        let search = find_search(search)?;
                        (search, search.weights.to_vec())
                    }
                };
                let (rules, sets) = (options.rules()?, options.sets());
                let cancel = stop_flag()?;
                let widths = options.widths;
                let objective =
                    GamesObjective::nes(search, &weights, &rules, widths, &sets, cancel);
                tuning.run(&objective, objective.unit())
            }
            NesCommand::Placements { .. } => answer_objects(|line| Ok(nes_placements(line)?)),
            NesCommand::Pieces(args) => {
                for line in args.lines() {
                    output::print(format_args!("{line}\n"))?;
                }
                Ok(())
            }
        }
    }
}
