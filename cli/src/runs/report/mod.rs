//! `hatebeam runs report`: a run as one HTML file that needs nothing else: no network, and, but for the
//! player of the best game and the read-out of the plots, no scripts.

mod plot;

use crate::output;
use crate::run::screen::{bytes, duration};
use crate::state::StateArgs;
use anyhow::Context;
use hatebeam_game::{Encoding, Geometry, Well, encode};
use hatebeam_search::SCALE;
use hatebeam_store::{DepthRecord, write_whole};
use hatebeam_worker::{Run, best_game};
use plot::{Plot, Series, histogram};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// Wells drawn of the best game: more are too many to look at.
const MOST_WELLS: usize = 400;
/// Depths plotted: more than a screen has points.
const MOST_POINTS: usize = 2000;
/// Wells whose scores are counted, evenly chosen where there are more: enough for a smooth curve.
const MOST_SCORES: usize = 5_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    /// The file to write; `-` is standard output [default: the run's name and .html]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    state: StateArgs,
}

/// Runs `hatebeam runs report`.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<()> {
    let dir = args.state.state()?.find(&args.run)?;
    let run = Run::open_read_only(&dir).with_context(|| dir.display().to_string())?;
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let page = page(&run, &name);
    let path = match &args.out {
        Some(path) if path.as_os_str() == "-" => return output::print(&page),
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{name}.html")),
    };
    let path = std::path::absolute(&path).with_context(|| path.display().to_string())?;
    write_whole(&path, page.as_bytes())?;
    output::print(&format_args!("{}\n", path.display()))
}

/// Text as HTML.
fn escaped(text: &str) -> String {
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

fn page(run: &Run, name: &str) -> String {
    let mut body = String::new();
    head(&mut body, run, name);
    plots(&mut body, run);
    scores(&mut body, run);
    game(&mut body, run);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} - hatebeam</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         <script>\n{}</script>\n</body>\n</html>\n",
        escaped(name),
        include_str!("style.css"),
        include_str!("page.js"),
    )
}

/// What the run is, and what came of it.
fn head(page: &mut String, run: &Run, name: &str) {
    let store = run.store();
    let depths = store.depths();
    let result = store.result();
    let text_of = |field: &str| result.and_then(|result| result[field].as_str());
    let points = depths.iter().map(|record| record.best_game_score).max();
    let score = result
        .and_then(|result| result["best_score"].as_u64())
        .unwrap_or(u64::from(points.unwrap_or(0)));
    let children: u64 = depths.iter().map(|record| record.children).sum();
    let seconds: f64 = depths.iter().map(|record| record.seconds).sum();
    let spec = run.spec();
    let _ = writeln!(
        page,
        "<h1>{}</h1>\n<p class=\"lead\">{score} points: a beam of {} wells, evaluator {}, \
         quiescence {}; {}.</p>",
        escaped(name),
        spec.width,
        spec.evaluator.kind.name(),
        spec.evaluator.quiescence.name(),
        match text_of("end") {
            Some("over") => "searched to the end",
            Some("max-depth") => "searched to the depth it was to stop at",
            _ => "not finished",
        },
    );
    page.push_str("<table class=\"facts\">\n");
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(page, "<tr><th>{name}</th><td>{}</td></tr>", escaped(value));
    };
    if let Some(last) = depths.last() {
        row("Last depth", &last.depth.to_string());
        row("Its digest", &last.digest);
    }
    row("Children", &children.to_string());
    let time = Duration::from_secs_f64(seconds.clamp(0.0, 1e12));
    row("Searching", &duration(time));
    row("Stored", &bytes(store.stored_bytes()));
    row(
        "Specification",
        &serde_json::to_string(spec).unwrap_or_default(),
    );
    page.push_str("</table>\n");
    if let Some(replay) = text_of("replay") {
        let _ = writeln!(
            page,
            "<h2>Replay</h2>\n<p>In Base2048, for the \
             <a href=\"https://qntm.org/files/hatetris/hatetris.html\">original game</a> or \
             <code>hatebeam replay show</code>. <button id=\"copy\">Copy</button></p>\n\
             <pre id=\"replay\" tabindex=\"0\">{}</pre>",
            escaped(replay)
        );
    }
}

