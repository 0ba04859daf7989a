//! `hatebeam nes`: Nintendo Tetris without gravity.

use super::contest::{SeriesArgs, names};
use crate::input::answer_objects;
use crate::output;
use clap::Subcommand;
use hatebeam_agents::json::nes_placements;
use hatebeam_agents::nes::{SEARCHES, find_search, play_sets};
use hatebeam_agents::options::{NesOptions, NesPiecesOptions};
use hatebeam_agents::text::nes as text;
use hatebeam_agents::{Contest, Series};
use hatebeam_tetris::nes::MAXOUT;

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
        /// Search that plays
        #[arg(long, value_name = "NAME", default_value = "bfs", value_parser = search_names())]
        search: String,
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
    /// List the reachable placements of positions, with features and values on request
    #[command(after_help = text::PLACEMENTS_HELP)]
    Placements {
        /// Read and print JSON objects, which is the only format
        #[arg(long)]
        json: bool,
    },
    /// Print the pieces of games
    #[command(after_help = text::PIECES_HELP)]
    Pieces(NesPiecesOptions),
}

#[derive(Debug, clap::Args)]
struct GamesArgs {
    #[command(flatten)]
    options: NesOptions,
    #[command(flatten)]
    series: SeriesArgs,
}

impl GamesArgs {
    fn run(&self, searches: &[String]) -> anyhow::Result<()> {
        let (rules, sets) = (self.options.rules()?, self.options.sets());
        let play = |name: &String| {
            let search = find_search(name)?;
            let make = || (search.make)(rules.rows, self.options.widths);
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
            NesCommand::Pieces(args) => {
                for line in args.lines() {
                    output::print(format_args!("{line}\n"))?;
                }
                Ok(())
            }
        }
    }
}
