//! A picture of a game in SVG: its last well, a plot of its score, and its wells in order.
//!
//! Each cell has the colour of its piece, which shows how the well was built. A film does not store which piece filled a
//! cell, so this module places the pieces again. Where the result differs from the film's next well, the picture follows
//! the film. Filled cells whose piece is unknown are grey.

use crate::film::{Film, FilmTurn};
use crate::page::escaped;
use std::fmt::Write as _;

/// Maximum number of small wells in the picture. A longer game is sampled evenly.
const MOST_WELLS: usize = 96;
/// Number of small wells per row of the picture, if the wells have ten columns.
const IN_A_ROW: usize = 12;
/// Size of a cell in a small well. All sizes are in pixels.
const CELL: usize = 6;
/// Gap between two small wells.
const GAP: usize = 16;
/// Margin of the picture.
const MARGIN: usize = 32;
/// Height of the text below a small well.
const CAPTION: usize = 16;
/// Size of a cell in the enlarged last well.
const BIG: usize = 18;
/// Width of the plot.
const PLOT_WIDTH: usize = 560;
/// Height of the plot.
const PLOT_HEIGHT: usize = 200;

/// Letters of the pieces. The index of a letter is the colour index of the piece.
const LETTERS: &str = "SZOILJT";
/// Colour index of cells whose piece is unknown.
const GREY: u8 = 7;

const STYLE: &str = "\
.p0{fill:#56b4e9}.p1{fill:#e69f00}.p2{fill:#f0e442}.p3{fill:#2fbf8f}.p4{fill:#cc79a7}.p5{fill:#6f8dff}\
.p6{fill:#e4572e}.p7{fill:#9aa4af}.w{fill:#181d24;stroke:#323a44;stroke-width:1}\
text{fill:#9aa4af;font:11px system-ui,sans-serif;text-anchor:middle}.h{fill:#e6e9ed;font-size:44px;\
font-weight:700;text-anchor:start}.t{font-size:17px;text-anchor:start}.l{fill:none;stroke:#56b4e9;\
stroke-width:2}.g{stroke:#323a44;fill:none}.b{stroke:#e4572e;stroke-dasharray:4 4}.e{text-anchor:end}";

/// All rows of a well, top row first. A filled cell contains its colour index.
type Grid = Vec<Vec<Option<u8>>>;

/// Draws a game as SVG. `about` describes the search that found the game, and can be empty.
pub fn picture(film: &Film, about: &str) -> String {
    let last = film.turns.len();
    let step = last.div_ceil(MOST_WELLS).max(1);
    let mut wells = String::new();
    let mut drawn = 0usize;
    let mut grid = initial_grid(film);
    let (column, line) = (film.width * CELL + GAP, film.height * CELL + CAPTION + GAP);
    // A row contains more wells if they are narrower, so all pictures have about the same width.
    let in_a_row = (IN_A_ROW * (10 * CELL + GAP) / column).max(1);
    let head = MARGIN * 2 + (film.above + film.height) * BIG;
    for (index, turn) in film.turns.iter().enumerate() {
        // `grid` is the well after `index` pieces.
        if index % step == 0 {
            let (x, y) = (
                drawn % in_a_row * column + MARGIN,
                drawn / in_a_row * line + head,
            );
            let _ = write!(wells, "<g transform=\"translate({x} {y})\">");
            draw_grid(
                &mut wells,
                &grid[film.above.min(grid.len())..],
                film.width,
                CELL,
            );
            let _ = writeln!(
                wells,
                "<text x=\"{}\" y=\"{}\">{index} · {}</text></g>",
                film.width * CELL / 2,
                film.height * CELL + CAPTION - 2,
                turn.score
            );
            drawn += 1;
        }
        place_piece(film, turn, &mut grid, film.turns.get(index + 1));
    }
    let width = MARGIN * 2 - GAP + (in_a_row * column).max(PLOT_WIDTH + 300);
    let height = head + drawn.div_ceil(in_a_row) * line + MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\">\n<title>{} lines in {} pieces{}{}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#0f1318\"/>\n",
        film.score,
        film.pieces,
        if about.is_empty() { "" } else { ": " },
        escaped(about)
    );
    draw_last_well(&mut text, film, &grid);
    draw_summary(&mut text, film, about);
    text.push_str(&wells);
    let _ = writeln!(
        text,
        "<text class=\"e\" x=\"{}\" y=\"{}\">under each well: pieces placed · lines cleared</text>\n</svg>",
        width - MARGIN,
        height - MARGIN / 2,
    );
    text
}

