//! Requests for the actions of a piece in the game of dropped pieces.

use super::{RequestError, answer, request};
use crate::drop::Heuristic;
use hatebeam_tetris::Field;
use hatebeam_tetris::drop::{DropGame, FieldCounts, PaperFeatures, PieceSet};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    rows: Vec<String>,
    piece: String,
    set: Option<String>,
    width: Option<usize>,
    height: Option<usize>,
}

#[derive(Serialize)]
struct Answer {
    actions: Vec<Row>,
}

/// An action as a JSON array: the rotation, the column, the features as Brenman's paper defines them, and the value
/// that Brenman's heuristic agent gives the action.
#[derive(Serialize)]
struct Row(u8, u8, [i32; 7], f64);

/// Answers a request for the distinct actions of a piece. The request is a JSON object with `piece` and, optionally,
/// `rows` (the field), `set` (`standard`, `small` or the text of a set; default `standard`), `width` (default 10) and
/// `height` (default 20). The answer contains `actions`.
pub fn drop_placements(line: &str) -> Result<String, RequestError> {
    let request: Request = request(line)?;
    let set = request.set.as_deref().unwrap_or("standard");
    let set = PieceSet::built_in(set).map_or_else(|| PieceSet::parse(set), Ok)?;
    let Some(piece) = set.index_of(&request.piece) else {
        let names: Vec<_> = set.pieces().iter().map(|piece| piece.name()).collect();
        return Err(RequestError::PieceOfSet {
            name: request.piece,
            known: names.join(", "),
        });
    };
    let (width, height) = (request.width.unwrap_or(10), request.height.unwrap_or(20));
    let game = DropGame::new(width, height, set)?;
    let field = Field::parse(width, height, &request.rows)?;
    let heuristic = Heuristic::published();
    let before = FieldCounts::of(&field);
    let rows = game.distinct_actions(piece).iter().map(|&action| {
        let features = PaperFeatures::new(&before, &game.drop(&field, piece, action));
        let value = heuristic.exact_value(&features);
        Row(action.rotation, action.column, features.paper(), value)
    });
    answer(&Answer {
        actions: rows.collect(),
    })
}
