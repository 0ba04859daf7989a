//! The wells of a depth in which the loop rule changes the piece, prepared for searches of parents.

use hatebeam_game::{Children, Emulator, Geometry, Parent, Piece, Well};
use hatebeam_search::{ChangedPiece, NodeWell};
use std::sync::OnceLock;

/// Number of different hints.
const HINTS: usize = 1 << u8::BITS;

/// The wells of a depth in which the loop rule changes the piece. A search of one parent expands only the wells that match the
/// hint. A search of the parents of many nodes expands each well once, because the children are remembered.
#[derive(Debug, Default)]
pub struct Changes {
    /// The wells, by hash.
    wells: Vec<Changed>,
    /// The children of the wells that match each hint. Empty if there are no wells.
    children: Box<[OnceLock<Vec<Edge>>]>,
}

/// A well with the piece that HATETRIS gives there.
#[derive(Clone, Copy, Debug)]
struct Changed {
    hash: u64,
    well: NodeWell,
    piece: Piece,
}

/// An edge from a well to its child. The child is not stored, because equal hashes of different wells are rare.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// Hash of the child.
    child: u64,
    /// Index of the well.
    parent: u32,
}

impl Changes {
    /// Parses a list of wells. Ignores invalid ones.
    pub fn new(geometry: Geometry, changed: &[ChangedPiece]) -> Changes {
        let changed = changed
            .iter()
            .filter_map(|changed| changed.parse(geometry))
            .map(|(well, piece)| Changed {
                hash: well.hash(),
                well: NodeWell::pack(geometry, &well),
                piece,
            });
        let mut wells: Vec<Changed> = changed.collect();
        wells.sort_unstable_by_key(|changed| (changed.hash, changed.well));
        Changes {
            children: match wells.is_empty() {
                true => Box::default(),
                false => (0..HINTS).map(|_| OnceLock::new()).collect(),
            },
            wells,
        }
    }

    /// Returns the number of wells.
    pub fn len(&self) -> usize {
        self.wells.len()
    }

    /// Returns whether the rule changes no piece.
    pub fn is_empty(&self) -> bool {
        self.wells.is_empty()
    }

    /// Returns the piece that HATETRIS gives in a well if the rule changes it.
    pub fn piece(&self, geometry: Geometry, well: &NodeWell) -> Option<Piece> {
        if self.is_empty() {
            return None;
        }
        self.find(well.unpack(geometry).ok()?.hash(), well)
    }

    fn find(&self, hash: u64, well: &NodeWell) -> Option<Piece> {
        let key = (hash, *well);
        let found = self
            .wells
            .binary_search_by_key(&key, |changed| (changed.hash, changed.well));
        let found = self.wells.get(found.ok()?)?;
        Some(found.piece)
    }

    /// Replaces `parents`, those of `well` by the rules of HATETRIS Mild, by its parents by the rules of HATETRIS. If `hint` is
    /// given, considers only parents that match it.
    pub(crate) fn apply(
        &self,
        emulator: &Emulator,
        well: &Well,
        hint: Option<u8>,
        parents: &mut Vec<Parent>,
    ) {
        if self.is_empty() {
            return;
        }
        let geometry = emulator.geometry();
        parents.retain(|parent| {
            let packed = NodeWell::pack(geometry, &parent.well);
            self.find(parent.well.hash(), &packed).is_none()
        });
        match hint {
            Some(hint) => self.add_parents(emulator, well, hint, parents),
            None => (0..=u8::MAX).for_each(|hint| self.add_parents(emulator, well, hint, parents)),
        }
        parents.sort_unstable();
    }

    /// Adds the wells that match a hint and lead to `well`.
    fn add_parents(&self, emulator: &Emulator, well: &Well, hint: u8, parents: &mut Vec<Parent>) {
        let edges = self.children[usize::from(hint)].get_or_init(|| self.edges(emulator, hint));
        let child = well.hash();
        let first = edges.partition_point(|edge| edge.child < child);
        let edges = edges[first..].iter().take_while(|edge| edge.child == child);
        for edge in edges {
            let Changed {
                well: before,
                piece,
                ..
            } = self.wells[edge.parent as usize];
            let Ok(before) = before.unpack(emulator.geometry()) else {
                continue;
            };
            let mut children = Children::new();
            emulator.children(&before, piece, &mut children);
            if let Some((_, lines)) = children.iter().find(|(child, _)| *child == well) {
                parents.push(Parent {
                    lines,
                    piece,
                    well: before,
                });
            }
        }
    }

    /// Returns the edges from the wells that match a hint, by child.
    fn edges(&self, emulator: &Emulator, hint: u8) -> Vec<Edge> {
        let mut children = Children::new();
        let mut edges = Vec::new();
        for (parent, changed) in (0..).zip(&self.wells) {
            if changed.hash as u8 != hint {
                continue;
            }
            if let Ok(well) = changed.well.unpack(emulator.geometry()) {
                emulator.children(&well, changed.piece, &mut children);
                let hashes = children.wells().iter().map(Well::hash);
                edges.extend(hashes.map(|child| Edge { child, parent }));
            }
        }
        edges.sort_unstable_by_key(|edge| (edge.child, edge.parent));
        edges.shrink_to_fit();
        edges
    }
}
