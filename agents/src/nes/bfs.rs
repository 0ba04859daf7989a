//! The search over the current piece and the next piece from an article about Nintendo Tetris. `docs/games.md` contains
//! the results that the article published. Lower values of placements and boards are better.

use super::{Search, View};
use hatebeam_tetris::nes::{
    BestPlacements, Numbering, Placement, Placements, Rows, TETRIS, Valued, Weights,
};

/// Value of a board on which the next piece cannot spawn.
pub(super) const LOST: f64 = 1e9;

/// Search that tries all placements of the current piece, followed by all placements of the next piece. It chooses the
/// pair with the lowest value. Among pairs with equal values, it chooses the pair whose first placement has the
/// lowest number in [`Numbering`].
#[derive(Clone, Debug)]
pub struct Bfs {
    best: BestPlacements,
    numbering: Numbering,
    first: Placements,
    values: Vec<Valued>,
}

impl Bfs {
    /// Creates the search for boards with the rule set `rows`.
    pub fn new(rows: Rows, weights: Weights) -> Bfs {
        Bfs {
            best: BestPlacements::new(rows, weights),
            numbering: Numbering::new(rows),
            first: Placements::new(),
            values: Vec::new(),
        }
    }
}

impl Search for Bfs {
    fn choose(&mut self, view: &View) -> Placement {
        let mut best: Option<(f64, u16, Placement)> = None;
        for &placement in self.first.find(&view.board, view.current) {
            let locked = view.board.lock(view.current, placement);
            self.best
                .candidates(&locked.board, view.next, 1, &mut self.values);
            // The values contain only the term for the second placement.
            let offset = if locked.lines == 4 { TETRIS } else { 0.0 };
            let least = self
                .values
                .iter()
                .map(|valued| valued.value + offset)
                .reduce(f64::min);
            let value = least.unwrap_or(LOST);
            let number = self.numbering.number(view.current, placement);
            let is_better = best.is_none_or(|(best_value, best_number, _)| {
                value < best_value || value == best_value && number < best_number
            });
            if is_better {
                best = Some((value, number, placement));
            }
        }
        best.expect("the current piece can spawn and has a placement")
            .2
    }
}