/// How things went from depth to depth.
fn plots(page: &mut String, run: &Run) {
    let depths = run.store().depths();
    if depths.is_empty() {
        page.push_str("<p>No depth is committed yet.</p>\n");
        return;
    }
    let step = depths.len().div_ceil(MOST_POINTS);
    let shown: Vec<&DepthRecord> = depths
        .iter()
        .enumerate()
        .filter(|(index, _)| index % step == 0 || index + 1 == depths.len())
        .map(|(_, record)| record)
        .collect();
    let geometry = run.store().geometry();
    let series = |name: &'static str, value: &dyn Fn(&DepthRecord) -> f64| Series {
        name,
        points: shown
            .iter()
            .map(|record| (f64::from(record.depth), value(record)))
            .collect(),
    };
    let height = |record: &DepthRecord| {
        Well::from_hex(geometry, &record.best_well).map_or(0, |well| well.stack_height()) as f64
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
            series: vec![series("points", &|record| {
                f64::from(record.best_game_score)
            })],
        },
        Plot {
            title: "Scores of the evaluator",
            unit: "weights",
            series: vec![
                series("best", &|record| scaled(record.best_score)),
                series("median", &|record| scaled(record.median_score)),
                series("cut", &|record| scaled(record.worst_score)),
            ],
        },
        Plot {
            title: "Height of the best game's stack",
            unit: "rows",
            series: vec![series("height", &height)],
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
fn scores(page: &mut String, run: &Run) {
    let store = run.store();
    // The last that is kept and has as many wells as may be.
    let most = store.depths().iter().map(|record| record.count).max();
    let full = store
        .depths()
        .iter()
        .rfind(|record| record.kept && Some(record.count) == most);
    let Some(record) = full else {
        return;
    };
    page.push_str("<h2>Scores at the cut</h2>\n");
    let nodes = match store.load(record.depth) {
        Ok(nodes) => nodes,
        Err(error) => {
            let _ = writeln!(
                page,
                "<p>They cannot be read: {}.</p>",
                escaped(&error.to_string())
            );
            return;
        }
    };
    let step = nodes.len().div_ceil(MOST_SCORES).max(1);
    let values: Vec<i32> = nodes.iter().step_by(step).map(|node| node.score).collect();
    let at_cut = nodes
        .iter()
        .filter(|node| node.score == record.worst_score)
        .count();
    let _ = writeln!(
        page,
        "<p>The {} wells kept of depth {}. {} of them have the score of the cut itself, where the hash \
         decides who stays.</p>",
        record.count, record.depth, at_cut
    );
    histogram(page, &values, record.median_score, SCALE);
}

/// The wells of the best game.
fn game(page: &mut String, run: &Run) {
    page.push_str("<h2>The best game</h2>\n");
    let game = match best_game(run) {
        Ok(game) => game,
        Err(error) => {
            let text = format!("{:#}", anyhow::Error::from(error));
            let _ = writeln!(page, "<p>It cannot be read back: {}.</p>", escaped(&text));
            return;
        }
    };
    let geometry = run.store().geometry();
    let first = game.wells[0].filled();
    let score = |index: usize, well: &Well| {
        (first + 4 * index as u32).saturating_sub(well.filled()) / geometry.width() as u32
    };
    let hex: Vec<String> = game
        .wells
        .iter()
        .map(|well| well.to_hex(geometry))
        .collect();
    if run.store().result().is_none() {
        let replay = encode(&game.keys, Encoding::Base2048);
        let _ = writeln!(page, "<pre tabindex=\"0\">{}</pre>", escaped(&replay));
    }
    let _ = writeln!(
        page,
        "<p>{} points in {} pieces, played through the exact rules.</p>\n\
         <div id=\"player\" data-wells=\"{}\" data-columns=\"{}\" data-rows=\"{}\" hidden>\n\
         <svg viewBox=\"-0.1 -0.1 {}.2 {}.2\" role=\"img\" aria-label=\"the well\"><path></path></svg>\n\
         <div><p><output></output></p>\n<p><button data-go=\"-1\">Back</button> \
         <button data-go=\"play\">Play</button> <button data-go=\"1\">On</button></p>\n\
         <p><label>Piece <input type=\"range\" min=\"0\" max=\"{}\" value=\"0\"></label></p></div>\n</div>",
        game.score,
        game.wells.len(),
        hex.join(" "),
        geometry.width(),
        geometry.height(),
        geometry.width(),
        geometry.height(),
        game.wells.len() - 1,
    );
    let step = game.wells.len().div_ceil(MOST_WELLS);
    page.push_str("<div class=\"wells\">\n");
    for (index, well) in game.wells.iter().enumerate() {
        if index % step == 0 || index + 1 == game.wells.len() {
            let _ = writeln!(
                page,
                "<figure>{}<figcaption>{index}: {}</figcaption></figure>",
                drawing(geometry, well),
                score(index, well)
            );
        }
    }
    page.push_str("</div>\n<p class=\"note\">Under each well: pieces placed, and points.</p>\n");
}

/// A well as a small picture: a rectangle for each run of filled cells.
fn drawing(geometry: Geometry, well: &Well) -> String {
    let (width, height) = (geometry.width(), geometry.height());
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
