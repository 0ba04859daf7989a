//! What `hatebeam run` and `hatebeam resume` are told.

#[cfg(feature = "cluster")]
use crate::hooks::HookArgs;
use crate::logs::{LogFormat, Logs, SpanArgs};
#[cfg(feature = "cluster")]
use crate::metrics::MetricsArgs;
use crate::state::StateArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hatebeam_runs::{MAX_WIDTH, Retention};
use hatebeam_search::{EvaluatorKind, Quiescence};
use std::path::PathBuf;
use tracing::level_filters::LevelFilter;

pub(crate) const RUN_EXAMPLES: &str = "\
The same command goes on with a run that was interrupted, or tells its result again: a run is known by
its specification (width, well, start, evaluator, weights), which also settles every frontier, bit for bit,
whatever the machine. Each depth is committed to disk before the next but one is begun; Ctrl-C, a crash or a
full disk costs at most the depth under way.

A run needs some 100 bytes of memory a well of width, and some 12 bytes of disk a well and depth (--keep
says of which depths). It ends where no well has a child that is alive; the best game is then read back,
played through the exact rules, printed, and put into the run's folder `replays`: as text for the original
game, as letters, as JSON with every well, as a picture, and with the plots of the run as an HTML report.

Columns: lines are those of the best game; best, median and cut are the evaluator's scores (in
units of 1/256 of a weight) of the first, the middle and the last well kept.

With --json a line for each depth, then one for the run, whose `best_lines` are those of the game.

Evaluators: `patterns` is a sum over learned tables, and scores most; `knewjade` is a sum of features with
weights; `plain` and `plain-holes` are simpler ones to compare with.

A weights file is TOML; what it leaves out stays as published, and what is on the command line wins:
  evaluator = \"knewjade\"
  quiescence = \"off\"
  [weights]
  holes = 11.2106
  score = -332.2211

Examples:
  hatebeam run
  hatebeam run --width 1M --keep 4
  hatebeam run --width 100k --evaluator knewjade --weight holes=15 --weight score=-400
  hatebeam run --width 250k --start-replay game.txt --from-piece 100
  hatebeam run --width 1000 --columns 6 --rows 8
  hatebeam run --width 10k --json > depths.jsonl";

pub(crate) const RESUME_EXAMPLES: &str = "\
The run is named as `hatebeam runs` lists it, by the beginning of that name, or by the path of its folder.

Examples:
  hatebeam resume patterns-1000000-5f3a9c1e
  hatebeam resume patterns-1000 --threads 8
  hatebeam resume /data/runs/patterns-1000000-5f3a9c1e --json";

/// What to search.
#[derive(Debug, clap::Args)]
pub(crate) struct SpecArgs {
    /// The beam's width: the wells kept of each depth; k, M and G stand for thousands, millions …
    #[arg(long, short, value_name = "WELLS", default_value = "10k", value_parser = parse_wells)]
    pub(crate) width: u64,
    /// What a well is worth [default: what the weights file says; else knewjade where weights are given, and patterns]
    #[arg(long, value_name = "NAME", value_parser = kind_parser(), ignore_case = true)]
    pub(crate) evaluator: Option<EvaluatorKind>,
    /// Whether to judge a well by what it can reach by clearing lines in a row [default: off, or what
    /// the weights file says]
    #[arg(long, value_name = "MODE", value_parser = quiescence_parser(), ignore_case = true)]
    pub(crate) quiescence: Option<Quiescence>,
    /// A TOML file with the evaluator and its weights
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,
    /// A weight, such as holes=12.5; can be given again and again
    #[arg(long = "weight", value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(crate) weight: Vec<String>,
    /// Columns of the well, 4 to 16
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) columns: usize,
    /// Rows of the well below the bar, 1 to 16
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) rows: usize,
    /// Clear full rows even where the piece reaches above the bar, as an emulator of 2022 did
    #[arg(long)]
    pub(crate) clear_above_bar: bool,
    /// Start from this well in hex rather than from the empty one
    #[arg(long, value_name = "HEX", conflicts_with = "start_replay")]
    pub(crate) start_well: Option<String>,
    /// Start from a piece of the replay in this file, in any encoding
    #[arg(long, value_name = "FILE", requires = "from_piece")]
    pub(crate) start_replay: Option<PathBuf>,
    /// The number of the piece, from 1, whose well the search starts with
    #[arg(long, value_name = "N", requires = "start_replay")]
    pub(crate) from_piece: Option<u32>,
}

/// Hours of searching.
pub(crate) fn parse_hours(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(hours) if (1e-4..=1e6).contains(&hours) => Ok(hours),
        _ => Err("give hours from 0.0001 to 1000000".to_owned()),
    }
}

