//! The expected results of a run: its digests and its best game, from a single-threaded search.

use hatebeam_game::{Emulator, Geometry};
use hatebeam_runs::{
    BestGame, LoopRule, ReadableRun, RunSpec, SpecError, StartingPosition, best_game, first_node,
    record_of,
};
use hatebeam_search::{DepthRecord, Frontier, Node, NodeWell, Past, ShardLayout, Step};
use hatebeam_store::{Lookup, StoreError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Maximum number of depths that are searched. The simulated runs end much earlier.
const MAX_DEPTHS: usize = 40;

/// A completed single-threaded search.
pub(crate) struct Oracle {
    emulator: Emulator,
    start: StartingPosition,
    loops: LoopRule,
    frontiers: Vec<Frontier>,
    records: Vec<DepthRecord>,
    games: Mutex<BTreeMap<u32, Option<Arc<BestGame>>>>,
}

/// Completed searches, by the name of their specification. Seeds share them, because a search depends only on its
/// specification.
static SEARCHED: LazyLock<Mutex<BTreeMap<String, Arc<Oracle>>>> = LazyLock::new(Mutex::default);

impl Oracle {
    /// Returns the completed search for a specification, from the cache if possible.
    ///
    /// # Errors
    /// Returns a [`SpecError`] if the specification is invalid.
    pub(crate) fn of(spec: &RunSpec) -> Result<Arc<Oracle>, SpecError> {
        let mut searched = SEARCHED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(oracle) = searched.get(&spec.name()) {
            return Ok(Arc::clone(oracle));
        }
        let oracle = Arc::new(Oracle::search(spec)?);
        searched.insert(spec.name(), Arc::clone(&oracle));
        Ok(oracle)
    }

    fn search(spec: &RunSpec) -> Result<Oracle, SpecError> {
        let start = spec.check()?;
        let emulator = spec.emulator()?;
        let width = usize::try_from(spec.width).unwrap_or(usize::MAX);
        let layout = ShardLayout::new(width, 1);
        let mut past = Past::new(emulator.geometry(), &start.wells);
        let step = Step::new(&emulator, spec.evaluator, layout, 1).map_err(SpecError::from)?;
        let first = first_node(spec, &start)?;
        let mut frontiers = vec![Frontier::new(start.depth(), [first], layout)];
        let (cancel, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let mut records = Vec::new();
        let (mut children, mut changed) = (0, Vec::new());
        while let Some(last) = frontiers.last() {
            records.push(DepthRecord {
                changed: std::mem::take(&mut changed),
                ..record_of(emulator.geometry(), last, children, 0.0)
            });
            if frontiers.len() > MAX_DEPTHS {
                break;
            }
            let next = match spec.loops {
                LoopRule::Exact => {
                    let next = step.advance_exact(last, &mut past, None, &cancel, &progress);
                    next.map(|next| {
                        changed = next.changed;
                        (next.frontier, next.stats)
                    })
                }
                LoopRule::Ignore => step.run(last, &cancel, &progress),
            };
            let Ok((next, stats)) = next else {
                break;
            };
            if next.is_empty() {
                break;
            }
            children = stats.children;
            frontiers.push(next);
        }
        Ok(Oracle {
            loops: spec.loops,
            emulator,
            start,
            frontiers,
            records,
            games: Mutex::default(),
        })
    }

    /// Returns the record of a depth, or `None` if the search ends at an earlier depth.
    pub(crate) fn record(&self, depth: u32) -> Option<&DepthRecord> {
        self.records.iter().find(|record| record.depth == depth)
    }

    /// Returns the last depth of the search.
    pub(crate) fn last_depth(&self) -> u32 {
        self.records.last().map_or(0, |record| record.depth)
    }

    /// Returns the best game of the search up to a depth, or `None` if the search found no game.
    pub(crate) fn best_game(&self, depth: u32) -> Option<Arc<BestGame>> {
        let mut games = self.games.lock().unwrap_or_else(PoisonError::into_inner);
        let game = games.entry(depth).or_insert_with(|| {
            let records = self.records.iter().filter(|record| record.depth <= depth);
            let until = Until {
                oracle: self,
                records: records.cloned().collect(),
            };
            best_game(&until).ok().map(Arc::new)
        });
        game.clone()
    }
}

/// The first depths of a search, from which the best game is read back.
struct Until<'a> {
    oracle: &'a Oracle,
    records: Vec<DepthRecord>,
}

impl Lookup for Until<'_> {
    fn geometry(&self) -> Geometry {
        self.oracle.emulator.geometry()
    }

    fn depths(&self) -> &[DepthRecord] {
        &self.records
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        let mut frontiers = self.oracle.frontiers.iter();
        let frontier = frontiers.find(|frontier| frontier.depth == depth);
        let nodes = &frontier.ok_or(StoreError::NoDepth { depth })?.shards[0];
        let find = |well: &NodeWell| {
            let at = nodes.binary_search_by(|node| node.well.cmp(well)).ok()?;
            nodes.get(at).copied()
        };
        Ok(wells.iter().map(find).collect())
    }
}

impl ReadableRun for Until<'_> {
    type Store = Self;

    fn store(&self) -> &Self {
        self
    }

    fn emulator(&self) -> &Emulator {
        &self.oracle.emulator
    }

    fn start(&self) -> &StartingPosition {
        &self.oracle.start
    }

    fn loops(&self) -> LoopRule {
        self.oracle.loops
    }
}
