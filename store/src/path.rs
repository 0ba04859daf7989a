//! Paths from the first well of a run to a given well.
//!
//! A table (a file with the wells of a depth, which is a number of placed pieces) does not store the
//! parent of a well. It stores only a one-byte hint: the lowest byte of
//! the parent's hash. The backward emulator computes the few parents that a well can have. Any
//! parent in the table of the previous depth may be used: all paths to a well clear the same number
//! of rows, because the well's cells and its depth determine this number.
//!
//! If a run applies the loop rule, each depth has a list of the wells of the previous depth in which the
//! rule changes the piece. Such a well is a parent only of the children of the changed piece.
//!
//! If the tables of the previous depth were deleted (a dropped depth), the search tries one chain of
//! ancestors after another until it finds an ancestor in the tables of an earlier depth. If too many depths in a row were
//! dropped, no search would finish in time, so it returns an error at once.

use crate::changes::Changes;
use crate::error::{StoreError, hex_of};
use hatebeam_game::{Backward, Geometry, Offer, Parent, Well};
use hatebeam_search::{DepthRecord, Node, NodeWell};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A source of the stored wells of a run.
pub trait Lookup {
    /// Returns the geometry of the wells.
    fn geometry(&self) -> Geometry;

    /// Returns the records of the committed depths, in ascending order and without gaps.
    fn depths(&self) -> &[DepthRecord];

    /// Returns the wells before `depth` in which the loop rule changes the piece. The default implementation parses them at
    /// each call.
    ///
    /// # Errors
    /// Returns [`StoreError::MissingTables`] or another error if they cannot be read.
    fn changes(&self, depth: u32) -> Result<Arc<Changes>, StoreError> {
        let records = self.depths();
        let first = records.first().map_or(depth, |record| record.depth);
        let record = depth.checked_sub(first);
        let record = record.and_then(|index| records.get(index as usize));
        let changed = record.map_or(&[][..], |record| &record.changed);
        Ok(Arc::new(Changes::new(self.geometry(), changed)))
    }

    /// Looks up wells at a depth. Returns one result per well, in the order of `wells`: the node,
    /// or `None` if the depth does not contain the well.
    ///
    /// # Errors
    /// Returns [`StoreError::NoDepth`] if the run does not have the depth, [`StoreError::Dropped`]
    /// if the depth's tables were deleted, and [`StoreError::MissingTables`],
    /// [`StoreError::DamagedDepth`] or another error if the tables cannot be read.
    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError>;

    /// Looks up a single well at a depth.
    ///
    /// # Errors
    /// Returns the same errors as [`Lookup::multi_get`].
    fn get(&self, depth: u32, well: &NodeWell) -> Result<Option<Node>, StoreError> {
        let found = self.multi_get(depth, std::slice::from_ref(well))?;
        Ok(found.into_iter().flatten().next())
    }
}

/// Maximum number of candidate wells to try when searching back across consecutive dropped depths.
pub const MAX_CANDIDATES: u64 = 1_000_000;

/// Maximum distance to a kept depth across consecutive dropped depths. In runs that keep every Nth depth, the distance is at
/// most N = 6, and 10 where a run has changed N. It can be greater where a run keeps only its last depth, or where tables are
/// damaged. Then a search would try [`MAX_CANDIDATES`] wells, which takes half a minute, and rarely find one.
const MAX_DISTANCE: u32 = 10;

/// The path from the first well of a run to a given well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The wells from the first depth of the run to the requested depth, one per depth. If the path joins a known path,
    /// they begin at the depth [`Path::joined`].
    pub wells: Vec<Well>,
    /// Number of wells looked up in tables.
    pub lookups: u64,
    /// Depth of the last well that this path shares with the known path; see [`PathSearch::resume_joining`].
    pub joined: Option<u32>,
}

/// Returns the parent of a node at `depth` on its path. The tables of the previous depth must be kept.
///
/// # Errors
/// Returns [`StoreError::Dropped`] if the tables of the previous depth were deleted,
/// [`StoreError::NoParent`] if they do not contain a parent, or an error that [`Lookup::multi_get`] returned.
pub fn parent_of<L: Lookup>(
    store: &L,
    backward: &mut Backward,
    depth: u32,
    node: &Node,
) -> Result<Node, StoreError> {
    let mut step = BackStep::new(store, backward, depth, *node)?;
    if step.kept + 1 != depth {
        return Err(StoreError::Dropped { depth: depth - 1 });
    }
    step.run(store, backward, &mut Vec::new())
}

