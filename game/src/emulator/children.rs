//! The buffer for the children of a well.

use crate::well::Well;

/// Upper bound on the number of children of a well. A piece has at most 60 positions at each of 20
/// heights. In a given column and orientation, it can rest at no more than every second height. So it
/// has at most 600 resting positions.
pub(crate) const CAPACITY: usize = 640;

/// A reusable buffer for the distinct live children of a well (those in which the game is not
/// over), with the number of lines that each placement clears.
///
/// The order of the children is the same on every machine: from the highest resting position down,
/// then by orientation and column. For wells that only the [oracle](crate::reference) supports, the
/// children are sorted by their rows instead.
#[derive(Clone, Debug)]
pub struct Children {
    pub(crate) wells: Box<[Well; CAPACITY]>,
    pub(crate) lines: Box<[u8; CAPACITY]>,
    pub(crate) len: usize,
    pub(crate) can_die: bool,
}

impl Children {
    /// Creates an empty buffer with room for the children of any well (21 KiB).
    pub fn new() -> Children {
        Children {
            wells: Box::new([Well::EMPTY; CAPACITY]),
            lines: Box::new([0; CAPACITY]),
            len: 0,
            can_die: false,
        }
    }

    /// Returns the children.
    pub fn wells(&self) -> &[Well] {
        &self.wells[..self.len]
    }

    /// Returns, for each child, the number of lines that its placement clears (0 to 4).
    pub fn lines(&self) -> &[u8] {
        &self.lines[..self.len]
    }

    /// Returns an iterator over the children, each with the number of lines cleared.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Well, u8)> + Clone {
        self.wells().iter().zip(self.lines().iter().copied())
    }

    /// Returns whether at least one placement ends the game.
    pub fn can_die(&self) -> bool {
        self.can_die
    }

    /// Returns the number of children.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no children. A well has none if every placement ends the game.
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

    /// Removes the children for which `keep` returns false. Preserves the order of the others.
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

    /// Removes each child that equals an earlier one.
    ///
    /// Only children with cleared lines can be equal, because placements in different cells result in
    /// different wells if no line is cleared. Children with different numbers of cleared lines also
    /// differ, because they have different numbers of filled cells.
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
