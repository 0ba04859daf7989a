//! Checks the tables (files of wells) that a worker reports as uploaded, before a manifest lists them.

use crate::registry::WorkerError;
use hatebeam_objects::Objects;
use hatebeam_runs::{RUNS, Table, frontier_key};

/// The uploaded tables of one worker at one depth.
pub(super) struct Uploaded<'a> {
    pub(super) run: &'a str,
    pub(super) epoch: u64,
    pub(super) depth: u32,
    pub(super) worker: &'a str,
    pub(super) tables: &'a [Table],
}

impl Uploaded<'_> {
    /// Checks that the tables are in the worker's own object, and that this object exists and is long enough. Does
    /// not read the contents: their checksums are verified when the tables are loaded.
    pub(super) async fn check(&self, objects: &Objects) -> Result<(), WorkerError> {
        let failed = |reason: String| Err(WorkerError::failed(self.worker, &reason));
        let key = frontier_key(self.depth, self.epoch, self.worker);
        if let Some(foreign) = self.tables.iter().find(|table| table.key != key) {
            return failed(format!(
                "it names the object {}, not its own {key}",
                foreign.key
            ));
        }
        let ends = self.tables.iter();
        let Some(end) = ends
            .map(|table| table.offset.saturating_add(table.bytes))
            .max()
        else {
            return Ok(());
        };
        match objects.size(&format!("{RUNS}/{}/{key}", self.run)).await {
            Ok(size) if size >= end => Ok(()),
            Ok(size) => failed(format!(
                "its object {key} has {size} bytes, and its tables end at {end}"
            )),
            Err(error) if error.is_not_found() => {
                failed(format!("its object {key} does not exist"))
            }
            // Accept the tables if the store is unavailable: saving the manifest then fails too, and is retried.
            Err(error) => {
                tracing::debug!(worker = self.worker, %error, "cannot check uploaded tables");
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::direct;
    use hatebeam_objects::Memory;

    fn table(key: &str, offset: u64) -> Table {
        Table {
            shard: 0,
            key: key.to_owned(),
            offset,
            bytes: 4,
            checksum: String::new(),
            count: 1,
            digest: String::new(),
        }
    }

    #[tokio::test]
    async fn only_tables_in_the_workers_own_complete_object_are_accepted() {
        let objects = direct(&Memory::new());
        let own = "frontier/00003/2-w1";
        objects
            .put(&format!("runs/r/{own}"), "12345678".into())
            .await
            .unwrap();
        objects
            .put("runs/r/frontier/00003/2-w2", "12345678".into())
            .await
            .unwrap();
        let check = async |epoch: u64, tables: &[Table]| {
            let uploaded = Uploaded {
                run: "r",
                epoch,
                depth: 3,
                worker: "w1",
                tables,
            };
            uploaded.check(&objects).await.map_err(|error| error.reason)
        };
        assert_eq!(check(2, &[table(own, 0), table(own, 4)]).await, Ok(()));
        assert_eq!(check(2, &[]).await, Ok(()));
        for (epoch, table, expected) in [
            (2, table("frontier/00003/2-w2", 0), "not its own"),
            (2, table("manifest.json", 0), "not its own"),
            (2, table(own, 5), "its tables end at 9"),
            (4, table("frontier/00003/4-w1", 0), "does not exist"),
        ] {
            let reason = check(epoch, &[table]).await.unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }
}
