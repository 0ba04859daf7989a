//! A run as one HTML file that needs nothing else: no network, and, but for the player of the best game and
//! the read-out of the plots, no scripts.

mod plot;

use crate::facts::{DepthFacts, Facts, Scores};
use crate::film::Film;
use crate::words::{bytes, duration};
use hatebeam_game::{Geometry, Well};
use hatebeam_search::SCALE;
use plot::{Plot, Series, histogram};
use std::fmt::Write as _;
use std::time::Duration;

/// Wells drawn of the best game: more are too many to look at.
const MOST_WELLS: usize = 400;
/// Depths plotted: more than a screen has points.
const MOST_POINTS: usize = 2000;

/// Text as HTML.
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

/// A run, and its best game or why there is none, as an HTML page.
pub fn report(facts: &Facts, film: Result<&Film, &str>) -> String {
    let mut body = String::new();
    head(&mut body, facts, film.ok());
    plots(&mut body, facts);
    scores(&mut body, facts.scores.as_ref());
    game(&mut body, facts.geometry, film);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} - hatebeam</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         <script>\n{}</script>\n</body>\n</html>\n",
        escaped(&facts.run),
        include_str!("style.css"),
        include_str!("page.js"),
    )
}

/// What the run is, and what came of it.
fn head(page: &mut String, facts: &Facts, film: Option<&Film>) {
    let depths = &facts.depths;
    let score = film.map_or(facts.lines(), |film| film.score);
    let children: u64 = depths.iter().map(|depth| depth.children).sum();
    let seconds: f64 = depths.iter().map(|depth| depth.seconds).sum();
    let _ = writeln!(
        page,
        "<h1>{}</h1>\n<p class=\"lead\">{score} points: {}; {}.</p>",
        escaped(&facts.run),
        escaped(&facts.about()),
        escaped(&facts.end.words()),
    );
    page.push_str("<table class=\"facts\">\n");
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(page, "<tr><th>{name}</th><td>{}</td></tr>", escaped(value));
    };
    if let Some(last) = depths.last() {
        row("Last depth", &last.depth.to_string());
        row("Its digest", &facts.digest);
    }
    row("Children", &children.to_string());
    let time = Duration::from_secs_f64(seconds.clamp(0.0, 1e12));
    row("Searching", &duration(time));
    row("Stored", &bytes(facts.stored_bytes));
    row("Specification", &facts.spec);
    page.push_str("</table>\n");
    if let Some(film) = film {
        let _ = writeln!(
            page,
            "<h2>Replay</h2>\n<p>In Base2048, for the \
             <a href=\"https://qntm.org/files/hatetris/hatetris.html\">original game</a> or \
             <code>hatebeam replay show</code>. <button id=\"copy\">Copy</button></p>\n\
             <pre id=\"replay\" tabindex=\"0\">{}</pre>",
            escaped(&film.base2048)
        );
    }
}