/// Draws the last well enlarged, including the rows above the bar.
fn draw_last_well(text: &mut String, film: &Film, grid: &Grid) {
    let _ = write!(text, "<g transform=\"translate({MARGIN} {MARGIN})\">");
    draw_grid(text, grid, film.width, BIG);
    let bar = film.above * BIG;
    let _ = writeln!(
        text,
        "<path class=\"b\" d=\"M0 {bar}h{}\"/></g>",
        film.width * BIG
    );
}

/// Writes the score and the piece count, and plots the score against the number of pieces.
fn draw_summary(text: &mut String, film: &Film, about: &str) {
    let left = MARGIN * 2 + film.width * BIG;
    let _ = writeln!(
        text,
        "<text class=\"h\" x=\"{left}\" y=\"{}\">{} lines</text>\n\
         <text class=\"t\" x=\"{left}\" y=\"{}\">in {} pieces against {}</text>\n\
         <text class=\"t\" x=\"{left}\" y=\"{}\">{}</text>",
        MARGIN + 42,
        film.score,
        MARGIN + 76,
        film.pieces,
        escaped(film.enemy),
        MARGIN + 102,
        escaped(about),
    );
    let (most, lines) = (film.pieces.max(1), film.score.max(1));
    let point = |pieces: usize, score: u32| {
        let x = pieces as f64 / most as f64 * PLOT_WIDTH as f64;
        let y = (1.0 - f64::from(score) / f64::from(lines)) * PLOT_HEIGHT as f64;
        (x, y)
    };
    let mut line = String::new();
    for (index, turn) in film.turns.iter().enumerate() {
        let (x, y) = point(index, turn.score);
        let letter = if index == 0 { 'M' } else { 'L' };
        let _ = write!(line, "{letter}{x:.1} {y:.1}");
    }
    let (x, y) = point(film.pieces, film.score);
    let _ = writeln!(
        text,
        "<g transform=\"translate({left} {})\"><path class=\"g\" d=\"M0 0V{}H{}\"/>\
         <path class=\"l\" d=\"{line}L{x:.1} {y:.1}\"/><text x=\"{}\" y=\"{}\" class=\"e\">piece {}</text>\
         <text x=\"6\" y=\"10\" style=\"text-anchor:start\">{} lines</text></g>",
        MARGIN + 140,
        PLOT_HEIGHT,
        PLOT_WIDTH,
        PLOT_WIDTH,
        PLOT_HEIGHT + CAPTION,
        film.pieces,
        film.score,
    );
}

/// Draws each filled cell as a square in a grid of `size` pixels, with one path per colour.
fn draw_grid(text: &mut String, rows: &[Vec<Option<u8>>], columns: usize, size: usize) {
    let _ = write!(
        text,
        "<rect class=\"w\" width=\"{}\" height=\"{}\"/>",
        columns * size,
        rows.len() * size
    );
    let side = size - 1;
    for colour in 0..=GREY {
        let mut path = String::new();
        for (y, row) in rows.iter().enumerate() {
            for (x, _) in row
                .iter()
                .enumerate()
                .filter(|(_, cell)| **cell == Some(colour))
            {
                let _ = write!(path, "M{} {}h{side}v{side}h-{side}z", x * size, y * size);
            }
        }
        if !path.is_empty() {
            let _ = write!(text, "<path class=\"p{colour}\" d=\"{path}\"/>");
        }
    }
}

/// Parses rows in hex. Adds the rows above the bar as empty rows if the text lacks them.
fn parse_rows(film: &Film, hex: &str) -> Vec<Vec<bool>> {
    let digits = film.width.div_ceil(4).max(1);
    let row = |text: &[u8]| {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let bits = u16::from_str_radix(text, 16).unwrap_or(0);
        (0..film.width).map(|x| bits >> x & 1 == 1).collect()
    };
    let given: Vec<Vec<bool>> = hex.as_bytes().chunks(digits).map(row).collect();
    let missing = (film.above + film.height).saturating_sub(given.len());
    let mut rows = vec![vec![false; film.width]; missing];
    rows.extend(given);
    rows
}

/// Returns the well before the first piece, with grey cells.
fn initial_grid(film: &Film) -> Grid {
    let hex = film.turns.first().map_or("", |turn| turn.well.as_str());
    let colour = |filled: bool| filled.then_some(GREY);
    let rows = parse_rows(film, hex).into_iter();
    rows.map(|row| row.into_iter().map(colour).collect())
        .collect()
}

