//! The end of a run: saving the final state, and deleting garbage (objects that no manifest lists). The best game is read
//! back in between.

use super::error::DriverError;
use super::read_back::BestGameRead;
use super::state::{RunDriver, RunEnd};
use crate::parts::Parts;
use hatebeam_notify::EventKind;
use hatebeam_runs::{
    EndReason, Garbage, Manifest, ManifestError, RunState, VersionedManifest, collect_garbage,
};
use std::sync::Arc;

impl RunDriver {
    /// Ends the run, saves its manifest, and sends its end event. Returns `false` if a client's update means that the run
    /// must be cancelled or searched further instead.
    pub(super) async fn end(&mut self, end: RunEnd) -> Result<bool, DriverError> {
        // Clients may have changed the run since this end was decided, for example while its last depth was uploaded.
        let was_saved = self.manifest().end.is_some();
        self.apply_pending().await?;
        let manifest = self.manifest();
        match end {
            _ if manifest.stop_requested => self.cancel().await.map(|()| true),
            RunEnd::Cancelled => Ok(false),
            RunEnd::Over(_) if was_saved && manifest.end.is_none() => Ok(false),
            // Another limit than the one that was reached may end the run now.
            RunEnd::Over(end) if !was_saved && end.is_limit() => match self.reached_limit() {
                Some(end) => self.finish(end).await,
                None => Ok(false),
            },
            RunEnd::Over(end) => self.finish(end).await,
        }
    }

    async fn cancel(&mut self) -> Result<(), DriverError> {
        self.manifest_mut().end = None;
        self.close(RunState::Cancelled, EventKind::Cancelled {})
            .await?;
        collect(&self.parts, self.manifest()).await;
        Ok(())
    }

    /// Reads back the best game, stores its files, and marks the run as finished. Returns `false` if a client's update
    /// withdraws the end before the game is read back, or if depths must be searched again.
    async fn finish(&mut self, end: EndReason) -> Result<bool, DriverError> {
        self.manifest_mut().end = Some(end);
        let is_budget = matches!(end, EndReason::MaxCost | EndReason::MaxHours);
        if is_budget && !std::mem::replace(&mut self.has_reported_limit, true) {
            let text = self.budget_text(end);
            self.send_budget_event(end, text);
        }
        // Once the end reason is saved, a successor of this coordinator reads the game back and searches no depth.
        self.save().await?;
        let (registry, queue) = (
            Arc::clone(&self.parts.registry),
            Arc::clone(&self.parts.queue),
        );
        let saved = self.manifest().clone();
        let result = tokio::select! {
            biased;
            result = self.read_back() => Some(result?),
            () = queue.until_end_is_withdrawn(&saved) => None,
            never = registry.keep_releasing() => match never {},
        };
        let result = match result {
            Some(BestGameRead::Found(result)) => Some(*result),
            Some(BestGameRead::NotKept) => None,
            Some(BestGameRead::Contradicted) => {
                self.manifest_mut().end = None;
                self.save().await?;
                return Ok(false);
            }
            None => {
                self.apply_pending().await?;
                tracing::info!("stopped reading back the best game");
                self.drop_trailing();
                return Ok(false);
            }
        };
        let finished = EventKind::Finished {
            end: end.name().to_owned(),
            pieces: result.as_ref().map(|result| result.pieces),
            replay: result.as_ref().map(|result| result.replay.clone()),
            files: result
                .as_ref()
                .map_or_else(Vec::new, |result| result.files.clone()),
        };
        self.manifest_mut().result = result;
        if end == EndReason::MaxLines && self.manifest().note.is_empty() {
            self.manifest_mut().note = end.words().to_owned();
        }
        self.close(RunState::Finished, finished).await?;
        collect(&self.parts, self.manifest()).await;
        Ok(true)
    }

    /// Saves the final state of the run, and delivers its end event.
    async fn close(&mut self, state: RunState, event: EventKind) -> Result<(), ManifestError> {
        let staged = self.parts.notifier.stage(self.manifest(), event).await;
        let manifest = self.manifest_mut();
        manifest.state = state;
        manifest.stop_requested = false;
        self.save().await?;
        self.parts.notifier.deliver(staged);
        Ok(())
    }
}

/// Deletes objects that failed depths left in the object store. Must be called after the manifest is saved: a
/// successful save proves that no other coordinator has committed objects that this manifest does not list.
async fn collect(parts: &Parts, manifest: &Manifest) {
    match collect_garbage(&parts.objects, manifest).await {
        Ok(garbage) if garbage.objects == 0 => {}
        Ok(Garbage { objects, bytes }) => {
            tracing::info!(objects, bytes, "removed unreferenced objects");
        }
        Err(error) => tracing::warn!(%error, "cannot remove unreferenced objects"),
    }
}

/// Result of [`mark_failed`].
pub(crate) enum Failed {
    /// The manifest is saved, or another coordinator has already ended the run.
    Saved(Box<Manifest>),
    /// The manifest no longer exists.
    Missing,
    /// The manifest is invalid.
    Unreadable(ManifestError),
    /// The object store failed, or another coordinator has written the manifest.
    NotSaved(ManifestError),
}

/// Marks a run as failed in its manifest, with `error` as the reason and the usage until now, and delivers the run's
/// end event.
pub(crate) async fn mark_failed(parts: &Parts, name: &str, error: &DriverError) -> Failed {
    let loaded = VersionedManifest::load(&parts.objects, name, parts.conditional).await;
    let mut versioned = match loaded {
        Ok(versioned) => versioned,
        Err(ManifestError::Object(error)) if error.is_not_found() => return Failed::Missing,
        Err(error @ ManifestError::Object(_)) => return Failed::NotSaved(error),
        Err(error) => return Failed::Unreadable(error),
    };
    if !versioned.manifest.is_open() {
        // Another coordinator has ended the run, or this one did without getting the answer.
        parts.notifier.deliver_saved(&versioned.manifest).await;
        return Failed::Saved(Box::new(versioned.manifest));
    }
    let reason = error.to_string();
    let failed = EventKind::Failed {
        reason: reason.clone(),
    };
    versioned.manifest.note = reason;
    match end_idle(parts, &mut versioned, RunState::Failed, failed).await {
        Ok(()) => Failed::Saved(Box::new(versioned.manifest)),
        Err(error) => Failed::NotSaved(error),
    }
}

/// Saves the final state of a run that is not being searched, and delivers its end event.
pub(crate) async fn end_idle(
    parts: &Parts,
    versioned: &mut VersionedManifest,
    state: RunState,
    event: EventKind,
) -> Result<(), ManifestError> {
    let staged = parts.notifier.stage(&versioned.manifest, event).await;
    let manifest = &mut versioned.manifest;
    manifest.state = state;
    manifest.end = None;
    manifest.stop_requested = false;
    if let Some(ledger) = parts.costs.ledger(&manifest.name) {
        manifest.ledger.follow(ledger);
    }
    manifest.ledger.close();
    versioned.save().await?;
    parts.notifier.deliver(staged);
    collect(parts, &versioned.manifest).await;
    Ok(())
}
