//! The buffer that an expansion fills.

use crate::well::Well;

/// More than a well has children: a word a level has at most 60 positions, and a piece can rest in
/// the same column and orientation on every other of 20 levels only.
pub(crate) const CAPACITY: usize = 640;

/// The live children of a well, each once, with the lines cleared on the way: a buffer made once
/// and filled again and again.
///
/// The order is the same on every machine: from the highest resting place down, then by orientation
/// and column. (It is not sorted; wells outside the fast emulator's geometries come sorted.)
#[derive(Clone, Debug)]
pub struct Children {
    pub(crate) wells: Box<[Well; CAPACITY]>,
    pub(crate) lines: Box<[u8; CAPACITY]>,
    pub(crate) len: usize,
    pub(crate) can_die: bool,
}

impl Children {
    /// An empty buffer with room for any well's children (21 KiB).
    pub fn new() -> Children {
        Children {
            wells: Box::new([Well::EMPTY; CAPACITY]),
            lines: Box::new([0; CAPACITY]),
            len: 0,
            can_die: false,
        }
    }

    /// The distinct live wells.
    pub fn wells(&self) -> &[Well] {
        &self.wells[..self.len]
    }

    /// The lines cleared on the way to each (0 to 4).
    pub fn lines(&self) -> &[u8] {
        &self.lines[..self.len]
    }

    /// The wells, each with the lines cleared on the way.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Well, u8)> + Clone {
        self.wells().iter().zip(self.lines().iter().copied())
    }

    /// Whether some placement ends the game.
    pub fn can_die(&self) -> bool {
        self.can_die
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether every placement ends the game.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.can_die = false;
    }

    pub(crate) fn push(&mut self, well: Well, lines: u8) {
        self.wells[self.len] = well;
        self.lines[self.len] = lines;
        self.len += 1;
    }

    /// Keeps the children for which `keep` holds, in their order.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Well) -> bool) {
        let mut kept = 0;
        for index in 0..self.len {
            if keep(&self.wells[index]) {
                self.wells[kept] = self.wells[index];
                self.lines[kept] = self.lines[index];
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Drops each child that equals an earlier one.
    ///
    /// Only children with lines cleared can be equal: without a clear distinct cells make distinct
    /// wells, and a different number of lines makes a different number of cells.
    pub(crate) fn remove_duplicates(&mut self) {
        let mut clearing = [0u16; CAPACITY];
        let (mut cleared, mut kept) = (0, 0);
        for index in 0..self.len {
            let (well, lines) = (self.wells[index], self.lines[index]);
            if lines > 0 {
                if clearing[..cleared]
                    .iter()
                    .any(|&other| self.wells[usize::from(other)] == well)
                {
                    continue;
                }
                clearing[cleared] = kept as u16;
                cleared += 1;
            }
            self.wells[kept] = well;
            self.lines[kept] = lines;
            kept += 1;
        }
        self.len = kept;
    }
}

impl Default for Children {
    fn default() -> Self {
        Children::new()
    }
}
