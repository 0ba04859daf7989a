//! Commit of a depth: the worker writes its wells of this depth as tables, uploads the tables, and caches them on this
//! machine for later epochs (periods with a fixed set of workers).

use crate::epoch::{Committed, Epoch};
use crate::error::OrderError;
use crate::exchange::Traffic;
use crate::tables::{Bundle, LocalTables, WriteTables, WrittenTables};
use hatebeam_env::Env;
use hatebeam_objects::Objects;
use hatebeam_runs::{RUNS, Table, frontier_key};
use hatebeam_search::Frontier;
use hatebeam_store::StoreError;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::oneshot;
use tracing::Span;

/// Number of most recent depths whose tables stay on this machine. The next epoch normally begins at one of these
/// depths.
const LOCAL_DEPTHS: u32 = 2;

pub(super) struct Commit {
    pub(super) env: Env,
    pub(super) epoch: Arc<Epoch>,
    pub(super) frontier: Arc<Frontier>,
    pub(super) objects: Objects,
    pub(super) name: String,
    pub(super) threads: usize,
    pub(super) traffic: Arc<Traffic>,
}

/// Waits until the tables of a depth are in the object store, and returns their descriptions.
pub(super) async fn wait(epoch: &Epoch, depth: u32) -> Result<Vec<Table>, OrderError> {
    let commit = epoch.take_commit(depth);
    let commit = commit
        .ok_or_else(|| OrderError::bad_order(format!("depth {depth} is not being committed")))?;
    commit
        .await
        .unwrap_or_else(|_| Err(OrderError::superseded("the commit was abandoned")))
}

impl Commit {
    /// Commits the depth, sends the result to `done`, and then adds the tables to the local cache.
    pub(super) async fn run(self, done: oneshot::Sender<Committed>) {
        // Send errors are ignored: the receiver is dropped if the epoch is over.
        match self.commit().await {
            Err(error) => {
                let _ = done.send(Err(error));
            }
            Ok((tables, files)) => {
                let _ = done.send(Ok(tables));
                let began = self.env.now();
                self.cache(files).await;
                let phases = &self.traffic.metrics.phases;
                phases.observe("cache", began.elapsed());
            }
        }
    }

    /// Writes and uploads the tables. Returns their descriptions and their files.
    async fn commit(&self) -> Result<(Vec<Table>, Files), OrderError> {
        let metrics = &self.traffic.metrics;
        let depth = self.frontier.depth;
        let key = frontier_key(depth, self.epoch.number, &self.name);
        let began = self.env.now();
        let WrittenTables {
            tables,
            files,
            bundle,
        } = self.write(key.clone()).await?;
        metrics.phases.observe("write", began.elapsed());
        let files = Files { files, bundle };
        match self.upload_tables(&key, &tables, &files.bundle).await {
            Ok(()) => Ok((tables, files)),
            Err(error) => {
                self.discard(files).await;
                Err(error)
            }
        }
    }

    /// Uploads the written tables, unless the epoch has ended.
    async fn upload_tables(
        &self,
        key: &str,
        tables: &[Table],
        bundle: &Bundle,
    ) -> Result<(), OrderError> {
        if self.epoch.is_over() {
            return Err(OrderError::superseded("the epoch has ended"));
        }
        let metrics = &self.traffic.metrics;
        let began = self.env.now();
        let bytes = tables.iter().map(|table| table.bytes).sum();
        if !tables.is_empty() {
            // The metric can be set directly, because only one depth is uploaded at a time.
            metrics.uploading.set(bytes);
            let uploaded = self.upload(key, bundle).await;
            metrics.uploading.set(0);
            uploaded?;
        }
        metrics.phases.observe("upload", began.elapsed());
        metrics.tables_written.add(tables.len() as u64);
        metrics.tables_bytes.add(bytes);
        tracing::debug!(tables = tables.len(), bytes, "uploaded tables");
        Ok(())
    }

    /// Deletes the files of a depth that cannot be committed, so that they do not fill the disk.
    async fn discard(&self, files: Files) {
        let (epoch, depth) = (Arc::clone(&self.epoch), self.frontier.depth);
        let discarding = self.env.run_blocking(move || files.discard(&*epoch.tables));
        let discarded = discarding.await.map_err(OrderError::from);
        if let Err(error) = discarded.and_then(|discarded| discarded.map_err(OrderError::from)) {
            tracing::warn!(depth, %error, "cannot delete tables on this machine");
        }
    }

    async fn write(&self, key: String) -> Result<WrittenTables, OrderError> {
        let (epoch, frontier) = (Arc::clone(&self.epoch), Arc::clone(&self.frontier));
        let (threads, span) = (self.threads, Span::current());
        let written = self.env.run_blocking(move || {
            let _inside = span.enter();
            epoch.tables.write(&WriteTables {
                epoch: epoch.number,
                key: &key,
                frontier: &frontier,
                threads,
            })
        });
        Ok(written.await??)
    }

    async fn upload(&self, key: &str, bundle: &Bundle) -> Result<(), OrderError> {
        let key = format!("{RUNS}/{}/{key}", self.epoch.run);
        match bundle {
            Bundle::File(path) => self.objects.put_file(&key, path).await.map(drop)?,
            Bundle::Memory(bytes) => self.objects.put(&key, bytes.clone()).await?,
        }
        Ok(())
    }

    /// Adds the tables to the local cache, so that a later epoch need not fetch them, and drops an old depth from the
    /// cache. If the search is already [`LOCAL_DEPTHS`] or more depths ahead, discards the tables instead.
    async fn cache(&self, written: Files) {
        let _alone = self.epoch.caching.lock().await;
        let (epoch, depth) = (Arc::clone(&self.epoch), self.frontier.depth);
        let cached = self.env.run_blocking(move || -> Result<(), StoreError> {
            let tables = &epoch.tables;
            if let Bundle::File(bundle) = written.bundle {
                tables.discard(&[bundle])?;
            }
            if epoch.selected().saturating_sub(depth) < LOCAL_DEPTHS {
                let ingested = tables.ingest(depth, written.files.clone());
                if ingested.is_err() {
                    tables.discard(&written.files)?;
                }
                ingested?;
            } else {
                tables.discard(&written.files)?;
            }
            match depth.checked_sub(LOCAL_DEPTHS) {
                Some(old) => tables.drop_depth(old),
                None => Ok(()),
            }
        });
        let cached = cached.await.map_err(OrderError::from);
        if let Err(error) = cached.and_then(|cached| cached.map_err(OrderError::from)) {
            tracing::warn!(depth, %error, "cannot cache tables on this machine");
        }
    }
}

/// The local files of written tables.
struct Files {
    files: Vec<PathBuf>,
    bundle: Bundle,
}

impl Files {
    fn discard(self, tables: &dyn LocalTables) -> Result<(), StoreError> {
        let mut files = self.files;
        if let Bundle::File(bundle) = self.bundle {
            files.push(bundle);
        }
        tables.discard(&files)
    }
}
