//! `hatebeam train`: learn a network that scores wells.

use crate::args::{ThreadsArgs, folder_parser, read_network_file};
use crate::output::{self, Failure, write_file};
use anyhow::{Context, ensure};
use hatebeam_host::stop_flag;
use hatebeam_report::duration;
use hatebeam_search::MAX_NETWORK_BYTES;
use hatebeam_telemetry::ProgressLine;
use hatebeam_train::{NETWORK, Recipe, SHIPPED_RECIPE, TABLE_HEADER, Trainer, TrainingFolder};
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("train"))]
pub(crate) struct TrainArgs {
    /// Folder for the network and its training state; a training that the folder already contains is resumed
    #[arg(value_name = "FOLDER", value_parser = folder_parser())]
    folder: PathBuf,
    /// Recipe as a TOML file, or a network file, which contains its recipe [default: the recipe of the training in the
    /// folder, or else the built-in recipe]
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,
    /// Stop after this many generations in total [default: continue until interrupted]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    generations: Option<u32>,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Print one JSON object per generation, and finally one with the network's digest and file
    #[arg(long)]
    json: bool,
}

impl TrainArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let recipe = self.recipe()?;
        let folder = TrainingFolder::open(&self.folder)?;
        let mut trainer = self.trainer(&folder, recipe)?;
        let cancel = stop_flag()?;
        if !self.json {
            output::print(TABLE_HEADER)?;
        }
        let enough = |trainer: &Trainer| {
            let limit = self.generations.unwrap_or(u32::MAX);
            trainer.records().len() as u64 >= u64::from(limit)
        };
        while !enough(&trainer) {
            let generation = trainer.records().len() + 1;
            let started = Instant::now();
            let line = ProgressLine::start(move || {
                let time = duration(started.elapsed());
                format!("generation {generation}: beams, training, examination ({time})")
            });
            let record = trainer.advance(self.threads.count(), &cancel);
            drop(line);
            let Some(record) = record else {
                return Err(Failure::Interrupted.into());
            };
            let shown = if self.json {
                serde_json::to_string(record)? + "\n"
            } else {
                record.row()
            };
            // The generation is saved before it is printed, because printing fails if standard output is closed.
            self.save(&folder, &trainer)?;
            output::print(shown)?;
            if cancel.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted.into());
            }
        }
        let file = self.folder.join(NETWORK).display().to_string();
        let digest = trainer.network().digest().to_string();
        if self.json {
            return output::print_json(&json!({"network": digest, "file": file}));
        }
        output::print(format_args!("network {digest} in {file}\n"))
    }

    /// Resumes the training in the folder, or starts a new training. `wanted` is the recipe of `--recipe`.
    fn trainer(&self, folder: &TrainingFolder, wanted: Option<Recipe>) -> anyhow::Result<Trainer> {
        if let Some(trainer) = folder.load()? {
            ensure!(
                wanted.is_none_or(|recipe| recipe == *trainer.recipe()),
                Failure::Usage(format!(
                    "{} was trained with another recipe: choose another folder, or omit --recipe",
                    self.folder.display()
                ))
            );
            // A crash during an earlier save may have left a network file or a report that is older than the checkpoint.
            self.save(folder, &trainer)?;
            return Ok(trainer);
        }
        let recipe = match wanted {
            Some(recipe) => recipe,
            None => Recipe::from_toml(SHIPPED_RECIPE)?,
        };
        let trainer = Trainer::new(recipe)?;
        folder.save(&trainer)?;
        Ok(trainer)
    }

    /// Saves the state of the training and its report.
    fn save(&self, folder: &TrainingFolder, trainer: &Trainer) -> anyhow::Result<()> {
        folder.save(trainer)?;
        let report = self.folder.join("report.html");
        write_file(&report, trainer.report().as_bytes())
    }

    /// Reads `--recipe`.
    fn recipe(&self) -> anyhow::Result<Option<Recipe>> {
        let Some(path) = &self.recipe else {
            return Ok(None);
        };
        let name = || path.display().to_string();
        let bytes = read_network_file(path)
            .with_context(|| format!("cannot read the recipe {} (--recipe)", name()))?;
        ensure!(
            bytes.len() <= MAX_NETWORK_BYTES,
            "{} is larger than {MAX_NETWORK_BYTES} bytes, which is the maximum for a recipe and for a network",
            name()
        );
        let recipe = Recipe::from_bytes(&bytes).with_context(name)?;
        Ok(Some(recipe))
    }
}
