//! Client updates of a run that is being searched, and checks of its limits.

use super::state::RunDriver;
use crate::alerts::WARN_AT;
use crate::update::LimitsChange;
use hatebeam_cost::Micros;
use hatebeam_notify::EventKind;
use hatebeam_runs::{EndReason, ManifestError, Usage};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::oneshot;

/// Why updates are no longer applied as they arrive.
pub(super) enum Until {
    /// The other work is done.
    Done,
    /// An update cancels the run.
    Cancelled,
}

impl RunDriver {
    pub(super) async fn apply_pending(&mut self) -> Result<(), ManifestError> {
        let name = self.manifest().name.clone();
        let Some(update) = self.parts.queue.take_update(&name) else {
            return Ok(());
        };
        let before = update.put(self.manifest_mut());
        if let Err(error) = self.save().await {
            // An update takes effect only once it is saved. This one is applied again when the run is retried.
            before.put(self.manifest_mut());
            self.parts.queue.put_back_update(&name, update);
            return Err(error);
        }
        if update.limits != LimitsChange::default() {
            self.has_warned = false;
            self.has_reported_limit = false;
        }
        tracing::info!(?update, "applied pending update to the manifest");
        Ok(())
    }

    /// Applies updates as they arrive, until the sender of `done` is dropped or an update cancels the run.
    pub(super) async fn apply_pending_until(
        &mut self,
        mut done: oneshot::Receiver<Infallible>,
    ) -> Result<Until, ManifestError> {
        let mut updates = self.parts.queue.updates();
        loop {
            updates.mark_unchanged();
            self.apply_pending().await?;
            if self.manifest().stop_requested {
                return Ok(Until::Cancelled);
            }
            tokio::select! {
                biased;
                _ = &mut done => return Ok(Until::Done),
                _ = updates.changed() => {}
            }
        }
    }

    /// Returns a limit that is reached, or that one more depth like the last one would exceed.
    pub(super) fn reached_limit(&self) -> Option<EndReason> {
        let manifest = self.manifest();
        let last = manifest.last()?;
        let ledger = self.parts.costs.ledger(&manifest.name).unwrap_or_default();
        manifest.limits.exceeded_by(&Usage {
            depth: last.record.depth,
            best_lines: last.record.best_lines,
            cost: self.spent(),
            // Excludes the cost of waiting for workers and of failed attempts, since the next depth may have neither.
            depth_cost: last.cost.saturating_sub(last.waiting),
            time: Duration::from_millis(ledger.milliseconds),
            depth_time: Duration::try_from_secs_f64(last.record.seconds).unwrap_or_default(),
        })
    }

    pub(super) fn spent(&self) -> Micros {
        self.parts.costs.spent(&self.manifest().name)
    }

    /// Counts the increase in the run's cost since it was `before` as the cost of waiting.
    pub(super) fn note_waiting(&mut self, before: Micros) {
        let waited = self.spent().saturating_sub(before);
        self.waiting = self.waiting.saturating_add(waited);
    }

    /// Counts the whole cost since the last committed depth as the cost of waiting, because a failed attempt has used it.
    pub(super) fn note_failed_attempt(&mut self) {
        let depths: Micros = self.manifest().depths.iter().map(|depth| depth.cost).sum();
        self.waiting = self.spent().saturating_sub(depths);
    }

    /// Warns when the used share of a limit reaches [`WARN_AT`]. Warns at most once until the limits change.
    pub(super) fn warn_of_budget(&mut self) {
        let cost = self.parts.costs.cost(self.manifest());
        let Some(used) = cost.used_share() else {
            return;
        };
        if used.share >= WARN_AT && !std::mem::replace(&mut self.has_warned, true) {
            let (limit, percent) = (used.limit, used.share * 100.0);
            tracing::warn!(%limit, percent, "most of the budget is spent");
            self.send_budget_event(limit, "most of the budget is spent");
        }
    }

    /// Returns the reason why `limit` ends the run, for an event.
    pub(super) fn budget_text(&self, limit: EndReason) -> &'static str {
        match self.parts.costs.cost(self.manifest()).exceeds(limit) {
            true => "the limit is exceeded",
            false => "one more depth would exceed the limit",
        }
    }

    pub(super) fn send_budget_event(&self, limit: EndReason, text: &str) {
        let cost = self.parts.costs.cost(self.manifest());
        let share = cost.used_share().map_or(0.0, |used| used.share);
        let event = EventKind::Budget {
            limit: limit.name().to_owned(),
            percent: (share * 100.0) as u32,
            text: text.to_owned(),
        };
        self.parts.notifier.send(self.manifest(), event);
    }
}
