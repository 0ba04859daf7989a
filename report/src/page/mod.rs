//! An HTML page about a run. The page is one file and loads nothing from the network. In a browser that does not run
//! scripts, the page shows neither the player for the best game nor the values under the pointer, and the copy button
//! does nothing.

mod plot;
mod training;

pub use plot::{Curve, Curves};
pub use training::training_page;

use crate::facts::{Facts, Scores};
use crate::film::Film;
use crate::numbers::{bytes, duration};
use hatebeam_game::{Geometry, Well};
use hatebeam_search::{DepthRecord, SCALE};
use plot::histogram;
use std::fmt::Write as _;
use std::time::Duration;

/// Maximum number of wells of the best game that the page draws. A longer game is sampled evenly.
const MOST_WELLS: usize = 400;
/// Maximum number of depths in a plot, which is more than a screen can show. A longer run is sampled evenly.
const MOST_POINTS: usize = 2000;

/// Escapes text for HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(letter),
        }
    }
    safe
}

/// Returns the HTML page about a run. `film` is the best game, or the reason why the game is not available.
pub fn page(facts: &Facts, film: Result<&Film, &str>) -> String {
    let mut body = String::new();
    head(&mut body, facts, film.ok());
    plots(&mut body, facts);
    scores(&mut body, facts.scores.as_ref());
    game(&mut body, facts.geometry, film);
    document(&facts.run, &body)
}

/// Returns a whole HTML document.
fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} - hatebeam</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         <script>\n{}</script>\n</body>\n</html>\n",
        escaped(title),
        include_str!("style.css"),
        include_str!("script.js"),
    )
}

/// Appends the specification, the results and the replay of the run.
fn head(page: &mut String, facts: &Facts, film: Option<&Film>) {
    let depths = &facts.depths;
    let score = film.map_or(facts.lines(), |film| film.score);
    let children: u64 = depths.iter().map(|depth| depth.children).sum();
    let seconds: f64 = depths.iter().map(|depth| depth.seconds).sum();
    let _ = writeln!(
        page,
        "<h1>{}</h1>\n<p class=\"lead\">{score} lines: {}; {}.</p>",
        escaped(&facts.run),
        escaped(&facts.about()),
        escaped(facts.end),
    );
    page.push_str("<table class=\"facts\">\n");
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(page, "<tr><th>{name}</th><td>{}</td></tr>", escaped(value));
    };
    if let Some(last) = depths.last() {
        row("Last depth", &last.depth.to_string());
        row("Digest of the last depth", &last.digest);
    }
    row("Children", &children.to_string());
    let time = Duration::from_secs_f64(seconds.clamp(0.0, 1e12));
    row("Search time", &duration(time));
    row("Stored", &bytes(facts.stored_bytes()));
    row("Specification", &facts.spec);
    page.push_str("</table>\n");
    if let Some(film) = film {
        let _ = writeln!(
            page,
            "<h2>Replay</h2>\n<p>This text is in Base2048, for the \
             <a href=\"https://qntm.org/files/hatetris/hatetris.html\">original game</a> or \
             <code>hatebeam replay show</code>. <button id=\"copy\">Copy</button></p>\n\
             <pre id=\"replay\" tabindex=\"0\">{}</pre>",
            escaped(&film.base2048)
        );
    }
}

/// Appends the plots of values by depth.
fn plots(page: &mut String, facts: &Facts) {
    let depths = &facts.depths;
    if depths.is_empty() {
        page.push_str("<p>No depth is committed yet.</p>\n");
        return;
    }
    let first = f64::from(depths[0].depth);
    page.push_str("<h2>By depth</h2>\n<div class=\"plots\">\n");
    for plot in score_plots(facts.geometry, depths)
        .iter()
        .chain(&resource_plots(depths))
    {
        plot.draw(page, first, "depth");
    }
    page.push_str("</div>\n");
}

/// Computes a value for every depth, and keeps an even sample of at most [`MOST_POINTS`] values and the last value.
fn curve(
    name: &'static str,
    depths: &[DepthRecord],
    mut value: impl FnMut(&DepthRecord) -> f64,
) -> Curve {
    let step = depths.len().div_ceil(MOST_POINTS).max(1);
    let points = depths
        .iter()
        .map(|record| (f64::from(record.depth), value(record)))
        .enumerate()
        .filter(|(index, _)| index % step == 0 || index + 1 == depths.len());
    Curve {
        name,
        points: points.map(|(_, point)| point).collect(),
    }
}

/// Returns the plots about the wells: rows cleared, evaluator scores and stack height.
fn score_plots(geometry: Geometry, depths: &[DepthRecord]) -> [Curves; 3] {
    let scaled = |eval: i32| f64::from(eval) / SCALE;
    [
        Curves {
            title: "Lines of the best game",
            unit: "lines",
            curves: vec![curve("lines", depths, |record| {
                f64::from(record.best_lines)
            })],
        },
        Curves {
            title: "Evaluator scores",
            unit: "weights",
            curves: vec![
                curve("best", depths, |record| scaled(record.best_eval)),
                curve("median", depths, |record| scaled(record.median_eval)),
                curve("cut", depths, |record| scaled(record.worst_eval)),
            ],
        },
        Curves {
            title: "Stack height of the best game",
            unit: "rows",
            curves: vec![curve("height", depths, |record| {
                let well = Well::from_hex(geometry, &record.best_well);
                well.map_or(0.0, |well| well.stack_height() as f64)
            })],
        },
    ]
}

