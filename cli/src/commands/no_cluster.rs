//! Replacements for the parts of the cluster commands that other commands use, for a build without the feature `cluster`.
//! Such a build has no object store, no coordinator, no hooks and no metrics.

use crate::observers::Observers;
use hatebeam_doctor::Examination;
use hatebeam_game::{Geometry, Rules, Well};
use hatebeam_runs::{GameTo, Run};
use hatebeam_store::DepthRecord;
use std::convert::Infallible;

/// The cluster commands: none in this build.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ClusterCommand {}

impl ClusterCommand {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match *self {}
    }
}

/// The object store to read instead of this machine's runs.
#[derive(Debug, clap::Args)]
pub(crate) struct FromStoreArgs {}

/// A run in an object store.
pub(crate) struct StoredRun(Infallible);

impl FromStoreArgs {
    pub(crate) fn is_given(&self) -> bool {
        false
    }

    pub(crate) fn list(&self, _json: bool) -> anyhow::Result<()> {
        Ok(())
    }

    pub(crate) fn show(&self, _run: &str, _json: bool) -> anyhow::Result<()> {
        Ok(())
    }

    pub(crate) fn remove(
        &self,
        _run: &str,
        _confirm: impl FnOnce(&str, u64) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    pub(crate) fn open_run(&self, _run: &str) -> anyhow::Result<StoredRun> {
        anyhow::bail!("this build cannot read object stores: build with the feature `cluster`")
    }
}

impl StoredRun {
    pub(crate) fn geometry(&self) -> Geometry {
        match self.0 {}
    }

    pub(crate) fn rules(&self) -> Rules {
        match self.0 {}
    }

    pub(crate) fn depths(&self) -> &[DepthRecord] {
        match self.0 {}
    }

    pub(crate) fn game_to(self, _depth: u32, _well: &Well) -> anyhow::Result<GameTo> {
        match self.0 {}
    }
}

/// The parts of a cluster to check.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckedClusterArgs {}

impl CheckedClusterArgs {
    pub(crate) fn examinations(&self) -> anyhow::Result<Vec<Examination>> {
        Ok(Vec::new())
    }
}

/// Hooks and metrics for a run on this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct ObserveArgs {}

impl ObserveArgs {
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        Ok(())
    }

    pub(crate) fn start(&self, _run: &Run, _name: &str) -> anyhow::Result<Observers> {
        Ok(Observers::default())
    }
}
