//! The wells that the quiescence search reaches from a batch of children (the wells to score). The
//! search continues from each child, but only with pieces that clear lines.

use hatebeam_game::Well;

/// A well that quiescence reached from a child.
#[derive(Clone, Copy)]
pub(crate) struct Reached {
    /// Index of the child in the batch.
    pub(crate) root: u32,
    /// Index of the well in its generation.
    pub(crate) well: u32,
}

/// Distinct pairs of a well and its number of lines. All of these wells are the same number of pieces
/// away from the children in a batch.
#[derive(Default)]
pub(crate) struct Generation {
    pub(crate) wells: Vec<Well>,
    pub(crate) lines: Vec<u16>,
    /// A hash table of indices into `wells`, each stored plus 1. A free slot contains 0. The length is a power of two
    /// or 0.
    slots: Vec<u32>,
}

impl Generation {
    pub(crate) fn clear(&mut self) {
        self.wells.clear();
        self.lines.clear();
        self.slots.fill(0);
    }

    /// Returns the index of `well` with `lines`. Adds this pair if it is not present.
    pub(crate) fn insert(&mut self, well: &Well, lines: u16) -> u32 {
        if self.wells.len() * 2 >= self.slots.len() {
            let size = (self.slots.len() * 2).max(1 << 10);
            self.slots.clear();
            self.slots.resize(size, 0);
            for (well, index) in self.wells.iter().zip(1..) {
                let mut at = well.hash() as usize & (size - 1);
                while self.slots[at] != 0 {
                    at = (at + 1) & (size - 1);
                }
                self.slots[at] = index;
            }
        }
        let mask = self.slots.len() - 1;
        let mut at = well.hash() as usize & mask;
        while let Some(index) = self.slots[at].checked_sub(1) {
            if self.wells[index as usize] == *well && self.lines[index as usize] == lines {
                return index;
            }
            at = (at + 1) & mask;
        }
        self.wells.push(*well);
        self.lines.push(lines);
        self.slots[at] = self.wells.len() as u32;
        self.wells.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::Geometry;

    #[test]
    fn insert_adds_equal_wells_with_equal_lines_once() {
        let mut generation = Generation::default();
        for round in 0..3 {
            for value in 0..1500u32 {
                let text = format!("{:048x}", value % 1000 + 1);
                let well = Well::from_hex(Geometry::STANDARD, &text).unwrap();
                assert_eq!(generation.insert(&well, 7), value % 1000, "{round}");
            }
        }
        assert_eq!(generation.wells.len(), 1000);
        let again = generation.wells[3];
        assert_eq!(generation.insert(&again, 8), 1000);
        generation.clear();
        assert_eq!(generation.insert(&again, 8), 0);
    }
}
