//! The contents of the screen as lines of coloured text, independent of the terminal.

use crate::timeline::Frame;
use hatebeam_game::{Board, Piece, ROWS_ABOVE_BAR};

/// Role of a text, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Words and numbers.
    Plain,
    /// Walls, empty cells and help.
    Faint,
    /// A cell of a locked piece.
    Locked,
    /// A cell of the falling piece.
    Falling(Piece),
}

/// A text in one colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) ink: Ink,
}

/// A line of the screen.
pub(crate) type Line = Vec<Span>;

const HELP: [&str; 9] = [
    "space  pause, play",
    "→ n    next piece",
    "← p    previous piece",
    ". ,    next, previous key",
    "+ -    faster, slower",
    "g      jump to a piece",
    "home   first key",
    "end    last key",
    "q      quit",
];

/// Width in columns of the text beside the well.
const PANEL_WIDTH: usize = 28;
const GAP: &str = "   ";

/// Returns the lines of the screen. `status` describes the state of playback.
pub(crate) fn lines(frame: &Frame, status: &str) -> Vec<Line> {
    let mut lines = well_lines(frame);
    let well_width = 2 * frame.board.geometry().width() + 2;
    let panel = panel(frame, status);
    while lines.len() < panel.len() {
        lines.push(vec![span(" ".repeat(well_width), Ink::Plain)]);
    }
    for (line, text) in lines.iter_mut().zip(panel) {
        line.push(text);
    }
    lines
}

/// Returns the maximum number of columns and the number of rows of [`lines`].
pub(crate) fn size(frame: &Frame) -> (usize, usize) {
    let geometry = frame.board.geometry();
    let columns = 2 * geometry.width() + 2 + GAP.len() + PANEL_WIDTH;
    (columns, (geometry.depth() + 1).max(panel(frame, "").len()))
}

fn span(text: impl Into<String>, ink: Ink) -> Span {
    Span {
        text: text.into(),
        ink,
    }
}

fn well_lines(frame: &Frame) -> Vec<Line> {
    let geometry = frame.board.geometry();
    let mut lines: Vec<Line> = (0..geometry.depth())
        .map(|row| well_line(frame, row))
        .collect();
    lines.push(vec![span(
        format!("└{}┘", "─".repeat(2 * geometry.width())),
        Ink::Faint,
    )]);
    lines
}

/// Returns a row of the well as a line. A cell is two characters wide. The bar (the lower edge of the
/// top four rows) is drawn as underscores in the row above it.
fn well_line(frame: &Frame, row: usize) -> Line {
    let wall = if row < ROWS_ABOVE_BAR { " " } else { "│" };
    let falling = frame
        .falling
        .map(|placement| (placement.piece, placement.cells()));
    let mut line = vec![span(wall, Ink::Faint)];
    for column in 0..frame.board.geometry().width() {
        let is_here = |&(x, y): &(i32, i32)| (x, y) == (column as i32, row as i32);
        line.push(match falling {
            Some((piece, cells)) if cells.iter().any(is_here) => span("▓▓", Ink::Falling(piece)),
            _ if is_filled(&frame.board, column, row) => span("██", Ink::Locked),
            _ if row + 1 == ROWS_ABOVE_BAR => span("__", Ink::Faint),
            _ if row < ROWS_ABOVE_BAR => span("  ", Ink::Faint),
            _ => span(" ·", Ink::Faint),
        });
    }
    line.push(span(wall, Ink::Faint));
    line
}

fn is_filled(board: &Board, column: usize, row: usize) -> bool {
    board.rows()[row] >> column & 1 == 1
}

/// Returns the text beside the well, one span per line.
fn panel(frame: &Frame, status: &str) -> Vec<Span> {
    let facts = [
        format!(
            "piece   {} of {}: {}",
            frame.number, frame.pieces, frame.piece
        ),
        format!("score   {}", frame.score),
        format!("keys    {} of {}", frame.keys, frame.all_keys),
        String::new(),
        if frame.falling.is_none() {
            "game over".to_owned()
        } else {
            String::new()
        },
        status.to_owned(),
        String::new(),
    ];
    let facts = facts
        .into_iter()
        .map(|fact| span(format!("{GAP}{fact}"), Ink::Plain));
    let help = HELP
        .into_iter()
        .map(|help| span(format!("{GAP}{help}"), Ink::Faint));
    facts.chain(help).collect()
}

/// Formats a board as plain text, with one line per row, `#` for a filled cell and `.` for an empty cell. Omits the rows
/// above the bar if all of them are empty.
pub fn picture(board: &Board) -> String {
    let alive = board.rows()[..ROWS_ABOVE_BAR].iter().all(|&row| row == 0);
    let first = if alive { ROWS_ABOVE_BAR } else { 0 };
    let mut text = String::new();
    for row in first..board.geometry().depth() {
        let cell = |column| {
            if is_filled(board, column, row) {
                '#'
            } else {
                '.'
            }
        };
        text.extend((0..board.geometry().width()).map(cell));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::nine_drops;

    fn text(lines: &[Line]) -> String {
        let line = |line: &Line| {
            line.iter()
                .map(|span| span.text.as_str())
                .collect::<String>()
        };
        lines
            .iter()
            .map(|spans| line(spans).trim_end().to_owned() + "\n")
            .collect()
    }

    #[test]
    fn screen_of_running_game_matches_expected_text() {
        let screen = text(&lines(&nine_drops().frame(20), "paused"));
        assert_eq!(screen, include_str!("running.txt"));
    }

    #[test]
    fn screen_of_finished_game_matches_expected_text() {
        let screen = text(&lines(&nine_drops().frame(90), ""));
        assert_eq!(screen, include_str!("over.txt"));
    }

    #[test]
    fn lines_fit_in_reported_size() {
        let timeline = nine_drops();
        for moment in [0, 20, 90] {
            let frame = timeline.frame(moment);
            let (columns, rows) = size(&frame);
            let lines = lines(&frame, "jump to piece 1234_");
            assert_eq!(lines.len(), rows);
            for line in lines {
                let length: usize = line.iter().map(|span| span.text.chars().count()).sum();
                assert!(length <= columns, "{line:?}");
            }
        }
    }

    #[test]
    fn falling_cells_have_colour_of_their_piece() {
        let lines = lines(&nine_drops().frame(0), "");
        let falling = |line: &Line| {
            line.iter()
                .filter(|span| span.ink == Ink::Falling(Piece::S))
                .count()
        };
        assert_eq!(
            lines.iter().map(falling).collect::<Vec<_>>()[..4],
            [0, 2, 2, 0]
        );
    }
}
