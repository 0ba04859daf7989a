//! Tests of reading games back from an object store: the games equal those of the local run, and an outage is not reported
//! as damage.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_env::Env;
use hatebeam_game::{Geometry, Rules};
use hatebeam_objects::faults::{Before, Call, FaultPlan, Hook, Operation};
use hatebeam_objects::{Memory, Objects, Options, Stored};
use hatebeam_runs::{
    Archive, BestGame, CommittedDepth, DepthTables, FoundNode, FrontierAt, FrontierGames,
    GameSearch, GamesWork, GroupLimits, Limits, LoopRule, Manifest, MemoryArchive, ReadError,
    Retention, Run, RunSpec, ScratchTables, Settings, Table, VersionedManifest, WellSpec,
    best_game, encode_nodes, list_manifests, read_game, read_games, verify_game,
};
use hatebeam_search::{
    DepthRecord, Digest, EvaluatorKind, EvaluatorSpec, Frontier, Node, NodeWell, Quiescence,
    ShardLayout,
};
use hatebeam_store::{ColumnFamilies, ShardTables};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const SHARDS: u32 = 5;

/// Searches a small run to its end.
fn searched(dir: &Path, keep: Retention) -> Run {
    search(dir, &small(Geometry::new(8, 10).unwrap()), keep)
}

/// Searches a run that applies the loop rule to its end. Its games repeat wells often.
fn searched_with_loop_rule(dir: &Path) -> Run {
    let spec = RunSpec {
        loops: LoopRule::Exact,
        ..small(Geometry::new(4, 8).unwrap())
    };
    search(dir, &spec, Retention::All)
}

fn small(geometry: Geometry) -> RunSpec {
    RunSpec {
        well: WellSpec::new(geometry, Rules::default()),
        ..RunSpec::new(
            150,
            EvaluatorSpec::new(EvaluatorKind::Knewjade, Quiescence::Off),
        )
    }
}

fn search(dir: &Path, spec: &RunSpec, keep: Retention) -> Run {
    let run = Run::open_or_create(dir, spec, Some(keep)).unwrap();
    let settings = Settings {
        threads: 2,
        limits: Limits::default(),
        group: GroupLimits {
            depths: 1,
            ..GroupLimits::default()
        },
    };
    let searched = run.search(&settings, &AtomicBool::new(false), &mut ());
    searched.unwrap().0
}

/// Writes a run to an object store, as a coordinator and a worker would. `encode` creates the table of a shard.
async fn publish(
    run: &Run,
    objects: &Objects,
    encode: impl Fn(u32, usize, &[Node]) -> Vec<u8>,
) -> Manifest {
    let manifest = Manifest::new("r".to_owned(), run.spec().clone(), run.keep(), SHARDS, 0);
    let mut stored = VersionedManifest::create(objects, manifest, true)
        .await
        .unwrap();
    for record in run.store().depths() {
        let depth = record.depth;
        let mut tables = Vec::new();
        // The shards are split twice in the course of the run.
        stored.manifest.shards = SHARDS << (depth / 8).min(2);
        if record.kept && depth > 0 {
            let nodes = run.store().load(depth).unwrap();
            let frontier = Frontier::new(depth, nodes, stored.manifest.layout());
            let key = format!("frontier/{depth:05}/0-w");
            let mut object = Vec::new();
            for (shard, nodes) in frontier.shards.iter().enumerate() {
                if nodes.is_empty() {
                    continue;
                }
                let table = encode(depth, shard, nodes);
                let found = Stored::of(&table);
                tables.push(Table {
                    shard: shard as u32,
                    key: key.clone(),
                    offset: object.len() as u64,
                    bytes: found.bytes,
                    checksum: found.checksum.to_string(),
                    count: nodes.len() as u64,
                    digest: Digest::of(nodes).to_string(),
                });
                object.extend(table);
            }
            objects
                .put(&format!("runs/r/{key}"), object.into())
                .await
                .unwrap();
        }
        let list = DepthTables {
            tables,
            changed: record.changed.clone(),
        };
        let list = match list.tables.is_empty() {
            true => None,
            false => Some(stored.put_tables(depth, &list).await.unwrap()),
        };
        stored.manifest.depths.push(CommittedDepth {
            record: DepthRecord {
                changed: Vec::new(),
                ..record.clone()
            },
            sent: 0,
            sent_bytes: 0,
            tables: list,
            cost: Default::default(),
            waiting: Default::default(),
        });
    }
    stored.save().await.unwrap();
    let listed = list_manifests(objects, true).await.unwrap();
    assert_eq!(listed.len(), 1);
    listed
        .into_iter()
        .next()
        .unwrap()
        .manifest
        .unwrap()
        .manifest
}

