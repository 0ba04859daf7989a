//! Loading of the wells with which an epoch (a period with a fixed set of workers) begins. A worker loads the shards
//! (ranges of well hashes) that it owns. Each table contains the wells of one shard.

use super::Executor;
use crate::epoch::Assignment;
use crate::error::OrderError;
use crate::tables::LocalTables;
use hatebeam_proto::messages::Prepare;
use hatebeam_runs::Table;
use hatebeam_search::{Digest, Frontier, Node, ShardLayout};
use hatebeam_store::StoreError;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::Instrument;

/// Maximum number of tables that are fetched at the same time.
const TRANSFERS: usize = 4;

/// Where a worker finds the wells of its shards before it fetches tables.
pub(super) struct Source<'a> {
    /// The generation of the `prepare` order.
    pub(super) generation: u64,
    pub(super) tables: &'a Arc<dyn LocalTables>,
    /// The frontier of the previous epoch, if it belongs to the same run.
    pub(super) held: Option<Arc<Frontier>>,
}

/// The wells that a worker has loaded so far. The tables may divide the frontier into other shards than the epoch: in
/// an epoch with more workers than the one before, shards are split.
struct Loading {
    depth: u32,
    /// Division into the shards of the epoch.
    layout: ShardLayout,
    /// Division into the tables.
    tables: ShardLayout,
    /// For each shard of `layout`, whether this worker owns it.
    owned: Arc<Vec<bool>>,
    shards: Vec<Vec<Node>>,
    /// Tables that are not loaded yet.
    missing: Vec<Table>,
    /// Whether a source contained only a part of a missing table, or other wells of its shard.
    has_others: bool,
}

/// The wells of one table that were found in a source.
#[derive(Default)]
struct Found {
    count: u64,
    digest: Digest,
    /// The wells in shards of this worker.
    own: Vec<Node>,
}

impl Found {
    /// Whether all wells of the committed table were found, and no others.
    fn is_complete(&self, table: &Table) -> bool {
        self.count == table.count && self.digest.to_string() == table.digest
    }
}

impl Loading {
    fn new(order: &Prepare, assignment: &Assignment) -> Loading {
        Loading {
            depth: order.depth,
            layout: assignment.layout,
            tables: assignment.tables,
            owned: Arc::clone(&assignment.owned),
            shards: vec![Vec::new(); assignment.layout.shards()],
            missing: order.tables.clone(),
            has_others: false,
        }
    }

    /// Loads the missing tables that are complete in a source. `source` calls its argument with each of its nodes.
    fn take<T>(&mut self, source: impl FnOnce(&mut dyn FnMut(&Node)) -> T) -> T {
        let mut found: Vec<Option<Found>> = Vec::new();
        found.resize_with(self.tables.shards(), || None);
        for table in &self.missing {
            found[table.shard as usize] = Some(Found::default());
        }
        let taken = source(&mut |node| {
            let Some(found) = &mut found[self.tables.shard_of(&node.well)] else {
                return;
            };
            found.count += 1;
            found.digest.add(node);
            if self.owned[self.layout.shard_of(&node.well)] {
                found.own.push(*node);
            }
        });
        let mut has_others = false;
        self.missing.retain(|table| {
            let found = found[table.shard as usize].take().unwrap_or_default();
            if !found.is_complete(table) {
                has_others |= found.count > 0;
                return true;
            }
            for node in found.own {
                self.shards[self.layout.shard_of(&node.well)].push(node);
            }
            false
        });
        self.has_others = has_others;
        taken
    }

    /// Returns the loaded wells.
    fn finish(mut self) -> Frontier {
        for shard in &mut self.shards {
            // The wells of several tables, or of the split shards of an earlier epoch, follow one another.
            shard.sort_unstable_by_key(|node| node.well);
            shard.shrink_to_fit();
        }
        Frontier {
            depth: self.depth,
            shards: self.shards,
        }
    }
}

