//! The games that lead to the wells of a frontier, for the loop rule of HATETRIS.
//!
//! HATETRIS gives a piece other than HATETRIS Mild if a lock of Mild's piece would leave a well that has
//! already occurred in the game. The game of a well in a frontier is its *path*: its parent, its parent's
//! parent, and so on. If several wells of the previous frontier can be the parent, it is the one with the
//! lowest hint, then the one whose piece clears the fewest lines, then the first one in the order of the
//! pieces (S Z O I L J T) and of the rows. So paths depend neither on threads nor on shards, and reading a
//! game back from stored tables finds the same path.
//!
//! **Memory.** A [`Past`] keeps only wells with a descendant in the newest frontier. The paths of a beam
//! meet after some dozens of pieces, so nearly all earlier depths contain one well. A compaction
//! removes the other wells when the number of wells has doubled. So the memory is proportional to the
//! width and to the number of depths, but not to their product.
//!
//! **Filter.** A bitmap with at least 16 bits per well rejects at least 15 of 16 children in one lookup in the
//! second-level cache, and a hash table with the hashes of the wells rejects nearly all others. For the
//! remaining children, the path decides. Cells are conserved: each piece adds four cells and each line
//! removes the cells of one row. So a well can occur again only after a multiple of `lcm(W, 4) / 4` pieces
//! with `W` columns, and only these wells of the path are compared.

use crate::node::{Node, NodeWell};
use crate::step::Origin;
use hatebeam_game::{Children, Emulator, Geometry, Piece, Well, piece_with_fewest_loops};
use std::collections::HashMap;

/// Number of wells up to which a [`Past`] is never compacted, so that narrow beams rarely compact.
const SMALL: usize = 4096;

/// The wells of all paths that lead to the newest frontier.
#[derive(Clone, Debug)]
pub struct Past {
    geometry: Geometry,
    /// Minimum number of pieces after which a well can occur again.
    period: usize,
    /// The wells of each depth, beginning with the first well of the game.
    layers: Vec<Layer>,
    /// Number of layers at the last compaction. Every well of these layers, except the last one, had a
    /// child in the next layer.
    compacted: usize,
    /// Number of wells.
    len: usize,
    /// Number of wells after the last compaction.
    compacted_len: usize,
    hashes: HashSet,
}

/// Wells of one depth.
#[derive(Clone, Debug)]
struct Layer {
    wells: Vec<NodeWell>,
    /// For each well, the index of its parent in the previous layer.
    parents: Vec<u32>,
}

/// A well with its children.
struct Expanded {
    parent: Well,
    piece: Piece,
    children: Children,
}

impl Expanded {
    fn contains(&self, geometry: Geometry, well: &NodeWell) -> bool {
        let mut wells = self.children.wells().iter();
        wells.any(|child| NodeWell::pack(geometry, child) == *well)
    }
}

impl Past {
    /// Creates the past of a frontier that contains only the last well of this game.
    pub fn new(geometry: Geometry, game: &[Well]) -> Past {
        let layer = |well| Layer {
            wells: vec![NodeWell::pack(geometry, well)],
            parents: vec![0],
        };
        let mut past = Past {
            geometry,
            period: period(geometry),
            layers: game.iter().map(layer).collect(),
            compacted: game.len(),
            len: game.len(),
            compacted_len: game.len(),
            hashes: HashSet::default(),
        };
        past.rebuild_hashes();
        past
    }

    /// Adds the next frontier. `parents` contains, for each well, the index of its parent in the frontier
    /// that was added last.
    ///
    /// # Panics
    /// Panics if the lengths differ or an index is out of range.
    pub fn push(&mut self, wells: Vec<NodeWell>, parents: Vec<u32>) {
        assert_eq!(wells.len(), parents.len(), "each well has a parent");
        let before = self.newest().len();
        assert!(
            parents.iter().all(|&parent| (parent as usize) < before),
            "each parent is in the previous frontier"
        );
        for well in &wells {
            self.hashes.insert(hash(self.geometry, well));
        }
        self.len += wells.len();
        self.layers.push(Layer { wells, parents });
        if self.len > 2 * self.compacted_len + SMALL {
            self.compact();
        }
    }

