//! The scores that an evaluator gives all placements of a piece. An evaluator is a function that scores wells. With
//! quiescence, it scores a well by the best well that can be reached by clearing rows with the next pieces.

use crate::answer::Failure;
use crate::hatetris::{GEOMETRY, rules};
use hatebeam_game::reference::Reference;
use hatebeam_game::{Emulator, Game, Placement, Well};
use hatebeam_search::{Evaluator, EvaluatorKind, EvaluatorSpec, Network, Quiescence};
use serde::{Deserialize, Serialize};

/// Names of an evaluator and of a kind of quiescence. Without the second name, quiescence is off.
#[derive(Deserialize)]
pub(crate) struct EvaluatorName {
    evaluator: String,
    #[serde(default)]
    quiescence: Quiescence,
}

impl EvaluatorName {
    pub(crate) fn spec(&self, network: Option<&Network>) -> Result<EvaluatorSpec, Failure> {
        let name = self.evaluator.as_str();
        let kind = match name {
            "network" => {
                EvaluatorKind::Network(network.ok_or("the network has not been loaded")?.digest())
            }
            _ => EvaluatorKind::ALL
                .into_iter()
                .find(|kind| kind.name() == name)
                .ok_or_else(|| format!("unknown evaluator {name:?}"))?,
        };
        Ok(EvaluatorSpec::new(kind, self.quiescence))
    }
}

/// Cells of a piece as column and row, with row 0 at the top.
type PieceCells = [(i32, i32); 4];

/// A placement without its score.
struct Found {
    well: Well,
    lines: u8,
    cells: PieceCells,
}

/// A placement of the current piece and its score.
#[derive(Serialize)]
pub(crate) struct Scored {
    cells: PieceCells,
    /// The well after the placement, in hex, or `None` if the placement ends the game.
    well: Option<String>,
    lines: u8,
    score: Option<i32>,
}

/// The evaluator of the last request, kept because its buffers and caches make the next request faster.
#[derive(Default)]
pub(crate) struct Scores {
    made: Option<(EvaluatorSpec, Evaluator)>,
}

impl Scores {
    /// Returns one placement for each well that the piece can leave, best first. The last element is a placement that
    /// ends the game, if there is one.
    pub(crate) fn of(&mut self, game: &Game, spec: EvaluatorSpec) -> Result<Vec<Scored>, Failure> {
        if game.is_over() {
            return Ok(Vec::new());
        }
        let mut found: Vec<Found> = Vec::new();
        let mut end = None;
        let piece = game.piece();
        let reference = Reference::new(GEOMETRY, rules());
        reference.for_each_lock(&game.well(), piece, |position, lock| {
            let cells = Placement { piece, position }.cells();
            let well = lock.board.well();
            if lock.over {
                end.get_or_insert(cells);
            } else if !found.iter().any(|other| other.well == well) {
                let lines = lock.lines;
                found.push(Found { well, lines, cells });
            }
        });
        let before = game.score() as u16;
        let wells: Vec<Well> = found.iter().map(|child| child.well).collect();
        let lines: Vec<u16> = found
            .iter()
            .map(|child| before.saturating_add(u16::from(child.lines)))
            .collect();
        let mut scores = Vec::new();
        self.evaluator(spec)?.score(&wells, &lines, &mut scores);
        let mut all: Vec<Scored> = found
            .iter()
            .zip(scores)
            .map(|(child, score)| Scored {
                cells: child.cells,
                well: Some(child.well.to_hex(GEOMETRY)),
                lines: child.lines,
                score: Some(score),
            })
            .collect();
        all.sort_by(|a, b| (b.score, &b.well).cmp(&(a.score, &a.well)));
        all.extend(end.map(|cells| Scored {
            cells,
            well: None,
            lines: 0,
            score: None,
        }));
        Ok(all)
    }

    fn evaluator(&mut self, spec: EvaluatorSpec) -> Result<&mut Evaluator, Failure> {
        if self.made.as_ref().is_none_or(|made| made.0 != spec) {
            let emulator = Emulator::new(GEOMETRY, rules());
            self.made = Some((spec, Evaluator::new(&emulator, &spec)?));
        }
        let made = self
            .made
            .as_mut()
            .expect("the evaluator is created above if it is missing");
        Ok(&mut made.1)
    }
}