fn quick() -> Options {
    Options {
        max_attempts: 2,
        first_wait: Duration::from_millis(1),
        ..Options::default()
    }
}

fn in_map(objects: &Objects, manifest: &Manifest) -> Archive {
    let tables = Box::new(MemoryArchive::default());
    Archive::open(objects, manifest.clone(), tables).unwrap()
}

/// Returns the game of a local run through the best well at a depth.
fn game_through(run: &Run, depth: u32) -> BestGame {
    let mut search = GameSearch::through(run, depth).unwrap();
    search.resume(run).unwrap()
}

async fn read(archive: Archive, depth: Option<u32>) -> Result<BestGame, ReadError> {
    Ok(read_game(&Env::system(), archive, depth, &Arc::default())
        .await?
        .game)
}

#[tokio::test]
async fn archive_yields_same_games_as_local_run() {
    let folder = tempfile::tempdir().unwrap();
    for keep in [Retention::All, Retention::Every(3)] {
        let run = searched(&folder.path().join(keep.to_string()), keep);
        let expected = best_game(&run).unwrap();
        let objects = Objects::in_memory(&Memory::new(), &quick()).unwrap();
        let manifest = publish(&run, &objects, |_, _, nodes| encode_nodes(nodes)).await;
        let archive = in_map(&objects, &manifest);
        let read_back = read_game(&Env::system(), archive, None, &Arc::default())
            .await
            .unwrap();
        assert_eq!(read_back.game, expected);
        assert_eq!(read_back.film.score, expected.score);
        let verified = verify_game(manifest.clone(), &read_back.nodes).unwrap();
        assert_eq!(verified.game, expected);
        assert_eq!(verified.film.base2048, read_back.film.base2048);
        let lists = manifest.depths.iter().flat_map(|depth| &depth.tables);
        let all: usize = lists.map(|list| list.shards as usize).sum();
        let fetched = read_back.fetched;
        assert!(fetched.tables > 5 && fetched.bytes > 0, "{fetched:?}");
        if keep == Retention::All {
            assert!(fetched.tables < all / 2, "{fetched:?} of {all}");
            assert!(manifest.shards == 4 * SHARDS, "{} shards", manifest.shards);
        }
        let depth = manifest.depths.len() as u32 / 2;
        let through = read(in_map(&objects, &manifest), Some(depth))
            .await
            .unwrap();
        assert_eq!(through, game_through(&run, depth));
    }
}

