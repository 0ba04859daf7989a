//! Requests for placements in Nintendo Tetris.

use super::{RequestError, answer, request};
use hatebeam_tetris::Piece;
use hatebeam_tetris::nes::{Board, FEATURES, Features, Placements, Rows, WEIGHTS_BFS};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    rows: Vec<String>,
    piece: String,
    field: Option<FieldName>,
    #[serde(default)]
    features: bool,
    /// Level whose gravity applies, or no gravity.
    gravity: Option<u32>,
}

/// Name of the rule set for the rows, as a JSON number or string.
#[derive(Deserialize)]
#[serde(untagged)]
enum FieldName {
    Number(u64),
    Text(String),
}

#[derive(Serialize)]
struct Answer {
    placements: Vec<Row>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Row {
    /// Orientation, column of the centre, and row of the centre.
    Placement(u8, i8, i8),
    /// Orientation, column of the centre, row of the centre, features, and value.
    Features(u8, i8, i8, [i32; FEATURES], f64),
}

/// Answers a request for the reachable placements of a piece. The request is a JSON object with `piece` and,
/// optionally, `rows` (the board), `field` (the rule set for the rows: `20`, `22` or `20+2`; default `20`), `features`,
/// and `gravity` (the level whose gravity applies; default no gravity). The answer contains `placements`. If `features`
/// is true, each placement includes its features and its value with the published weights.
pub fn nes_placements(line: &str) -> Result<String, RequestError> {
    let request: Request = request(line)?;
    let rows: Rows = match request.field {
        None => Rows::Twenty,
        Some(FieldName::Number(number)) => number.to_string().parse()?,
        Some(FieldName::Text(text)) => text.parse()?,
    };
    let piece: Piece = request.piece.parse()?;
    let mut board = Board::parse(rows, &request.rows)?;
    if let Some(level) = request.gravity {
        board = board.with_gravity(level);
    }
    let mut finder = Placements::new();
    let row = |placement: &hatebeam_tetris::nes::Placement| {
        let (orientation, x, y) = (placement.orientation, placement.x, placement.y);
        if !request.features {
            return Row::Placement(orientation, x, y);
        }
        let features = Features::of(&board, piece, *placement);
        let value = features.value(&WEIGHTS_BFS);
        Row::Features(orientation, x, y, features.0, value)
    };
    let placements = finder.find(&board, piece).iter().map(row).collect();
    answer(&Answer { placements })
}