    /// Returns the wells of the newest frontier.
    pub fn newest(&self) -> &[NodeWell] {
        self.layers.last().map_or(&[], |layer| &layer.wells)
    }

    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns the depth of the newest frontier: the number of pieces placed.
    pub fn depth(&self) -> u32 {
        self.layers.len() as u32 - 1
    }

    /// Returns the past of a frontier with these wells at an earlier depth or at the same one. Returns `None` if it is not
    /// known, because the wells are not ancestors of the newest frontier.
    pub fn rewound(&self, depth: u32, wells: &[NodeWell]) -> Option<Past> {
        let layer = self.layers.get(depth as usize)?;
        let indices = layer.wells.iter().zip(&layer.parents);
        let parents: HashMap<&NodeWell, u32> =
            indices.map(|(well, parent)| (well, *parent)).collect();
        let parents: Option<Vec<u32>> = wells
            .iter()
            .map(|well| parents.get(well).copied())
            .collect();
        let layer = Layer {
            wells: wells.to_vec(),
            parents: parents?,
        };
        let mut past = Past {
            layers: self.layers[..depth as usize].to_vec(),
            compacted: 0,
            hashes: HashSet::default(),
            ..*self
        };
        past.layers.push(layer);
        past.compact();
        Some(past)
    }

    /// Returns the number of wells in memory.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no wells.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the path of a well in the newest frontier, from this well back to the first well of the game.
    pub fn path(&self, index: u32) -> impl Iterator<Item = &NodeWell> {
        let mut at = index as usize;
        self.layers.iter().rev().map(move |layer| {
            let here = at;
            at = layer.parents[here] as usize;
            &layer.wells[here]
        })
    }

    /// Returns the piece that HATETRIS gives in a well of the newest frontier if the loop rule applies there,
    /// that is, if one of `children` occurs in the path of the well. `children` must contain the children of the
    /// piece that HATETRIS Mild gives. The result may be this piece, because every piece may have such a child.
    ///
    /// If the result is a piece, the contents of `children` after the call are unspecified. `known` is a scratch buffer.
    #[inline]
    pub fn piece_by_rule(
        &self,
        emulator: &Emulator,
        index: u32,
        children: &mut Children,
        known: &mut Vec<NodeWell>,
    ) -> Option<Piece> {
        known.clear();
        for child in children.wells() {
            if self.hashes.contains(child.hash()) {
                known.push(NodeWell::pack(self.geometry, child));
            }
        }
        if known.is_empty() || !self.repeats(index, known) {
            return None;
        }
        let mut visits: HashMap<NodeWell, u32> = HashMap::new();
        for well in self.path(index) {
            *visits.entry(*well).or_default() += 1;
        }
        let visits = |well: &Well| {
            let well = NodeWell::pack(self.geometry, well);
            visits.get(&well).copied().unwrap_or(0)
        };
        let well = self.newest()[index as usize]
            .unpack(self.geometry)
            .expect("wells in a frontier are valid");
        Some(piece_with_fewest_loops(emulator, &well, visits, children))
    }

    /// Returns whether `child` has this origin: HATETRIS gives the origin's piece in the parent, the piece can produce the
    /// child's well, and the child's hint is that of the parent.
    pub fn is_origin(&self, emulator: &Emulator, child: &Node, origin: Origin) -> bool {
        let Some(expanded) = self.expand(emulator, origin.parent) else {
            return false;
        };
        expanded.piece == origin.piece
            && expanded.parent.hash() as u8 == child.hint
            && expanded.contains(self.geometry, &child.well)
    }

    /// Returns whether the piece that HATETRIS gives in the well `parent` of the newest frontier can produce `well`.
    pub fn is_child(&self, emulator: &Emulator, well: &NodeWell, parent: u32) -> bool {
        let expanded = self.expand(emulator, parent);
        expanded.is_some_and(|expanded| expanded.contains(self.geometry, well))
    }

