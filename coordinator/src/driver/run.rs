//! The main loop of a run's search, which runs one epoch (a period with a fixed set of workers) after another.

use super::epoch::EpochEnd;
use super::error::{DriverError, EpochError};
use super::readiness::Readiness;
use super::state::{RunDriver, RunEnd};
use super::workers::EpochWorkers;
use hatebeam_cost::Micros;
use hatebeam_runs::{CommittedDepth, RunState, first_record};
use tracing::Instrument;

impl RunDriver {
    /// Searches the run until it ends.
    pub(crate) async fn run(&mut self) -> Result<(), DriverError> {
        self.begin()?;
        loop {
            self.apply_pending().await?;
            if let Some(end) = self.manifest().reading_back() {
                match self.end(RunEnd::Over(end)).await? {
                    true => return Ok(()),
                    false => continue,
                }
            }
            let before = self.spent();
            let ready = self.wait_for_workers().await;
            self.note_waiting(before);
            let members = match ready {
                Readiness::Ready(members) => members,
                Readiness::UpdatePending => continue,
                Readiness::Ended(end) => match self.end(end).await? {
                    true => return Ok(()),
                    false => continue,
                },
            };
            self.split_shards(&members);
            self.manifest_mut().epoch += 1;
            self.parts.metrics.coordinator.epochs.add(1);
            self.save().await?;
            let epoch = self.manifest().epoch;
            let workers = EpochWorkers::new(&self.parts, members, epoch);
            let span = tracing::info_span!("epoch", epoch);
            let ended = self.search(&workers).instrument(span).await;
            // The workers own no shards until the next epoch, whether there is one or the run ends.
            self.parts.registry.set_shards(&[], &[]);
            self.manifest_mut().seconds = self.seconds;
            match ended {
                Ok(EpochEnd::Run(end)) => {
                    workers.halt().await;
                    if self.end(end).await? {
                        return Ok(());
                    }
                }
                Ok(EpochEnd::WorkersChanged) => {
                    tracing::info!(epoch, "ended epoch: the workers changed");
                    self.note_lost(&workers);
                    self.quarantine(&workers);
                }
                Err(EpochError::Run(error)) => return Err(error),
                Err(EpochError::Damaged(error)) => self.drop_from(self.depth(), &error),
                Err(EpochError::Worker(error)) => match self.recover(error, &workers).await {
                    Ok(pause) => {
                        let before = self.spent();
                        tokio::time::sleep(pause).await;
                        self.note_waiting(before);
                    }
                    Err(error) => {
                        workers.halt().await;
                        return Err(error);
                    }
                },
            }
            self.parts.registry.release(&[]);
        }
    }

    /// Starts the search, or resumes it after the last committed depth whose tables are stored.
    fn begin(&mut self) -> Result<(), DriverError> {
        if self.manifest().depths.is_empty() {
            let record = first_record(&self.manifest().spec)?;
            self.manifest_mut().depths.push(CommittedDepth {
                record,
                sent: 0,
                sent_bytes: 0,
                tables: None,
                cost: Micros::ZERO,
                waiting: Micros::ZERO,
            });
        }
        // If the search has ended, the best game is read back without the tables of damaged depths. They are not searched
        // again.
        if self.manifest().reading_back().is_none() {
            self.drop_trailing();
        }
        // A cancelled depth, or one that another coordinator began, has cost something.
        self.note_failed_attempt();
        self.manifest_mut().state = RunState::Running;
        self.manifest_mut().note = String::new();
        self.parts.notifier.started(self.manifest());
        Ok(())
    }
}
