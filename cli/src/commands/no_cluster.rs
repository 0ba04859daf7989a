//! Replacements for the parts of the cluster commands that other commands use, for a build without the feature `cluster`.
//! Such a build has no object store, no coordinator, no hooks and no metrics.

use super::open_run::OpenRun;
use hatebeam_doctor::Examination;
use hatebeam_runs::Run;
use hatebeam_telemetry::Observers;

/// The cluster commands, of which this build has none.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ClusterCommand {}

impl ClusterCommand {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match *self {}
    }
}

/// The object store to use instead of the runs on this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct FromStoreArgs {}

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

    pub(crate) fn open_run(&self, _run: &str) -> anyhow::Result<OpenRun> {
        anyhow::bail!("this build cannot read object stores: build with the feature `cluster`")
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
