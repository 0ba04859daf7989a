//! Paths from the first well of a run to any other.
//!
//! A table does not store the parent of a well, only a hint of one byte. The backward emulator computes the few
//! parents that a well can have, and the table of the previous depth contains those that were in the beam. Any of
//! them is right: the lines cleared on the path to a well follow from its cells and its depth, so all paths to it
//! have the same score.
//!
//! Across dropped depths, the search follows one line of descent after the other until it finds an ancestor in the
//! nearest kept table.

use crate::error::{StoreError, hex_of};
use hatebeam_game::{Backward, Geometry, Parent, Well};
use hatebeam_search::{DepthRecord, Node, NodeWell};
use std::collections::HashSet;

/// A source of the wells of a run.
pub trait Lookup {
    /// Returns the size of the wells.
    fn geometry(&self) -> Geometry;

    /// Returns the records of the committed depths, ascending without a gap.
    fn depths(&self) -> &[DepthRecord];

    /// Returns the nodes of a depth with these wells, in the order of the wells.
    ///
    /// # Errors
    /// [`StoreError::NoDepth`]; [`StoreError::Dropped`] if the wells were not kept; [`StoreError::Unavailable`],
    /// [`StoreError::DamagedDepth`] and other errors of reading.
    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError>;

    /// Returns the node of a depth with this well.
    ///
    /// # Errors
    /// As for [`Lookup::multi_get`].
    fn get(&self, depth: u32, well: &NodeWell) -> Result<Option<Node>, StoreError> {
        let found = self.multi_get(depth, std::slice::from_ref(well))?;
        Ok(found.into_iter().flatten().next())
    }
}

/// Maximum number of wells tried to cross consecutive dropped depths.
pub const MAX_CANDIDATES: u64 = 1_000_000;

/// The path to a well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The wells from the first depth of the run to the requested one, one per depth.
    pub wells: Vec<Well>,
    /// Number of wells looked up in tables.
    pub lookups: u64,
}

/// Returns the wells from the first depth of the run to `well` of `depth`. Each is a child of its predecessor under
/// HATETRIS Mild.
///
/// # Errors
/// [`StoreError::NoWell`] if the depth is kept and does not contain the well; [`StoreError::NoParent`] and
/// [`StoreError::TooMany`] if no path is found; any error of reading tables.
pub fn path_to<L: Lookup>(
    store: &L,
    backward: &mut Backward,
    depth: u32,
    well: &NodeWell,
) -> Result<Path, StoreError> {
    let found = store.multi_get(depth, std::slice::from_ref(well));
    let mut node = match found {
        Err(StoreError::Dropped { .. }) => node_of_dropped(store, depth, well)?,
        found => found?
            .into_iter()
            .flatten()
            .next()
            .ok_or_else(|| StoreError::NoWell {
                depth,
                well: hex_of(store.geometry(), well),
            })?,
    };
    let mut walk = Walk {
        store,
        backward,
        lookups: 1,
        wells: vec![unpack(store, depth, well)?],
    };
    let mut depth = depth;
    let first = store.depths().first().map_or(depth, |record| record.depth);
    while depth > first {
        let kept = store
            .depths()
            .iter()
            .rfind(|record| record.depth < depth && record.kept)
            .map(|record| record.depth);
        let Some(kept) = kept else {
            return Err(StoreError::Dropped { depth: first });
        };
        node = walk.back_to(depth, &node, kept)?;
        depth = kept;
    }
    walk.wells.reverse();
    Ok(Path {
        wells: walk.wells,
        lookups: walk.lookups,
    })
}

/// Returns a node of a dropped depth. Its score and hint are unknown, but the lines follow from the well and the
/// depth, because every piece adds four cells and every cleared line removes a row.
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

struct Walk<'a, L> {
    store: &'a L,
    backward: &'a mut Backward,
    lookups: u64,
    /// The wells found, in descending order of depth.
    wells: Vec<Well>,
}

/// An ancestor in the search through dropped depths.
struct Generation {
    well: Well,
    lines: u16,
    /// Parents not yet tried.
    parents: std::vec::IntoIter<Parent>,
}

impl<L: Lookup> Walk<'_, L> {
    /// Finds an ancestor of a node at the depth `kept`, and adds the wells on the path to it.
    fn back_to(&mut self, depth: u32, node: &Node, kept: u32) -> Result<Node, StoreError> {
        let well = unpack(self.store, depth, &node.well)?;
        let gap = (depth - kept) as usize;
        let mut tried = 0;
        let mut seen: HashSet<(usize, Well)> = HashSet::new();
        let mut line = vec![Generation {
            well,
            lines: node.lines,
            parents: self.parents(&well, Some(node.hint)).into_iter(),
        }];
        while let Some(length) = line.len().checked_sub(1) {
            let last = &mut line[length];
            if length + 1 == gap {
                let parents: Vec<Parent> = last.parents.by_ref().collect();
                tried += parents.len() as u64;
                let hint = (gap == 1).then_some(node.hint);
                if let Some(found) = self.pick(kept, last.lines, &parents, hint)? {
                    let between = line.iter().skip(1).map(|generation| generation.well);
                    self.wells.extend(between);
                    self.wells.push(unpack(self.store, kept, &found.well)?);
                    return Ok(found);
                }
                line.pop();
            } else if let Some(parent) = last.parents.next() {
                tried += 1;
                let Some(lines) = last.lines.checked_sub(u16::from(parent.lines)) else {
                    continue;
                };
                if seen.insert((length, parent.well)) {
                    let parents = self.parents(&parent.well, None).into_iter();
                    line.push(Generation {
                        well: parent.well,
                        lines,
                        parents,
                    });
                }
            } else {
                line.pop();
            }
            if tried > MAX_CANDIDATES {
                return Err(StoreError::TooMany { depth, kept, tried });
            }
        }
        Err(StoreError::NoParent {
            depth,
            kept,
            well: hex_of(self.store.geometry(), &node.well),
        })
    }

    /// Returns the parents of a well; those that match the hint come first.
    fn parents(&mut self, well: &Well, hint: Option<u8>) -> Vec<Parent> {
        let mut parents = Vec::new();
        self.backward.parents(well, &mut parents);
        if let Some(hint) = hint {
            parents.sort_by_key(|parent| !matches_hint(parent, hint));
        }
        parents
    }

    /// Returns the first of these parents that the table contains. The parents that match the hint come first and
    /// are looked up first.
    fn pick(
        &mut self,
        kept: u32,
        lines: u16,
        parents: &[Parent],
        hint: Option<u8>,
    ) -> Result<Option<Node>, StoreError> {
        let matching = hint.map_or(0, |hint| {
            parents.partition_point(|parent| matches_hint(parent, hint))
        });
        for part in [&parents[..matching], &parents[matching..]] {
            let wells: Vec<NodeWell> = part
                .iter()
                .map(|parent| NodeWell::pack(self.store.geometry(), &parent.well))
                .collect();
            if wells.is_empty() {
                continue;
            }
            self.lookups += wells.len() as u64;
            let found = self.store.multi_get(kept, &wells)?;
            let mut candidates = part.iter().zip(found).filter_map(|(parent, node)| {
                let before = lines.checked_sub(u16::from(parent.lines))?;
                node.filter(|node| node.lines == before)
            });
            if let Some(node) = candidates.next() {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }
}

fn matches_hint(parent: &Parent, hint: u8) -> bool {
    parent.well.hash() as u8 == hint
}
