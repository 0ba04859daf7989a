//! Loading of the wells with which an epoch (a period with a fixed set of workers) begins. A worker loads the shards
//! (ranges of well hashes) that it owns. Each table contains the wells of one shard.

use super::Executor;
use crate::error::OrderError;
use crate::tables::LocalTables;
use hatebeam_proto::messages::Prepare;
use hatebeam_runs::Table;
use hatebeam_search::{Digest, Frontier, Node, ShardLayout};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::Instrument;

/// Maximum number of tables that are fetched at the same time.
const TRANSFERS: usize = 4;

struct Loading<'a> {
    depth: u32,
    layout: ShardLayout,
    shards: Vec<Vec<Node>>,
    /// Tables of the shards that are not loaded yet.
    missing: Vec<&'a Table>,
}

impl Loading<'_> {
    /// Copies the missing shards that are complete in `frontier`.
    fn take_from(&mut self, frontier: &Frontier) {
        self.missing.retain(|table| {
            let shard = table.shard as usize;
            let nodes = frontier.shards.get(shard);
            let Some(nodes) = nodes.filter(|nodes| is_complete(nodes, table)) else {
                return true;
            };
            self.shards[shard] = nodes.clone();
            false
        });
    }
}

/// Whether the number and the digest of these nodes match the committed table of their shard.
fn is_complete(nodes: &[Node], table: &Table) -> bool {
    nodes.len() as u64 == table.count && Digest::of(nodes).to_string() == table.digest
}

impl Executor {
    /// Loads the wells of this worker's shards from memory (`held`), from the local tables, or from the object store.
    /// Returns the frontier, and the number of tables that were fetched from the object store.
    pub(super) async fn load(
        &self,
        order: &Prepare,
        layout: ShardLayout,
        held: Option<Arc<Frontier>>,
        tables: &Arc<dyn LocalTables>,
    ) -> Result<(Arc<Frontier>, u32), OrderError> {
        let mut loading = Loading {
            depth: order.depth,
            layout,
            shards: vec![Vec::new(); layout.shards()],
            missing: order.tables.iter().collect(),
        };
        if let Some(held) = held {
            loading.take_from(&held);
        }
        if !loading.missing.is_empty() {
            // An error is expected if there are no local tables of this depth. The missing shards are then fetched.
            if let Err(error) = self.load_local(tables, &mut loading).await {
                tracing::debug!(depth = order.depth, %error, "cannot load local tables");
            }
        }
        let fetched = loading.missing.len() as u32;
        if fetched > 0 {
            self.fetch(&order.run, order.depth, &loading.missing, tables)
                .await?;
            self.load_local(tables, &mut loading).await?;
        }
        if let Some(table) = loading.missing.first() {
            return Err(OrderError::Damaged(format!(
                "the wells in the table of shard {} in {} do not match its manifest entry",
                table.shard, table.key
            )));
        }
        let (depth, shards) = (loading.depth, loading.shards);
        Ok((Arc::new(Frontier { depth, shards }), fetched))
    }

    /// Loads the missing shards that are complete in the local tables.
    async fn load_local(
        &self,
        tables: &Arc<dyn LocalTables>,
        loading: &mut Loading<'_>,
    ) -> Result<(), OrderError> {
        let (tables, depth) = (Arc::clone(tables), loading.depth);
        let nodes = self.env.run_blocking(move || tables.load(depth)).await??;
        loading.take_from(&Frontier::new(depth, nodes, loading.layout));
        Ok(())
    }

    /// Fetches tables from the object store and adds them to the local tables.
    async fn fetch(
        &self,
        run: &str,
        depth: u32,
        missing: &[&Table],
        tables: &Arc<dyn LocalTables>,
    ) -> Result<(), OrderError> {
        let permits = Arc::new(Semaphore::new(TRANSFERS));
        let mut fetches = JoinSet::new();
        for &table in missing {
            let fetch = Fetch {
                table: table.clone(),
                run: run.to_owned(),
                depth,
                tables: Arc::clone(tables),
            };
            let span = tracing::info_span!("table", shard = table.shard);
            let fetch = self.fetch_one(fetch, Arc::clone(&permits)).instrument(span);
            fetches.spawn(self.env.guard(fetch));
        }
        let mut files = Vec::new();
        while let Some(fetched) = fetches.join_next().await {
            files.push(fetched.map_err(|error| OrderError::Worker(error.to_string()))??);
        }
        let tables = Arc::clone(tables);
        let ingested = self.env.run_blocking(move || tables.ingest(depth, files));
        Ok(ingested.await??)
    }

    /// Fetches one table and stages it in a local file.
    fn fetch_one(
        &self,
        fetch: Fetch,
        permits: Arc<Semaphore>,
    ) -> impl Future<Output = Result<std::path::PathBuf, OrderError>> + Send + 'static {
        let (objects, env) = (self.objects.clone(), self.env.clone());
        async move {
            let _permit = permits.acquire_owned().await;
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
