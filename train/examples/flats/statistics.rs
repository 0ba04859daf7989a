//! Counts of what happens to the rows of games.

use hatebeam_game::reference::Reference;
use hatebeam_game::{Emulator, Geometry, Placement, Well};
use std::collections::BTreeMap;

/// Number of different rows of a standard well.
pub(crate) const ROWS: usize = 1 << Geometry::STANDARD.width();
/// The full row, which is cleared.
pub(crate) const FULL: u16 = Geometry::STANDARD.full_row();

/// Number of pieces that moved from one row to the next lower one, and number of those that did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passes {
    /// Pieces with a cell in the lower row.
    pub(crate) passed: u32,
    /// Pieces whose lowest cell is in the upper row.
    pub(crate) stopped: u32,
}

/// Counts of what happens to rows (*flats*) in games. A flat is born as an empty row, grows when a piece fills some of its
/// cells, and dies when it is full and is cleared. A flat that is left at the end of a game is immortal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlatStatistics {
    /// For each pair of a row and what it becomes, the number of times that a piece did it.
    pub(crate) growths: BTreeMap<[u16; 2], u32>,
    /// For each row, the number of immortal flats.
    pub(crate) immortal: BTreeMap<u16, u32>,
    /// For each row and the row below it, how many pieces passed from one to the other.
    pub(crate) passes: BTreeMap<[u16; 2], Passes>,
    /// Number of games.
    pub(crate) games: u32,
}

impl FlatStatistics {
    /// Adds a game in a standard well that has ended. `wells` are its wells from the first to the last.
    ///
    /// # Panics
    /// Panics if a well is not a child of the previous one.
    pub(crate) fn add_game(&mut self, emulator: &Emulator, wells: &[Well]) {
        assert_eq!(
            emulator.geometry(),
            Geometry::STANDARD,
            "rows have 10 cells"
        );
        for pair in wells.windows(2) {
            let cells = cells_placed(emulator, &pair[0], &pair[1]);
            self.add_piece(
                &pair[0],
                &cells.expect("each well is a child of the previous one"),
            );
        }
        if let Some(last) = wells.last() {
            for &row in &last.rows()[..last.stack_height()] {
                *self.immortal.entry(row).or_default() += 1;
            }
        }
        self.games += 1;
    }

    /// Adds a piece. For each row from the bottom, `cells` contains the cells that the piece fills.
    fn add_piece(&mut self, well: &Well, cells: &[u16]) {
        let rows = &well.rows()[..cells.len()];
        for (&row, &cells) in rows.iter().zip(cells) {
            if cells != 0 {
                *self.growths.entry([row, row | cells]).or_default() += 1;
            }
        }
        let lowest = cells.iter().position(|&cells| cells != 0);
        let lowest = lowest.expect("a piece fills cells below the bar");
        for below in (lowest.saturating_sub(1)..rows.len()).rev() {
            // The row above the bar is empty.
            let above = rows.get(below + 1).copied().unwrap_or(0);
            let passes = self.passes.entry([above, rows[below]]).or_default();
            if below >= lowest {
                passes.passed += 1;
            } else {
                passes.stopped += 1;
            }
        }
    }

    /// Returns the share of all flats that were cleared.
    pub(crate) fn cleared_share(&self) -> f64 {
        let growths = self.growths.iter();
        let cleared = growths.filter(|([_, row], _)| *row == FULL);
        let cleared: u32 = cleared.map(|(_, &count)| count).sum();
        let immortal: u32 = self.immortal.values().sum();
        f64::from(cleared) / f64::from((cleared + immortal).max(1))
    }
}

/// Returns for each row from the bottom the cells that the piece fills between a well and its child. Returns `None` if no
/// placement leads from one to the other.
fn cells_placed(emulator: &Emulator, well: &Well, child: &Well) -> Option<Vec<u16>> {
    let geometry = emulator.geometry();
    let piece = emulator.piece(well);
    let mut found = None;
    // The placement matters because a well alone does not show which rows were cleared.
    let reference = Reference::new(geometry, emulator.rules());
    reference.for_each_lock(well, piece, |position, lock| {
        if found.is_none() && !lock.over && lock.board.well() == *child {
            found = Some(Placement { piece, position });
        }
    });
    let mut cells = vec![0; geometry.height()];
    for (x, y) in found?.cells() {
        let row = geometry.depth() - 1 - usize::try_from(y).ok()?;
        // A piece that reaches above the bar ends the game.
        *cells.get_mut(row)? |= 1 << x;
    }
    Some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::Rules;

    const STANDARD: Geometry = Geometry::STANDARD;

    fn emulator() -> Emulator {
        Emulator::new(STANDARD, Rules::default())
    }

    fn well(picture: &str) -> Well {
        Well::from_picture(STANDARD, picture).unwrap()
    }

    #[test]
    fn counts_first_piece_of_game() {
        let child = well("........##\n.......##.");
        let mut statistics = FlatStatistics::default();
        statistics.add_game(&emulator(), &[Well::EMPTY, child]);
        let [lower, upper] = [child.rows()[0], child.rows()[1]];
        assert_eq!(
            statistics.growths,
            BTreeMap::from([([0, lower], 1), ([0, upper], 1)])
        );
        assert_eq!(
            statistics.immortal,
            BTreeMap::from([(lower, 1), (upper, 1)])
        );
        let passes = Passes {
            passed: 16,
            stopped: 0,
        };
        assert_eq!(statistics.passes, BTreeMap::from([([0, 0], passes)]));
        assert_eq!(statistics.cleared_share(), 0.0);
    }

    #[test]
    fn every_flat_of_public_game_is_cleared_or_immortal() {
        let game = &hatebeam_train::PUBLIC_GAMES[0];
        let wells = game.wells();
        let mut statistics = FlatStatistics::default();
        statistics.add_game(&emulator(), &wells);
        let count = |is_counted: fn(&[u16; 2]) -> bool| -> u32 {
            let growths = statistics.growths.iter();
            let counted = growths.filter(|(rows, _)| is_counted(rows));
            counted.map(|(_, &count)| count).sum()
        };
        // The last placement, which ends the game, clears nothing.
        let cleared = count(|[_, row]| *row == FULL);
        assert_eq!(cleared, 148);
        let immortal: u32 = statistics.immortal.values().sum();
        assert_eq!(immortal as usize, wells[wells.len() - 1].stack_height());
        assert_eq!(count(|[row, _]| *row == 0), cleared + immortal);
        let growths = statistics.growths.iter();
        let cells = growths.map(|([from, to], count)| (to & !from).count_ones() * count);
        assert_eq!(cells.sum::<u32>() as usize, 4 * (wells.len() - 1));
        let share = f64::from(cleared) / f64::from(cleared + immortal);
        assert_eq!(statistics.cleared_share(), share);
    }
}
