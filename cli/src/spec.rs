//! The specification of a run, from the command line and a weights file.

use crate::args::{EvaluatorArg, ReplayInput, parse_wells, quiescence_parser};
use crate::input::Replay;
use crate::output::Failure;
use anyhow::{Context, bail, ensure};
use hatebeam_game::{Encoding, Geometry, Rules, encode};
use hatebeam_runs::{RunSpec, Start, WellSpec};
use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Fingerprint, Quiescence, Weights};
use serde::Deserialize;
use serde_json::{Number, Value};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a weights file, about fifty times the size of a file with every weight.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Arguments that specify a run.
#[derive(Debug, clap::Args)]
pub(crate) struct SpecArgs {
    /// Width of the beam: the number of wells kept per depth, such as 10000, 10k or 2.5M
    #[arg(long, short, value_name = "WELLS", default_value = "10k", value_parser = parse_wells)]
    width: u64,
    /// Evaluator of wells: knewjade, plain, plain-holes, patterns, network, or the file of a network that `train` made
    /// [default: from the weights file; or else knewjade if weights are given; or else patterns]
    #[arg(long, value_name = "NAME|FILE", value_parser = EvaluatorArg::parse)]
    evaluator: Option<EvaluatorArg>,
    /// Score a well by the best well that it can reach by clearing lines with consecutive pieces [default: the weights
    /// file's mode, or else off]
    #[arg(long, value_name = "MODE", value_parser = quiescence_parser(), ignore_case = true)]
    quiescence: Option<Quiescence>,
    /// TOML file with the evaluator and its weights
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Set a weight, such as holes=12.5; can be repeated
    #[arg(long = "weight", value_name = "NAME=VALUE", allow_hyphen_values = true)]
    weight: Vec<String>,
    /// Columns of the well, 4 to 16
    #[arg(long, value_name = "N", default_value_t = 10)]
    columns: usize,
    /// Rows of the well below the bar, 1 to 16
    #[arg(long, value_name = "N", default_value_t = 16)]
    rows: usize,
    /// Clear full rows even if the piece reaches above the bar, like a HATETRIS emulator from 2022
    #[arg(long)]
    clear_above_bar: bool,
    /// Start from this well in hex [default: the empty well]
    #[arg(long, value_name = "HEX", conflicts_with = "start_replay")]
    start_well: Option<String>,
    /// Start from a position in the replay in this file: the well before piece --from-piece
    #[arg(long, value_name = "FILE", requires = "from_piece")]
    start_replay: Option<PathBuf>,
    /// First piece of --start-replay that the search replaces, counted from 1
    #[arg(long, value_name = "N", requires = "start_replay")]
    from_piece: Option<u32>,
}

/// The contents of a weights file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightsFile {
    evaluator: Option<EvaluatorKind>,
    quiescence: Option<Quiescence>,
    #[serde(default)]
    weights: toml::Table,
}

impl SpecArgs {
    /// Builds and checks the specification.
    pub(crate) fn spec(&self) -> anyhow::Result<RunSpec> {
        let geometry = Geometry::new(self.columns, self.rows)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let rules = Rules {
            clear_above_bar: self.clear_above_bar,
        };
        let spec = RunSpec {
            width: self.width,
            well: WellSpec::new(geometry, rules),
            start: self.start()?,
            evaluator: self.evaluator_spec()?,
            search: Fingerprint::current(),
        };
        spec.check()?;
        Ok(spec)
    }

    fn start(&self) -> anyhow::Result<Start> {
        if let Some(hex) = &self.start_well {
            let hex = hex.trim().to_owned();
            return Ok(Start::Well { hex });
        }
        let (Some(path), Some(piece)) = (&self.start_replay, self.from_piece) else {
            return Ok(Start::Empty);
        };
        let replay = Replay::read(&ReplayInput {
            file: Some(path.clone()),
            ..ReplayInput::default()
        })?;
        Ok(Start::Replay {
            base2048: encode(&replay.keys, Encoding::Base2048),
            piece,
        })
    }

    fn evaluator_spec(&self) -> anyhow::Result<EvaluatorSpec> {
        let mut weights = serde_json::to_value(Weights::default())?;
        let file = match &self.weights {
            Some(path) => {
                read_weights(path, &mut weights).with_context(|| path.display().to_string())?
            }
            None => WeightsFile::default(),
        };
        for text in &self.weight {
            let pair = text.split_once('=');
            let parsed =
                pair.and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)));
            let Some((name, number)) = parsed else {
                let text =
                    format!("--weight {text} is invalid: give NAME=VALUE, such as holes=12.5");
                return Err(Failure::Usage(text).into());
            };
            set(&mut weights, name, number).with_context(|| format!("--weight {text}"))?;
        }
        let are_given = !file.weights.is_empty() || !self.weight.is_empty();
        let default = if are_given {
            EvaluatorKind::Knewjade
        } else {
            EvaluatorKind::Patterns
        };
        let given = self
            .evaluator
            .as_ref()
            .map(EvaluatorArg::load)
            .transpose()?;
        let kind = given.or(file.evaluator).unwrap_or(default);
        if are_given && kind != EvaluatorKind::Knewjade {
            let name = kind.name();
            let text = format!("evaluator {name} has no weights: pass --evaluator knewjade");
            return Err(Failure::Usage(text).into());
        }
        let quiescence = self.quiescence.or(file.quiescence);
        Ok(EvaluatorSpec {
            kind,
            quiescence: quiescence.unwrap_or(Quiescence::Off),
            weights: serde_json::from_value(weights)?,
        })
    }
}

/// Reads a weights file and sets its weights in `weights`.
fn read_weights(path: &Path, weights: &mut Value) -> anyhow::Result<WeightsFile> {
    let mut text = String::new();
    // The size is checked after reading, because a device reports no file size.
    let mut limited = fs::File::open(path)?.take(MAX_FILE_BYTES + 1);
    limited.read_to_string(&mut text)?;
    let limit = MAX_FILE_BYTES >> 10;
    ensure!(
        text.len() as u64 <= MAX_FILE_BYTES,
        "the weights file is too large: it can have at most {limit} KiB"
    );
    let file: WeightsFile = toml::from_str(&text)?;
    for (name, value) in &file.weights {
        let number = match value {
            toml::Value::Float(number) => *number,
            toml::Value::Integer(number) => *number as f64,
            _ => bail!("the weight of {name} is not a number"),
        };
        set(weights, name, number)?;
    }
    Ok(file)
}

/// Sets the weight `name`. Returns an error if the weight is unknown or the value is not finite.
fn set(weights: &mut Value, name: &str, value: f64) -> anyhow::Result<()> {
    let known = weights
        .as_object_mut()
        .context("weights are not an object")?;
    let Some(number) = Number::from_f64(value) else {
        bail!("the weight of {name} is {value}: give a finite number");
    };
    if let Some(weight) = known.get_mut(name) {
        *weight = Value::Number(number);
        return Ok(());
    }
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    bail!(
        "unknown weight {name:?}: choose one of {}",
        names.join(", ")
    )
}
