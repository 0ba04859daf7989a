//! Groups of arguments that several commands share, and parsers of values.

use anyhow::{Context, bail, ensure};
use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use hatebeam_cost::MAX_HOURS;
use hatebeam_game::{Encoding, Enemy, Geometry, Rules};
use hatebeam_runs::{LoopRule, MAX_WIDTH};
use hatebeam_search::{EvaluatorKind, MAX_NETWORK_BYTES, Network, Quiescence};
use hatebeam_telemetry::{LogFormat, LogSettings, Logs};
use std::fmt;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tracing::level_filters::LevelFilter;

/// A replay to read.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ReplayInput {
    /// Replay in any encoding; `-` reads standard input [default: standard input]
    #[arg(value_name = "REPLAY", conflicts_with = "file")]
    pub(crate) replay: Option<String>,
    /// Read the replay from this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Encoding of the replay [default: detected from the text]
    #[arg(long, value_name = "ENCODING", value_parser = encoding_parser(), ignore_case = true)]
    pub(crate) from: Option<Encoding>,
}

/// The enemy, the size of the well, and the rules.
#[derive(Debug, clap::Args)]
pub(crate) struct MatchArgs {
    /// Algorithm that chooses the pieces
    #[arg(long, value_name = "ENEMY", default_value = Enemy::Hatetris.name())]
    #[arg(value_parser = enemy_parser(), ignore_case = true)]
    pub(crate) enemy: Enemy,
    #[command(flatten)]
    pub(crate) variant: VariantArgs,
}

/// The size of the well, and the rules.
#[derive(Debug, clap::Args)]
pub(crate) struct VariantArgs {
    /// Columns of the well, 4 to 16
    #[arg(long, alias = "width", value_name = "N", default_value_t = 10, value_parser = parse_columns)]
    columns: usize,
    /// Rows of the well below the bar, 1 to 16
    #[arg(long, alias = "height", value_name = "N", default_value_t = 16, value_parser = parse_rows)]
    rows: usize,
    /// Clear full rows even if the piece reaches above the bar, as a HATETRIS emulator from 2022 does
    #[arg(long)]
    clear_above_bar: bool,
}

impl VariantArgs {
    pub(crate) fn geometry(&self) -> anyhow::Result<Geometry> {
        Ok(Geometry::new(self.columns, self.rows)?)
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules {
            clear_above_bar: self.clear_above_bar,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct ThreadsArgs {
    /// Number of search threads [default: one per core]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
}

impl ThreadsArgs {
    pub(crate) fn count(&self) -> usize {
        self.threads.map_or_else(hatebeam_host::cores, usize::from)
    }
}

/// Destination of tracing spans, in addition to the log.
#[derive(Debug, clap::Args)]
pub(crate) struct SpanArgs {
    /// Send tracing spans over gRPC to the OpenTelemetry collector at this address: spans of runs, epochs (assignments of
    /// shards to workers), depths, and tables (the wells of one shard at one depth)
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
}

impl SpanArgs {
    /// Starts the log of this process.
    pub(crate) fn start_logs(
        &self,
        format: LogFormat,
        level: LevelFilter,
        process: &'static str,
    ) -> anyhow::Result<Logs> {
        let settings = LogSettings {
            format,
            level,
            process,
            #[cfg(feature = "otlp")]
            collector: self.otlp.clone(),
            #[cfg(not(feature = "otlp"))]
            collector: None,
        };
        Ok(Logs::start(&settings)?)
    }
}

/// Returns a parser for the names of the values in `all`. It ignores case only in arguments with `ignore_case`.
fn named_parser<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(name)).try_map(move |text| {
        let mut named = all.into_iter();
        let found = named.find(|value| name(*value).eq_ignore_ascii_case(&text));
        found.ok_or_else(|| format!("unknown value {text:?}"))
    })
}

/// Returns a parser of the enemies whose whole game tree can be searched.
pub(crate) fn solved_enemy_parser() -> impl TypedValueParser<Value = Enemy> {
    let supported = [
        Enemy::Hatetris,
        Enemy::Mild,
        Enemy::Lovetris,
        Enemy::Burgiel,
    ];
    named_parser(supported, Enemy::name)
}

pub(crate) fn enemy_parser() -> impl TypedValueParser<Value = Enemy> {
    named_parser(Enemy::ALL, Enemy::name)
}

fn encoding_parser() -> impl TypedValueParser<Value = Encoding> {
    named_parser(Encoding::ALL, Encoding::name)
}

/// The value of `--evaluator`.
#[derive(Clone, Debug)]
pub(crate) enum EvaluatorArg {
    Named(EvaluatorKind),
    /// The path of a network file.
    File(PathBuf),
}

impl fmt::Display for EvaluatorArg {
    /// Writes the name of a built-in evaluator, or the path of a network file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvaluatorArg::Named(EvaluatorKind::Network(digest)) => {
                let mut names = Network::SHIPPED.into_iter();
                let is_it =
                    |name: &&str| Network::shipped(name).is_some_and(|it| it.digest() == *digest);
                f.write_str(names.find(is_it).unwrap_or("network"))
            }
            EvaluatorArg::Named(kind) => f.write_str(kind.name()),
            EvaluatorArg::File(path) => path.display().fmt(f),
        }
    }
}