/// A resumable search for the path to a well, which keeps its progress if a lookup fails. After
/// [`StoreError::MissingTables`], the caller can fetch the tables and resume the search.
#[derive(Debug)]
pub struct PathSearch {
    depth: u32,
    well: NodeWell,
    /// The current node, which is at `depth`, or `None` before the first lookup.
    node: Option<Node>,
    /// The wells found so far, in descending order of depth.
    wells: Vec<Well>,
    lookups: u64,
    /// The interrupted search from `depth` back to the nearest kept depth, if a lookup has failed.
    step: Option<BackStep>,
    /// Counter that is set to the depth from which the search continues.
    progress: Option<Arc<AtomicU32>>,
}

impl PathSearch {
    /// Creates a search for the path to `well` at `depth`.
    pub fn new(depth: u32, well: NodeWell) -> PathSearch {
        PathSearch {
            depth,
            well,
            node: None,
            wells: Vec::new(),
            lookups: 0,
            step: None,
            progress: None,
        }
    }

    /// Sets `progress` to each depth that the search reaches, in descending order.
    #[must_use]
    pub fn with_progress(self, progress: &Arc<AtomicU32>) -> PathSearch {
        PathSearch {
            progress: Some(Arc::clone(progress)),
            ..self
        }
    }

    /// Starts the search, or resumes it after an error. Do not call this again after it has
    /// succeeded.
    ///
    /// # Errors
    /// Returns [`StoreError::NoWell`] if the depth is kept but does not contain the well, [`StoreError::Dropped`] if too many
    /// depths in a row were dropped, [`StoreError::NoParent`] or [`StoreError::TooMany`] if no path is found, or an error
    /// that [`Lookup::multi_get`] returned.
    pub fn resume<L: Lookup>(
        &mut self,
        store: &L,
        backward: &mut Backward,
    ) -> Result<Path, StoreError> {
        self.resume_joining(store, backward, |_, _| false)
    }

    /// Does the same as [`PathSearch::resume`], but ends where the path joins a known path. `is_known` returns whether the
    /// well at a depth is part of another path that was found in this run.
    ///
    /// # Errors
    /// Returns the same errors as [`PathSearch::resume`].
    pub fn resume_joining<L: Lookup>(
        &mut self,
        store: &L,
        backward: &mut Backward,
        is_known: impl Fn(u32, &Well) -> bool,
    ) -> Result<Path, StoreError> {
        let mut node = match self.node {
            Some(node) => node,
            None => {
                let node = requested_node(store, self.depth, &self.well)?;
                self.wells.push(unpack(store, self.depth, &self.well)?);
                self.lookups = 1;
                node
            }
        };
        let first = store.depths().first();
        let first = first.map_or(self.depth, |record| record.depth);
        let mut joined = None;
        while self.depth > first && joined.is_none() {
            self.node = Some(node);
            if let Some(progress) = &self.progress {
                progress.store(self.depth, Ordering::Relaxed);
            }
            let mut step = match self.step.take() {
                Some(step) => step,
                None => BackStep::new(store, backward, self.depth, node)?,
            };
            match step.run(store, backward, &mut self.wells) {
                Ok(found) => node = found,
                Err(error) => {
                    self.step = Some(step);
                    return Err(error);
                }
            }
            self.lookups += step.lookups;
            self.depth = step.kept;
            // The tables contain this well, so the rest of the path is the same as that of every other path through it.
            let well = self.wells.last();
            joined = well
                .filter(|well| is_known(self.depth, well))
                .map(|_| self.depth);
        }
        self.wells.reverse();
        Ok(Path {
            wells: std::mem::take(&mut self.wells),
            lookups: self.lookups,
            joined,
        })
    }
}

/// Returns the node of the requested well. If the depth was dropped, constructs the node from the
/// well.
fn requested_node(store: &impl Lookup, depth: u32, well: &NodeWell) -> Result<Node, StoreError> {
    match store.get(depth, well) {
        Err(StoreError::Dropped { .. }) => node_of_dropped(store, depth, well),
        found => found?.ok_or_else(|| StoreError::NoWell {
            depth,
            well: hex_of(store.geometry(), well),
        }),
    }
}

/// Constructs the node of a well at a dropped depth. The score and the hint are unknown and set to
/// zero. The well's cells and its depth determine the number of cleared rows, because each piece
/// adds four cells and each cleared row removes the cells of one row.
fn node_of_dropped(store: &impl Lookup, depth: u32, well: &NodeWell) -> Result<Node, StoreError> {
    let geometry = store.geometry();
    let filled = unpack(store, depth, well)?.filled();
    let first = store
        .depths()
        .first()
        .ok_or(StoreError::NoDepth { depth })?;
    let start =
        Well::from_hex(geometry, &first.best_well).map_err(|error| StoreError::BadRecord {
            depth: first.depth,
            reason: error.to_string(),
        })?;
    let cells = start.filled() + 4 * depth.saturating_sub(first.depth);
    let cleared = cells.saturating_sub(filled) / geometry.width() as u32;
    let lines = u32::from(first.best_lines) + cleared;
    Ok(Node {
        score: 0,
        well: *well,
        lines: u16::try_from(lines).unwrap_or(u16::MAX),
        hint: 0,
    })
}

