//! Tests of epochs (periods with a fixed set of workers) that split the shards (ranges of well hashes) of earlier ones.

use super::cluster::{Cluster, Process, Reaction, Script, obedient};
use super::world::SHARDS;
use crate::Submission;
use hatebeam_proto::messages::{FailureKind, OrderKind};
use hatebeam_runs::{Manifest, RunState};

/// Depth at which the shards are split.
const SPLIT: u32 = 3;
const DEPTH: u32 = 6;

/// Searches to depth [`SPLIT`] with [`SHARDS`] shards. Returns a coordinator that splits shards.
async fn before_split(cluster: &mut Cluster) -> Process {
    let first = cluster.coordinator("a").await;
    cluster.worker(&first, "w0", obedient());
    cluster.submit(&first, SPLIT).await;
    cluster.wait_for(&first, RunState::Finished).await;
    first.stop().await.unwrap();
    cluster.min_shard_wells = 1;
    cluster.coordinator("b").await
}

/// Returns the number of shards of each depth with tables.
fn shards_of(manifest: &Manifest) -> Vec<u32> {
    let lists = manifest.depths.iter().flat_map(|depth| &depth.tables);
    lists.map(|list| list.shards).collect()
}

/// Returns a script that reports damage when the worker first loads the tables of depth [`SPLIT`] into smaller shards.
fn damaged_once() -> Script {
    let mut is_damaged = true;
    Box::new(move |order| match order {
        OrderKind::Prepare(prepare) if prepare.depth == SPLIT && is_damaged => {
            assert!(prepare.owners.len() > prepare.table_shards as usize);
            is_damaged = false;
            Reaction::Fail(FailureKind::Damaged { depth: None })
        }
        _ => Reaction::Obey,
    })
}

#[tokio::test(start_paused = true)]
async fn later_epoch_splits_shards_and_loads_the_tables_of_whole_shards() {
    let mut cluster = Cluster::new();
    let second = before_split(&mut cluster).await;
    assert_eq!(shards_of(&cluster.saved().await), [SHARDS; 3]);
    cluster.worker(&second, "w0", obedient());
    cluster.worker(&second, "w1", obedient());
    cluster.submit(&second, DEPTH).await;
    cluster.finish(&second, DEPTH).await;
    let manifest = cluster.saved().await;
    let after = 2 * SHARDS;
    assert_eq!(manifest.shards, after);
    assert_eq!(
        shards_of(&manifest),
        [SHARDS, SHARDS, SHARDS, after, after, after]
    );
    second.stop().await.unwrap();

    // Without enough workers for so many shards, the number of shards stays.
    cluster.min_shard_wells = 1000;
    let third = cluster.coordinator("c").await;
    cluster.worker(&third, "w0", obedient());
    cluster.submit(&third, DEPTH + 1).await;
    cluster.finish(&third, DEPTH + 1).await;
    assert_eq!(cluster.saved().await.shards, after);
}

#[tokio::test(start_paused = true)]
async fn later_submission_cannot_change_the_number_of_shards() {
    let mut cluster = Cluster::new();
    let second = before_split(&mut cluster).await;
    cluster.worker(&second, "w0", obedient());
    cluster.worker(&second, "w1", obedient());
    let submit = |depth, shards| {
        let submission = Submission {
            shards,
            ..cluster.submission(depth)
        };
        second.coordinator.submit(submission)
    };
    for shards in [3, SHARDS + 1, 2 * SHARDS, 5000, 0] {
        let error = submit(DEPTH, Some(shards)).await.unwrap_err().to_string();
        let expected = format!("has {SHARDS} shards, and its first submission");
        assert!(error.contains(&expected), "{error}");
    }
    assert_eq!(cluster.saved().await.state, RunState::Finished);
    // Without a number, and with the first one, a submission reopens the run, even after its shards have been split.
    for (depth, shards) in [(DEPTH, None), (DEPTH + 1, Some(SHARDS))] {
        submit(depth, shards).await.unwrap();
        cluster.finish(&second, depth).await;
        assert_eq!(cluster.saved().await.shards, 2 * SHARDS);
    }
}

#[tokio::test(start_paused = true)]
async fn damaged_table_is_found_although_its_shard_was_split() {
    let mut cluster = Cluster::new();
    let second = before_split(&mut cluster).await;
    let manifest = cluster.saved().await;
    let objects = cluster.objects();
    let last = manifest.last().unwrap();
    let list = manifest.tables(&objects, last).await.unwrap();
    // Only the contents of the last table are wrong, so the check must read the tables of the worker that owns a part of
    // its shard.
    let table = list.tables.last().unwrap();
    let key = format!("{}/{}", manifest.prefix(), table.key);
    let mut bytes = objects.get(&key).await.unwrap().0.to_vec();
    bytes[(table.offset + table.bytes - 1) as usize] ^= 1;
    objects.put(&key, bytes.into()).await.unwrap();
    cluster.worker(&second, "w0", damaged_once());
    cluster.submit(&second, DEPTH).await;
    cluster.finish(&second, DEPTH).await;
    let after = 2 * SHARDS;
    let shards = shards_of(&cluster.saved().await);
    assert_eq!(shards, [SHARDS, SHARDS, after, after, after, after]);
}