#[tokio::test]
async fn game_with_changed_pieces_is_read_back_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let run = searched_with_loop_rule(folder.path());
    let records = run.store().depths();
    let objects = Objects::in_memory(&Memory::new(), &quick()).unwrap();
    let mut manifest = publish(&run, &objects, |_, _, nodes| encode_nodes(nodes)).await;
    let mut changes = 0;
    for depth in (1..records.len() as u32).step_by(7) {
        let archive = in_map(&objects, &manifest);
        let read_back = read_game(&Env::system(), archive, Some(depth), &Arc::default()).await;
        let read_back = read_back.unwrap();
        assert_eq!(read_back.game, game_through(&run, depth));
        changes += read_back
            .nodes
            .iter()
            .filter(|node| node.changed.is_some())
            .count();
    }
    assert!(changes > 0);
    let archive = in_map(&objects, &manifest);
    let read_back = read_game(&Env::system(), archive, None, &Arc::default()).await;
    let read_back = read_back.unwrap();
    let expected = best_game(&run).unwrap();
    assert_eq!(read_back.game, expected);
    let nodes = read_back.nodes;
    // Lists that are read again, because only two stay in memory, change nothing.
    let archive = in_map(&objects, &manifest).with_max_listed(0);
    let forgetful = read_game(&Env::system(), archive, None, &Arc::default()).await;
    assert_eq!(forgetful.unwrap().nodes, nodes);
    assert_eq!(
        verify_game(manifest.clone(), &nodes).unwrap().game,
        expected
    );
    for at in (0..nodes.len()).filter(|&at| nodes[at].changed.is_some()) {
        let mut altered = nodes.clone();
        altered[at].changed = None;
        if let Ok(verified) = verify_game(manifest.clone(), &altered) {
            assert!(verified.game.score <= expected.score);
        }
    }
    // A damaged list is reported once. Then the game is read back without it, as far as possible.
    let damaged = (1..expected.depth).rfind(|&depth| !records[depth as usize].changed.is_empty());
    let damaged = damaged.unwrap();
    let committed = &mut manifest.depths[damaged as usize];
    let key = format!("runs/r/{}", committed.tables.as_ref().unwrap().key);
    objects.delete(&key).await.unwrap();
    let error = read(in_map(&objects, &manifest), None).await.unwrap_err();
    assert_eq!(error.damaged_depth(), Some(damaged), "{error}");
    manifest.depths[damaged as usize].record.kept = false;
    match read(in_map(&objects, &manifest), None).await {
        Ok(game) => assert!(game.score <= expected.score),
        Err(error) => assert_eq!(error.damaged_depth(), None, "{error}"),
    }
}

#[tokio::test]
async fn games_of_a_frontier_are_the_same_with_any_number_of_threads_and_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let spec = RunSpec {
        loops: LoopRule::Exact,
        width: 600,
        ..small(Geometry::new(4, 8).unwrap())
    };
    let run = search(folder.path(), &spec, Retention::All);
    let objects = Objects::in_memory(&Memory::new(), &quick()).unwrap();
    let manifest = publish(&run, &objects, |_, _, nodes| encode_nodes(nodes)).await;
    let records = run.store().depths();
    // More wells than one thread looks up at a time.
    let wide = records.iter().filter(|record| record.count > 200);
    let widest = wide.max_by_key(|record| record.changed.len()).unwrap();
    assert!(!widest.changed.is_empty());
    let at = FrontierAt {
        depth: widest.depth,
        layout: ShardLayout::new(600, 3),
    };
    let games = |work: GamesWork| {
        let archive = in_map(&objects, &manifest).with_max_listed(0);
        async move { read_games(&Env::system(), archive, at, None, &work).await }
    };
    let mut found = Vec::new();
    for threads in [1, 3] {
        let work = GamesWork::new(threads);
        let FrontierGames { past, .. } = games(work.clone()).await.unwrap();
        let paths = (0..widest.count as u32).map(|at| past.path(at).copied().collect());
        let paths: Vec<Vec<NodeWell>> = paths.collect();
        found.push((paths, work.found.load(Ordering::Relaxed)));
    }
    assert_eq!(found[0], found[1]);
    assert!(found[0].1 >= widest.count);

    let cancelled = GamesWork::new(1);
    cancelled.cancel.store(true, Ordering::Relaxed);
    let error = games(cancelled).await.unwrap_err();
    assert!(matches!(error, ReadError::Cancelled), "{error}");
}

