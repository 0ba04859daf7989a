//! Requests for placements in guideline Tetris, and for chances of perfect clears. The clairvoyant chance of a move
//! is the probability that a perfect clear beginning with it exists. The adaptive chance is the probability of success
//! for a player who sees one more piece after each move and always chooses the best move.

use super::{RequestError, answer, request};
use crate::pc::{
    BestMove, BoardTable, Chance, MoveChance, PcFinder, PcPosition, best_move, cell_numbers,
    chances,
};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{
    Bag, DropMode, KickTable, Kicks, LowField, Placements, WIDTH, parse_field,
};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct PlacementRequest {
    #[serde(default)]
    rows: Vec<String>,
    piece: String,
    kicks: Option<String>,
    drop: Option<String>,
    lines: Option<usize>,
}

#[derive(Serialize)]
struct PlacementAnswer {
    placements: Vec<[usize; 4]>,
}

/// Returns the kick table and the drop mode of a request. `kicks` is the name of a kick table (default
/// `srs`), or `hard` for the table `srs` with the drop mode `hard`. `drop` is the drop mode (default `soft`).
pub(super) fn movement(
    kicks: Option<&str>,
    drop: Option<&str>,
) -> Result<(Kicks, DropMode), RequestError> {
    let (kicks, default) = match kicks {
        None => (Kicks::Srs, DropMode::Soft),
        Some("hard") => (Kicks::Srs, DropMode::Hard),
        Some(name) => (name.parse()?, DropMode::Soft),
    };
    let drop = drop.map(str::parse).transpose();
    Ok((
        kicks,
        drop.map_err(RequestError::DropMode)?.unwrap_or(default),
    ))
}

/// Answers a request for the reachable placements of a piece. The request is a JSON object with `piece` and,
/// optionally, `rows` (the field), `kicks`, `drop` and `lines`. If `lines` is given, all cells of a placement must be
/// in the lowest `lines` rows. The answer contains `placements`.
pub fn pc_placements(line: &str) -> Result<String, RequestError> {
    let request: PlacementRequest = request(line)?;
    let piece: Piece = request.piece.parse()?;
    let field = parse_field(&request.rows)?;
    let (kicks, mode) = movement(request.kicks.as_deref(), request.drop.as_deref())?;
    let finder = Placements::new(KickTable::built_in(kicks), mode);
    let lines = request.lines.unwrap_or(usize::MAX);
    let mut placements: Vec<[usize; 4]> = finder
        .find(&field, piece)
        .iter()
        .map(cell_numbers)
        .filter(|cells| cells.iter().all(|&cell| cell / WIDTH < lines))
        .collect();
    placements.sort_unstable();
    answer(&PlacementAnswer { placements })
}

/// Perfect-clear finders for all combinations of kick table and drop mode that requests have used.
#[derive(Debug, Default)]
pub struct Finders {
    table: Option<BoardTable>,
    made: Vec<(Kicks, DropMode, PcFinder)>,
}

impl Finders {
    /// Creates an empty collection. If a board table is given, requests with its kick table and drop mode use it.
    pub fn new(table: Option<BoardTable>) -> Finders {
        Finders {
            table,
            made: Vec::new(),
        }
    }

    pub(super) fn finder(&mut self, kicks: Kicks, mode: DropMode) -> &PcFinder {
        let found = self
            .made
            .iter()
            .position(|made| (made.0, made.1) == (kicks, mode));
        let index = found.unwrap_or_else(|| {
            let finder = PcFinder::new(&KickTable::built_in(kicks), mode);
            let fits = |table: &mut BoardTable| table.check_rules(kicks.name(), mode).is_ok();
            let finder = match self.table.take_if(fits) {
                Some(table) => finder.with_table(table),
                None => finder,
            };
            self.made.push((kicks, mode, finder));
            self.made.len() - 1
        });
        &self.made[index].2
    }
}

#[derive(Deserialize)]
pub(super) struct ChanceRequest {
    #[serde(default)]
    rows: Vec<String>,
    pub(super) lines: Option<usize>,
    seen: String,
    left_in_bag: Option<String>,
    pieces_in_all: Option<usize>,
    #[serde(default)]
    pub(super) best: bool,
    pub(super) kicks: Option<String>,
    pub(super) drop: Option<String>,
}

