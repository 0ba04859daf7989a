//! Runs as an object store has them, whether there is a coordinator or not.

use super::{FromStoreArgs, block_on};
use crate::output;
use crate::run::screen::bytes;
use crate::runs::depth_table;
use anyhow::{Context, anyhow};
use hatebeam_env::Env;
use hatebeam_game::Well;
use hatebeam_objects::Objects;
use hatebeam_runs::{
    Archive, GameTo, Manifest, NameError, ScratchTables, find_by_name, list_manifests, path_search,
    resume_path,
};
use std::fmt::Write as _;

/// The runs in an object store, the last submitted first. What cannot be read is warned of.
pub(super) async fn manifests(objects: &Objects) -> anyhow::Result<Vec<Manifest>> {
    let mut found = Vec::new();
    for listed in list_manifests(objects, true).await? {
        match listed.manifest {
            Ok(kept) => found.push(kept.manifest),
            Err(error) => output::warn(format_args!("run {}: {error}", listed.name)),
        }
    }
    found.sort_by_key(|manifest| std::cmp::Reverse((manifest.submitted_ms, manifest.name.clone())));
    Ok(found)
}

/// Returns the run with this name, or the only one whose name begins with it.
pub(super) fn named(all: &[Manifest], run: &str) -> anyhow::Result<Manifest> {
    let found = find_by_name(all, |manifest| &manifest.name, run);
    found.cloned().map_err(|error| match error {
        NameError::Unknown(_) => anyhow!("{error} in the object store"),
        error => error.into(),
    })
}

impl FromStoreArgs {
    async fn open(&self) -> anyhow::Result<Objects> {
        let place = self.store.as_ref().context("no object store is named")?;
        self.s3.open(place).await
    }
}

/// `hatebeam runs --store`.
pub(crate) fn list_stored(from: &FromStoreArgs, json: bool) -> anyhow::Result<()> {
    let all = block_on(async { manifests(&from.open().await?).await })?;
    let mut text = String::new();
    if !json && !all.is_empty() {
        let _ = writeln!(
            text,
            "{:>6}  {:>6}  {:>9}  {:<9}  run",
            "lines", "depth", "stored", "state"
        );
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
            let _ = writeln!(text, "{line}");
        } else {
            let stored = bytes(stored);
            let _ = writeln!(
                text,
                "{lines:>6}  {depth:>6}  {stored:>9}  {state:<9}  {}",
                manifest.name
            );
        }
    }
    if all.is_empty() {
        output::note("there are no runs in the object store");
    }
    output::print(&text)
}

/// `hatebeam runs show --store`: the run, and its frontiers with what of them is there.
pub(crate) fn show_stored(from: &FromStoreArgs, run: &str, json: bool) -> anyhow::Result<()> {
    let all = block_on(async { manifests(&from.open().await?).await })?;
    let manifest = named(&all, run)?;
    if json {
        return output::print(&format_args!("{}\n", serde_json::to_string(&manifest)?));
    }
    let spec = serde_json::to_string(&manifest.spec)?;
    let mut text = format!(
        "run       {}\nsearch    {spec}\nkeep      {}\nshards    {}\nstored    {}\nstate     {}\n",
        manifest.name,
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
    output::print(&text)
}

/// Opens a run in an object store for look-ups.
pub(crate) fn open_archive(from: &FromStoreArgs, run: &str) -> anyhow::Result<Archive> {
    let (objects, manifest) = block_on(async {
        let objects = from.open().await?;
        let manifest = named(&manifests(&objects).await?, run)?;
        Ok((objects, manifest))
    })?;
    let geometry = manifest.spec.well.geometry()?;
    let tables = ScratchTables::create(&std::env::temp_dir(), geometry)?;
    Ok(Archive::open(&objects, manifest, Box::new(tables))?)
}

/// Reads back the game to a well of a depth, and reports how much was fetched for it.
pub(crate) fn archived_game(archive: Archive, depth: u32, well: &Well) -> anyhow::Result<GameTo> {
    let mut path = path_search(&archive, depth, well);
    let look = move |archive: &Archive| Ok(resume_path(archive, &mut path)?);
    let (archive, game) = block_on(async { Ok(archive.look_up(&Env::system(), look).await?) })?;
    let fetched = archive.fetched();
    output::note(format_args!(
        "fetched {} of {}",
        output::count(fetched.tables, "table"),
        bytes(fetched.bytes)
    ));
    Ok(game)
}
