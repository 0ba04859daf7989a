//! From a well back to the run's first one.
//!
//! A table does not say which parent a well came from: it keeps a hint of one byte. The backward
//! emulator names the few parents a well can have, and the table of the depth before says which of
//! them were in the beam. Any of them will do: how many lines were cleared on the way to a well
//! follows from its cells and its depth, so all ways to it are worth the same.
//!
//! Where tables were dropped, ancestors are followed through the depths in between, one line of
//! descent after the other, until one of them is in the nearest kept table.

use crate::error::StoreError;
use crate::records::DepthRecord;
use crate::run::hex_of;
use hatebeam_game::{Backward, Geometry, Parent, Well};
use hatebeam_search::{Node, NodeWell};
use std::collections::HashSet;

/// Where the wells of a run are looked up.
pub trait Lookup {
    /// The size of its wells.
    fn geometry(&self) -> Geometry;

    /// The records of the committed depths, ascending without a gap.
    fn depths(&self) -> &[DepthRecord];

    /// The nodes of a depth that have these wells, in their order.
    ///
    /// # Errors
    /// [`StoreError::NoDepth`], [`StoreError::Dropped`] if its wells were not kept, and what reading
    /// them may meet.
    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError>;

    /// The node of a depth that has this well.
    ///
    /// # Errors
    /// As for [`Lookup::multi_get`].
    fn get(&self, depth: u32, well: &NodeWell) -> Result<Option<Node>, StoreError> {
        let found = self.multi_get(depth, std::slice::from_ref(well))?;
        Ok(found.into_iter().flatten().next())
    }
}

/// How many wells are tried at most to get over a row of depths that were not kept.
pub const MAX_CANDIDATES: u64 = 1_000_000;

/// The way to a well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The wells, from the run's first depth to the one asked for, one a depth.
    pub wells: Vec<Well>,
    /// How many wells were looked up in tables.
    pub lookups: u64,
}

/// The wells from the run's first depth to `well` of `depth`, each a child of the one before under
/// HATETRIS Mild.
///
/// # Errors
/// [`StoreError::NoWell`] if the depth does not hold the well (where its wells were not kept, the way
/// back tells), [`StoreError::NoParent`] and
/// [`StoreError::TooMany`] if no way back is found; besides, whatever reading tables may meet.
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

/// A node of a depth whose wells were not kept, as far as it can be known: cells are conserved, so
/// that well and depth settle the lines.
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
    /// The wells found, the last depth first.
    wells: Vec<Well>,
}

/// A generation on the way back through depths that were not kept.
struct Generation {
    well: Well,
    lines: u16,
    /// Its parents that are still to be tried.
    parents: std::vec::IntoIter<Parent>,
}

impl<L: Lookup> Walk<'_, L> {
    /// Goes from a node back to one of `kept`, and adds the wells on the way.
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

    /// A well's parents, those that the hint means first.
    fn parents(&mut self, well: &Well, hint: Option<u8>) -> Vec<Parent> {
        let mut parents = Vec::new();
        self.backward.parents(well, &mut parents);
        if let Some(hint) = hint {
            parents.sort_by_key(|parent| !is_meant(parent, hint));
        }
        parents
    }

    /// The first of these parents that the table holds. Those that the hint means come first.
    fn pick(
        &mut self,
        kept: u32,
        lines: u16,
        parents: &[Parent],
        hint: Option<u8>,
    ) -> Result<Option<Node>, StoreError> {
        let meant = hint.map_or(0, |hint| {
            parents.partition_point(|parent| is_meant(parent, hint))
        });
        for part in [&parents[..meant], &parents[meant..]] {
            let wells: Vec<NodeWell> = part
                .iter()
                .map(|parent| NodeWell::pack(self.store.geometry(), &parent.well))
                .collect();
            if wells.is_empty() {
                continue;
            }
            self.lookups += wells.len() as u64;
            let found = self.store.multi_get(kept, &wells)?;
            let mut matching = part.iter().zip(found).filter_map(|(parent, node)| {
                let before = lines.checked_sub(u16::from(parent.lines))?;
                node.filter(|node| node.lines == before)
            });
            if let Some(node) = matching.next() {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }
}

fn is_meant(parent: &Parent, hint: u8) -> bool {
    parent.well.hash() as u8 == hint
}
