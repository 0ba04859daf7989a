//! The end of a run.

use super::error::DriverError;
use super::state::{RunDriver, RunEnd};
use crate::parts::Parts;
use crate::read_back::with_causes;
use hatebeam_notify::EventKind;
use hatebeam_runs::{
    EndReason, Fetched, GameResult, Garbage, Manifest, ManifestError, ReadError, RunState,
    VersionedManifest, collect_garbage,
};
use std::time::Duration;

/// First pause before reading back is retried. It doubles up to [`MAX_PAUSE`].
const PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(30);

impl RunDriver {
    /// Ends the run.
    pub(super) async fn end(&mut self, end: RunEnd) -> Result<(), DriverError> {
        match end {
            RunEnd::Over(end) => self.finish(end).await,
            RunEnd::Cancelled => self.cancel().await,
        }
    }

    async fn cancel(&mut self) -> Result<(), DriverError> {
        self.close(RunState::Cancelled, EventKind::Cancelled {})
            .await?;
        Ok(())
    }

    /// Reads the best game back, stores its files, and marks the run finished.
    async fn finish(&mut self, end: EndReason) -> Result<(), DriverError> {
        self.manifest_mut().end = Some(end);
        if matches!(end, EndReason::MaxCost | EndReason::MaxHours) {
            self.send_budget_event(end, "one more depth would exceed the limit");
        }
        let result = self.read_back().await?;
        let finished = EventKind::Finished {
            end: end.name().to_owned(),
            pieces: result.as_ref().map(|result| result.pieces),
            replay: result.as_ref().map(|result| result.replay.clone()),
            files: result
                .as_ref()
                .map_or_else(Vec::new, |result| result.files.clone()),
        };
        self.manifest_mut().result = result;
        self.close(RunState::Finished, finished).await?;
        self.collect_garbage().await;
        Ok(())
    }

    /// Saves that the run has ended, and delivers the event.
    async fn close(&mut self, state: RunState, event: EventKind) -> Result<(), ManifestError> {
        let staged = self.parts.notifier.stage(self.manifest(), event).await;
        let manifest = self.manifest_mut();
        manifest.state = state;
        manifest.stop_requested = false;
        self.save().await?;
        self.parts.notifier.deliver(staged);
        Ok(())
    }

    /// Reads the best game back and stores its files, retrying for as long as the object store is unavailable. Returns
    /// `None`, with a note in the manifest, if the wells of the game were not kept.
    async fn read_back(&mut self) -> Result<Option<GameResult>, DriverError> {
        let mut pause = PAUSE;
        loop {
            self.note("reading back the best game");
            let error = match self.try_read_back().await {
                Ok(result) => {
                    self.manifest_mut().note = String::new();
                    return Ok(Some(result));
                }
                Err(error) => error,
            };
            if error.is_dropped() {
                self.manifest_mut().note = format!("the best game was not kept: {error}");
                return Ok(None);
            }
            let reason = with_causes(&error);
            if !error.is_transient() {
                return Err(DriverError::Game(reason));
            }
            tracing::warn!(error = reason, "cannot read back the best game; retrying");
            self.note(format!(
                "reading back the best game failed, retrying: {reason}"
            ));
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn try_read_back(&self) -> Result<GameResult, ReadError> {
        let reader = &self.parts.reader;
        let manifest = self.manifest();
        let read = reader.read(manifest, None).await?;
        let Fetched { tables, bytes } = read.fetched;
        let result = reader.store_files(manifest, read).await?;
        tracing::info!(
            run = manifest.name,
            lines = result.lines,
            pieces = result.pieces,
            lookups = result.lookups,
            tables,
            bytes,
            "read back best game"
        );
        Ok(result)
    }

    /// Deletes what failed depths left in the object store. Comes after the manifest is saved: a coordinator that was
    /// superseded without noticing must not delete what its successor has committed.
    async fn collect_garbage(&self) {
        match collect_garbage(&self.parts.objects, self.manifest()).await {
            Ok(garbage) if garbage.objects == 0 => {}
            Ok(Garbage { objects, bytes }) => {
                tracing::info!(objects, bytes, "removed unreferenced objects");
            }
            Err(error) => tracing::warn!(%error, "cannot remove unreferenced objects"),
        }
    }
}

/// Result of marking a run failed.
pub(crate) enum Failed {
    /// Its manifest says that it failed.
    Saved(Box<Manifest>),
    /// Its manifest does not exist any more.
    Missing,
    /// Its manifest cannot be read.
    Unreadable(ManifestError),
    /// The manifest cannot be written now.
    NotSaved(ManifestError),
}

/// Saves that a run cannot continue.
pub(crate) async fn mark_failed(parts: &Parts, name: &str, error: &DriverError) -> Failed {
    let loaded = VersionedManifest::load(&parts.objects, name, parts.conditional).await;
    let mut versioned = match loaded {
        Ok(versioned) => versioned,
        Err(ManifestError::Object(error)) if error.is_not_found() => return Failed::Missing,
        Err(error @ ManifestError::Object(_)) => return Failed::NotSaved(error),
        Err(error) => return Failed::Unreadable(error),
    };
    if !versioned.manifest.is_open() {
        // Another coordinator has ended it.
        return Failed::Saved(Box::new(versioned.manifest));
    }
    let reason = error.to_string();
    let failed = EventKind::Failed {
        reason: reason.clone(),
    };
    let staged = parts.notifier.stage(&versioned.manifest, failed).await;
    versioned.manifest.state = RunState::Failed;
    versioned.manifest.note = reason;
    versioned.manifest.ledger.close();
    match versioned.save().await {
        Ok(()) => {
            parts.notifier.deliver(staged);
            Failed::Saved(Box::new(versioned.manifest))
        }
        Err(error) => Failed::NotSaved(error),
    }
}
