//! The specification of a run, from the command line and a weights file.

use crate::args::{
    EvaluatorArg, ReplayInput, loop_rule_parser, parse_columns, parse_rows, parse_wells,
    quiescence_parser,
};
use crate::input::Replay;
use crate::output::Failure;
use anyhow::Context;
use hatebeam_game::{Encoding, Geometry, Rules, encode};
use hatebeam_runs::{LoopRule, NamedWeights, RunSpec, Start, WeightsFile, WellSpec};
use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Fingerprint, Network, Quiescence};
use hatebeam_train::Recipe;
use std::path::PathBuf;

/// Arguments that specify a run.
#[derive(Debug, clap::Args)]
pub(crate) struct SpecArgs {
    /// Width of the beam: the maximum number of wells kept per depth, such as 10000, 10k or 2.5M
    #[arg(long, short, value_name = "WELLS", default_value = "10k", value_parser = parse_wells)]
    width: u64,
    /// Evaluator, which scores the wells: knewjade, plain, plain-holes, patterns, network, taught, chains, selftaught, relay,
    /// foresight, outlook, or the path of a network file made by `train` [default: from the weights file; or else knewjade if
    /// weights are given; or else network for wells of 10 columns, and patterns for others]
    #[arg(long, value_name = "NAME|FILE", value_parser = EvaluatorArg::parse)]
    evaluator: Option<EvaluatorArg>,
    /// Score a well by the best well that it can reach by clearing lines with consecutive pieces; `first-of-best` does this
    /// only for the best three children for each well kept [default: the weights file's mode, or else off]
    #[arg(long, value_name = "MODE", value_parser = quiescence_parser(), ignore_case = true)]
    quiescence: Option<Quiescence>,
    /// Loop rule of HATETRIS, which changes a piece if a well of the game would occur again: `ignore` searches without the
    /// rule and cuts games short where it applies; `exact` applies it, and keeps the wells of all depths [default: exact for
    /// networks that have learned from own games, such as selftaught, and ignore for others]
    #[arg(long, value_name = "RULE", value_parser = loop_rule_parser(), ignore_case = true)]
    loops: Option<LoopRule>,
    /// TOML file with the evaluator and its weights
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Set a weight, such as holes=12.5; can be repeated
    #[arg(long = "weight", value_name = "NAME=VALUE", allow_hyphen_values = true)]
    weight: Vec<String>,
    /// Columns of the well, 4 to 16; the well can have at most 160 cells
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = parse_columns)]
    columns: usize,
    /// Rows of the well below the bar, 1 to 16
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = parse_rows)]
    rows: usize,
    /// Clear full rows even if the piece reaches above the bar, as a HATETRIS emulator from 2022 does
    #[arg(long)]
    clear_above_bar: bool,
    /// Start from this well in hex [default: the empty well]
    #[arg(long, value_name = "HEX", conflicts_with = "start_replay")]
    start_well: Option<String>,
    /// Start from a position of the replay in this file: the well before piece --from-piece
    #[arg(long, value_name = "FILE", requires = "from_piece")]
    start_replay: Option<PathBuf>,
    /// Number of the first piece in --start-replay that the search replaces, counted from 1
    #[arg(long, value_name = "N", requires = "start_replay")]
    from_piece: Option<u32>,
}

impl SpecArgs {
    /// Builds and checks the specification.
    pub(crate) fn spec(&self) -> anyhow::Result<RunSpec> {
        let geometry = Geometry::new(self.columns, self.rows)?;
        let rules = Rules {
            clear_above_bar: self.clear_above_bar,
        };
        let evaluator = self.evaluator_spec(geometry)?;
        let spec = RunSpec {
            width: self.width,
            well: WellSpec::new(geometry, rules),
            start: self.start()?,
            loops: self.loops.unwrap_or_else(|| default_loops(evaluator.kind)),
            evaluator,
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

    fn evaluator_spec(&self, geometry: Geometry) -> anyhow::Result<EvaluatorSpec> {
        let mut weights = NamedWeights::default();
        let mut file = WeightsFile::default();
        if let Some(path) = &self.weights {
            let name = || path.display().to_string();
            file = WeightsFile::read(path)
                .with_context(|| format!("cannot read the weights file {} (--weights)", name()))?;
            weights.set_all(&file).with_context(name)?;
        }
        for text in &self.weight {
            let pair = text.split_once('=');
            let parsed =
                pair.and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)));
            let Some((name, number)) = parsed else {
                let text =
                    format!("--weight {text} is invalid: give NAME=VALUE, such as holes=12.5");
                return Err(Failure::Usage(text).into());
            };
            weights
                .set(name, number)
                .with_context(|| format!("--weight {text}"))?;
        }
        let are_given = !file.weights.is_empty() || !self.weight.is_empty();
        let default = if are_given {
            EvaluatorKind::Knewjade
        } else {
            EvaluatorKind::default_for(geometry)
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
            quiescence: quiescence.unwrap_or_default(),
            weights: weights.weights()?,
        })
    }
}

