//! Access to the runs in an object store, without a coordinator.

use super::args::{S3Args, block_on};
use crate::commands::open_run::OpenRun;
use crate::output;
use crate::spec::spec_text;
use anyhow::{Context, anyhow, bail};
use hatebeam_env::Env;
use hatebeam_objects::Objects;
use hatebeam_report::{bytes, count};
use hatebeam_runs::{
    Archive, Manifest, NameError, ScratchTables, find_by_name, list_manifests, path_search,
    remove_run, resume_path,
};
use hatebeam_telemetry::depth_table;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// The object store to use instead of the runs on this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct FromStoreArgs {
    /// Use the runs in a coordinator's object store instead of the runs on this machine: a folder, or s3://BUCKET/PREFIX.
    /// The coordinator does not need to be running
    #[arg(long, value_name = "PLACE", conflicts_with = "state")]
    store: Option<String>,
    #[command(flatten)]
    s3: S3Args,
}

/// Returns the runs in an object store, most recently submitted first. Prints a warning for each unreadable run.
pub(super) async fn manifests(objects: &Objects) -> anyhow::Result<Vec<Manifest>> {
    let mut found = Vec::new();
    for listed in list_manifests(objects, true).await? {
        match listed.manifest {
            Ok(versioned) => found.push(versioned.manifest),
            Err(error) => output::warn(format_args!("run {}: {error}", listed.name)),
        }
    }
    found.sort_by_key(|manifest| Reverse((manifest.submitted_ms, manifest.name.clone())));
    Ok(found)
}

/// Returns the run with this name, or the only run whose name begins with it.
pub(super) fn named(all: &[Manifest], run: &str) -> anyhow::Result<Manifest> {
    let found = find_by_name(all, |manifest| &manifest.name, run);
    found.cloned().map_err(|error| match error {
        NameError::Unknown(_) => {
            anyhow!("{error} in the object store: list its runs with `hatebeam runs --store URL`")
        }
        error => error.into(),
    })
}

/// Returns an error if a run has not ended.
fn check_ended(manifest: &Manifest) -> anyhow::Result<()> {
    let Manifest { name, state, .. } = manifest;
    if manifest.is_open() {
        bail!("run {name} is {state}: stop it first with `hatebeam cancel`");
    }
    Ok(())
}

impl FromStoreArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.store.is_some()
    }

    async fn open(&self) -> anyhow::Result<Objects> {
        let location = self.store.as_ref().context("--store is missing")?;
        self.s3.open_existing(location).await
    }

    fn manifests(&self) -> anyhow::Result<Vec<Manifest>> {
        block_on(async { manifests(&self.open().await?).await })
    }

    /// Prints a list of the runs.
    pub(crate) fn list(&self, json: bool) -> anyhow::Result<()> {
        let all = self.manifests()?;
        if all.is_empty() {
            output::note("no runs in the object store");
        }
        let mut text = String::new();
        if !json && !all.is_empty() {
            text.push_str(" lines   depth     stored  state      run\n");
        }
        for manifest in &all {
            let depth = manifest.last().map_or(0, |last| last.record.depth);
            let lines = manifest.best_lines();
            let (state, stored) = (manifest.state, manifest.stored_bytes());
            if json {
                let line = serde_json::json!({
                    "run": manifest.name, "state": state, "depth": depth,
                    "best_lines": manifest.result.as_ref().map_or(lines, |result| result.lines),
                    "width": manifest.spec.width, "stored_bytes": stored,
                });
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{line}");
            } else {
                let (name, stored) = (&manifest.name, bytes(stored));
                let _ = writeln!(
                    text,
                    "{lines:>6}  {depth:>6}  {stored:>9}  {state:<9}  {name}"
                );
            }
        }
        output::print(text)
    }

    /// Prints a run and its depths.
    pub(crate) fn show(&self, run: &str, json: bool) -> anyhow::Result<()> {
        let manifest = named(&self.manifests()?, run)?;
        if json {
            return output::print_json(&manifest);
        }
        let mut text = format!(
            "run       {}\n{}keep      {}\nshards    {}\nstored    {}\nstate     {}\n",
            manifest.name,
            spec_text(&manifest.spec),
            manifest.keep,
            manifest.shards,
            bytes(manifest.stored_bytes()),
            manifest.state,
        );
        if !manifest.note.is_empty() {
            let _ = writeln!(text, "note      {}", manifest.note);
        }
        if let Some(result) = &manifest.result {
            let _ = writeln!(text, "replay    {}", result.replay);
        }
        depth_table(&mut text, manifest.records());
        output::print(text)
    }

    /// Removes a run that has ended, if `confirm` returns `true`. The files of its best game remain.
    pub(crate) fn remove(
        &self,
        run: &str,
        confirm: impl FnOnce(&str, u64) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        block_on(async {
            let objects = self.open().await?;
            let manifest = named(&manifests(&objects).await?, run)?;
            let name = &manifest.name;
            check_ended(&manifest)?;
            if !confirm(&format!("run {name}"), manifest.stored_bytes())? {
                output::note("removed nothing");
                return Ok(());
            }
            // The run may have been submitted again while the question was open.
            let manifest = named(&manifests(&objects).await?, name)?;
            check_ended(&manifest)?;
            let removed = remove_run(&objects, &manifest).await?;
            output::note(format_args!(
                "removed run {name}: {}; its replays remain in {}/{}; a running coordinator lists the run until it \
                 restarts",
                count(removed, "object"),
                objects.location(),
                manifest.replays_prefix()
            ));
            Ok(())
        })
    }

    /// Opens a run for reading back games. Reading a game back also prints the number and size of the tables (files with
    /// wells of one depth) that it fetched.
    pub(crate) fn open_run(&self, run: &str) -> anyhow::Result<OpenRun> {
        let (objects, manifest) = block_on(async {
            let objects = self.open().await?;
            let manifest = named(&manifests(&objects).await?, run)?;
            Ok((objects, manifest))
        })?;
        let geometry = manifest.spec.well.geometry()?;
        let tables = ScratchTables::create(&std::env::temp_dir(), geometry)?;
        let archive = Archive::open(&objects, manifest, Box::new(tables))?;
        Ok(OpenRun::new(archive, |archive, depth, well| {
            let mut path = path_search(&archive, depth, &well);
            let look = move |archive: &Archive| Ok(resume_path(archive, &mut path)?);
            let found = block_on(async { Ok(archive.look_up(&Env::system(), look).await?) });
            let (archive, game) = found?;
            let fetched = archive.fetched();
            let tables = count(fetched.tables as u64, "table");
            output::note(format_args!("fetched {tables}, {}", bytes(fetched.bytes)));
            Ok(game)
        }))
    }
}
