//! The order `read_back`: finding the nodes of the best game of a run in its tables (files of wells) in the object store.

use super::Executor;
use crate::error::OrderError;
use crate::lock;
use hatebeam_proto::messages::{GameNodes, MAX_GAME_NODES, ReadBack};
use hatebeam_runs::{Archive, Contradiction, ReadError, SpecError, VersionedManifest, read_game};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

impl Executor {
    /// Finds the nodes of the best game. The next order `prepare`, `halt` or `read_back`, or the end of the session,
    /// cancels this.
    pub(super) async fn read_back(
        &self,
        epoch: u64,
        order: ReadBack,
    ) -> Result<GameNodes, OrderError> {
        if self.current().is_some_and(|current| current.number > epoch) {
            return Err(OrderError::superseded(format!("epoch {epoch} is over")));
        }
        let cancelled = self.begin_reading();
        let progress = &self.state.progress;
        let searched = progress.depth.load(Ordering::Relaxed);
        // The worker expands nothing, so others do not wait for it.
        progress.begin_depth(0, 0);
        tokio::select! {
            biased;
            _ = cancelled => Err(OrderError::superseded("reading back was cancelled")),
            nodes = self.find_nodes(&order.run) => {
                progress.depth.store(searched, Ordering::Relaxed);
                nodes
            }
        }
    }

    /// Ends the current epoch. Returns a receiver that fails when reading back is cancelled.
    fn begin_reading(&self) -> oneshot::Receiver<Infallible> {
        let generation = self.halt();
        let (reading, cancelled) = oneshot::channel();
        let mut current = lock(&self.state.current);
        if current.generation == generation {
            current.reading = Some(reading);
        }
        cancelled
    }

    async fn find_nodes(&self, run: &str) -> Result<GameNodes, OrderError> {
        let manifest = VersionedManifest::load(&self.objects, run, true)
            .await?
            .manifest;
        let geometry = manifest.spec.well.geometry().map_err(SpecError::from)?;
        let storage = Arc::clone(&self.storage);
        let tables = self
            .env
            .run_blocking(move || storage.create_archive(geometry));
        let archive = Archive::open(&self.objects, manifest, tables.await??)?;
        let progress = &self.state.progress.depth;
        let read = read_game(&self.env, archive, None, progress).await?;
        if read.nodes.len() > MAX_GAME_NODES {
            let reason = format!("the game has {} nodes", read.nodes.len());
            return Err(OrderError::Worker(reason));
        }
        tracing::info!(
            nodes = read.nodes.len(),
            lines = read.game.score,
            tables = read.fetched.tables,
            bytes = read.fetched.bytes,
            "read back best game"
        );
        Ok(GameNodes {
            nodes: read.nodes,
            tables: read.fetched.tables as u64,
            bytes: read.fetched.bytes,
        })
    }
}

impl From<ReadError> for OrderError {
    fn from(error: ReadError) -> OrderError {
        let reason = hatebeam_report::with_causes(&error);
        if let Some(Contradiction {
            depth,
            well: Some(well),
        }) = error.contradiction()
        {
            return OrderError::Contradiction {
                reason,
                depth,
                well,
            };
        }
        let depth = error.damaged_depth();
        match error {
            ReadError::Manifest(error) => error.into(),
            ReadError::Cancelled => OrderError::superseded(reason),
            error if error.is_transient() => OrderError::Unavailable(reason),
            _ if depth.is_some() => OrderError::Damaged { reason, depth },
            _ => OrderError::Worker(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Cluster, RUN};
    use hatebeam_objects::faults::{Before, Call, FaultPlan, Hook};
    use hatebeam_proto::messages::{AnswerKind, FailureKind, OrderKind};
    use std::time::Duration;

    /// A fault plan with which no object store operation ends.
    struct Hanging;

    impl FaultPlan for Hanging {
        fn before<'a>(&'a self, _: &'a Call<'a>) -> Hook<'a, Before> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn next_order_cancels_reading_back() {
        let mut cluster = Cluster::new();
        cluster.objects = cluster.faulty_objects(Hanging);
        let worker = Arc::new(cluster.worker("w0"));
        let read = || {
            let run = RUN.to_owned();
            OrderKind::ReadBack(ReadBack { run })
        };
        for next in [OrderKind::Halt, read()] {
            let reading = tokio::spawn({
                let worker = Arc::clone(&worker);
                async move { worker.execute(1, read()).await }
            });
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(!reading.is_finished());
            let next = tokio::spawn({
                let worker = Arc::clone(&worker);
                async move { worker.execute(1, next).await }
            });
            let AnswerKind::Failed(failed) = reading.await.unwrap() else {
                panic!("reading back was not cancelled");
            };
            assert_eq!(failed.kind, FailureKind::Superseded);
            next.abort();
        }
    }
}
