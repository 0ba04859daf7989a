//! The tables of the shards that a worker has: loaded when an epoch begins, written and put into the object
//! store when a depth is selected.

use crate::executor::{Epoch, OrderError};
use hatebeam_metrics::WorkerMetrics;
use hatebeam_objects::{Objects, Stored};
use hatebeam_proto::v1;
use hatebeam_runs::{ManifestError, RUNS, Table};
use hatebeam_search::{Digest, Frontier, Node, ShardLayout};
use hatebeam_store::{ShardTables, in_parallel};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::{Instrument, Span};

/// Tables that are fetched at once.
const TRANSFERS: usize = 4;
/// Depths whose tables stay on this machine, the last included: those that may have to be done again.
const LOCAL_DEPTHS: u32 = 2;

/// The wells of the shards that are here, from memory, from this machine's tables, or from the object
/// store; and how many tables were fetched.
pub(crate) async fn load(
    objects: &Objects,
    order: &v1::Prepare,
    layout: ShardLayout,
    held: Option<Arc<Frontier>>,
    tables: &Arc<ShardTables>,
) -> Result<(Arc<Frontier>, u32), OrderError> {
    let depth = order.depth;
    let mut shards = vec![Vec::new(); layout.shards()];
    let mut missing: Vec<&v1::Table> = order.tables.iter().collect();
    if let Some(held) = held {
        missing.retain(|table| {
            let nodes = held.shards.get(table.shard as usize);
            let Some(nodes) = nodes.filter(|nodes| is_whole(nodes, table)) else {
                return true;
            };
            shards[table.shard as usize] = nodes.clone();
            false
        });
    }
    if !missing.is_empty() {
        take_whole(tables, depth, layout, &mut shards, &mut missing).await;
    }
    let fetched = missing.len() as u32;
    if !missing.is_empty() {
        let mut fetches = JoinSet::new();
        let permits = Arc::new(Semaphore::new(TRANSFERS));
        for table in &missing {
            let name = format!("{depth}-{}.sst", table.shard);
            let path = tables.path(&name);
            let table = hatebeam_proto::convert::read_table((*table).clone());
            let (objects, permits) = (objects.clone(), Arc::clone(&permits));
            let run = order.run.clone();
            let span = tracing::info_span!("table", shard = table.shard);
            let fetch = async move {
                let _permit = permits.acquire_owned().await;
                table.fetch(&objects, &run, &path).await?;
                tracing::debug!(bytes = table.bytes, "table fetched");
                Ok::<_, ManifestError>(path)
            };
            fetches.spawn(fetch.instrument(span));
        }
        let mut paths = Vec::new();
        while let Some(fetched) = fetches.join_next().await {
            paths.push(fetched?.map_err(|error| OrderError::of_store(&error))?);
        }
        let into = Arc::clone(tables);
        tokio::task::spawn_blocking(move || into.ingest(depth, paths)).await??;
        take_whole(tables, depth, layout, &mut shards, &mut missing).await;
    }
    if let Some(table) = missing.first() {
        return Err(format!("the table {} is not what was committed", table.key).into());
    }
    Ok((Arc::new(Frontier { depth, shards }), fetched))
}

/// Whether a shard is what was committed.
fn is_whole(nodes: &[Node], table: &v1::Table) -> bool {
    nodes.len() as u64 == table.count && Digest::of(nodes).to_string() == table.digest
}

/// Takes those of the missing shards that this machine's tables have whole.
async fn take_whole(
    tables: &Arc<ShardTables>,
    depth: u32,
    layout: ShardLayout,
    shards: &mut [Vec<Node>],
    missing: &mut Vec<&v1::Table>,
) {
    let from = Arc::clone(tables);
    let loaded = tokio::task::spawn_blocking(move || from.load(depth)).await;
    // What cannot be read here is fetched anew.
    let Ok(Ok(nodes)) = loaded else {
        return;
    };
    let frontier = Frontier::new(depth, nodes, layout);
    missing.retain(|table| {
        let Some(nodes) = frontier.shards.get(table.shard as usize) else {
            return true;
        };
        if !is_whole(nodes, table) {
            return true;
        }
        shards[table.shard as usize] = nodes.clone();
        false
    });
}