fn unpack(store: &impl Lookup, depth: u32, well: &NodeWell) -> Result<Well, StoreError> {
    well.unpack(store.geometry())
        .map_err(|error| StoreError::DamagedDepth {
            depth,
            file: None,
            reason: error.to_string(),
        })
}

/// The search for a node's ancestor at the nearest earlier depth whose tables were kept.
#[derive(Debug)]
struct BackStep {
    depth: u32,
    node: Node,
    /// Depth of the ancestor.
    kept: u32,
    /// The current chain of ancestors, starting with the node's own well.
    line: Vec<Generation>,
    /// Whether the chain contains only the node's own well with the parents that match its hint. They nearly
    /// always include the right one, and verifying only these takes less time.
    hinted: bool,
    /// Ancestors that have been tried, each paired with the index of its child in `line`.
    seen: HashSet<(usize, Well)>,
    tried: u64,
    lookups: u64,
}

/// A well in the chain of ancestors, and its parents.
#[derive(Debug)]
struct Generation {
    well: Well,
    lines: u16,
    /// Parents that have not been tried yet.
    parents: std::vec::IntoIter<Parent>,
}

impl BackStep {
    /// Creates the search. Returns [`StoreError::Dropped`] if there is no earlier depth with tables, or if the nearest one is
    /// too far away.
    fn new(
        store: &impl Lookup,
        backward: &mut Backward,
        depth: u32,
        node: Node,
    ) -> Result<BackStep, StoreError> {
        let records = store.depths();
        let first = records.first().map_or(depth, |record| record.depth);
        // The records have no gaps. A search through all of them for each depth would make a long game slow.
        let before = (depth.saturating_sub(first) as usize).min(records.len());
        let kept = records[..before].iter().rfind(|record| record.kept);
        let Some(kept) = kept else {
            return Err(StoreError::Dropped { depth: first });
        };
        let kept = kept.depth;
        if depth - kept > MAX_DISTANCE {
            return Err(StoreError::Dropped { depth: depth - 1 });
        }
        let well = unpack(store, depth, &node.well)?;
        let hinted = kept + 1 == depth;
        let mut parents = parents_of(store, backward, depth, &well, hinted.then_some(node.hint))?;
        // Stable: parents that match the hint come first.
        parents.sort_by_key(|parent| !matches_hint(&parent.well, node.hint));
        Ok(BackStep {
            depth,
            node,
            kept,
            line: vec![Generation {
                well,
                lines: node.lines,
                parents: parents.into_iter(),
            }],
            hinted,
            seen: HashSet::new(),
            tried: 0,
            lookups: 0,
        })
    }

    /// Finds the ancestor, and appends the path from the node's parent to the ancestor to `wells`.
    /// After a lookup error, the caller can call this method again to continue.
    fn run(
        &mut self,
        store: &impl Lookup,
        backward: &mut Backward,
        wells: &mut Vec<Well>,
    ) -> Result<Node, StoreError> {
        let gap = (self.depth - self.kept) as usize;
        while let Some(length) = self.line.len().checked_sub(1) {
            let last = &mut self.line[length];
            if length + 1 == gap {
                let parents = last.parents.as_slice();
                let (found, lookups) = pick(store, self.kept, last.lines, parents)?;
                self.tried += parents.len() as u64;
                self.lookups += lookups;
                if let Some(found) = found {
                    let ancestor = unpack(store, self.kept, &found.well)?;
                    let between = self.line.iter().skip(1).map(|generation| generation.well);
                    wells.extend(between.chain([ancestor]));
                    return Ok(found);
                }
                if self.hinted {
                    let last = &mut self.line[length];
                    let parents = parents_of(store, backward, self.depth, &last.well, None)?;
                    last.parents = parents.into_iter();
                    self.hinted = false;
                    continue;
                }
                self.line.pop();
            } else if let Some(parent) = last.parents.as_slice().first() {
                let (well, lines) = (parent.well, last.lines.checked_sub(parent.lines.into()));
                let new = lines.filter(|_| !self.seen.contains(&(length, well)));
                let depth = self.depth - length as u32 - 1;
                let generation = match new {
                    Some(lines) => Some(Generation {
                        well,
                        lines,
                        parents: parents_of(store, backward, depth, &well, None)?.into_iter(),
                    }),
                    None => None,
                };
                // From here on nothing fails, so a search that is resumed skips no parent.
                last.parents.next();
                self.tried += 1;
                if let Some(generation) = generation {
                    self.seen.insert((length, well));
                    self.line.push(generation);
                }
            } else {
                self.line.pop();
            }
            if self.tried > MAX_CANDIDATES {
                return Err(StoreError::TooMany {
                    depth: self.depth,
                    kept: self.kept,
                    tried: self.tried,
                });
            }
        }
        Err(StoreError::NoParent {
            depth: self.depth,
            kept: self.kept,
            well: hex_of(store.geometry(), &self.node.well),
        })
    }
}