/// Fills the cells of a locked piece with its colour and removes full rows. Then corrects the grid if it differs from the
/// film's next well.
fn place_piece(film: &Film, turn: &FilmTurn, grid: &mut Grid, next: Option<&FilmTurn>) {
    let colour = LETTERS.find(turn.piece).map_or(GREY, |at| at as u8);
    let is_locked = next.is_some() || film.over;
    for &[x, y] in turn.path.last().iter().flat_map(|cells| cells.iter()) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else {
            continue;
        };
        if let Some(cell) = grid.get_mut(y).and_then(|row| row.get_mut(x))
            && is_locked
        {
            *cell = Some(colour);
        }
    }
    if turn.lines > 0 {
        grid.retain(|row| row.iter().any(Option::is_none));
        while grid.len() < film.above + film.height {
            grid.insert(0, vec![None; film.width]);
        }
    }
    let hex = next.map_or(film.end.as_str(), |next| next.well.as_str());
    for (row, filled) in grid.iter_mut().zip(parse_rows(film, hex)) {
        for (cell, filled) in row.iter_mut().zip(filled) {
            *cell = filled.then(|| cell.unwrap_or(GREY));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::film;
    use hatebeam_game::{Enemy, Geometry, Key};
    use proptest::prelude::*;

    fn grids(film: &Film) -> Vec<Grid> {
        let mut grid = initial_grid(film);
        let mut all = vec![grid.clone()];
        for (index, turn) in film.turns.iter().enumerate() {
            place_piece(film, turn, &mut grid, film.turns.get(index + 1));
            all.push(grid.clone());
        }
        all
    }

    /// Checks that no cell is grey, which is the colour of cells whose piece is unknown.
    #[test]
    fn cells_of_record_game_have_the_colours_of_their_pieces() {
        let film = film();
        let grids = grids(&film);
        for (pieces, grid) in grids.iter().enumerate() {
            let cells: Vec<u8> = grid.iter().flatten().flatten().copied().collect();
            assert!(!cells.contains(&GREY), "after {pieces} pieces");
            let lines: usize = film.turns[..pieces]
                .iter()
                .map(|turn| usize::from(turn.lines))
                .sum();
            assert_eq!(
                cells.len(),
                4 * pieces - 10 * lines,
                "after {pieces} pieces"
            );
        }
        // The first piece is an S.
        let colours: Vec<u8> = grids[1].iter().flatten().flatten().copied().collect();
        assert_eq!((film.turns[0].piece, colours), ('S', vec![0; 4]));
    }

    #[test]
    fn picture_shows_score_and_limits_number_of_wells() {
        let film = film();
        let drawn = picture(&film, "a beam of <3> & more");
        for text in [
            ">148 lines<",
            "a beam of &lt;3&gt; &amp; more",
            "class=\"b\"",
        ] {
            assert!(drawn.contains(text), "{text}");
        }
        let wells = drawn.matches("class=\"w\"").count();
        assert!(
            (MOST_WELLS / 2..=MOST_WELLS + 1).contains(&wells),
            "{wells}"
        );
        assert!(drawn.len() < 1 << 20, "{}", drawn.len());
        assert!(!drawn.contains("NaN") && !drawn.contains("href"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn picture_draws_any_game_in_any_well(
            keys in prop::collection::vec(0..4usize, 1..400),
            width in 4..=16usize,
            height in 1..=16usize,
        ) {
            let geometry = Geometry::new(width, height).unwrap();
            let keys: Vec<Key> = keys.into_iter().map(|key| Key::ALL[key]).collect();
            let game = hatebeam_game::Game::new(geometry, Default::default(), Enemy::Hatetris);
            let film = Film::of_game(game, &keys).unwrap();
            let drawn = picture(&film, "");
            prop_assert!(drawn.ends_with("</svg>\n"));
            for tag in ["svg", "g", "text", "style", "title"] {
                let opened = drawn.matches(&format!("<{tag}>")).count()
                    + drawn.matches(&format!("<{tag} ")).count();
                prop_assert_eq!(opened, drawn.matches(&format!("</{tag}>")).count(), "{}", tag);
            }
            for grid in grids(&film) {
                prop_assert!(!grid.iter().flatten().any(|cell| *cell == Some(GREY)));
            }
        }
    }
}
