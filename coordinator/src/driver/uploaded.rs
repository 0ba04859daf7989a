//! Checks the tables (files of wells) that a worker reports as uploaded, before a manifest lists them.

use crate::registry::WorkerError;
use hatebeam_objects::Objects;
use hatebeam_runs::{FrontierSummary, RUNS, Table, frontier_key};
use hatebeam_search::Digest;

/// The uploaded tables of one worker at one depth.
pub(super) struct Uploaded<'a> {
    pub(super) run: &'a str,
    pub(super) epoch: u64,
    pub(super) depth: u32,
    pub(super) worker: &'a str,
    pub(super) tables: &'a [Table],
    /// Summary of the worker's part of the frontier, which the tables must contain.
    pub(super) part: FrontierSummary,
    /// Whether the worker owns each shard.
    pub(super) owned: Vec<bool>,
}

impl Uploaded<'_> {
    /// Checks that the tables contain the worker's part of the frontier according to their descriptions, that they are in
    /// the worker's own object, and that this object exists and is long enough. Does not read the contents: they are
    /// verified when the tables are loaded.
    pub(super) async fn check(&self, objects: &Objects) -> Result<(), WorkerError> {
        let failed = |reason: String| Err(WorkerError::failed(self.worker, reason));
        if let Err(reason) = self.check_wells() {
            return failed(reason);
        }
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

    /// Checks that the tables are of different shards of the worker, and that they have as many wells and the same digest as
    /// its part of the frontier. So their list matches the record of the depth.
    fn check_wells(&self) -> Result<(), String> {
        let mut free = self.owned.clone();
        let mut digest = Digest::default();
        for Table {
            shard,
            digest: part,
            ..
        } in self.tables
        {
            match free.get_mut(*shard as usize) {
                Some(free) if *free => *free = false,
                _ => {
                    return Err(format!(
                        "it has two tables of shard {shard}, or does not own it"
                    ));
                }
            }
            let part = part.parse();
            digest.join(part.map_err(|error| format!("the table of shard {shard}: {error}"))?);
        }
        let counts = self.tables.iter().map(|table| table.count);
        let (count, expected) = (counts.fold(0, u64::saturating_add), self.part.count);
        if count != expected {
            return Err(format!(
                "its tables have {count} wells instead of {expected}"
            ));
        }
        if digest != self.part.digest {
            let expected = self.part.digest;
            return Err(format!(
                "its tables have digest {digest} instead of {expected}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::direct;
    use hatebeam_objects::Memory;

    /// Returns a table of one well. The digest of `n` such tables is `n`.
    fn table(key: &str, shard: u32) -> Table {
        Table {
            shard,
            key: key.to_owned(),
            offset: u64::from(shard) * 4,
            bytes: 4,
            checksum: String::new(),
            count: 1,
            digest: format!("{:032x}", 1),
        }
    }

    /// Returns the summary of a part with this many wells, for [`table`].
    fn part(count: u64) -> FrontierSummary {
        FrontierSummary {
            count,
            digest: format!("{count:032x}").parse().unwrap(),
            ..FrontierSummary::default()
        }
    }

    #[test]
    fn tables_that_differ_from_the_part_of_the_frontier_are_refused() {
        let check = |tables: &[Table], part| {
            let uploaded = Uploaded {
                run: "r",
                epoch: 2,
                depth: 3,
                worker: "w1",
                tables,
                part,
                owned: vec![true, true, false],
            };
            uploaded.check_wells()
        };
        let tables = [table("k", 0), table("k", 1)];
        assert_eq!(check(&tables, part(2)), Ok(()));
        assert_eq!(check(&[], part(0)), Ok(()));
        let twice = [table("k", 0), table("k", 0)];
        let foreign = [table("k", 0), table("k", 2)];
        let beyond = [table("k", 0), table("k", 3)];
        for wrong in [twice, foreign, beyond] {
            let reason = check(&wrong, part(2)).unwrap_err();
            assert!(reason.contains("does not own it"), "{reason}");
        }
        let reason = check(&tables, part(3)).unwrap_err();
        assert_eq!(reason, "its tables have 2 wells instead of 3");
        let digest = part(3).digest;
        let reason = check(&tables, FrontierSummary { digest, ..part(2) }).unwrap_err();
        assert!(reason.contains("instead of 00000"), "{reason}");
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
                part: part(tables.len() as u64),
                owned: vec![true; 3],
            };
            uploaded.check(&objects).await.map_err(|error| error.reason)
        };
        assert_eq!(check(2, &[table(own, 0), table(own, 1)]).await, Ok(()));
        assert_eq!(check(2, &[]).await, Ok(()));
        for (epoch, table, expected) in [
            (2, table("frontier/00003/2-w2", 0), "not its own"),
            (2, table("manifest.json", 0), "not its own"),
            (2, table(own, 2), "its tables end at 12"),
            (4, table("frontier/00003/4-w1", 0), "does not exist"),
        ] {
            let reason = check(epoch, &[table]).await.unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }
}