/// What to search, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) what: SpecArgs,
    /// Call the run so rather than by its specification
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// Which run to go on with.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// How a run is searched and shown.
#[derive(Debug, clap::Args)]
pub(crate) struct HowArgs {
    /// Threads that search [default: one a core]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) threads: Option<u16>,
    /// Stop at this depth, pieces before the start counted; going on later is possible
    #[arg(long, value_name = "PIECES")]
    pub(crate) max_depth: Option<u32>,
    /// Stop after so many hours of searching, all told, and read the best game back; going on later is possible
    #[arg(long, value_name = "HOURS", value_parser = parse_hours)]
    pub(crate) max_hours: Option<f64>,
    /// Of which depths the wells stay on the disk: all; a number N for every Nth, 2 to 6; or last, with
    /// which no game can be read back [default: all, or what the run was begun with]
    #[arg(long, value_name = "DEPTHS")]
    pub(crate) keep: Option<Retention>,
    /// Start even where memory or disk seem too small for it
    #[arg(long)]
    pub(crate) ignore_limits: bool,
    #[command(flatten)]
    pub(crate) state: StateArgs,
    /// Print a line of JSON for each depth, and one for the run
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Log to standard error, in place of the progress; HATEBEAM_LOG can name levels and modules, such
    /// as debug or hatebeam_store=debug
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    #[command(flatten)]
    spans: SpanArgs,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(crate) hooks: HookArgs,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    /// Show metrics on more than the loopback
    #[cfg(feature = "cluster")]
    #[arg(long, requires = "metrics")]
    pub(crate) insecure_bind: bool,
}

impl HowArgs {
    /// Whether nothing but logs and results is written.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet || self.log_format.is_some()
    }

    /// Refuses what cannot be meant, before anything is begun.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        #[cfg(feature = "cluster")]
        {
            self.metrics.check(self.insecure_bind)?;
            self.hooks.check()?;
        }
        Ok(())
    }

    /// Sends what is logged to standard error. Without a format that is warnings only.
    pub(crate) fn start_logs(&self) -> anyhow::Result<Logs> {
        let level = match self.log_format {
            Some(_) => LevelFilter::INFO,
            None => LevelFilter::WARN,
        };
        self.spans.start(self.log_format, level, "run")
    }
}

/// A number of wells: `10000`, `10k`, `2.5M`.
pub(crate) fn parse_wells(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text[..at], 1e6),
        Some((at, 'g' | 'G')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let is_number = number
        .chars()
        .all(|letter| letter.is_ascii_digit() || letter == '.' || letter == '_');
    let value: Option<f64> = number.replace('_', "").parse().ok();
    match value.map(|value| value * factor) {
        Some(wells)
            if is_number && wells.fract() == 0.0 && (1.0..=MAX_WIDTH as f64).contains(&wells) =>
        {
            Ok(wells as u64)
        }
        _ => Err(format!(
            "a width is a whole number of wells from 1 to {MAX_WIDTH}, such as 10000, 10k or 2.5M"
        )),
    }
}

/// A name that can be a folder's.
fn parse_name(text: &str) -> Result<String, String> {
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if text.is_empty() || text.len() > 100 || text.starts_with('.') || !text.chars().all(is_fine) {
        return Err("a name is up to 100 letters, digits, dots, dashes and underscores".to_owned());
    }
    Ok(text.to_owned())
}

pub(crate) fn kind_parser() -> impl TypedValueParser<Value = EvaluatorKind> {
    PossibleValuesParser::new(EvaluatorKind::ALL.map(EvaluatorKind::name)).map(|name| {
        let named = |kind: &EvaluatorKind| kind.name().eq_ignore_ascii_case(&name);
        EvaluatorKind::ALL
            .into_iter()
            .find(named)
            .unwrap_or(EvaluatorKind::Patterns)
    })
}

pub(crate) fn quiescence_parser() -> impl TypedValueParser<Value = Quiescence> {
    PossibleValuesParser::new(Quiescence::ALL.map(Quiescence::name)).map(|name| {
        let named = |mode: &Quiescence| mode.name().eq_ignore_ascii_case(&name);
        Quiescence::ALL
            .into_iter()
            .find(named)
            .unwrap_or(Quiescence::Off)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_read() {
        for (text, wells) in [
            ("1", 1),
            ("10k", 10_000),
            ("2.5M", 2_500_000),
            ("1G", 1_000_000_000),
        ] {
            assert_eq!(parse_wells(text), Ok(wells), "{text}");
        }
        for text in [
            "0", "", "k", "-1", "1.5", "1e3", "inf", "nan", "2G", "ten", "1..2k", "0.0001k",
        ] {
            assert!(parse_wells(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_stay_in_their_folder() {
        assert!(parse_name("my-run_2.1").is_ok());
        for text in ["", ".", "..", "a/b", "/a", ".a", "a b", "ä"] {
            assert!(parse_name(text).is_err(), "{text}");
        }
    }
}
