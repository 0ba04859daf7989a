//! A run whose records are known but whose tables may be elsewhere, and games that another process has read back.
//!
//! A process that reads a game back records the nodes (wells with the hints of their parents) that its lookups have found, and
//! the pieces that the loop rule changes in these wells.
//! Another process repeats the search for the game with these nodes instead of the tables. So it finds the same game by the
//! same rules: each well is a parent of the next one, and the last one is the best well in a depth's record. Nodes that are
//! not in the tables can lead to another game through the same best well, but not to an invalid one.

use crate::archive::ReadError;
use crate::error::ManifestError;
use crate::manifest::Manifest;
use crate::read_back::{BestGame, GameSearch, ReadableRun};
use crate::record::first_node;
use crate::spec::{LoopRule, StartingPosition};
use hatebeam_game::{Emulator, Geometry, Piece};
use hatebeam_report::Film;
use hatebeam_search::{ChangedPiece, DepthRecord, Node, NodeWell};
use hatebeam_store::{Changes, Lookup, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node that a lookup has found, without its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundNode {
    /// Depth of the node.
    pub depth: u32,
    /// The well.
    pub well: NodeWell,
    /// Number of rows cleared on the way to the well.
    pub lines: u16,
    /// The low byte of the parent's hash.
    pub hint: u8,
    /// The piece that HATETRIS gives in this well, if the loop rule changes it and a game through the well was read back.
    pub changed: Option<Piece>,
}

impl FoundNode {
    pub(crate) fn new(depth: u32, node: &Node) -> FoundNode {
        FoundNode {
            depth,
            well: node.well,
            lines: node.lines,
            hint: node.hint,
            changed: None,
        }
    }

    fn node(&self) -> Node {
        Node {
            score: 0,
            well: self.well,
            lines: self.lines,
            hint: self.hint,
        }
    }
}

/// A run's manifest, and what follows from its specification.
pub(crate) struct StoredRun {
    pub(crate) manifest: Manifest,
    pub(crate) records: Vec<DepthRecord>,
    pub(crate) emulator: Emulator,
    pub(crate) start: StartingPosition,
    first: Node,
}

impl StoredRun {
    pub(crate) fn new(manifest: Manifest) -> Result<StoredRun, ManifestError> {
        let start = manifest.spec.check()?;
        Ok(StoredRun {
            records: manifest.records().cloned().collect(),
            emulator: manifest.spec.emulator()?,
            first: first_node(&manifest.spec, &start)?,
            manifest,
            start,
        })
    }

    /// Looks up wells at the first depth, which has no tables. Returns `None` for other depths with tables, and an error for
    /// depths without tables.
    pub(crate) fn without_tables(
        &self,
        depth: u32,
        wells: &[NodeWell],
    ) -> Result<Option<Vec<Option<Node>>>, StoreError> {
        let record = self.records.iter().find(|record| record.depth == depth);
        match record {
            None => return Err(StoreError::NoDepth { depth }),
            Some(record) if !record.kept => return Err(StoreError::Dropped { depth }),
            Some(_) => {}
        }
        if depth != self.start.depth() {
            return Ok(None);
        }
        let is_first = |well: &NodeWell| (*well == self.first.well).then_some(self.first);
        Ok(Some(wells.iter().map(is_first).collect()))
    }

    /// Plays the keys of a game. Returns an error if they clear a different number of rows.
    pub(crate) fn film(&self, game: &BestGame) -> Result<Film, ReadError> {
        let film = self.manifest.spec.film(&game.keys)?;
        if film.score != game.score {
            let (expected, found) = (game.score, film.score);
            return Err(ReadError::Score { expected, found });
        }
        Ok(film)
    }
}

/// A run whose tables contain only some nodes.
struct PartialRun {
    run: StoredRun,
    nodes: BTreeMap<(u32, NodeWell), Node>,
    /// For each depth, the wells of the previous depth in which the loop rule changes the piece. They may contain only those
    /// among `nodes`, because a search for a game considers no other well.
    changes: BTreeMap<u32, Arc<Changes>>,
}

impl PartialRun {
    fn new(manifest: Manifest, found: &[FoundNode]) -> Result<PartialRun, ManifestError> {
        let run = StoredRun::new(manifest)?;
        let geometry = run.emulator.geometry();
        let mut changed: BTreeMap<u32, Vec<ChangedPiece>> = BTreeMap::new();
        let applies_rule = run.manifest.spec.loops == LoopRule::Exact;
        for node in found.iter().filter(|_| applies_rule) {
            if let Some(piece) = node.changed
                && let Ok(well) = node.well.unpack(geometry)
            {
                let changed = changed.entry(node.depth.saturating_add(1)).or_default();
                changed.push(ChangedPiece::new(geometry, &well, piece));
            }
        }
        let nodes = found.iter();
        let nodes = nodes.map(|found| ((found.depth, found.well), found.node()));
        Ok(PartialRun {
            nodes: nodes.collect(),
            run,
            changes: changed
                .into_iter()
                .map(|(depth, changed)| (depth, Arc::new(Changes::new(geometry, &changed))))
                .collect(),
        })
    }
}

impl Lookup for PartialRun {
    fn geometry(&self) -> Geometry {
        self.run.emulator.geometry()
    }

    fn depths(&self) -> &[DepthRecord] {
        &self.run.records
    }

    fn changes(&self, depth: u32) -> Result<Arc<Changes>, StoreError> {
        Ok(self.changes.get(&depth).cloned().unwrap_or_default())
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        if let Some(nodes) = self.run.without_tables(depth, wells)? {
            return Ok(nodes);
        }
        let find = |well: &NodeWell| self.nodes.get(&(depth, *well)).copied();
        Ok(wells.iter().map(find).collect())
    }
}

impl ReadableRun for PartialRun {
    type Store = PartialRun;

    fn store(&self) -> &PartialRun {
        self
    }

    fn emulator(&self) -> &Emulator {
        &self.run.emulator
    }

    fn start(&self) -> &StartingPosition {
        &self.run.start
    }

    fn loops(&self) -> LoopRule {
        self.run.manifest.spec.loops
    }
}

/// A game that was verified by playing its keys.
#[derive(Debug)]
pub struct VerifiedGame {
    /// The game.
    pub game: BestGame,
    /// Every key and well of the game.
    pub film: Film,
}

/// Finds the best game of a run from the nodes that another process has found while it read the game back. If they are
/// nodes of the run, the game is the same. Other nodes can only lead to another valid game through a best well of the run.
///
/// # Errors
/// Returns a [`ReadError`] if the nodes do not lead to the best game. It describes the nodes, not the tables.
pub fn verify_game(manifest: Manifest, nodes: &[FoundNode]) -> Result<VerifiedGame, ReadError> {
    let run = PartialRun::new(manifest, nodes)?;
    let game = GameSearch::best(&run).resume(&run)?;
    let film = run.run.film(&game)?;
    Ok(VerifiedGame { game, film })
}