    /// Returns the children of a well in the newest frontier by the piece that HATETRIS gives there.
    fn expand(&self, emulator: &Emulator, index: u32) -> Option<Expanded> {
        let parent = self.newest().get(index as usize)?.unpack(self.geometry);
        let parent = parent.expect("wells in a frontier are valid");
        let mut children = Children::new();
        let mild = emulator.expand(&parent, &mut children);
        let changed = self.piece_by_rule(emulator, index, &mut children, &mut Vec::new());
        let piece = changed.unwrap_or(mild);
        if changed.is_some() {
            emulator.children(&parent, piece, &mut children);
        }
        Some(Expanded {
            parent,
            piece,
            children,
        })
    }

    /// Returns whether one of these children of a well in the newest frontier occurs in the path of the well.
    fn repeats(&self, index: u32, children: &[NodeWell]) -> bool {
        // The first well of the path is one piece before its children.
        let mut repeatable = self.path(index).skip(self.period - 1).step_by(self.period);
        repeatable.any(|well| children.contains(well))
    }

    /// Removes wells without a descendant in the newest frontier.
    fn compact(&mut self) {
        for upper in (1..self.layers.len()).rev() {
            let (below, above) = self.layers.split_at_mut(upper);
            let lower = &mut below[upper - 1];
            let mut kept = vec![false; lower.wells.len()];
            for &parent in &above[0].parents {
                kept[parent as usize] = true;
            }
            if kept.iter().all(|&kept| kept) {
                if upper < self.compacted {
                    break;
                }
                continue;
            }
            let mut count = 0;
            let moved: Vec<u32> = kept
                .iter()
                .map(|&kept| {
                    count += u32::from(kept);
                    count.wrapping_sub(1)
                })
                .collect();
            for parent in &mut above[0].parents {
                *parent = moved[*parent as usize];
            }
            let mut kept_wells = kept.iter();
            lower.wells.retain(|_| kept_wells.next() == Some(&true));
            lower.wells.shrink_to_fit();
            let mut kept_parents = kept.iter();
            lower.parents.retain(|_| kept_parents.next() == Some(&true));
            lower.parents.shrink_to_fit();
        }
        self.compacted = self.layers.len();
        self.len = self.layers.iter().map(|layer| layer.wells.len()).sum();
        self.compacted_len = self.len;
        self.rebuild_hashes();
    }

    fn rebuild_hashes(&mut self) {
        // Room for the wells that are added before the next compaction.
        self.hashes = HashSet::with_room(2 * self.len + SMALL);
        for layer in &self.layers {
            for well in &layer.wells {
                self.hashes.insert(hash(self.geometry, well));
            }
        }
    }
}

/// Returns the hash of a well, which is faster to compute for a child than the hash of its packed form.
fn hash(geometry: Geometry, well: &NodeWell) -> u64 {
    let well = well.unpack(geometry);
    well.expect("wells in a frontier are valid").hash()
}

/// Returns the minimum number of pieces after which a well can occur again: `lcm(W, 4) / 4`.
fn period(geometry: Geometry) -> usize {
    let width = geometry.width();
    match width % 4 {
        0 => width / 4,
        2 => width / 2,
        _ => width,
    }
}

/// A set of 64-bit hashes with open addressing. `std`'s set would hash the hashes again.
#[derive(Clone, Debug, Default)]
struct HashSet {
    /// The hashes; 0 marks a free slot. The length is a power of two or 0, and at least half of the slots
    /// are free.
    slots: Vec<u64>,
    /// A bitmap with eight bits per slot. A set bit at the upper bits of a hash means that the slots may
    /// contain the hash.
    bits: Vec<u64>,
    len: usize,
}

impl HashSet {
    fn with_room(count: usize) -> HashSet {
        let slots = (2 * count).next_power_of_two().max(8);
        HashSet {
            slots: vec![0; slots],
            bits: vec![0; slots / 8],
            len: 0,
        }
    }

    /// Returns the slot of a hash, or the free slot in which to store it.
    #[inline]
    fn slot(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 && self.slots[at] != hash {
            at = (at + 1) & mask;
        }
        at
    }

    /// Returns the word of the bitmap for a hash, and the bit in the word.
    #[inline]
    fn bit(&self, hash: u64) -> (usize, u64) {
        let word = (hash >> 32) as usize & (self.bits.len() - 1);
        (word, 1 << (hash >> 26 & 63))
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let hash = hash.max(1);
        let (word, bit) = self.bit(hash);
        self.bits[word] & bit != 0 && self.slots[self.slot(hash)] != 0
    }

