//! Tests of the executor, with connections, tables and an object store in memory.

mod splits;
mod two_cuts;

use crate::tables::{LocalStorage, LocalTables, MemoryStorage, WriteTables, WrittenTables};
use crate::testing::{Cluster, RUN, Unavailable, prepare, spec};
use crate::worker::Worker;
use hatebeam_game::Geometry;
use hatebeam_objects::Stored;
use hatebeam_proto::messages::*;
use hatebeam_runs::{
    ArchiveTables, FrontierSummary, RunSpec, Table, decode_nodes, encode_nodes, first_node,
};
use hatebeam_search::{
    Cut, CutSearch, DEFAULT_SIGMAS, Digest, DigitCounts, Frontier, MAX_SHARDS, Node, ShardLayout,
    Step, Ties, estimated_floor,
};
use hatebeam_store::StoreError;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

const WIDTH: u64 = 300;
const DEPTHS: u32 = 12;
/// Width at which candidate tables without extra room overflow.
const WIDE: u64 = 3000;

/// Returns the digest of each depth from 1 to `depths`, computed by a single-threaded search.
fn alone(width: u64, depths: u32) -> Vec<Digest> {
    alone_with(&spec(width), depths)
}

fn alone_with(spec: &RunSpec, depths: u32) -> Vec<Digest> {
    let start = spec.check().unwrap();
    let layout = ShardLayout::new(spec.width as usize, 4);
    let step = Step::new(&spec.emulator().unwrap(), spec.evaluator, layout, 1).unwrap();
    let first = first_node(spec, &start).unwrap();
    let mut frontier = Frontier::new(0, [first], layout);
    let (cancel, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut digests = Vec::new();
    for _ in 0..depths {
        (frontier, _) = step.run(&frontier, &cancel, &progress).unwrap();
        digests.push(frontier.digest());
    }
    digests
}

/// An epoch in which the test takes the place of the coordinator.
struct Epoch<'a> {
    workers: Vec<&'a Worker>,
    number: u64,
    width: u64,
}

