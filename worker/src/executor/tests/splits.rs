//! Tests of epochs (periods with a fixed set of workers) that divide the frontier into other shards than the tables from
//! which they load it.

use super::*;
use hatebeam_objects::faults::{Before, Call, FaultPlan, Hook};

/// The frontier from which an epoch begins.
struct Stored {
    depth: u32,
    shards: usize,
    tables: Vec<Table>,
}

/// Begins the first epoch, searches nine depths, and returns the last one.
async fn store_depths(epoch: &Epoch<'_>, names: &[&str]) -> Stored {
    epoch.prepare(&prepare(WIDTH, names)).await;
    let mut stored = Stored {
        depth: 9,
        shards: 4,
        tables: Vec::new(),
    };
    for depth in 1..=stored.depth {
        stored.tables = epoch.depth(depth).await.1;
    }
    stored
}

/// Returns the order that begins an epoch with these workers for the worker at index `member`. The `shards` shards are
/// assigned to the workers in turn.
fn order_for(stored: &Stored, names: &[&str], shards: usize, member: usize) -> Prepare {
    let mut order = prepare(WIDTH, names);
    let layout = ShardLayout::new(WIDTH as usize, shards);
    let table_layout = ShardLayout::new(WIDTH as usize, stored.shards);
    let is_own = |table: &&Table| {
        let mut shards = layout.overlapping(table_layout, table.shard as usize);
        shards.any(|shard| shard % names.len() == member)
    };
    order.depth = stored.depth;
    order.owners = (0..shards)
        .map(|shard| (shard % names.len()) as u32)
        .collect();
    order.tables = stored.tables.iter().filter(is_own).cloned().collect();
    order.table_shards = stored.shards as u32;
    order
}

/// Begins an epoch. Returns the number of tables that each worker fetched.
async fn begin(epoch: &Epoch<'_>, stored: &Stored, names: &[&str], shards: usize) -> Vec<u32> {
    let (mut fetched, mut wells) = (Vec::new(), 0);
    for (member, worker) in epoch.workers.iter().enumerate() {
        let order = order_for(stored, names, shards, member);
        let order = OrderKind::Prepare(Box::new(order));
        match worker.execute(epoch.number, order).await {
            AnswerKind::Prepared(prepared) => {
                fetched.push(prepared.fetched);
                wells += prepared.wells;
            }
            answer => panic!("{answer:?}"),
        }
    }
    let stored = stored.tables.iter().map(|table| table.count);
    assert_eq!(wells, stored.sum::<u64>());
    fetched
}

#[tokio::test]
async fn epochs_with_more_or_fewer_shards_find_same_digests() {
    let cluster = Cluster::new();
    let [w0, w1, w2] = ["w0", "w1", "w2"].map(|name| cluster.worker(name));
    let expected = alone(WIDTH, DEPTHS);
    let first = Epoch::new(1, [&w0, &w1]);
    let mut stored = store_depths(&first, &["w0", "w1"]).await;
    assert_eq!(stored.tables.len(), 4);

    // A worker joins, and each shard is split into four. The first two workers hold two of the four tables.
    let second = Epoch::new(2, [&w0, &w1, &w2]);
    let fetched = begin(&second, &stored, &["w0", "w1", "w2"], 16).await;
    assert_eq!(fetched, [2, 2, 4]);
    second.expand(first_attempt(10)).await;

    // A worker is lost before the depth is committed. The other two have all tables, but hold other shards.
    let third = Epoch::new(3, [&w1, &w2]);
    let fetched = begin(&third, &stored, &["w1", "w2"], 16).await;
    assert_eq!(fetched[1], 0);
    let (digest, tables) = third.depth(10).await;
    assert_eq!(digest, expected[9]);
    assert_eq!(tables.len(), 16);
    stored = Stored {
        depth: 10,
        shards: 16,
        tables,
    };

    // The number of shards may also decrease or change to any other number.
    for (number, shards) in [(4, 3), (5, 4)] {
        let next = Epoch::new(number, [&w2, &w0]);
        begin(&next, &stored, &["w2", "w0"], shards).await;
        let depth = stored.depth + 1;
        let (digest, tables) = next.depth(depth).await;
        assert_eq!(digest, expected[depth as usize - 1]);
        stored = Stored {
            depth,
            shards,
            tables,
        };
    }
}

/// A fault plan that delays each request to the object store.
struct Slow;

impl FaultPlan for Slow {
    fn before<'a>(&'a self, _: &'a Call<'a>) -> Hook<'a, Before> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Before::Proceed
        })
    }
}

#[tokio::test(start_paused = true)]
async fn order_that_supersedes_a_slow_order_to_prepare_succeeds() {
    let mut cluster = Cluster::new();
    let w0 = cluster.worker("w0");
    let first = Epoch::new(1, [&w0]);
    let stored = store_depths(&first, &["w0"]).await;
    cluster.objects = cluster.faulty_objects(Slow);
    let w1 = cluster.worker("w1");
    let order = |shards| {
        let order = order_for(&stored, &["w1"], shards, 0);
        OrderKind::Prepare(Box::new(order))
    };
    let (slow, next) = tokio::join!(w1.execute(2, order(4)), async {
        // The order for epoch 2 is fetching tables.
        tokio::time::sleep(Duration::from_millis(500)).await;
        w1.execute(3, order(4)).await
    });
    assert!(
        matches!(&slow, AnswerKind::Failed(failed) if failed.kind == FailureKind::Superseded),
        "{slow:?}"
    );
    assert!(
        matches!(&next, AnswerKind::Prepared(prepared) if prepared.fetched == 4),
        "{next:?}"
    );
}