#[tokio::test]
async fn altered_nodes_of_a_game_never_yield_another_score() {
    let folder = tempfile::tempdir().unwrap();
    let run = searched(folder.path(), Retention::All);
    let expected = best_game(&run).unwrap();
    let objects = Objects::in_memory(&Memory::new(), &quick()).unwrap();
    let manifest = publish(&run, &objects, |_, _, nodes| encode_nodes(nodes)).await;
    let archive = in_map(&objects, &manifest);
    let read_back = read_game(&Env::system(), archive, None, &Arc::default()).await;
    let nodes = read_back.unwrap().nodes;
    let alterations: [fn(&mut Vec<FoundNode>, usize); 5] = [
        |nodes, at| {
            nodes.remove(at);
        },
        |nodes, at| nodes[at].lines ^= 1,
        |nodes, at| nodes[at].depth += 1,
        |nodes, at| nodes[at].well.0[at % 20] ^= 1,
        |nodes, at| nodes[at].hint ^= 1,
    ];
    let mut refused = 0;
    for alter in alterations {
        for at in 0..nodes.len() {
            let mut altered = nodes.clone();
            alter(&mut altered, at);
            match verify_game(manifest.clone(), &altered) {
                Ok(verified) => {
                    assert_eq!(verified.game.score, expected.score);
                    assert_eq!(verified.game.wells, expected.wells);
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 3 * expected.depth as usize, "{refused}");
}

#[tokio::test]
async fn rocksdb_tables_yield_same_game_and_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let run = searched(&folder.path().join("run"), Retention::All);
    let geometry = run.store().geometry();
    let written = folder.path().join("written");
    let shards = ShardTables::create(&written, geometry, ColumnFamilies::Shared).unwrap();
    let encode = |depth, shard, nodes: &[Node]| {
        let name = format!("{depth}-{shard}");
        let table = shards.write(&name, depth, shard, nodes).unwrap();
        std::fs::read(table.path).unwrap()
    };
    let objects = Objects::in_memory(&Memory::new(), &quick()).unwrap();
    let manifest = publish(&run, &objects, encode).await;
    let scratch = folder.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let tables = ScratchTables::create(&scratch, geometry).unwrap();
    let archive = Archive::open(&objects, manifest, Box::new(tables)).unwrap();
    assert_eq!(read(archive, None).await.unwrap(), best_game(&run).unwrap());
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
}

/// Fault plan in which all reads of tables fail except the first `from` reads.
struct Outage {
    from: u64,
    reads: AtomicU64,
}

impl FaultPlan for Outage {
    fn before<'a>(&'a self, call: &'a Call<'a>) -> Hook<'a, Before> {
        let is_table = call.operation == Operation::Get && call.key.contains("frontier");
        let fails = is_table && self.reads.fetch_add(1, Ordering::Relaxed) >= self.from;
        Box::pin(std::future::ready(match fails {
            true => Before::Fail(call.unavailable("down")),
            false => Before::Proceed,
        }))
    }
}

#[tokio::test]
async fn outage_is_transient_and_damage_is_permanent() {
    let folder = tempfile::tempdir().unwrap();
    let run = searched(&folder.path().join("run"), Retention::All);
    let memory = Memory::new();
    let objects = Objects::in_memory(&memory, &quick()).unwrap();
    let manifest = publish(&run, &objects, |_, _, nodes| encode_nodes(nodes)).await;
    for from in [0, 7] {
        let reads = AtomicU64::new(0);
        let plan = Arc::new(Outage { from, reads });
        let faulty = Objects::with_faults(&memory, &quick(), plan).unwrap();
        let error = read(in_map(&faulty, &manifest), None).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert!(matches!(error, ReadError::Tables { .. }), "{error}");
    }
    // Overwrite all tables.
    let last = manifest.last().unwrap().record.depth;
    for depth in 1..=last {
        let key = format!("runs/r/frontier/{depth:05}/0-w");
        let (bytes, _) = objects.get(&key).await.unwrap();
        objects
            .put(&key, vec![0xff; bytes.len()].into())
            .await
            .unwrap();
    }
    let error = read(in_map(&objects, &manifest), None).await.unwrap_err();
    assert!(!error.is_transient(), "{error}");
    assert!(error.damaged_depth().is_some(), "{error}");
}

#[tokio::test]
async fn error_reports_dropped_tables() {
    let folder = tempfile::tempdir().unwrap();
    let run = searched(&folder.path().join("run"), Retention::Last);
    let objects = Objects::in_memory(&Memory::new(), &quick()).unwrap();
    let manifest = publish(&run, &objects, |_, _, nodes| encode_nodes(nodes)).await;
    let error = read(in_map(&objects, &manifest), None).await.unwrap_err();
    assert!(error.is_dropped() && !error.is_transient(), "{error}");
}
