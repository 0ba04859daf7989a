//! From the command line and a weights file to the specification of a run.

use super::args::SpecArgs;
use crate::input::read_replay;
use crate::output::Failure;
use anyhow::{Context, bail};
use hatebeam_game::{Encoding, Geometry, Rules, encode};
use hatebeam_runs::{RunSpec, Start, WellSpec};
use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Quiescence, Weights};
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::Path;

/// The longest weights file: some fifty times what one needs.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// A weights file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    evaluator: Option<EvaluatorKind>,
    quiescence: Option<Quiescence>,
    #[serde(default)]
    weights: toml::Table,
}

/// What is to be searched, checked.
pub(crate) fn spec(args: &SpecArgs) -> anyhow::Result<RunSpec> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let geometry = Geometry::new(args.columns, args.rows).map_err(|error| usage(&error))?;
    let rules = Rules {
        clear_above_bar: args.clear_above_bar,
    };
    let spec = RunSpec {
        width: args.width,
        well: WellSpec::new(geometry, rules),
        start: start(args)?,
        evaluator: evaluator(args)?,
    };
    spec.check()?;
    Ok(spec)
}

fn start(args: &SpecArgs) -> anyhow::Result<Start> {
    if let Some(hex) = &args.start_well {
        return Ok(Start::Well {
            hex: hex.trim().to_owned(),
        });
    }
    let (Some(path), Some(piece)) = (&args.start_replay, args.from_piece) else {
        return Ok(Start::Empty);
    };
    let replay = read_replay(path)?;
    Ok(Start::Replay {
        base2048: encode(&replay.keys, Encoding::Base2048),
        piece,
    })
}

fn evaluator(args: &SpecArgs) -> anyhow::Result<EvaluatorSpec> {
    let file = match &args.weights {
        Some(path) => read(path)?,
        None => File::default(),
    };
    let mut weights = serde_json::to_value(Weights::default())?;
    for (name, value) in &file.weights {
        let number = match value {
            toml::Value::Float(number) => Some(*number),
            toml::Value::Integer(number) => Some(*number as f64),
            _ => None,
        };
        let place = || {
            args.weights
                .as_deref()
                .map_or(String::new(), |path| path.display().to_string())
        };
        let number =
            number.with_context(|| format!("{}: the weight of {name} is no number", place()))?;
        set(&mut weights, name, number).with_context(place)?;
    }
    for text in &args.weight {
        let pair = text.split_once('=');
        let parsed = pair.and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)));
        let Some((name, number)) = parsed else {
            let text = format!("--weight {text}: it is NAME=VALUE, such as holes=12.5");
            return Err(Failure::Usage(text).into());
        };
        set(&mut weights, name, number).with_context(|| format!("--weight {text}"))?;
    }
    let are_given = !file.weights.is_empty() || !args.weight.is_empty();
    let default = if are_given {
        EvaluatorKind::Knewjade
    } else {
        EvaluatorKind::Patterns
    };
    let kind = args.evaluator.or(file.evaluator).unwrap_or(default);
    if are_given && kind != EvaluatorKind::Knewjade {
        let text = format!(
            "weights are for --evaluator knewjade: {} has none to set",
            kind.name()
        );
        return Err(Failure::Usage(text).into());
    }
    Ok(EvaluatorSpec {
        kind,
        quiescence: args
            .quiescence
            .or(file.quiescence)
            .unwrap_or(Quiescence::Off),
        weights: serde_json::from_value(weights)?,
    })
}

/// Sets a weight that there is.
fn set(weights: &mut Value, name: &str, value: f64) -> anyhow::Result<()> {
    let Some(known) = weights.as_object_mut() else {
        bail!("weights are no table");
    };
    let Some(number) = serde_json::Number::from_f64(value) else {
        bail!("the weight of {name} is {value}: it must be a number");
    };
    match known.get_mut(name) {
        Some(weight) => *weight = Value::Number(number),
        None => {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            bail!(
                "there is no weight {name:?}: there are {}",
                names.join(", ")
            );
        }
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<File> {
    let name = || path.display().to_string();
    let file = fs::File::open(path).with_context(name)?;
    let mut text = String::new();
    // Bounded as it is read: a device has no length.
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(name)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let limit = MAX_FILE_BYTES >> 10;
        bail!(
            "{} has more than {limit} KiB: no weights file is that long",
            name()
        );
    }
    toml::from_str(&text).with_context(name)
}