/// Writes the tables of the shards that are here, one after the other in one file, and puts that into the
/// object store. The paths are those of the tables one by one.
pub(crate) async fn commit(
    epoch: &Arc<Epoch>,
    objects: &Objects,
    frontier: &Arc<Frontier>,
    (name, threads, metrics): (&str, usize, &WorkerMetrics),
) -> Result<(Vec<Table>, Vec<PathBuf>), OrderError> {
    let began = Instant::now();
    let depth = frontier.depth;
    let key = format!("frontier/{depth:05}/{}-{name}", epoch.number);
    let bundle = epoch.tables.path(&format!("{depth}-{}", epoch.number));
    let (work, of, into, under) = (
        Arc::clone(epoch),
        Arc::clone(frontier),
        bundle.clone(),
        key.clone(),
    );
    let span = Span::current();
    let written = tokio::task::spawn_blocking(move || {
        let _inside = span.enter();
        write(&work, &of, &into, &under, threads)
    });
    let (tables, paths) = written.await??;
    metrics.phases.observe("write", began.elapsed());
    if epoch.is_over() {
        return Err("the epoch is over".into());
    }
    let began = Instant::now();
    let bytes = tables.iter().map(|table| table.bytes).sum();
    if !tables.is_empty() {
        let whole = format!("{RUNS}/{}/{key}", epoch.run);
        // One depth is committed at a time.
        metrics.uploading.set(bytes);
        let stored = objects.put_file(&whole, &bundle).await;
        metrics.uploading.set(0);
        stored.map_err(|error| OrderError::of_store(&error.into()))?;
    }
    metrics.phases.observe("upload", began.elapsed());
    metrics.tables_written.add(tables.len() as u64);
    metrics.tables_bytes.add(bytes);
    tracing::debug!(
        tables = tables.len(),
        bytes,
        "tables are in the object store"
    );
    Ok((tables, paths))
}

fn write(
    epoch: &Epoch,
    frontier: &Frontier,
    bundle: &Path,
    key: &str,
    threads: usize,
) -> Result<(Vec<Table>, Vec<PathBuf>), OrderError> {
    let depth = frontier.depth;
    let filled: Vec<usize> = (0..frontier.shards.len())
        .filter(|&shard| !frontier.shards[shard].is_empty())
        .collect();
    let write_one = |at: usize| {
        let shard = filled[at];
        let name = format!("{depth}-{shard}-{}.sst", epoch.number);
        let nodes = &frontier.shards[shard];
        epoch.tables.write(&name, depth, shard, nodes)
    };
    let written = in_parallel(threads, filled.len(), write_one)?;
    let mut file = File::create(bundle)?;
    let (mut tables, mut paths, mut offset) = (Vec::new(), Vec::new(), 0);
    for (shard, written) in filled.into_iter().zip(written) {
        let bytes = std::fs::read(&written.path)?;
        let stored = Stored::of(&bytes);
        file.write_all(&bytes)?;
        tables.push(Table {
            shard: shard as u32,
            key: key.to_owned(),
            offset,
            bytes: stored.bytes,
            checksum: stored.checksum.to_string(),
            count: written.count,
            digest: written.digest.to_string(),
        });
        offset += stored.bytes;
        paths.push(written.path);
    }
    Ok((tables, paths))
}

/// Gives tables to RocksDB on this machine, so that they need not be fetched, and lets old ones go. They are
/// in the object store: that is what counts. Where the disk is slower than the search, those that would go soon
/// are not taken in.
pub(crate) async fn keep(epoch: &Arc<Epoch>, depth: u32, paths: Vec<PathBuf>) {
    let _alone = epoch.keeping.lock().await;
    let epoch = Arc::clone(epoch);
    let kept = tokio::task::spawn_blocking(move || {
        let bundle = epoch.tables.path(&format!("{depth}-{}", epoch.number));
        std::fs::remove_file(bundle)?;
        let last = epoch.selected.load(Ordering::Relaxed);
        if last.saturating_sub(depth) < LOCAL_DEPTHS {
            epoch.tables.ingest(depth, paths)?;
        } else {
            paths.iter().try_for_each(std::fs::remove_file)?;
        }
        if let Some(old) = depth.checked_sub(LOCAL_DEPTHS) {
            epoch.tables.drop_depth(old)?;
        }
        Ok::<(), OrderError>(())
    });
    let failed = match kept.await {
        Ok(Ok(())) => return,
        Ok(Err(failure)) => failure.reason,
        Err(error) => error.to_string(),
    };
    tracing::warn!(depth, reason = failed, "tables do not stay on this machine");
}
