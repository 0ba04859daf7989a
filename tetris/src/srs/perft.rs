//! Counts of placements and boards after n pieces (perft). Comparing the counts with known values reveals errors in the
//! search for placements.

use super::placements::Placements;
use crate::{Field, Piece};
use std::collections::HashMap;

/// Counts after a given number of pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerftLayer {
    /// Number of ways to place the pieces. Each piece can be any of the seven.
    pub placements: u64,
    /// Number of distinct boards.
    pub boards: u64,
}

/// Counts the placements and boards after 1 to `depth` pieces.
pub fn perft(placements: &Placements, field: &Field, depth: usize) -> Vec<PerftLayer> {
    let mut layers = Vec::new();
    let mut boards = HashMap::from([(*field, 1u64)]);
    for _ in 0..depth {
        let mut next: HashMap<Field, u64> = HashMap::new();
        let mut count = 0;
        for (board, ways) in &boards {
            for piece in Piece::ALL {
                for placement in placements.find(board, piece).iter() {
                    count += ways;
                    *next.entry(placement.put(board).0).or_default() += ways;
                }
            }
        }
        layers.push(PerftLayer {
            placements: count,
            boards: next.len() as u64,
        });
        boards = next;
    }
    layers
}
