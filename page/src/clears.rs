//! Requests about perfect clears: placing a piece, solving a known queue, and the chances of first moves.

use crate::answer::{Answer, Failure, json};
use hatebeam_agents::json::{Finders, best_answer, pc_chance, pc_position};
use hatebeam_agents::pc::{HoldSlot, PcFinder, PcGame, best_move, field_rows};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{DropMode, KickTable, Kicks, LowField, parse_field};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// A field and the movement rules.
#[derive(Deserialize)]
struct Field {
    /// Rows from the top to the floor. `X` is a filled cell, `_` an empty one.
    rows: Vec<String>,
    /// Number of rows to clear.
    lines: usize,
    kicks: String,
    drop: String,
}

impl Field {
    fn low(&self) -> Result<LowField, Failure> {
        Ok(LowField::of(&parse_field(&self.rows)?, self.lines)?)
    }

    fn kicks(&self) -> Result<KickTable, Failure> {
        Ok(KickTable::built_in(self.kicks.parse::<Kicks>()?))
    }

    fn mode(&self) -> Result<DropMode, Failure> {
        Ok(self.drop.parse()?)
    }
}

/// A request to place a piece.
#[derive(Deserialize)]
pub(crate) struct Put {
    #[serde(flatten)]
    field: Field,
    piece: String,
    /// Cells of the placement, as column + 10 · row with row 0 at the floor.
    cells: Vec<usize>,
}

#[derive(Serialize)]
struct AfterPut {
    rows: Vec<String>,
    /// Number of rows left to clear.
    lines: usize,
}

impl Put {
    pub(crate) fn answer(&self) -> Answer {
        let field = self.field.low()?;
        let piece: Piece = self.piece.parse()?;
        let finder = PcFinder::new(&self.field.kicks()?, self.field.mode()?);
        let found = finder.placement(&field, piece, &self.cells);
        let after = field.put(found.ok_or("the piece cannot be placed there")?);
        json(&AfterPut {
            rows: field_rows(&after),
            lines: after.rows(),
        })
    }
}

/// A request for a perfect clear with a known queue.
#[derive(Deserialize)]
pub(crate) struct Solve {
    #[serde(flatten)]
    field: Field,
    queue: String,
    hold: bool,
    /// Whether the first piece of the queue is in the hold slot.
    held: bool,
}

impl Solve {
    /// Returns a solution in the format of `hatebeam pc solve --json`, or `null` if there is no solution.
    pub(crate) fn answer(&self) -> Answer {
        let (kicks, drop) = (self.field.kicks()?, self.field.mode()?);
        let game = PcGame {
            field: self.field.low()?,
            queue: Piece::parse_sequence(&self.queue)?,
            hold: match (self.hold, self.held) {
                (false, _) => HoldSlot::Disabled,
                (true, false) => HoldSlot::Empty,
                (true, true) => HoldSlot::Full,
            },
            kicks,
            drop,
        };
        match game.solutions(NonZeroUsize::MIN)?.first() {
            Some(solution) => Ok(game.json(solution)?),
            None => Ok("null".to_owned()),
        }
    }
}

/// Kick table and drop mode in a request for the best first move.
#[derive(Clone, Deserialize, PartialEq)]
pub(crate) struct BestStart {
    kicks: String,
    drop: String,
}

/// Data that later requests reuse.
#[derive(Default)]
pub(crate) struct Clears {
    finders: Finders,
    /// The kick table and drop mode in the last request for a best move, and the finder for them.
    best: Option<(BestStart, PcFinder)>,
}

impl Clears {
    pub(crate) fn chance(&mut self, line: &str) -> Answer {
        Ok(pc_chance(line, &mut self.finders, 1)?)
    }

    pub(crate) fn best(
        &mut self,
        line: &str,
        start: &BestStart,
        preliminary: &mut dyn FnMut(&str),
    ) -> Answer {
        if self.best.as_ref().is_none_or(|best| best.0 != *start) {
            let kicks = KickTable::built_in(start.kicks.parse::<Kicks>()?);
            let finder = PcFinder::new(&kicks, start.drop.parse()?);
            self.best = Some((start.clone(), finder));
        }
        let (_, finder) = self
            .best
            .as_ref()
            .expect("the finder is created above if it is missing");
        let best = best_move(&pc_position(line)?, finder, 1, |better| {
            if let Ok(text) = best_answer(Some(better)) {
                preliminary(&text);
            }
        })?;
        Ok(best_answer(best.as_ref())?)
    }
}
