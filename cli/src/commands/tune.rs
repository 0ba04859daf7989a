//! `hatebeam tune`, and the options and output that all tuning commands share.

use crate::args::{ThreadsArgs, folder_parser, number_in, quiescence_parser};
use crate::output::{self, Failure};
use anyhow::{Context, bail};
use clap::builder::{PossibleValue, TypedValueParser};
use hatebeam_host::stop_flag;
use hatebeam_report::duration;
use hatebeam_runs::{NamedWeights, WeightsFile};
use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Quiescence, Weights};
use hatebeam_telemetry::ProgressLine;
use hatebeam_train::BeamObjective;
use hatebeam_tune::{
    Evaluation, MAX_EVALUATIONS, Method, Objective, SearchError, Settings, TunedWeight, tune,
};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("tune"))]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    tuning: TuningArgs,
    /// Widths of the beams to search for each evaluation
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "500,700,1000,1400,2000"
    )]
    #[arg(value_parser = number_in(1_u32..=1_000_000, "widths"))]
    widths: Vec<u32>,
    /// Weights file to start from, for the evaluator knewjade [default: the published weights]
    #[arg(long, value_name = "FILE")]
    start: Option<PathBuf>,
    /// Quiescence search of the evaluator [default: the mode in the file of --start, or else off]
    #[arg(long, value_name = "MODE", value_parser = quiescence_parser(), ignore_case = true)]
    quiescence: Option<Quiescence>,
}

impl TuneArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut start = Weights::default();
        let mut file = WeightsFile::default();
        if let Some(path) = &self.start {
            let name = || path.display().to_string();
            file = WeightsFile::read(path)
                .with_context(|| format!("cannot read the weights file {} (--start)", name()))?;
            start = weights_of(&file).with_context(name)?;
        }
        let quiescence = self.quiescence.or(file.quiescence);
        let widths = self.widths.iter().map(|&width| width as usize).collect();
        let cancel = stop_flag()?;
        let objective = BeamObjective::new(
            &start,
            &self.tuning.tuned,
            quiescence.unwrap_or_default(),
            widths,
            cancel,
        )?;
        self.tuning.run(&objective, "pieces")
    }
}

/// Returns the weights in a file. Returns an error if they are out of range, or not for `knewjade`, the only evaluator whose
/// weights can be tuned.
fn weights_of(file: &WeightsFile) -> anyhow::Result<Weights> {
    if let Some(kind) = file.evaluator
        && kind != EvaluatorKind::Knewjade
    {
        bail!(
            "cannot tune the evaluator {}: give weights of knewjade",
            kind.name()
        );
    }
    let mut weights = NamedWeights::default();
    weights.set_all(file)?;
    let spec = EvaluatorSpec {
        weights: weights.weights()?,
        ..EvaluatorSpec::new(EvaluatorKind::Knewjade, Quiescence::Off)
    };
    spec.check()?;
    Ok(spec.weights)
}

/// Options that all tuning commands share.
#[derive(Debug, clap::Args)]
pub(super) struct TuningArgs {
    /// Folder for the results; a search that the folder already contains is resumed
    #[arg(value_name = "FOLDER", value_parser = folder_parser())]
    folder: PathBuf,
    /// Optimization method
    #[arg(long, value_name = "NAME", default_value = "cma-es", value_parser = methods())]
    method: Method,
    /// Number of evaluations, rounded up to whole generations
    #[arg(long, value_name = "N", default_value_t = 400)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_EVALUATIONS)))]
    evaluations: u32,
    /// Number of points per generation; the method simplers ignores it
    #[arg(long, value_name = "N", default_value_t = 12)]
    #[arg(value_parser = clap::value_parser!(u16).range(4..=4096))]
    population: u16,
    /// Seed of the method's random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    method_seed: u64,
    /// Weight to tune, and its range, such as `holes` or `holes=-10..40`; can be repeated [default: all weights]
    #[arg(long = "weight", value_name = "NAME[=A..B]")]
    pub(super) tuned: Vec<TunedWeight>,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Print one JSON object for each new evaluation, and finally one with the best evaluation and the weights file
    #[arg(long)]
    json: bool,
}

impl TuningArgs {
    /// Runs the tuning. Prints each improvement, or each new evaluation with --json. `unit` is the unit of the values.
    pub(super) fn run(&self, objective: &dyn Objective, unit: &str) -> anyhow::Result<()> {
        let settings = Settings {
            method: self.method,
            seed: self.method_seed,
            evaluations: self.evaluations as usize,
            population: self.population.into(),
            threads: self.threads.count(),
        };
        let (done, started) = (Arc::<AtomicUsize>::default(), Instant::now());
        let line = ProgressLine::start({
            let (done, of) = (Arc::clone(&done), self.evaluations);
            move || {
                let time = duration(started.elapsed());
                format!(
                    "evaluation {} of {of} ({time})",
                    done.load(Ordering::Relaxed)
                )
            }
        });
        let names = objective
            .parameters()
            .iter()
            .map(|parameter| parameter.name.as_str());
        let names: Vec<&str> = names.collect();
        let on_value = |evaluation: &Evaluation| {
            done.fetch_max(evaluation.number, Ordering::Relaxed);
            // A write error on standard output does not stop the search, because its results are also in files.
            let _ = if self.json && evaluation.is_new {
                output::print_json(&evaluation.json(&names))
            } else if !self.json && evaluation.is_best {
                output::print(evaluation.row(&names, unit))
            } else {
                Ok(())
            };
        };
        let result = tune(&self.folder, objective, &settings, &on_value);
        drop(line);
        let (best, file) = match result {
            Err(SearchError::Interrupted) => return Err(Failure::Interrupted.into()),
            result => result?,
        };
        if self.json {
            return output::print_json(&json!({"best": best.json(&names), "file": file}));
        }
        output::print(format_args!(
            "{}: {}\n",
            best.value_text(unit),
            file.display()
        ))
    }
}

fn methods() -> impl TypedValueParser<Value = Method> {
    let values =
        Method::ALL.map(|method| PossibleValue::new(method.name()).help(method.description()));
    let names = clap::builder::PossibleValuesParser::new(values);
    names.map(|name| {
        name.parse()
            .expect("method name is known: the parser accepts only names of methods")
    })
}