impl Executor {
    /// Loads the wells of this worker's shards from memory, from the local tables, or from the object store. Returns the
    /// frontier, and the number of tables that were fetched from the object store.
    pub(super) async fn load(
        &self,
        order: &Prepare,
        assignment: &Assignment,
        source: Source<'_>,
    ) -> Result<(Arc<Frontier>, u32), OrderError> {
        let Source {
            generation,
            tables,
            held,
        } = source;
        let mut loading = Loading::new(order, assignment);
        if let Some(held) = held.filter(|held| held.depth == order.depth) {
            let taken = self.env.run_blocking(move || {
                loading.take(|add| held.nodes().for_each(add));
                loading
            });
            loading = taken.await?;
        }
        if !loading.missing.is_empty() {
            let loaded;
            (loading, loaded) = self.load_local(tables, loading).await?;
            // An error is expected if there are no local tables of this depth. The missing tables are then fetched.
            if let Err(error) = loaded {
                tracing::debug!(depth = order.depth, %error, "cannot load local tables");
            }
        }
        let fetched = loading.missing.len() as u32;
        if fetched > 0 {
            if loading.has_others {
                // The depth was searched again, and other wells were found the first time, because a worker was faulty.
                // Together with the fetched tables, they would match no list. All tables that match are loaded.
                let (tables, depth) = (Arc::clone(tables), order.depth);
                let dropping = self.env.run_blocking(move || tables.drop_depth(depth));
                dropping.await??;
            }
            self.fetch(order, &loading.missing, tables, generation)
                .await?;
            let loaded;
            (loading, loaded) = self.load_local(tables, loading).await?;
            loaded?;
        }
        if let Some(table) = loading.missing.first() {
            return Err(OrderError::damaged(format!(
                "the wells in the table of shard {} in {} do not match its manifest entry",
                table.shard, table.key
            )));
        }
        let frontier = self.env.run_blocking(move || loading.finish()).await?;
        Ok((Arc::new(frontier), fetched))
    }

    /// Loads the missing tables that are complete among the local tables.
    async fn load_local(
        &self,
        tables: &Arc<dyn LocalTables>,
        mut loading: Loading,
    ) -> Result<(Loading, Result<(), StoreError>), OrderError> {
        let tables = Arc::clone(tables);
        let loaded = self.env.run_blocking(move || {
            let depth = loading.depth;
            let loaded = loading.take(|add| tables.visit(depth, add));
            (loading, loaded)
        });
        Ok(loaded.await?)
    }

    /// Fetches tables from the object store and adds them to the local tables. Fetches no further table after a failure, or
    /// if the order with this generation is superseded. Then no staged table remains.
    async fn fetch(
        &self,
        order: &Prepare,
        missing: &[Table],
        tables: &Arc<dyn LocalTables>,
        generation: u64,
    ) -> Result<(), OrderError> {
        let depth = order.depth;
        let permits = Arc::new(Semaphore::new(TRANSFERS));
        let mut fetches = JoinSet::new();
        for table in missing {
            let fetch = Fetch {
                table: table.clone(),
                run: order.run.clone(),
                depth,
                tables: Arc::clone(tables),
            };
            let span = tracing::info_span!("table", shard = table.shard);
            let fetch = self.fetch_one(fetch, Arc::clone(&permits)).instrument(span);
            fetches.spawn(self.env.guard(fetch));
        }
        let mut files = Vec::new();
        let mut failed = None;
        while let Some(fetched) = fetches.join_next().await {
            match fetched.unwrap_or_else(|error| Err(OrderError::Worker(error.to_string()))) {
                Ok(file) => files.push(file),
                Err(error) => failed = failed.or(Some(error)),
            }
            failed = failed.or(self.check_generation(generation).err());
            if failed.is_some() {
                permits.close();
            }
        }
        let tables = Arc::clone(tables);
        let ending = self.env.run_blocking(move || match failed {
            None => Ok(tables.ingest(depth, files)?),
            Some(error) => {
                tables.discard(&files)?;
                Err(error)
            }
        });
        ending.await?
    }

    /// Fetches one table and stages it in a local file.
    fn fetch_one(
        &self,
        fetch: Fetch,
        permits: Arc<Semaphore>,
    ) -> impl Future<Output = Result<std::path::PathBuf, OrderError>> + Send + 'static {
        let (objects, env) = (self.objects.clone(), self.env.clone());
        async move {
            let permit = permits.acquire_owned().await;
            let _permit = permit.map_err(|_| OrderError::superseded("fetching has ended"))?;
            let Fetch {
                table,
                run,
                depth,
                tables,
            } = fetch;
            let bytes = table.read(&objects, &run).await?;
            let staged = env.run_blocking(move || tables.stage(depth, table.shard, &bytes));
            let file = staged.await??;
            tracing::debug!(bytes = table.bytes, "fetched table");
            Ok(file)
        }
    }
}

struct Fetch {
    table: Table,
    run: String,
    depth: u32,
    tables: Arc<dyn LocalTables>,
}
