//! Human-readable text and JSON for perfect clears.

use super::{BestMove, MoveChance, PcError, PcGame, Step, TableHeader};
use hatebeam_tetris::srs::{LowField, SrsKey, SrsPlacement, WIDTH};
use serde::Serialize;
use std::fmt::Write;

#[derive(Serialize)]
struct SolutionJson {
    picture: Vec<String>,
    moves: Vec<MoveJson>,
    fumen: String,
}

#[derive(Serialize)]
struct MoveJson {
    piece: char,
    cells: [usize; 4],
    hold: bool,
    keys: Vec<&'static str>,
    lines: u32,
}

/// Returns the numbers of a placement's four cells. The number of a cell is column + 10 · row.
pub(crate) fn cell_numbers(placement: SrsPlacement) -> [usize; 4] {
    let cells = placement.cells();
    cells.map(|(x, y)| usize::from(y) * WIDTH + usize::from(x))
}

/// Returns the rows of a field from the top to the floor. `X` is a filled cell, `_` an empty one.
pub fn field_rows(field: &LowField) -> Vec<String> {
    let filled = field.to_field();
    let row = |y| {
        let cell = |x| if filled.is_filled(x, y) { 'X' } else { '_' };
        (0..WIDTH).map(cell).collect()
    };
    (0..field.rows()).rev().map(row).collect()
}

impl PcGame {
    /// Returns a text with the picture of a solution, its moves with their keys, and a URL with its Fumen code.
    pub fn text(&self, solution: &[SrsPlacement]) -> Result<String, PcError> {
        let mut text = String::new();
        for row in self.picture(solution)? {
            text += &row;
            text.push('\n');
        }
        text.push('\n');
        for (number, step) in self.steps(solution)?.iter().enumerate() {
            let _ = write!(
                text,
                "{:>2}  {}  {}",
                number + 1,
                step.placement.piece,
                keys(step)
            );
            text += match step.lines {
                0 => "\n",
                1 => "  (1 row cleared)\n",
                2 => "  (2 rows cleared)\n",
                3 => "  (3 rows cleared)\n",
                _ => "  (4 rows cleared)\n",
            };
        }
        let _ = writeln!(text, "\nhttps://fumen.zui.jp/?{}", self.fumen(solution));
        Ok(text)
    }

    /// Returns a solution as one JSON object.
    pub fn json(&self, solution: &[SrsPlacement]) -> Result<String, PcError> {
        let steps = self.steps(solution)?;
        let moves = steps.iter().map(|step| MoveJson {
            piece: step.placement.piece.letter(),
            cells: cell_numbers(step.placement),
            hold: step.hold,
            keys: step.keys.iter().map(|key| key.name()).collect(),
            lines: step.lines,
        });
        let json = SolutionJson {
            picture: self.picture(solution)?,
            moves: moves.collect(),
            fumen: self.fumen(solution),
        };
        Ok(serde_json::to_string(&json).expect("strings and numbers can be written as JSON"))
    }
}

/// Returns the names of a move's keys. A repeated key is written once, followed by its count.
fn keys(step: &Step) -> String {
    let mut names: Vec<String> = step.hold.then(|| "hold".to_owned()).into_iter().collect();
    for group in step.keys.chunk_by(|a: &SrsKey, b| a == b) {
        names.push(match group.len() {
            1 => group[0].to_string(),
            count => format!("{}x{count}", group[0]),
        });
    }
    names.join(" ")
}

/// Returns a picture of a field with a newly placed piece.
fn move_picture(field: &LowField, placement: SrsPlacement) -> String {
    let mut text = String::new();
    let filled = field.to_field();
    let cells = placement.cells();
    for y in (0..field.rows()).rev() {
        for x in 0..WIDTH {
            let is_new = cells.contains(&(x as u8, y as u8));
            text.push(match (is_new, filled.is_filled(x, y)) {
                (true, _) => placement.piece.letter(),
                (false, true) => 'X',
                (false, false) => '_',
            });
        }
        text.push('\n');
    }
    text
}

/// Returns a picture of the best first move, followed by its chance.
pub fn best_text(field: &LowField, best: &BestMove) -> String {
    format!(
        "{}\nadaptive chance {:.3} %  {}\n",
        move_picture(field, best.placement),
        100.0 * best.adaptive.probability(),
        best.adaptive
    )
}

/// Returns a picture of the first of `moves`, followed by a list of the chances of all moves. `moves` must begin with
/// the best move.
pub fn chance_text(field: &LowField, moves: &[MoveChance]) -> String {
    let Some(best) = moves.first() else {
        return "no piece can be placed\n".to_owned();
    };
    let mut text = move_picture(field, best.placement);
    text += "\npiece  cells         adaptive             clairvoyant\n";
    for chance in moves {
        let numbers = cell_numbers(chance.placement).map(|cell| cell.to_string());
        let _ = writeln!(
            text,
            "{}      {:<12}  {:>7.3} %  {:<9}  {:>7.3} %  {}",
            chance.placement.piece,
            numbers.join(" "),
            100.0 * chance.adaptive.probability(),
            chance.adaptive.to_string(),
            100.0 * chance.clairvoyant.probability(),
            chance.clairvoyant,
        );
    }
    text
}

/// Returns a text with the number of boards after each number of pieces, their sum, and the digest of the board table.
pub fn counts_text(header: &TableHeader) -> String {
    let mut text = "pieces      boards\n".to_owned();
    for (pieces, count) in header.counts.iter().enumerate() {
        let _ = writeln!(text, "{pieces:>6}  {count:>10}");
    }
    let sum: usize = header.counts.iter().sum();
    let _ = writeln!(text, "   sum  {sum:>10}\nsha256 {}", header.sha256);
    text
}