impl EvaluatorArg {
    /// Parses an evaluator name or a path. A path must contain a path separator or a dot, so a mistyped name is an
    /// error.
    pub(crate) fn parse(text: &str) -> Result<EvaluatorArg, String> {
        let mut kinds = EvaluatorKind::ALL.into_iter();
        if let Some(kind) = kinds.find(|kind| kind.name().eq_ignore_ascii_case(text)) {
            return Ok(EvaluatorArg::Named(kind));
        }
        if let Some(network) = Network::shipped(&text.to_ascii_lowercase()) {
            let kind = EvaluatorKind::Network(network.digest());
            return Ok(EvaluatorArg::Named(kind));
        }
        if text.contains([std::path::MAIN_SEPARATOR, '.']) {
            return Ok(EvaluatorArg::File(text.into()));
        }
        let names = EvaluatorKind::ALL.map(EvaluatorKind::name).join(", ");
        let networks = Network::SHIPPED.join(", ");
        Err(format!(
            "give {names}, {networks}, or the path of a network file, such as ./{text}"
        ))
    }

    /// Returns the evaluator. For a path, reads and registers the network first.
    pub(crate) fn load(&self) -> anyhow::Result<EvaluatorKind> {
        let path = match self {
            EvaluatorArg::Named(kind) => return Ok(*kind),
            EvaluatorArg::File(path) => path,
        };
        let read =
            || -> anyhow::Result<Network> { Ok(Network::decode(&read_network_file(path)?)?) };
        let network = read().with_context(|| format!("network {}", path.display()))?;
        let digest = network.digest();
        // The reference is leaked, because the network stays registered only while a reference to it exists.
        std::mem::forget(Network::register(network));
        Ok(EvaluatorKind::Network(digest))
    }
}

/// The network of an existing run.
#[derive(Debug, clap::Args)]
pub(crate) struct NetworkArgs {
    /// Network file with which the run began; needed if its network is not part of the program
    #[arg(long, value_name = "FILE")]
    evaluator: Option<PathBuf>,
}

impl NetworkArgs {
    /// Reads and registers the network. Returns an error if it is not the evaluator of the run, which is `kind`.
    pub(crate) fn load(&self, kind: EvaluatorKind) -> anyhow::Result<()> {
        let Some(path) = &self.evaluator else {
            return Ok(());
        };
        let shipped = path.to_str().and_then(Network::shipped);
        ensure!(
            shipped.is_none() || path.exists(),
            "the network {} is part of the program, so its file is not needed: omit --evaluator",
            path.display()
        );
        if EvaluatorArg::File(path.clone()).load()? == kind {
            return Ok(());
        }
        let path = path.display();
        match kind {
            EvaluatorKind::Network(digest) => bail!(
                "{path} contains another network than the run, which has network {digest}: pass the file with which the \
                 run began"
            ),
            kind => bail!(
                "the run has the evaluator {}, not the network in {path}: omit --evaluator",
                kind.name()
            ),
        }
    }
}

/// Reads a network file. Stops one byte after the maximum size of a network, so decoding refuses a longer file.
pub(crate) fn read_network_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(MAX_NETWORK_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn quiescence_parser() -> impl TypedValueParser<Value = Quiescence> {
    named_parser(Quiescence::ALL, Quiescence::name)
}

pub(crate) fn loop_rule_parser() -> impl TypedValueParser<Value = LoopRule> {
    named_parser(LoopRule::ALL, LoopRule::name)
}

pub(crate) fn log_format_parser() -> impl TypedValueParser<Value = LogFormat> {
    named_parser(LogFormat::ALL, LogFormat::name)
}

/// Returns a parser for the path of a folder, which need not exist. It refuses an existing file.
pub(crate) fn folder_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path: PathBuf| match path.is_file() {
        true => Err(format!("{} is a file: name a folder", path.display())),
        false => Ok(path),
    })
}

