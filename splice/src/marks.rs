//! The pieces that HATETRIS excludes in a game, because one of their locks leaves a well that has occurred.

use crate::graph::{Move, PIECES, WellGraph};

/// For each well of a graph, the pieces that are excluded if the game reaches it.
#[derive(Clone)]
pub(crate) struct Marks {
    /// One bit per piece, in the order of the well: excluded by wells that stay entered.
    base: Vec<u8>,
    /// The same by wells that [`Marks::leave_all`] leaves again. Valid if the stamp is the current one.
    recent: Vec<u8>,
    stamps: Vec<u32>,
    stamp: u32,
}

/// What [`Marks::leave`] needs to leave a well.
pub(crate) struct Entered(Vec<(u32, u32, u8)>);

impl Marks {
    pub(crate) fn new(wells: usize) -> Marks {
        Marks {
            base: vec![0; wells],
            recent: vec![0; wells],
            stamps: vec![0; wells],
            stamp: 1,
        }
    }

    /// Enters a well for good.
    pub(crate) fn enter(&mut self, graph: &WellGraph, well: u32) {
        for origin in graph.origins(well) {
            self.base[origin.well()] |= 1 << origin.rank();
        }
    }

    /// Enters a well until [`Marks::leave_all`].
    pub(crate) fn enter_recent(&mut self, graph: &WellGraph, well: u32) {
        for &origin in graph.origins(well) {
            self.exclude(origin);
        }
    }

    /// Enters a well until [`Marks::leave`].
    pub(crate) fn enter_briefly(&mut self, graph: &WellGraph, well: u32, entered: &mut Entered) {
        entered.0.clear();
        for &origin in graph.origins(well) {
            let at = origin.well();
            entered
                .0
                .push((at as u32, self.stamps[at], self.recent[at]));
            self.exclude(origin);
        }
    }

    /// Leaves a well that was entered briefly.
    pub(crate) fn leave(&mut self, entered: &Entered) {
        // A well can occur several times; the first entry is its state before all others.
        for &(well, stamp, recent) in entered.0.iter().rev() {
            self.stamps[well as usize] = stamp;
            self.recent[well as usize] = recent;
        }
    }

    /// Leaves all wells that were entered as recent ones.
    pub(crate) fn leave_all(&mut self) {
        self.stamp += 1;
    }

    /// Returns the rank of the piece that the enemy gives in a well, or [`PIECES`] if all pieces are excluded. Then the
    /// enemy gives one of them nevertheless, but games in a graph end there.
    pub(crate) fn rank(&self, well: u32) -> usize {
        let well = well as usize;
        let recent = if self.stamps[well] == self.stamp {
            self.recent[well]
        } else {
            0
        };
        ((self.base[well] | recent).trailing_ones() as usize).min(PIECES)
    }

    /// Returns the children of a well by the piece that the enemy gives.
    pub(crate) fn children<'a>(&self, graph: &'a WellGraph, well: u32) -> &'a [u32] {
        match self.rank(well) {
            PIECES => &[],
            rank => graph.children(well, rank),
        }
    }

    fn exclude(&mut self, origin: Move) {
        let well = origin.well();
        if self.stamps[well] != self.stamp {
            self.stamps[well] = self.stamp;
            self.recent[well] = 0;
        }
        self.recent[well] |= 1 << origin.rank();
    }
}

impl Entered {
    pub(crate) fn new() -> Entered {
        Entered(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Children, Emulator, Geometry, Rules, Well};

    /// The first wells of the tree of all games in a well of 4 columns, in which nearly all moves lead to known wells.
    fn graph() -> WellGraph {
        let emulator = Emulator::new(Geometry::new(4, 6).unwrap(), Rules::default());
        let mut children = Children::new();
        let mut wells = vec![Well::EMPTY];
        for at in 0..100 {
            emulator.expand(&wells[at].clone(), &mut children);
            wells.extend_from_slice(children.wells());
        }
        WellGraph::new(&emulator, &[wells], 0).unwrap()
    }

    /// Returns the rank of the piece in each well.
    fn ranks(marks: &Marks, graph: &WellGraph) -> Vec<usize> {
        (0..graph.len() as u32)
            .map(|well| marks.rank(well))
            .collect()
    }

    /// Returns the same by the definition: the first piece of which no child is an entered well.
    fn expected(graph: &WellGraph, entered: &[u32]) -> Vec<usize> {
        let is_free = |well, rank| {
            let children = graph.children(well, rank);
            children.iter().all(|child| !entered.contains(child))
        };
        (0..graph.len() as u32)
            .map(|well| {
                (0..PIECES)
                    .find(|&rank| is_free(well, rank))
                    .unwrap_or(PIECES)
            })
            .collect()
    }

    #[test]
    fn ranks_are_those_of_entered_wells_and_leaving_restores_them() {
        let graph = graph();
        let mut marks = Marks::new(graph.len());
        let mut briefly = Entered::new();
        let (kept, recent): (Vec<u32>, Vec<u32>) = ((5..25).collect(), (30..50).collect());
        kept.iter().for_each(|&well| marks.enter(&graph, well));
        let base = ranks(&marks, &graph);
        assert_eq!(base, expected(&graph, &kept));
        recent
            .iter()
            .for_each(|&well| marks.enter_recent(&graph, well));
        let all = [kept, recent].concat();
        let before = ranks(&marks, &graph);
        assert_eq!(before, expected(&graph, &all));
        assert!(before.contains(&PIECES) || before.iter().any(|&rank| rank > 1));
        for well in 50..graph.len() as u32 {
            marks.enter_briefly(&graph, well, &mut briefly);
            let with = [&all[..], &[well]].concat();
            assert_eq!(ranks(&marks, &graph), expected(&graph, &with));
            marks.leave(&briefly);
            assert_eq!(ranks(&marks, &graph), before);
        }
        marks.leave_all();
        assert_eq!(ranks(&marks, &graph), base);
    }
}
