//! The order `prepare`, which begins an epoch.

use super::{Executor, RunTables};
use crate::epoch::{Assignment, Epoch, NewEpoch};
use crate::error::OrderError;
use crate::exchange::{EpochExchange, SpotCheck};
use crate::lock;
use crate::tables::LocalTables;
use hatebeam_game::Geometry;
use hatebeam_proto::messages::{Prepare, Prepared};
use hatebeam_runs::{StartingPosition, first_node};
use hatebeam_search::Frontier;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum time to wait until all tasks of an earlier run have released its tables.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);

impl Executor {
    pub(super) async fn prepare(
        &self,
        number: u64,
        order: Prepare,
    ) -> Result<Prepared, OrderError> {
        // The wells of the previous epoch can be reused only if it belongs to the same run.
        let before = self.current().filter(|before| before.run == order.run);
        if before
            .as_ref()
            .is_some_and(|before| before.number >= number)
        {
            return Err(OrderError::superseded(format!("epoch {number} is over")));
        }
        let generation = self.halt();
        let start = order.spec.check()?;
        order.spec.check_search(&self.search)?;
        let emulator = order.spec.emulator()?;
        let assignment = Assignment::of(&self.name, &order)?;
        let lost_after = *lock(&self.state.lost_after);
        for peer in &assignment.peers {
            let prepared = self.peers.prepare(peer, lost_after).await;
            prepared.map_err(|error| OrderError::bad_order(error.reason))?;
        }
        let tables = self.tables(&order.run, emulator.geometry()).await?;
        let held = before.map(|before| before.frontier());
        let (frontier, fetched) = self
            .frontier(&order, &start, &assignment, &tables, held)
            .await?;
        self.traffic.metrics.tables_fetched.add(u64::from(fetched));
        let wells = frontier.len() as u64;
        let epoch = Epoch::new(NewEpoch {
            number,
            run: order.run,
            spec: order.spec,
            emulator,
            assignment,
            tables,
            frontier,
        });
        self.install(generation, epoch)?;
        Ok(Prepared { wells, fetched })
    }

    /// Returns the wells of this worker's shards at the first depth of the epoch, and the number of tables that were
    /// fetched.
    async fn frontier(
        &self,
        order: &Prepare,
        start: &StartingPosition,
        assignment: &Assignment,
        tables: &Arc<dyn LocalTables>,
        held: Option<Arc<Frontier>>,
    ) -> Result<(Arc<Frontier>, u32), OrderError> {
        let layout = assignment.layout;
        if order.depth != start.depth() {
            let held = held.filter(|held| held.depth == order.depth);
            return self.load(order, layout, held, tables).await;
        }
        let first = first_node(&order.spec, start)?;
        let is_here = assignment.owned[layout.shard_of(&first.well)];
        let frontier = Frontier::new(order.depth, is_here.then_some(first), layout);
        Ok((Arc::new(frontier), 0))
    }

    /// Makes an epoch the current one. Returns an error if another order has superseded it in the meantime.
    fn install(&self, generation: u64, epoch: Epoch) -> Result<(), OrderError> {
        let mut current = lock(&self.state.current);
        if current.generation != generation {
            let number = epoch.number;
            return Err(OrderError::superseded(format!("epoch {number} is over")));
        }
        let (number, depth) = (epoch.number, epoch.frontier().depth);
        let peers = epoch.assignment.peers.iter();
        self.inbound.begin_epoch(EpochExchange {
            run: epoch.run.clone(),
            epoch: number,
            depth,
            geometry: epoch.geometry(),
            owned: Arc::clone(&epoch.assignment.owned),
            peers: peers
                .map(|peer| (peer.name.clone(), peer.receive_secret))
                .collect(),
            spot_check: SpotCheck::new(&epoch.emulator, epoch.spec.evaluator, &epoch.frontier()),
        });
        current.epoch = Some(Arc::new(epoch));
        let progress = &self.state.progress;
        progress.epoch.store(number, Ordering::Relaxed);
        progress.depth.store(depth, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the local tables of a run. Creates them if necessary, and deletes those of another run.
    async fn tables(
        &self,
        run: &str,
        geometry: Geometry,
    ) -> Result<Arc<dyn LocalTables>, OrderError> {
        let others = {
            let mut tables = lock(&self.state.tables);
            if let Some(tables) = tables.as_ref().filter(|tables| tables.run == run) {
                return Ok(Arc::clone(&tables.tables));
            }
            tables.take()
        };
        if let Some(others) = others {
            let closed = tokio::time::timeout(CLOSE_TIMEOUT, close(others.tables)).await;
            closed.map_err(|_| {
                OrderError::Worker("timed out closing the tables of the previous run".to_owned())
            })?;
        }
        let storage = Arc::clone(&self.storage);
        let created = self.env.run_blocking(move || storage.create(geometry));
        let tables = created.await??;
        *lock(&self.state.tables) = Some(RunTables {
            run: run.to_owned(),
            tables: Arc::clone(&tables),
        });
        Ok(tables)
    }
}

/// Waits until no other task uses the tables, and closes them.
async fn close(mut tables: Arc<dyn LocalTables>) {
    while Arc::get_mut(&mut tables).is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
