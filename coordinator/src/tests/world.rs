//! A single-threaded search, from which the simulated workers take their answers.

use super::support::spec;
use hatebeam_env::Env;
use hatebeam_objects::{Objects, Stored};
use hatebeam_proto::messages::{
    AnswerKind, CutVerdict, DigitCount, Expanded, Failed, FailureKind, GameNodes, Histogram,
    OrderKind, Prepare, Prepared, Rescored,
};
use hatebeam_runs::{
    Archive, FrontierSummary, LoopRule, RUNS, RunSpec, ScratchTables, Table, VersionedManifest,
    first_node, read_game,
};
use hatebeam_search::{Frontier, Node, ShardLayout, Step};
use hatebeam_store::{ColumnFamilies, ShardTables};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

/// Number of shards of the test run.
pub(crate) const SHARDS: u32 = 4;

/// All frontiers of a run. Each frontier (the wells kept at one depth) is computed on first use.
pub(crate) struct World {
    pub(crate) spec: RunSpec,
    step: Step,
    frontiers: Mutex<Vec<Made>>,
    tables: ShardTables,
    /// Contains `tables`. Deleted when this value is dropped.
    _dir: tempfile::TempDir,
}

#[derive(Clone)]
struct Made {
    frontier: Arc<Frontier>,
    children: u64,
}

impl World {
    pub(crate) fn new(loops: LoopRule) -> Arc<World> {
        let spec = RunSpec { loops, ..spec() };
        let start = spec.check().unwrap();
        let emulator = spec.emulator().unwrap();
        let layout = ShardLayout::new(spec.width as usize, SHARDS as usize);
        let first = Made {
            frontier: Arc::new(Frontier::new(
                0,
                [first_node(&spec, &start).unwrap()],
                layout,
            )),
            children: 0,
        };
        let dir = tempfile::tempdir().unwrap();
        let geometry = emulator.geometry();
        let tables = dir.path().join("tables");
        Arc::new(World {
            step: Step::new(&emulator, spec.evaluator, layout, 1).unwrap(),
            frontiers: Mutex::new(vec![first]),
            tables: ShardTables::create(&tables, geometry, ColumnFamilies::Shared).unwrap(),
            spec,
            _dir: dir,
        })
    }

    fn made(&self, depth: u32) -> Made {
        let mut frontiers = self.frontiers.lock().unwrap();
        while frontiers.len() <= depth as usize {
            let (cancel, progress) = (AtomicBool::new(false), AtomicU64::new(0));
            let last = &frontiers.last().unwrap().frontier;
            let (frontier, stats) = self.step.run(last, &cancel, &progress).unwrap();
            frontiers.push(Made {
                frontier: Arc::new(frontier),
                children: stats.children,
            });
        }
        frontiers[depth as usize].clone()
    }

    pub(crate) fn digest(&self, depth: u32) -> String {
        self.made(depth).frontier.digest().to_string()
    }
}

/// The state of one simulated worker: its share of the frontiers.
#[derive(Default)]
pub(crate) struct Part {
    run: String,
    /// Number of shards of the epoch.
    count: usize,
    /// Whether this is the first worker of the epoch, which reports the child count of all workers.
    is_first: bool,
    shards: Vec<usize>,
}

impl Part {
    pub(crate) async fn answer(
        &mut self,
        world: &World,
        name: &str,
        objects: &Objects,
        epoch: u64,
        order: OrderKind,
    ) -> AnswerKind {
        match order {
            OrderKind::Prepare(prepare) => {
                AnswerKind::Prepared(self.prepare(world, name, &prepare))
            }
            OrderKind::Expand(expand) => {
                let children = world.made(expand.depth).children;
                AnswerKind::Expanded(Expanded {
                    children: if self.is_first { children } else { 0 },
                    sent: 0,
                    sent_bytes: 0,
                    busy_micros: 0,
                    changed: Vec::new(),
                })
            }
            // A real worker counts its candidates by the next digit of their rank. This one counts only the wells that
            // stay in the frontier, all with the digit 0.
            OrderKind::Count(count) => {
                let wells = self.nodes(world, count.depth).len() as u64;
                let counts = vec![DigitCount {
                    digit: 0,
                    count: wells,
                }];
                AnswerKind::Counted(vec![Histogram { counts }; count.queries.len()])
            }
            OrderKind::ValidateCut(_) => AnswerKind::CutVerdict(CutVerdict {
                dropped: false,
                tied: Vec::new(),
            }),
            OrderKind::Rescore(_) => AnswerKind::Rescored(Rescored { busy_micros: 0 }),
            OrderKind::Select(select) => {
                let nodes = self.nodes(world, select.depth);
                AnswerKind::Selected(FrontierSummary::of(&nodes))
            }
            OrderKind::WaitCommit(wait) => {
                let tables = self.upload(world, name, objects, (epoch, wait.depth)).await;
                AnswerKind::Committed(tables)
            }
            OrderKind::Halt => AnswerKind::Halted,
            OrderKind::ReadBack(read) => read_back(objects, &read.run).await,
        }
    }