#[derive(Serialize)]
pub(super) struct ChanceAnswer {
    best_adaptive: String,
    best_clairvoyant: String,
    moves: Vec<MoveAnswer>,
}

#[derive(Serialize)]
struct MoveAnswer {
    piece: char,
    cells: [usize; 4],
    clairvoyant: String,
    adaptive: String,
}

#[derive(Serialize)]
pub(super) struct BestAnswer {
    best_adaptive: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    piece: Option<char>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cells: Option<[usize; 4]>,
}

impl ChanceRequest {
    /// Returns the position before the first move.
    pub(super) fn position(&self) -> Result<PcPosition, RequestError> {
        let field = parse_field(&self.rows)?;
        let field = LowField::of(&field, self.lines.unwrap_or(4))?;
        let seen = Piece::parse_sequence(&self.seen)?;
        let bag = match &self.left_in_bag {
            Some(left) => Bag::of(&Piece::parse_sequence(left)?)?,
            None => Bag::after(&seen)?,
        };
        Ok(PcPosition {
            field,
            seen,
            bag,
            pieces_in_all: self.pieces_in_all.unwrap_or(field.pieces_left() + 1),
        })
    }
}

/// Returns the position in a request for chances.
pub fn pc_position(line: &str) -> Result<PcPosition, RequestError> {
    request::<ChanceRequest>(line)?.position()
}

/// Answers a request for the chances of a perfect clear after every first move.
///
/// The request is a JSON object with `seen` (the known pieces) and, optionally, `rows` (the field), `lines` (number
/// of rows to clear, default 4), `left_in_bag`, `pieces_in_all` (default: one more than the number of pieces that
/// fill the field), `kicks` and `drop`. Without `left_in_bag`, the first seen piece is the first piece of a bag. The
/// answer contains `best_adaptive`, `best_clairvoyant`, and `moves` from the best to the worst. If the request
/// contains `"best": true`, the answer instead contains `best_adaptive`, and `piece` and `cells` of a move with this
/// chance.
pub fn pc_chance(
    line: &str,
    finders: &mut Finders,
    threads: usize,
) -> Result<String, RequestError> {
    let request: ChanceRequest = request(line)?;
    let (kicks, mode) = movement(request.kicks.as_deref(), request.drop.as_deref())?;
    let position = request.position()?;
    let finder = finders.finder(kicks, mode);
    if request.best {
        return best_answer(best_move(&position, finder, threads, |_| ())?.as_ref());
    }
    let moves = chances(&position, finder, threads)?;
    chance_answer(&moves)
}

/// Returns the best first move as one JSON object. If there is no first move, the object contains only the chance 0.
pub fn best_answer(best: Option<&BestMove>) -> Result<String, RequestError> {
    answer(&BestAnswer::of(best))
}

impl BestAnswer {
    pub(super) fn of(best: Option<&BestMove>) -> BestAnswer {
        BestAnswer {
            best_adaptive: best.map_or("0".to_owned(), |best| best.adaptive.to_string()),
            piece: best.map(|best| best.placement.piece.letter()),
            cells: best.map(|best| cell_numbers(best.placement)),
        }
    }
}

/// Returns the chances of first moves as one JSON object.
pub fn chance_answer(moves: &[MoveChance]) -> Result<String, RequestError> {
    answer(&ChanceAnswer::of(moves))
}

impl ChanceAnswer {
    pub(super) fn of(moves: &[MoveChance]) -> ChanceAnswer {
        let best = |chance: fn(&MoveChance) -> Chance| {
            let best = moves.iter().map(chance).max_by_key(|chance| chance.count);
            best.map_or("0".to_owned(), |chance| chance.to_string())
        };
        ChanceAnswer {
            best_adaptive: best(|chance| chance.adaptive),
            best_clairvoyant: best(|chance| chance.clairvoyant),
            moves: moves
                .iter()
                .map(|chance| MoveAnswer {
                    piece: chance.placement.piece.letter(),
                    cells: cell_numbers(chance.placement),
                    clairvoyant: chance.clairvoyant.to_string(),
                    adaptive: chance.adaptive.to_string(),
                })
                .collect(),
        }
    }
}