    fn insert(&mut self, hash: u64) {
        if 2 * (self.len + 1) > self.slots.len() {
            let old = std::mem::replace(self, HashSet::with_room(2 * self.len + SMALL));
            for hash in old.slots.into_iter().filter(|&hash| hash != 0) {
                self.insert(hash);
            }
        }
        let hash = hash.max(1);
        let (word, bit) = self.bit(hash);
        self.bits[word] |= bit;
        let at = self.slot(hash);
        self.len += usize::from(self.slots[at] == 0);
        self.slots[at] = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a well whose lowest rows contain this number.
    fn well(number: u32) -> NodeWell {
        let mut rows = [0; 16];
        (rows[0], rows[1]) = (number as u16 & 0x1ff, (number >> 9) as u16);
        NodeWell::pack(Geometry::STANDARD, &Well::from_rows(rows))
    }

    #[test]
    fn periods_conserve_cells() {
        for width in 4..=16 {
            let period = period(Geometry::new(width, 16).unwrap());
            let conserves = |pieces: &usize| (4 * pieces).is_multiple_of(width);
            assert_eq!((1..).find(conserves), Some(period), "{width}");
        }
    }

    #[test]
    fn rewound_past_has_the_paths_of_the_earlier_wells() {
        let mut past = Past::new(Geometry::STANDARD, &[Well::EMPTY]);
        // Each well has two children, and those of the second half are not kept.
        for depth in 1..20u32 {
            let count = past.newest().len() as u32;
            let parents: Vec<u32> = (0..8).map(|index| (index / 2).min(count - 1)).collect();
            past.push(
                (0..8).map(|index| well(depth * 100 + index)).collect(),
                parents,
            );
        }
        let wells: Vec<NodeWell> = [3, 0].map(|index| well(1000 + index)).into();
        let rewound = past.rewound(10, &wells).unwrap();
        assert_eq!((rewound.depth(), rewound.newest()), (10, &wells[..]));
        let layer = |past: &Past, depth: u32| past.layers[depth as usize].wells.len();
        assert!(layer(&rewound, 9) < layer(&past, 9));
        for (index, at) in [(0, 3), (1, 0)] {
            let mut path: Vec<NodeWell> = rewound.path(index).copied().collect();
            assert_eq!(path.len(), 11);
            let mut expected = (at, vec![well(1000 + at)]);
            for depth in (1..10).rev() {
                expected.0 /= 2;
                expected.1.push(well(depth * 100 + expected.0));
            }
            assert_eq!(path.pop(), Some(well(0)));
            assert_eq!(path, expected.1);
            assert!(rewound.hashes.contains(hash(Geometry::STANDARD, &path[3])));
        }
        assert!(past.rewound(10, &[well(999)]).is_none());
        assert!(past.rewound(20, &wells).is_none());
    }

    #[test]
    fn compaction_keeps_paths_and_removes_wells_without_descendants() {
        let mut past = Past::new(Geometry::STANDARD, &[Well::EMPTY]);
        let mut games: Vec<Vec<NodeWell>> = vec![vec![well(0)]];
        let mut total = 1;
        for depth in 1..200u32 {
            // Each well of the first half has two children.
            let most = games.len() as u32 - 1;
            let parents: Vec<u32> = (0..100).map(|index: u32| most.min(index / 2)).collect();
            let wells: Vec<NodeWell> = (0..100).map(|index| well(depth * 1000 + index)).collect();
            games = parents
                .iter()
                .zip(&wells)
                .map(|(&parent, &well)| {
                    let mut game = games[parent as usize].clone();
                    game.push(well);
                    game
                })
                .collect();
            past.push(wells, parents);
            total += 100;
            for (index, game) in (0..).zip(&games) {
                assert!(past.path(index).eq(game.iter().rev()));
                for well in game {
                    assert!(past.hashes.contains(hash(Geometry::STANDARD, well)));
                }
            }
        }
        assert!(past.len() < total / 2, "{} of {total}", past.len());
        assert_eq!(past.layers.len(), 200);
    }
}
