//! Threats: pairs of rows that a single piece can clear.

use hatebeam_game::{Geometry, Well};

/// Number of the lowest rows that can be the lower row of a threat.
const ROWS: usize = 4;

/// Returns whether two rows of a well are a *threat*: an upright S or Z can clear both. The lower row has one empty cell, and
/// the row above has two, of which one is above it. Only threats whose lower row is one of the lowest four count.
///
/// HATETRIS hardly ever gives the piece that would clear such rows, so a game can keep them for ever. Then it rarely gives S,
/// which makes the game easier, but it has two rows fewer.
pub fn has_threat(well: &Well) -> bool {
    let width = Geometry::STANDARD.width();
    let empty = |row: usize| !well.rows()[row] & ((1 << width) - 1);
    (0..ROWS).any(|row| {
        let (below, above) = (empty(row), empty(row + 1));
        below.count_ones() == 1 && (above == below | below << 1 || above == below | below >> 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well(rows: &[u16]) -> Well {
        let mut all = [0; 16];
        all[..rows.len()].copy_from_slice(rows);
        Well::from_rows(all)
    }

    #[test]
    fn threats_of_s_and_z_are_found_in_the_lowest_rows() {
        let full = 0b11_1111_1111;
        let hole = |cells: u16| full & !cells;
        let lower = hole(0b10_0000);
        for upper in [hole(0b11_0000), hole(0b110_0000)] {
            assert!(has_threat(&well(&[0b110, lower, upper])));
            assert!(has_threat(&well(&[1, 1, 1, lower, upper])));
            assert!(!has_threat(&well(&[1, 1, 1, 1, lower, upper])));
            assert!(!has_threat(&well(&[upper, lower])));
        }
        for upper in [lower, hole(0b111_0000), hole(0b1_1000), hole(0b1_0100)] {
            assert!(!has_threat(&well(&[lower, upper])), "{upper:b}");
        }
        // The gap at the edge of the well.
        assert!(has_threat(&well(&[hole(1), hole(0b11)])));
        assert!(has_threat(&well(&[hole(1 << 9), hole(0b11 << 8)])));
        assert!(!has_threat(&Well::EMPTY));
    }
}