/// How things went from depth to depth.
fn plots(page: &mut String, facts: &Facts) {
    let depths = &facts.depths;
    if depths.is_empty() {
        page.push_str("<p>No depth is committed yet.</p>\n");
        return;
    }
    let step = depths.len().div_ceil(MOST_POINTS);
    let shown: Vec<&DepthFacts> = depths
        .iter()
        .enumerate()
        .filter(|(index, _)| index % step == 0 || index + 1 == depths.len())
        .map(|(_, record)| record)
        .collect();
    let series = |name: &'static str, value: &dyn Fn(&DepthFacts) -> f64| Series {
        name,
        points: shown
            .iter()
            .map(|record| (f64::from(record.depth), value(record)))
            .collect(),
    };
    let scaled = |score: i32| f64::from(score) / SCALE;
    let mut total = 0.0;
    let so_far: Vec<f64> = shown
        .iter()
        .map(|record| {
            total += record.seconds;
            total
        })
        .collect();
    let first = shown[0].depth;
    page.push_str("<h2>By depth</h2>\n<div class=\"plots\">\n");
    let all = [
        Plot {
            title: "Points of the best game",
            unit: "lines",
            series: vec![series("points", &|record| f64::from(record.lines))],
        },
        Plot {
            title: "Scores of the evaluator",
            unit: "weights",
            series: vec![
                series("best", &|record| scaled(record.best_eval)),
                series("median", &|record| scaled(record.median_eval)),
                series("cut", &|record| scaled(record.worst_eval)),
            ],
        },
        Plot {
            title: "Height of the best game's stack",
            unit: "rows",
            series: vec![series("height", &|record| record.height as f64)],
        },
        Plot {
            title: "Wells kept and children made",
            unit: "wells",
            series: vec![
                series("children", &|record| record.children as f64),
                series("kept", &|record| record.count as f64),
            ],
        },
        Plot {
            title: "Children a second",
            unit: "a second",
            series: vec![series("children", &|record| {
                record.children as f64 / record.seconds.max(1e-3)
            })],
        },
        Plot {
            title: "Time of a depth",
            unit: "seconds",
            series: vec![series("seconds", &|record| record.seconds)],
        },
        Plot {
            title: "Time so far",
            unit: "seconds",
            series: vec![series("seconds", &|record| {
                let index = shown.partition_point(|other| other.depth < record.depth);
                so_far[index.min(so_far.len() - 1)]
            })],
        },
        Plot {
            title: "Bytes stored of a depth",
            unit: "bytes",
            series: vec![series("bytes", &|record| record.bytes as f64)],
        },
    ];
    for plot in &all {
        plot.draw(page, f64::from(first));
    }
    page.push_str("</div>\n");
}

/// How scores are distributed near the cut.
fn scores(page: &mut String, scores: Option<&Result<Scores, String>>) {
    let Some(scores) = scores else {
        return;
    };
    page.push_str("<h2>Scores at the cut</h2>\n");
    let scores = match scores {
        Ok(scores) => scores,
        Err(reason) => {
            let _ = writeln!(page, "<p>They cannot be read: {}.</p>", escaped(reason));
            return;
        }
    };
    let _ = writeln!(
        page,
        "<p>The {} wells kept of depth {}. {} of them have the score of the cut itself, where the hash \
         decides who stays.</p>",
        scores.count, scores.depth, scores.at_cut
    );
    histogram(page, &scores.values, scores.median, SCALE);
}

/// The wells of the best game.
fn game(page: &mut String, geometry: Geometry, film: Result<&Film, &str>) {
    page.push_str("<h2>The best game</h2>\n");
    let film = match film {
        Ok(film) => film,
        Err(reason) => {
            let _ = writeln!(page, "<p>It cannot be read back: {}.</p>", escaped(reason));
            return;
        }
    };
    let hex: Vec<&str> = film.turns.iter().map(|turn| turn.well.as_str()).collect();
    let last = hex.len().saturating_sub(1);
    let _ = writeln!(
        page,
        "<p>{} points in {} pieces, played through the exact rules.</p>\n\
         <div id=\"player\" data-wells=\"{}\" data-columns=\"{}\" data-rows=\"{}\" hidden>\n\
         <svg viewBox=\"-0.1 -0.1 {}.2 {}.2\" role=\"img\" aria-label=\"the well\"><path></path></svg>\n\
         <div><p><output></output></p>\n<p><button data-go=\"-1\">Back</button> \
         <button data-go=\"play\">Play</button> <button data-go=\"1\">On</button></p>\n\
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
                drawing(geometry, &turn.well),
                turn.score
            );
        }
    }
    page.push_str("</div>\n<p class=\"note\">Under each well: pieces placed, and points.</p>\n");
}

/// A well in hex as a small picture: a rectangle for each run of filled cells.
fn drawing(geometry: Geometry, hex: &str) -> String {
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
