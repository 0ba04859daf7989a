//! The order `prepare`, which begins an epoch (a period with a fixed set of workers). The worker loads the wells of its
//! shards (ranges of well hashes) from tables, each of which contains the wells of one shard.

use super::load::Source;
use super::{Executor, RunTables};
use crate::epoch::{Assignment, Epoch, NewEpoch};
use crate::error::OrderError;
use crate::exchange::{EpochExchange, SpotCheck};
use crate::games::Games;
use crate::lock;
use crate::tables::LocalTables;
use hatebeam_game::Geometry;
use hatebeam_proto::messages::{Prepare, Prepared};
use hatebeam_runs::{
    Archive, CellBalance, FrontierAt, FrontierGames, GamesWork, LoopRule, SpecError,
    StartingPosition, VersionedManifest, fetch_network, first_node, read_games,
};
use hatebeam_search::{Frontier, Past, ShardLayout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum time to wait until all tasks of an earlier run have released its tables.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The games of the previous epoch, and the cancellation of the search for those of the next one.
struct HeldGames {
    /// `None` if the previous epoch belongs to another run.
    past: Option<Arc<Past>>,
    cancel: Arc<AtomicBool>,
}

impl Executor {
    pub(super) async fn prepare(
        &self,
        number: u64,
        order: Prepare,
    ) -> Result<Prepared, OrderError> {
        // The wells and the network of the previous epoch can be reused only if that epoch belongs to the same run.
        let before = self.current().filter(|before| before.run == order.run);
        if before
            .as_ref()
            .is_some_and(|before| before.number >= number)
        {
            return Err(OrderError::superseded(format!("epoch {number} is over")));
        }
        let generation = self.halt();
        let _alone = self.state.preparing.lock().await;
        self.check_generation(generation)?;
        let start = order.spec.check()?;
        order.spec.check_search(&self.search)?;
        let emulator = order.spec.emulator()?;
        let assignment = Assignment::of(&self.name, &order)?;
        let network = match &before {
            Some(before) => before.network.clone(),
            None => fetch_network(&self.objects, &order.spec.evaluator).await?,
        };
        let lost_after = *lock(&self.state.lost_after);
        let prepared = self.peers.prepare(&assignment.peers, lost_after).await;
        prepared.map_err(OrderError::PeersUnreachable)?;
        let tables = self.tables(&order.run, emulator.geometry()).await?;
        let past = before.as_ref().and_then(|before| before.games.as_ref());
        let past = past.map(|games| games.known().past);
        let held = before.map(|before| before.frontier());
        let cancel = self.cancellation(generation)?;
        let source = Source {
            generation,
            tables: &tables,
            held,
        };
        let (frontier, fetched) = self.frontier(&order, &start, &assignment, source).await?;
        self.traffic.metrics.tables_fetched.add(u64::from(fetched));
        let wells = frontier.len() as u64;
        let held = HeldGames { past, cancel };
        let games = self.games(&order, &start, assignment.layout, held).await?;
        let epoch = Epoch::new(NewEpoch {
            number,
            run: order.run,
            spec: order.spec,
            network,
            emulator,
            assignment,
            tables,
            games,
            frontier,
        });
        self.install(generation, epoch)?;
        Ok(Prepared { wells, fetched })
    }

    /// Returns the wells of this worker's shards at the first depth of the epoch, and the number of tables that were
    /// fetched from the object store.
    async fn frontier(
        &self,
        order: &Prepare,
        start: &StartingPosition,
        assignment: &Assignment,
        source: Source<'_>,
    ) -> Result<(Arc<Frontier>, u32), OrderError> {
        let layout = assignment.layout;
        if order.depth != start.depth() {
            return self.load(order, assignment, source).await;
        }
        let first = first_node(&order.spec, start)?;
        let is_here = assignment.owned[layout.shard_of(&first.well)];
        let frontier = Frontier::new(order.depth, is_here.then_some(first), layout);
        Ok((Arc::new(frontier), 0))
    }

    /// Returns the games that lead to the frontier of all workers, or `None` if the run ignores the loop rule.
    async fn games(
        &self,
        order: &Prepare,
        start: &StartingPosition,
        layout: ShardLayout,
        held: HeldGames,
    ) -> Result<Option<Games>, OrderError> {
        if order.spec.loops == LoopRule::Ignore {
            return Ok(None);
        }
        let geometry = order.spec.well.geometry().map_err(SpecError::from)?;
        if order.depth == start.depth() {
            return Ok(Some(Games::new(FrontierGames::of_start(
                geometry, start, layout,
            ))));
        }
        let loaded = VersionedManifest::load(&self.objects, &order.run, true).await?;
        let storage = Arc::clone(&self.storage);
        let tables = self
            .env
            .run_blocking(move || storage.create_archive(geometry));
        let archive = Archive::open(&self.objects, loaded.manifest, tables.await??)?;
        let frontier = FrontierAt {
            depth: order.depth,
            layout,
        };
        let progress = &self.state.progress;
        // The worker expands nothing, so others do not wait for it.
        progress.begin_depth(order.depth, 0);
        let work = GamesWork {
            threads: self.threads,
            found: Arc::clone(&progress.expanded),
            cancel: held.cancel,
        };
        let games = read_games(&self.env, archive, frontier, held.past, &work).await?;
        Ok(Some(Games::new(games)))
    }

    /// Makes `epoch` the current epoch. Returns an error if another order has superseded it in the meantime.
    fn install(&self, generation: u64, epoch: Epoch) -> Result<(), OrderError> {
        let balance = CellBalance::of(&epoch.spec)?;
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
            spot_check: SpotCheck::new(&epoch.emulator, epoch.spec.evaluator, balance),
        });
        current.epoch = Some(Arc::new(epoch));
        let progress = &self.state.progress;
        progress.epoch.store(number, Ordering::Relaxed);
        progress.depth.store(depth, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the local tables of a run. If there are none, deletes any local tables of another run and creates an
    /// empty set.
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
        if let Some(mut others) = others {
            let closed = tokio::time::timeout(CLOSE_TIMEOUT, close(&mut others.tables)).await;
            if closed.is_err() {
                // An upload still uses the tables. The next order waits again.
                *lock(&self.state.tables) = Some(others);
                let reason = "timed out closing the tables of the previous run".to_owned();
                return Err(OrderError::Unavailable(reason));
            }
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

/// Waits until no other task uses the tables.
async fn close(tables: &mut Arc<dyn LocalTables>) {
    while Arc::get_mut(tables).is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Cluster, Unavailable, prepare};
    use hatebeam_proto::messages::{AnswerKind, FailureKind, OrderKind};
    use hatebeam_runs::store_network;
    use hatebeam_search::{EvaluatorKind, FEATURES, Network, NetworkWeights};

    #[test]
    fn next_order_cancels_the_search_for_games() {
        let worker = Cluster::new().worker("w0");
        let generation = worker.executor.halt();
        let cancel = worker.executor.cancellation(generation).unwrap();
        assert!(!cancel.load(Ordering::Relaxed));
        worker.executor.halt();
        assert!(cancel.load(Ordering::Relaxed));
        let error = worker.executor.cancellation(generation).unwrap_err();
        assert!(matches!(error, OrderError::Superseded(_)), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn worker_fetches_network_once_for_consecutive_epochs_of_a_run() {
        let weights = NetworkWeights {
            lanes: 16,
            bias: vec![0; 16],
            output: vec![0; 16],
            rows: vec![5; 16 * FEATURES],
        };
        let network = Network::new("worker", &weights).unwrap();
        let digest = network.digest();
        let mut order = prepare(10, &["w0"]);
        order.spec.evaluator.kind = EvaluatorKind::Network(digest);
        let order = OrderKind::Prepare(Box::new(order));
        let mut cluster = Cluster::new();

        let direct = cluster.objects.clone();
        cluster.objects = cluster.faulty_objects(Unavailable);
        let unlucky = cluster.worker("w0").execute(1, order.clone()).await;
        assert!(
            matches!(&unlucky, AnswerKind::Failed(failed) if failed.kind == FailureKind::Unavailable),
            "{unlucky:?}"
        );

        cluster.objects = direct;
        let worker = cluster.worker("w0");
        let AnswerKind::Failed(missing) = worker.execute(1, order.clone()).await else {
            panic!("the order succeeded without its network");
        };
        assert_eq!(missing.kind, FailureKind::Damaged { depth: None });
        let key = format!("networks/{digest}");
        assert!(missing.reason.contains(&key), "{}", missing.reason);

        store_network(&cluster.objects, &network).await.unwrap();
        let gets = cluster.objects.stats().gets;
        for epoch in [2, 3] {
            let answer = worker.execute(epoch, order.clone()).await;
            assert!(matches!(answer, AnswerKind::Prepared(_)), "{answer:?}");
        }
        assert_eq!(cluster.objects.stats().gets, gets + 1);
        assert!(Network::find(digest).is_some());
        worker.execute(3, OrderKind::Halt).await;
        assert!(Network::find(digest).is_none());
    }
}