/// Returns the settings of a specification as text, one per line.
pub(crate) fn spec_text(spec: &RunSpec) -> String {
    let settings = settings(spec).into_iter();
    let mut text: String = settings
        .map(|(name, value)| format!("{name:<9} {value}\n"))
        .collect();
    let weights = weights(spec).into_iter();
    let weights: Vec<String> = weights
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if !weights.is_empty() {
        text += &format!("weights   {}\n", weights.join(" "));
    }
    text
}

/// Describes how the specification of an existing run differs from the requested one, such as `width 100, not 200`.
pub(crate) fn differences(existing: &RunSpec, requested: &RunSpec) -> String {
    let all = |spec: &RunSpec| settings(spec).into_iter().chain(weights(spec));
    let mut found: Vec<String> = all(existing)
        .zip(all(requested))
        .filter(|(theirs, ours)| theirs != ours)
        .map(|((name, theirs), (_, ours))| format!("{name} {theirs}, not {ours}"))
        .collect();
    if existing.search != requested.search {
        found.push("another version of the search".to_owned());
    }
    if found.is_empty() {
        found.push("another replay to start from".to_owned());
    }
    found.join("; ")
}

/// Returns the names and the values of a specification's settings without the weights, in the order in which they are shown.
fn settings(spec: &RunSpec) -> [(String, String); 6] {
    let well = spec.well;
    let above = if well.clear_above_bar {
        ", rows are also cleared above the bar"
    } else {
        ""
    };
    let start = match &spec.start {
        Start::Empty => "the empty well".to_owned(),
        Start::Well { hex } => format!("well {hex}"),
        Start::Replay { piece, .. } => format!("piece {piece} of a replay"),
    };
    let evaluator = match spec.evaluator.kind {
        EvaluatorKind::Network(digest) if !digest.is_shipped() => format!("network {digest}"),
        kind => EvaluatorArg::Named(kind).to_string(),
    };
    [
        ("width", spec.width.to_string()),
        ("well", format!("{} x {}{above}", well.columns, well.rows)),
        ("start", start),
        ("evaluator", evaluator),
        ("quiescence", spec.evaluator.quiescence.name().to_owned()),
        ("loops", spec.loops.name().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

/// Returns the names and the values of the evaluator's weights, or nothing if the evaluator has none.
fn weights(spec: &RunSpec) -> Vec<(String, String)> {
    if spec.evaluator.kind != EvaluatorKind::Knewjade {
        return Vec::new();
    }
    let weights = serde_json::json!(spec.evaluator.weights);
    let weights = weights.as_object().into_iter().flatten();
    weights
        .map(|(name, value)| (name.clone(), value.to_string()))
        .collect()
}

/// Returns the loop rule for an evaluator. A network that has learned from games with the rule repeats wells for ever
/// without it.
pub(crate) fn default_loops(kind: EvaluatorKind) -> LoopRule {
    let EvaluatorKind::Network(digest) = kind else {
        return LoopRule::Ignore;
    };
    let recipe = Network::find(digest).and_then(|network| Recipe::of_network(&network).ok());
    match recipe {
        Some(recipe) if recipe.own_games.is_some() => LoopRule::Exact,
        _ => LoopRule::Ignore,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: EvaluatorKind) -> RunSpec {
        RunSpec::new(100, EvaluatorSpec::new(kind, Quiescence::Off))
    }

    #[test]
    fn weights_are_shown_only_for_the_evaluator_that_has_them() {
        let text = spec_text(&spec(EvaluatorKind::Plain));
        let expected = "width     100\nwell      10 x 16\nstart     the empty well\nevaluator plain\n\
                        quiescence off\nloops     ignore\n";
        assert_eq!(text, expected);
        let text = spec_text(&spec(EvaluatorKind::Knewjade));
        assert!(
            text.contains("\nweights   ") && text.contains("holes=11.2106"),
            "{text}"
        );
    }

    #[test]
    fn differences_name_each_setting_that_differs() {
        let existing = spec(EvaluatorKind::Knewjade);
        let changed = |change: fn(&mut RunSpec)| {
            let mut requested = existing.clone();
            change(&mut requested);
            differences(&existing, &requested)
        };
        for (found, expected) in [
            (changed(|spec| spec.width = 200), "width 100, not 200"),
            (
                changed(|spec| spec.well.rows = 8),
                "well 10 x 16, not 10 x 8",
            ),
            (
                changed(|spec| {
                    spec.evaluator.kind = EvaluatorKind::Plain;
                    spec.loops = LoopRule::Exact;
                }),
                "evaluator knewjade, not plain; loops ignore, not exact",
            ),
            (
                changed(|spec| spec.evaluator.weights.holes = 20.0),
                "holes 11.2106, not 20.0",
            ),
            (
                changed(|spec| spec.search = Fingerprint::from_text("other")),
                "another version of the search",
            ),
        ] {
            assert_eq!(found, expected);
        }
        let start = |base2048: &str| Start::Replay {
            base2048: base2048.to_owned(),
            piece: 3,
        };
        let [mut one, mut other] = [existing.clone(), existing];
        (one.start, other.start) = (start("a"), start("b"));
        assert_eq!(differences(&one, &other), "another replay to start from");
    }
}
