//! Runs as an object store has them, whether there is a coordinator or not.

use super::{FromStoreArgs, block_on};
use crate::output;
use crate::run::screen::bytes;
use crate::runs::depth_table;
use anyhow::{Context, bail};
use hatebeam_objects::Objects;
use hatebeam_runs::{Archive, Manifest, State, list_manifests};
use std::fmt::Write as _;

/// The runs in an object store, the last submitted first. What cannot be read is warned of.
pub(super) async fn manifests(objects: &Objects) -> anyhow::Result<Vec<Manifest>> {
    let mut found = Vec::new();
    for (name, kept) in list_manifests(objects, true).await? {
        match kept {
            Ok(kept) => found.push(kept.manifest),
            Err(error) => output::warn(format_args!("run {name}: {error}")),
        }
    }
    found.sort_by_key(|manifest| std::cmp::Reverse((manifest.submitted_ms, manifest.name.clone())));
    Ok(found)
}

/// The run of this name, or of a name that begins so.
pub(super) fn named(mut all: Vec<Manifest>, run: &str) -> anyhow::Result<Manifest> {
    if let Some(exact) = all.iter().position(|manifest| manifest.name == run) {
        return Ok(all.swap_remove(exact));
    }
    all.retain(|manifest| manifest.name.starts_with(run));
    match all.as_slice() {
        [_] => Ok(all.remove(0)),
        [one, other, ..] => bail!(
            "{run} can be {} or {}: give more of the name",
            one.name,
            other.name
        ),
        [] => bail!("there is no run {run:?} in the object store"),
    }
}

impl FromStoreArgs {
    async fn open(&self) -> anyhow::Result<Objects> {
        let place = self.store.as_ref().context("no object store is named")?;
        self.s3.open(place).await
    }
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Queued => "queued",
        State::Running => "running",
        State::Finished => "finished",
        State::Cancelled => "cancelled",
        State::Failed => "failed",
    }
}

fn depth_and_points(manifest: &Manifest) -> (u32, u16) {
    let records = || manifest.depths.iter().map(|depth| &depth.record);
    let depth = records().map(|record| record.depth).max();
    let points = records().map(|record| record.best_lines).max();
    (depth.unwrap_or(0), points.unwrap_or(0))
}

/// `hatebeam runs --store`.
pub(crate) fn list_stored(from: &FromStoreArgs, json: bool) -> anyhow::Result<()> {
    let all = block_on(async { manifests(&from.open().await?).await })?;
    let mut text = String::new();
    if !json && !all.is_empty() {
        let _ = writeln!(
            text,
            "{:>6}  {:>6}  {:>9}  {:<9}  run",
            "points", "depth", "stored", "state"
        );
    }
    for manifest in &all {
        let (depth, points) = depth_and_points(manifest);
        let (state, stored) = (state_name(manifest.state), manifest.stored_bytes());
        if json {
            let line = serde_json::json!({
                "run": manifest.name, "state": state, "depth": depth, "points": points,
                "width": manifest.spec.width, "stored_bytes": stored,
                "best_score": manifest.outcome.as_ref().map(|outcome| outcome.score),
            });
            let _ = writeln!(text, "{line}");
        } else {
            let stored = bytes(stored);
            let _ = writeln!(
                text,
                "{points:>6}  {depth:>6}  {stored:>9}  {state:<9}  {}",
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
    let manifest = named(all, run)?;
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
        state_name(manifest.state),
    );
    if !manifest.note.is_empty() {
        let _ = writeln!(text, "note      {}", manifest.note);
    }
    if let Some(outcome) = &manifest.outcome {
        let _ = writeln!(text, "replay    {}", outcome.replay);
    }
    depth_table(&mut text, manifest.depths.iter().map(|depth| &depth.record));
    output::print(&text)
}

/// Has a run in an object store looked into, and says how much of it was fetched for that.
pub(crate) fn with_archive<T>(
    from: &FromStoreArgs,
    run: &str,
    look: impl FnOnce(&Archive) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads to wait in")?;
    let (objects, manifest) = runtime.block_on(async {
        let objects = from.open().await?;
        let manifest = named(manifests(&objects).await?, run)?;
        Ok::<_, anyhow::Error>((objects, manifest))
    })?;
    let _within = runtime.enter();
    let archive = Archive::open(&objects, manifest, &std::env::temp_dir())?;
    let seen = look(&archive)?;
    let (tables, fetched) = archive.fetched();
    output::note(format_args!(
        "{} of {} were fetched",
        output::count(tables, "table"),
        bytes(fetched)
    ));
    Ok(seen)
}