/// Returns the parents of a well at `depth`. If `hint` is given, returns only the parents that match it.
///
/// # Errors
/// Returns the errors of [`Lookup::changes`].
fn parents_of(
    store: &impl Lookup,
    backward: &mut Backward,
    depth: u32,
    well: &Well,
    hint: Option<u8>,
) -> Result<Vec<Parent>, StoreError> {
    let accept = |parent: &Well| hint.is_none_or(|hint| matches_hint(parent, hint));
    let mut parents = Vec::new();
    backward.parents_where(well, Offer::Mild, accept, &mut parents);
    let changes = store.changes(depth)?;
    changes.apply(backward.emulator(), well, hint, &mut parents);
    Ok(parents)
}

/// Returns the first of the parents that the table contains with the right number of lines, and the number of
/// wells looked up.
fn pick(
    store: &impl Lookup,
    kept: u32,
    lines: u16,
    parents: &[Parent],
) -> Result<(Option<Node>, u64), StoreError> {
    let wells: Vec<NodeWell> = parents
        .iter()
        .map(|parent| NodeWell::pack(store.geometry(), &parent.well))
        .collect();
    if wells.is_empty() {
        return Ok((None, 0));
    }
    let found = store.multi_get(kept, &wells)?;
    let mut candidates = parents.iter().zip(found).filter_map(|(parent, node)| {
        let before = lines.checked_sub(u16::from(parent.lines))?;
        node.filter(|node| node.lines == before)
    });
    Ok((candidates.next(), wells.len() as u64))
}

fn matches_hint(parent: &Well, hint: u8) -> bool {
    parent.hash() as u8 == hint
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Children, Emulator, Rules};

    /// A run whose last depth contains every well. The tables of its other kept depths are missing.
    struct Gap(Vec<DepthRecord>);

    impl Gap {
        /// Returns a run in which the depths after `before` and before `last` were dropped.
        fn between(before: u32, last: u32) -> Gap {
            let record = |depth| DepthRecord {
                depth,
                count: 1,
                digest: String::new(),
                best_eval: 0,
                median_eval: 0,
                worst_eval: 0,
                best_lines: 0,
                best_well: Well::EMPTY.to_hex(Geometry::STANDARD),
                children: 1,
                seconds: 0.0,
                bytes: 0,
                kept: depth <= before || depth == last,
                changed: Vec::new(),
            };
            Gap((0..=last).map(record).collect())
        }
    }

    impl Lookup for Gap {
        fn geometry(&self) -> Geometry {
            Geometry::STANDARD
        }

        fn depths(&self) -> &[DepthRecord] {
            &self.0
        }

        fn multi_get(
            &self,
            depth: u32,
            wells: &[NodeWell],
        ) -> Result<Vec<Option<Node>>, StoreError> {
            if self.0.last().is_some_and(|last| last.depth == depth) {
                let node = |&well: &NodeWell| {
                    Some(Node {
                        score: 0,
                        well,
                        lines: 100,
                        hint: 0,
                    })
                };
                return Ok(wells.iter().map(node).collect());
            }
            Err(StoreError::MissingTables {
                depth,
                shards: Vec::new(),
            })
        }
    }

    #[test]
    fn distance_that_no_search_can_cross_is_refused_before_any_lookup() {
        let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
        let mut backward = Backward::new(&emulator);
        let last = MAX_DISTANCE + 1;
        // A game of as many pieces, so that the well has ancestors at all earlier depths.
        let (mut well, mut children) = (Well::EMPTY, Children::new());
        for _ in 0..last {
            emulator.expand(&well, &mut children);
            let lowest = children
                .wells()
                .iter()
                .min_by_key(|well| well.stack_height());
            well = *lowest.unwrap();
        }
        let well = NodeWell::pack(Geometry::STANDARD, &well);
        let mut error = |before| {
            let run = Gap::between(before, last);
            let mut path = PathSearch::new(last, well);
            path.resume(&run, &mut backward).unwrap_err()
        };
        let refused = error(0);
        assert!(
            matches!(refused, StoreError::Dropped { depth } if depth == last - 1),
            "{refused}"
        );
        let searched = error(1);
        assert!(
            matches!(searched, StoreError::MissingTables { depth: 1, .. }),
            "{searched}"
        );
    }
}