/// Returns the plots about the work: wells, children, time and storage.
fn resource_plots(depths: &[DepthRecord]) -> [Curves; 5] {
    let mut total = 0.0;
    let total_time = curve("seconds", depths, |record| {
        total += record.seconds;
        total
    });
    [
        Curves {
            title: "Wells and children",
            unit: "wells",
            curves: vec![
                curve("children", depths, |record| record.children as f64),
                curve("wells", depths, |record| record.count as f64),
            ],
        },
        Curves {
            title: "Children per second",
            unit: "per second",
            curves: vec![curve("children", depths, |record| {
                record.children as f64 / record.seconds.max(1e-3)
            })],
        },
        Curves {
            title: "Time per depth",
            unit: "seconds",
            curves: vec![curve("seconds", depths, |record| record.seconds)],
        },
        Curves {
            title: "Total time",
            unit: "seconds",
            curves: vec![total_time],
        },
        Curves {
            title: "Bytes stored per depth",
            unit: "bytes",
            curves: vec![curve("bytes", depths, |record| record.bytes as f64)],
        },
    ]
}

/// Appends the distribution of the evaluator's scores at one depth.
fn scores(page: &mut String, scores: Option<&Result<Scores, String>>) {
    let Some(scores) = scores else {
        return;
    };
    page.push_str("<h2>Scores at the cut</h2>\n");
    let scores = match scores {
        Ok(scores) => scores,
        Err(reason) => {
            let _ = writeln!(
                page,
                "<p>The scores cannot be read: {}.</p>",
                escaped(reason)
            );
            return;
        }
    };
    let _ = writeln!(
        page,
        "<p>Depth {} has {} wells. {} of them have the lowest score (the cut). Among wells with this score, a \
         hash decides which ones are kept.</p>",
        scores.depth, scores.count, scores.at_cut
    );
    histogram(page, &scores.values, scores.median, SCALE);
}

/// Appends a player for the best game, and drawings of its wells.
fn game(page: &mut String, geometry: Geometry, film: Result<&Film, &str>) {
    page.push_str("<h2>The best game</h2>\n");
    let film = match film {
        Ok(film) => film,
        Err(reason) => {
            let _ = writeln!(
                page,
                "<p>The game cannot be read back: {}.</p>",
                escaped(reason)
            );
            return;
        }
    };
    let hex: Vec<&str> = film.turns.iter().map(|turn| turn.well.as_str()).collect();
    let last = hex.len().saturating_sub(1);
    let _ = writeln!(
        page,
        "<p>{} lines in {} pieces, verified by the exact rules.</p>\n\
         <div id=\"player\" data-wells=\"{}\" data-columns=\"{}\" data-rows=\"{}\" hidden>\n\
         <svg viewBox=\"-0.1 -0.1 {}.2 {}.2\" role=\"img\" aria-label=\"the well\"><path></path></svg>\n\
         <div><p><output></output></p>\n<p><button data-go=\"-1\">Back</button> \
         <button data-go=\"play\">Play</button> <button data-go=\"1\">Forward</button></p>\n\
         <p><label>Piece <input type=\"range\" min=\"0\" max=\"{last}\" value=\"0\"></label></p></div>\n</div>",
        film.score,
        film.pieces,
        hex.join(" "),
        geometry.width(),
        geometry.height(),
        geometry.width(),
        geometry.height(),
    );
    let step = hex.len().div_ceil(MOST_WELLS).max(1);
    page.push_str("<div class=\"wells\">\n");
    for (index, turn) in film.turns.iter().enumerate() {
        if index % step == 0 || index == last {
            let _ = writeln!(
                page,
                "<figure>{}<figcaption>{index}: {}</figcaption></figure>",
                draw_well(geometry, &turn.well),
                turn.score
            );
        }
    }
    page.push_str(
        "</div>\n<p class=\"note\">Under each well: pieces placed and lines cleared.</p>\n",
    );
}

/// Draws a well given in hex as a small SVG, with one rectangle for each group of adjacent filled cells in a row.
fn draw_well(geometry: Geometry, hex: &str) -> String {
    let (width, height) = (geometry.width(), geometry.height());
    let well = Well::from_hex(geometry, hex).unwrap_or(Well::EMPTY);
    let mut path = String::new();
    for (y, row) in well.rows()[..height].iter().rev().enumerate() {
        let mut x = 0;
        while x < width {
            let run = (x..width).take_while(|at| row >> at & 1 == 1).count();
            if run > 0 {
                let _ = write!(path, "M{x} {y}h{run}v1h-{run}z");
            }
            x += run.max(1);
        }
    }
    format!("<svg viewBox=\"0 0 {width} {height}\" aria-hidden=\"true\"><path d=\"{path}\"/></svg>")
}