impl<'a> Epoch<'a> {
    /// Creates an epoch of a run with the width [`WIDTH`].
    fn new(number: u64, workers: impl Into<Vec<&'a Worker>>) -> Epoch<'a> {
        Epoch {
            workers: workers.into(),
            number,
            width: WIDTH,
        }
    }

    /// Sends the same order to all workers at the same time, and returns the answers.
    async fn ask(&self, kind: OrderKind) -> Vec<AnswerKind> {
        let mut asked = Vec::new();
        for worker in &self.workers {
            let executor = Arc::clone(&worker.executor);
            let order = Order {
                epoch: self.number,
                id: 1,
                kind: kind.clone(),
            };
            asked.push(tokio::spawn(async move { executor.execute(order).await }));
        }
        let mut answers = Vec::new();
        for answer in asked {
            answers.push(answer.await.unwrap());
        }
        answers
    }

    async fn prepare(&self, prepare: &Prepare) -> u32 {
        let mut fetched = 0;
        for answer in self
            .ask(OrderKind::Prepare(Box::new(prepare.clone())))
            .await
        {
            match answer {
                AnswerKind::Prepared(prepared) => fetched += prepared.fetched,
                answer => panic!("{answer:?}"),
            }
        }
        fetched
    }

    /// Generates the children at a depth. Returns the number of children, and the number of children sent between
    /// workers.
    async fn expand(&self, expand: Expand) -> (u64, u64) {
        let (mut children, mut sent) = (0, 0);
        for answer in self.ask(OrderKind::Expand(expand)).await {
            match answer {
                AnswerKind::Expanded(expanded) => {
                    children += expanded.children;
                    sent += expanded.sent;
                }
                answer => panic!("{answer:?}"),
            }
        }
        (children, sent)
    }

    /// Returns the cut, and whether the cut is sound. It is sound if no table dropped a candidate at or above it.
    async fn cut(&self, depth: u32) -> (Cut, bool) {
        let mut search = CutSearch::new(self.width as usize);
        while let Some(query) = search.query() {
            let queries = vec![query];
            let mut sum = DigitCounts::default();
            for answer in self.ask(OrderKind::Count(Count { depth, queries })).await {
                let AnswerKind::Counted(histograms) = answer else {
                    panic!("{answer:?}");
                };
                for count in &histograms[0].counts {
                    sum.add(count.digit, count.count);
                }
            }
            search.answer(&sum);
        }
        let mut cut = search.cut();
        let validate = ValidateCut {
            depth,
            cut: cut.rank,
            tied: matches!(cut.ties, Ties::First(_)),
        };
        let (mut is_sound, mut tied) = (true, Vec::new());
        for answer in self.ask(OrderKind::ValidateCut(validate)).await {
            let AnswerKind::CutVerdict(verdict) = answer else {
                panic!("{answer:?}");
            };
            is_sound &= !verdict.dropped;
            tied.extend(verdict.tied);
        }
        if let Ties::First(count) = cut.ties {
            tied.sort_unstable();
            tied.truncate(count as usize);
            cut.ties = Ties::Listed(tied);
        }
        (cut, is_sound)
    }

    /// Selects and commits a depth. Returns the digest of its frontier, and its tables.
    async fn select(&self, depth: u32, cut: Cut) -> (Digest, Vec<Table>) {
        let select = select_of(depth, cut);
        let mut whole = FrontierSummary::default();
        for answer in self.ask(OrderKind::Select(select)).await {
            match answer {
                AnswerKind::Selected(part) => whole.join(&part),
                answer => panic!("{answer:?}"),
            }
        }
        let mut tables = Vec::new();
        for answer in self.ask(OrderKind::WaitCommit(WaitCommit { depth })).await {
            match answer {
                AnswerKind::Committed(committed) => tables.extend(committed),
                answer => panic!("{answer:?}"),
            }
        }
        (whole.digest, tables)
    }

    async fn depth(&self, depth: u32) -> (Digest, Vec<Table>) {
        self.expand(first_attempt(depth)).await;
        let (cut, is_sound) = self.cut(depth).await;
        assert!(is_sound);
        self.select(depth, cut).await
    }
}

/// Returns the order to keep the candidates that survive a cut.
fn select_of(depth: u32, cut: Cut) -> Select {
    Select {
        depth,
        cut: cut.rank,
        ties: match cut.ties {
            Ties::Listed(ties) => Some(ties),
            _ => None,
        },
    }
}

fn first_attempt(depth: u32) -> Expand {
    Expand {
        depth,
        attempt: 1,
        sigmas: DEFAULT_SIGMAS,
        floor: 0,
        wells: 0,
    }
}

fn failure(answer: AnswerKind) -> FailureKind {
    match answer {
        AnswerKind::Failed(failed) => failed.kind,
        answer => panic!("{answer:?}"),
    }
}

#[tokio::test]
async fn two_workers_find_same_digests_as_single_thread() {
    let cluster = Cluster::new();
    let (w0, w1) = (cluster.worker("w0"), cluster.worker("w1"));
    let epoch = Epoch::new(1, [&w0, &w1]);
    epoch.prepare(&prepare(WIDTH, &["w0", "w1"])).await;
    for (depth, expected) in (1..).zip(alone(WIDTH, DEPTHS)) {
        assert_eq!(epoch.depth(depth).await.0, expected, "depth {depth}");
    }
}

/// Totals over the depths that have an estimated floor (a rank below which candidates are dropped immediately).
#[derive(Clone, Copy, Debug, Default)]
struct Exchanged {
    /// Number of generated children.
    children: u64,
    /// Number of children that were sent to another worker.
    sent: u64,
    depths: u32,
    /// Number of depths that were repeated, because the estimate was too high.
    repeats: u32,
}

/// Searches with the named workers, with or without estimated floors. Returns the digest of each depth, and the totals.
async fn exchanged(
    width: u64,
    depths: u32,
    names: &[&str],
    uses_estimates: bool,
) -> (Vec<Digest>, Exchanged) {
    let cluster = Cluster::new();
    let workers: Vec<Worker> = names.iter().map(|name| cluster.worker(name)).collect();
    let epoch = Epoch {
        workers: workers.iter().collect(),
        number: 1,
        width,
    };
    epoch.prepare(&prepare(width, names)).await;
    let (mut digests, mut cuts, mut total) = (Vec::new(), Vec::new(), Exchanged::default());
    for depth in 1..=depths {
        let estimate = estimated_floor(&cuts);
        let mut order = Expand {
            floor: estimate.filter(|_| uses_estimates).unwrap_or(0),
            ..first_attempt(depth)
        };
        let (children, mut sent) = epoch.expand(order).await;
        let (mut cut, is_sound) = epoch.cut(depth).await;
        if !is_sound {
            assert!(order.floor > cut.rank);
            order.floor = 0;
            order.attempt = 2;
            sent += epoch.expand(order).await.1;
            let (again, is_sound) = epoch.cut(depth).await;
            assert!(is_sound);
            cut = again;
        }
        // At the first depths, all children survive and the cut is 0.
        if cut.rank > 0 {
            cuts.push(cut.score());
        }
        if estimate.is_some() {
            total.children += children;
            total.sent += sent;
            total.depths += 1;
            total.repeats += order.attempt - 1;
        }
        digests.push(epoch.select(depth, cut).await.0);
    }
    (digests, total)
}

#[tokio::test]
async fn estimated_floors_halve_children_sent_and_keep_digests() {
    let names = ["w0", "w1"];
    let (expected, before) = exchanged(WIDE, 24, &names, false).await;
    let (digests, after) = exchanged(WIDE, 24, &names, true).await;
    assert_eq!(digests, expected);
    println!("without estimates {before:?}, with {after:?}");
    assert!(
        after.sent * 2 < before.sent,
        "{} of {}",
        after.sent,
        before.sent
    );
}

/// Prints the figures on which `ModelInputs::estimate_excess` of the cost model is based.
#[tokio::test]
#[ignore = "a measurement that takes minutes"]
async fn measure_children_sent() {
    let names = ["w0", "w1", "w2", "w3"];
    for (width, depths, workers) in [
        (10_000, 100, 2),
        (100_000, 60, 2),
        (100_000, 60, 4),
        (250_000, 40, 2),
    ] {
        for uses_estimates in [false, true] {
            let (_, total) = exchanged(width, depths, &names[..workers], uses_estimates).await;
            let foreign = total.children as f64 * (1.0 - 1.0 / workers as f64);
            println!(
                "width {width}, {workers} workers, estimates {uses_estimates}: {:.1} children per well, {:.4} of the \
                 foreign children sent, {} of {} depths repeated",
                total.children as f64 / f64::from(total.depths) / width as f64,
                total.sent as f64 / foreign,
                total.repeats,
                total.depths
            );
        }
    }
}

#[tokio::test]
async fn next_epoch_resumes_from_tables_in_object_store() {
    let cluster = Cluster::new();
    let (w0, w1, w2) = (
        cluster.worker("w0"),
        cluster.worker("w1"),
        cluster.worker("w2"),
    );
    let expected = alone(WIDTH, DEPTHS);
    let first = Epoch::new(1, [&w0, &w1]);
    first.prepare(&prepare(WIDTH, &["w0", "w1"])).await;
    let mut tables = Vec::new();
    for depth in 1..=DEPTHS - 2 {
        tables = first.depth(depth).await.1;
    }
    // Shards 0 and 2 move from w0 to w2.
    let second = Epoch::new(2, [&w2, &w1]);
    let mut order = prepare(WIDTH, &["w2", "w1"]);
    order.depth = DEPTHS - 2;
    let mut fetched = Vec::new();
    for (member, worker) in [(0, &w2), (1, &w1)] {
        let mut order = order.clone();
        order.tables = tables.clone();
        order
            .tables
            .retain(|table| order.owners[table.shard as usize] == member);
        let one = Epoch::new(2, [worker]);
        fetched.push(one.prepare(&order).await);
    }
    assert_eq!(fetched, [2, 0]);
    for depth in DEPTHS - 1..=DEPTHS {
        let found = second.depth(depth).await.0;
        assert_eq!(found, expected[depth as usize - 1], "depth {depth}");
    }
}

/// A worker that has not yet received the order to repeat a depth must not add children of the second attempt to its
/// tables of the first attempt.
#[tokio::test]
async fn children_of_repeated_depth_wait_until_receiver_repeats_depth() {
    let cluster = Cluster::new();
    let (w0, w1) = (cluster.worker("w0"), cluster.worker("w1"));
    let epoch = Epoch {
        workers: vec![&w0, &w1],
        number: 1,
        width: WIDE,
    };
    let expected = alone(WIDE, 6);
    epoch.prepare(&prepare(WIDE, &["w0", "w1"])).await;
    for depth in 1..6 {
        epoch.depth(depth).await;
    }
    // The tables have less room than the width needs, so the cut is not sound.
    let too_small = Expand {
        sigmas: -6.0,
        ..first_attempt(6)
    };
    epoch.expand(too_small).await;
    let (_, is_sound) = epoch.cut(6).await;
    assert!(!is_sound, "the tables were large enough");
    let repeat = OrderKind::Expand(Expand {
        attempt: 2,
        ..first_attempt(6)
    });
    let early = Arc::clone(&w0.executor);
    let order = Order {
        epoch: 1,
        id: 2,
        kind: repeat.clone(),
    };
    let early = tokio::spawn(async move { early.execute(order).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!early.is_finished(), "w1 received the children too early");
    let late = w1.execute(1, repeat).await;
    for answer in [early.await.unwrap(), late] {
        assert!(matches!(answer, AnswerKind::Expanded(_)), "{answer:?}");
    }
    let (cut, is_sound) = epoch.cut(6).await;
    assert!(is_sound);
    assert_eq!(epoch.select(6, cut).await.0, expected[5]);
}

#[tokio::test]
async fn orders_for_other_attempts_and_epochs_are_superseded() {
    let cluster = Cluster::new();
    let worker = cluster.worker("w0");
    let epoch = |number| Epoch::new(number, [&worker]);
    let order = prepare(WIDTH, &["w0"]);
    epoch(5).prepare(&order).await;
    epoch(5).expand(first_attempt(1)).await;
    for attempt in [0, 1] {
        let stale = Expand {
            attempt,
            ..first_attempt(1)
        };
        let answer = worker.execute(5, OrderKind::Expand(stale)).await;
        assert_eq!(failure(answer), FailureKind::Superseded, "{attempt}");
    }
    for number in [4, 6] {
        let answer = worker
            .execute(number, OrderKind::Expand(first_attempt(1)))
            .await;
        assert_eq!(failure(answer), FailureKind::Superseded, "{number}");
    }
    for number in [4, 5] {
        let answer = worker.execute(number, OrderKind::Prepare(Box::new(order.clone())));
        assert_eq!(failure(answer.await), FailureKind::Superseded, "{number}");
    }
    // The failed orders have not changed the state of the epoch.
    let (cut, is_sound) = epoch(5).cut(1).await;
    assert!(is_sound);
    assert_eq!(epoch(5).select(1, cut).await.0, alone(WIDTH, 1)[0]);
}

#[tokio::test]
async fn halt_ends_expansion_that_waits_for_unreachable_peer() {
    let cluster = Cluster::new();
    let worker = cluster.worker("w0");
    let one = Epoch::new(1, [&worker]);
    // No worker listens at the address of w1.
    one.prepare(&prepare(WIDTH, &["w0", "w1"])).await;
    let executor = Arc::clone(&worker.executor);
    let order = Order {
        epoch: 1,
        id: 1,
        kind: OrderKind::Expand(first_attempt(1)),
    };
    let expanding = tokio::spawn(async move { executor.execute(order).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!expanding.is_finished());
    assert_eq!(worker.execute(0, OrderKind::Halt).await, AnswerKind::Halted);
    assert_eq!(failure(expanding.await.unwrap()), FailureKind::Superseded);
}

fn bad_prepares() -> Vec<Prepare> {
    let good = prepare(50, &["w0"]);
    let table = |shard| Table {
        shard,
        key: String::new(),
        offset: 0,
        bytes: 0,
        checksum: String::new(),
        count: 0,
        digest: String::new(),
    };
    let with = |change: &dyn Fn(&mut Prepare)| {
        let mut bad = good.clone();
        change(&mut bad);
        bad
    };
    vec![
        with(&|bad| bad.spec.width = 0),
        with(&|bad| bad.spec.well.columns = 0),
        with(&|bad| bad.owners.clear()),
        with(&|bad| bad.owners = vec![0; MAX_SHARDS + 1]),
        with(&|bad| bad.owners = vec![7; 4]),
        with(&|bad| bad.table_shards = 0),
        with(&|bad| bad.table_shards = MAX_SHARDS as u32 + 1),
        with(&|bad| bad.members.clear()),
        with(&|bad| bad.members[0].name = "w1".to_owned()),
        with(&|bad| bad.tables = vec![table(4)]),
    ]
}

fn bad_orders() -> Vec<OrderKind> {
    let queries = vec![hatebeam_search::CountQuery {
        known: 0,
        prefix: 0,
    }];
    vec![
        OrderKind::Expand(first_attempt(0)),
        OrderKind::Expand(first_attempt(2)),
        OrderKind::Expand(first_attempt(u32::MAX)),
        OrderKind::Count(Count { depth: 2, queries }),
        OrderKind::ValidateCut(ValidateCut {
            depth: 9,
            cut: 0,
            tied: true,
        }),
        OrderKind::Rescore(Select {
            depth: 9,
            cut: 0,
            ties: None,
        }),
        OrderKind::Select(Select {
            depth: 9,
            cut: 0,
            ties: None,
        }),
        OrderKind::WaitCommit(WaitCommit { depth: 1 }),
    ]
}

#[tokio::test]
async fn invalid_orders_fail_and_do_not_affect_later_orders() {
    let cluster = Cluster::new();
    let worker = cluster.worker("w0");
    for bad in bad_prepares() {
        let answer = worker.execute(1, OrderKind::Prepare(Box::new(bad.clone())));
        assert_eq!(failure(answer.await), FailureKind::BadOrder, "{bad:?}");
    }
    let one = Epoch::new(1, [&worker]);
    one.prepare(&prepare(50, &["w0"])).await;
    for bad in bad_orders() {
        let answer = worker.execute(1, bad.clone()).await;
        assert_eq!(failure(answer), FailureKind::BadOrder, "{bad:?}");
    }
    let answer = worker.execute(1, OrderKind::Expand(first_attempt(1))).await;
    assert!(
        matches!(&answer, AnswerKind::Expanded(expanded) if expanded.children == 17),
        "{answer:?}"
    );
    let select = |depth| Select {
        depth,
        cut: 0,
        ties: None,
    };
    for depth in [0, 2] {
        let answer = worker.execute(1, OrderKind::Rescore(select(depth))).await;
        assert_eq!(failure(answer), FailureKind::BadOrder, "{depth}");
    }
    let answer = worker.execute(1, OrderKind::Select(select(1))).await;
    assert!(
        matches!(&answer, AnswerKind::Selected(selected) if selected.count == 17),
        "{answer:?}"
    );
    let answer = worker
        .execute(1, OrderKind::WaitCommit(WaitCommit { depth: 1 }))
        .await;
    assert!(
        matches!(&answer, AnswerKind::Committed(tables) if !tables.is_empty()),
        "{answer:?}"
    );
}

#[tokio::test]
async fn peers_with_invalid_addresses_are_reported_as_unreachable() {
    let cluster = Cluster::new();
    let worker = cluster.worker("w0");
    let mut order = prepare(50, &["w0", "w1", "w2", "w3"]);
    for member in [1, 3] {
        order.members[member].address = "no address".to_owned();
    }
    let answer = worker.execute(1, OrderKind::Prepare(Box::new(order))).await;
    let AnswerKind::Failed(failed) = answer else {
        panic!("{answer:?}");
    };
    let peers = ["w1".to_owned(), "w3".to_owned()].into();
    assert_eq!(failed.kind, FailureKind::PeersUnreachable { peers });
    assert!(failed.reason.contains("worker w1: "), "{failed:?}");
}

/// Tables in memory that can be written but not read.
struct UnreadableTables(Arc<dyn LocalTables>);

impl LocalTables for UnreadableTables {
    fn visit(&self, depth: u32, _: &mut dyn FnMut(&Node)) -> Result<(), StoreError> {
        Err(StoreError::DamagedDepth {
            depth,
            file: None,
            reason: "input/output error".to_owned(),
        })
    }

    fn write(&self, work: &WriteTables<'_>) -> Result<WrittenTables, StoreError> {
        self.0.write(work)
    }

    fn stage(&self, depth: u32, shard: u32, table: &[u8]) -> Result<PathBuf, StoreError> {
        self.0.stage(depth, shard, table)
    }

    fn ingest(&self, depth: u32, files: Vec<PathBuf>) -> Result<(), StoreError> {
        self.0.ingest(depth, files)
    }

    fn discard(&self, files: &[PathBuf]) -> Result<(), StoreError> {
        self.0.discard(files)
    }

    fn drop_depth(&self, depth: u32) -> Result<(), StoreError> {
        self.0.drop_depth(depth)
    }
}

/// A disk that can be written but not read.
struct UnreadableStorage;

impl LocalStorage for UnreadableStorage {
    fn create(&self, geometry: Geometry) -> Result<Arc<dyn LocalTables>, StoreError> {
        Ok(Arc::new(UnreadableTables(MemoryStorage.create(geometry)?)))
    }

    fn create_archive(&self, geometry: Geometry) -> Result<Box<dyn ArchiveTables>, StoreError> {
        MemoryStorage.create_archive(geometry)
    }

    fn free_bytes(&self) -> u64 {
        MemoryStorage.free_bytes()
    }

    fn disk_bytes(&self) -> u64 {
        MemoryStorage.disk_bytes()
    }
}

/// Stores depth 1 with the worker `w0`, and returns an order to the worker `w1` to continue from it.
async fn order_after_first_depth(cluster: &Cluster) -> OrderKind {
    let writer = cluster.worker("w0");
    let one = Epoch::new(1, [&writer]);
    one.prepare(&prepare(WIDTH, &["w0"])).await;
    let (_, tables) = one.depth(1).await;
    let mut order = prepare(WIDTH, &["w1"]);
    order.depth = 1;
    order.tables = tables;
    OrderKind::Prepare(Box::new(order))
}

#[tokio::test]
async fn unreadable_local_disk_is_not_reported_as_damaged_table() {
    let mut cluster = Cluster::new();
    let order = order_after_first_depth(&cluster).await;
    cluster.storage = Arc::new(UnreadableStorage);
    let reader = cluster.worker("w1");
    let answer = reader.execute(2, order).await;
    let AnswerKind::Failed(failed) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(failed.kind, FailureKind::Worker);
    assert!(failed.reason.contains("input/output error"), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn unavailable_store_and_damaged_tables_are_reported_as_different_failures() {
    let mut cluster = Cluster::new();
    let order = order_after_first_depth(&cluster).await;
    let key = format!("runs/{RUN}/frontier/00001/1-w0");
    let intact = cluster.objects.get(&key).await.unwrap().0;

    let direct = cluster.objects.clone();
    cluster.objects = cluster.faulty_objects(Unavailable);
    let unlucky = cluster.worker("w1");
    let answer = unlucky.execute(2, order.clone()).await;
    assert_eq!(failure(answer), FailureKind::Unavailable);

    cluster.objects = direct.clone();
    let reader = cluster.worker("w1");
    let mut damaged = intact.to_vec();
    damaged[5] ^= 1;
    direct.put(&key, damaged.into()).await.unwrap();
    let answer = reader.execute(2, order.clone()).await;
    assert_eq!(failure(answer), FailureKind::Damaged { depth: None });
    direct.delete(&key).await.unwrap();
    let answer = reader.execute(2, order.clone()).await;
    assert_eq!(failure(answer), FailureKind::Damaged { depth: None });

    direct.put(&key, intact).await.unwrap();
    let answer = reader.execute(2, order).await;
    assert!(
        matches!(&answer, AnswerKind::Prepared(prepared) if prepared.wells > 0),
        "{answer:?}"
    );
}

#[tokio::test]
async fn depth_with_other_wells_than_the_local_tables_is_loaded() {
    let cluster = Cluster::new();
    let OrderKind::Prepare(first) = order_after_first_depth(&cluster).await else {
        unreachable!();
    };
    let reader = cluster.worker("w1");
    let answer = reader.execute(2, OrderKind::Prepare(first.clone())).await;
    let AnswerKind::Prepared(prepared) = answer else {
        panic!("{answer:?}");
    };

    // The depth was dropped and searched again, and a shard has one well fewer.
    let mut second = first.clone();
    let table = second.tables.iter_mut().max_by_key(|table| table.count);
    let table = table.unwrap();
    let read = table.read(&cluster.objects, RUN).await.unwrap();
    let mut nodes = decode_nodes(1, &read).unwrap();
    nodes.pop();
    let bytes = encode_nodes(&nodes);
    let stored = Stored::of(&bytes);
    *table = Table {
        key: "frontier/00001/3-w0".to_owned(),
        offset: 0,
        bytes: stored.bytes,
        checksum: stored.checksum.to_string(),
        count: nodes.len() as u64,
        digest: Digest::of(&nodes).to_string(),
        ..table.clone()
    };
    let key = format!("runs/{RUN}/{}", table.key);
    cluster.objects.put(&key, bytes.into()).await.unwrap();
    let expected = prepared.wells - 1;
    let answer = reader.execute(4, OrderKind::Prepare(second)).await;
    assert!(
        matches!(&answer, AnswerKind::Prepared(prepared) if prepared.wells == expected && prepared.fetched == 1),
        "{answer:?}"
    );
}
