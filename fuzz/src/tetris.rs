//! Properties of the parsers of fields, boards, pieces and kick tables that must hold for any input. The fuzz target and
//! a short test in the test suite (`tetris/tests/fuzz.rs`) check these properties.

use hatebeam_tetris::drop::{DropGame, DropPiece, PieceSet};
use hatebeam_tetris::nes::{Board, Rows};
use hatebeam_tetris::srs::{
    DropMode, KickTable, LowField, LowPlacements, Placements, SrsPlacement, parse_field,
};
use hatebeam_tetris::{Field, MAX_HEIGHT, MAX_WIDTH, Piece};

/// Checks the parser that the first byte selects.
pub(crate) fn text(data: &[u8]) {
    let [parser, data @ ..] = data else {
        return;
    };
    let property = [fields, boards, pieces, piece_set, kick_table][usize::from(*parser) % 5];
    if let Ok(text) = std::str::from_utf8(data) {
        property(text);
    }
}

/// Checks that parsing a field returns an error, or a field whose rows give the same field. The first two characters
/// select the size of the field.
fn fields(text: &str) {
    let mut rest = text.chars();
    let (Some(width), Some(height)) = (rest.next(), rest.next()) else {
        return;
    };
    let rows: Vec<&str> = rest.as_str().lines().collect();
    // Both sizes can also be out of range.
    let (width, height) = (
        width as usize % (MAX_WIDTH + 2),
        height as usize % (MAX_HEIGHT + 2),
    );
    if let Ok(field) = Field::parse(width, height, &rows) {
        assert_eq!(Field::parse(width, height, &field.rows()), Ok(field));
    }
    if let Ok(field) = parse_field(&rows) {
        assert_eq!(parse_field(&field.rows()), Ok(field));
    }
}

/// Checks that parsing a board returns an error, or a board whose rows give the same board.
fn boards(text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    for rows in Rows::ALL {
        if let Ok(board) = Board::parse(rows, &lines) {
            assert_eq!(Board::parse(rows, &board.rows()), Ok(board));
        }
    }
}

/// Checks that parsing a sequence of pieces returns an error, or pieces with the same letters.
fn pieces(text: &str) {
    if let Ok(pieces) = Piece::parse_sequence(text) {
        let letters: String = pieces.iter().map(|piece| piece.letter()).collect();
        assert_eq!(letters, text.to_ascii_uppercase());
    }
}

/// Checks that parsing a set of pieces returns an error, or a set whose text gives the same set, and whose pieces can be
/// dropped.
fn piece_set(text: &str) {
    let Ok(set) = PieceSet::parse(text) else {
        return;
    };
    let text: String = set.pieces().iter().map(piece_text).collect();
    assert_eq!(PieceSet::parse(&text).as_ref(), Ok(&set), "{text}");
    let Ok(game) = DropGame::new(10, 20, set) else {
        return;
    };
    for piece in 0..game.set().len() {
        for &action in game.distinct_actions(piece) {
            assert!(!game.drop(&game.empty(), piece, action).lost);
        }
    }
}

/// Returns the text of a piece for [`PieceSet::parse`].
fn piece_text(piece: &DropPiece) -> String {
    let shape = &piece.rotations()[0];
    let row = |y: usize| -> String {
        let columns = shape.columns().iter();
        let cells = columns.map(|column| if column >> y & 1 == 1 { '#' } else { '.' });
        cells.chain(['\n']).collect()
    };
    let rows: String = (0..shape.height()).rev().map(row).collect();
    format!("{}:\n{rows}\n", piece.name())
}

/// Rows of a field with overhangs under which pieces turn.
const ROWS: [&str; 3] = ["XX__X___XX", "X___X___XX", "XX_X___XX_"];

/// Checks that parsing a kick table returns an error, or a table with which both searches for placements find the same
/// placements.
fn kick_table(text: &str) {
    let Ok(table) = KickTable::parse(text) else {
        return;
    };
    let field = parse_field(&ROWS).expect("each row has ten cells");
    let low = LowField::of(&field, ROWS.len()).expect("there are 16 empty cells");
    let fast = LowPlacements::new(&table, DropMode::Soft);
    let slow = Placements::new(table, DropMode::Soft);
    for piece in Piece::ALL {
        let mut found = Vec::new();
        fast.for_each(&low, piece, |placement| found.push(placement));
        let is_low = |at: &SrsPlacement| {
            let mut cells = at.cells().into_iter();
            cells.all(|(_, y)| usize::from(y) < ROWS.len())
        };
        let placements = slow.find(&field, piece);
        let expected: Vec<SrsPlacement> = placements.iter().filter(is_low).collect();
        assert_eq!(found, expected, "{piece}");
    }
}