/// Parses a number of columns of a well.
pub(crate) fn parse_columns(text: &str) -> Result<usize, String> {
    number_in(4..=16, "a number of columns")(text)
}

/// Parses a number of rows of a well.
pub(crate) fn parse_rows(text: &str) -> Result<usize, String> {
    number_in(1..=16, "a number of rows")(text)
}

/// Parses a depth at which a run stops.
pub(crate) fn parse_depth(text: &str) -> Result<u32, String> {
    number_in(1..=u32::MAX, "a depth")(text)
}

/// Returns a parser for numbers in `range`. `what` describes the number in the error message, such as `a number of
/// hours`.
pub(crate) fn number_in<T: FromStr + PartialOrd + fmt::Display + Clone>(
    range: RangeInclusive<T>,
    what: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| match text.parse::<T>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!(
            "give {what} from {} to {}",
            range.start(),
            range.end()
        )),
    }
}

/// Parses a search time in hours.
pub(crate) fn parse_hours(text: &str) -> Result<f64, String> {
    number_in(1e-4..=MAX_HOURS, "a number of hours")(text)
}

/// Parses a number of wells: `10000`, `10k`, `2.5M`.
pub(crate) fn parse_wells(text: &str) -> Result<u64, String> {
    let is_valid = |wells: &u64| (1..=MAX_WIDTH).contains(wells);
    whole_number(text).filter(is_valid).ok_or_else(|| {
        format!(
            "a width is a whole number of wells from 1 to {MAX_WIDTH}, such as 10000, 10k or 2.5M"
        )
    })
}

/// Returns the exact value of a decimal number with a suffix k, M or G, or without one. Returns `None` if the text is not
/// such a number, or if its value is not a whole number or is too large.
fn whole_number(text: &str) -> Option<u64> {
    let (number, zeros) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 3),
        Some((at, 'm' | 'M')) => (&text[..at], 6),
        Some((at, 'g' | 'G')) => (&text[..at], 9),
        _ => (text, 0),
    };
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let fraction = fraction.trim_end_matches('0');
    // The suffix moves the decimal point behind the fraction, or else the number is not whole.
    let places = u32::try_from(fraction.len()).ok()?;
    let zeros = u32::checked_sub(zeros, places)?;
    let digits = format!("{whole}{fraction}");
    // `parse` would accept a sign.
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    let value: Option<u64> = digits.parse().ok();
    value.filter(|_| is_number)?.checked_mul(10_u64.pow(zeros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_wells_accepts_whole_numbers_with_suffixes() {
        for (text, wells) in [
            ("1", 1),
            ("10k", 10_000),
            ("2.5M", 2_500_000),
            ("8.2M", 8_200_000),
            ("2.01k", 2_010),
            ("1_000.50k", 1_000_500),
            (".5k", 500),
            ("5.", 5),
            ("1G", 1_000_000_000),
        ] {
            assert_eq!(parse_wells(text), Ok(wells), "{text}");
        }
        for text in [
            "0",
            "",
            "k",
            ".",
            "_",
            "-1",
            "+1",
            "1.5",
            "1e3",
            "inf",
            "nan",
            "2G",
            "ten",
            "1..2k",
            "0.0001k",
            "99999999999999999999",
            "99999999999G",
        ] {
            assert!(parse_wells(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parse_wells_is_exact_for_up_to_three_decimals() {
        for (suffix, factor) in [
            ("", 1),
            ("k", 1_000),
            ("M", 1_000_000),
            ("G", 1_000_000_000),
        ] {
            for thousandths in 0..=12_000_u64 {
                let wells = thousandths * factor / 1000;
                let is_whole = thousandths * factor % 1000 == 0;
                let is_valid = is_whole && (1..=MAX_WIDTH).contains(&wells);
                let expected = is_valid.then_some(wells);
                let number = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
                let short = number.trim_end_matches('0').trim_end_matches('.');
                for number in [&number, short] {
                    let text = format!("{number}{suffix}");
                    assert_eq!(parse_wells(&text).ok(), expected, "{text}");
                }
            }
        }
    }
}