    fn prepare(&mut self, world: &World, name: &str, prepare: &Prepare) -> Prepared {
        let own = prepare.members.iter().position(|peer| peer.name == name);
        let own = own.unwrap();
        let owners = prepare.owners.iter().enumerate();
        self.count = prepare.owners.len();
        self.shards = owners
            .filter(|&(_, &owner)| owner as usize == own)
            .map(|(shard, _)| shard)
            .collect();
        self.run.clone_from(&prepare.run);
        self.is_first = own == 0;
        let wells = self.nodes(world, prepare.depth).len() as u64;
        let counted: u64 = prepare.tables.iter().map(|table| table.count).sum();
        let is_whole = prepare.table_shards as usize == self.count;
        let is_loaded = counted == wells || counted > wells && !is_whole;
        assert!(prepare.depth == 0 || is_loaded, "{prepare:?}");
        Prepared {
            wells,
            fetched: prepare.tables.len() as u32,
        }
    }

    fn nodes(&self, world: &World, depth: u32) -> Vec<Node> {
        let frontier = self.frontier(world, depth);
        let own = self.shards.iter();
        own.flat_map(|&shard| frontier.shards[shard].clone())
            .collect()
    }

    /// Returns the whole frontier, divided into the shards of the epoch.
    fn frontier(&self, world: &World, depth: u32) -> Frontier {
        let layout = ShardLayout::new(world.spec.width as usize, self.count);
        let frontier = world.made(depth).frontier;
        Frontier::new(depth, frontier.nodes().copied(), layout)
    }

    async fn upload(
        &self,
        world: &World,
        name: &str,
        objects: &Objects,
        (epoch, depth): (u64, u32),
    ) -> Vec<Table> {
        let frontier = self.frontier(world, depth);
        let key = format!("frontier/{depth:05}/{epoch}-{name}");
        let (mut tables, mut bytes) = (Vec::new(), Vec::new());
        for &shard in &self.shards {
            let nodes = &frontier.shards[shard];
            if nodes.is_empty() {
                continue;
            }
            let file = format!("{depth}-{shard}-{epoch}-{name}.sst");
            let written = world.tables.write(&file, depth, shard, nodes).unwrap();
            let table = std::fs::read(&written.path).unwrap();
            let stored = Stored::of(&table);
            tables.push(Table {
                shard: shard as u32,
                key: key.clone(),
                offset: bytes.len() as u64,
                bytes: stored.bytes,
                checksum: stored.checksum.to_string(),
                count: written.count,
                digest: written.digest.to_string(),
            });
            bytes.extend(table);
        }
        let key = format!("{RUNS}/{}/{key}", self.run);
        objects.put(&key, bytes.into()).await.unwrap();
        tables
    }
}

/// Reads back the best game of a run as a real worker does.
async fn read_back(objects: &Objects, run: &str) -> AnswerKind {
    let loaded = VersionedManifest::load(objects, run, true).await.unwrap();
    let geometry = loaded.manifest.spec.well.geometry().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let tables = ScratchTables::create(scratch.path(), geometry).unwrap();
    let archive = Archive::open(objects, loaded.manifest, Box::new(tables)).unwrap();
    match read_game(&Env::system(), archive, None, &Arc::default()).await {
        Ok(read) => AnswerKind::GameNodes(GameNodes {
            nodes: read.nodes,
            tables: read.fetched.tables as u64,
            bytes: read.fetched.bytes,
        }),
        Err(error) => AnswerKind::Failed(Failed {
            reason: error.to_string(),
            kind: FailureKind::Worker,
        }),
    }
}
