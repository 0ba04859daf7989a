//! A plot of a contest in SVG: the scores of each player, sorted from the lowest to the highest.

use crate::Contest;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
/// Space on the left for the scores, and at the bottom for the ranks.
const MARGIN: (f64, f64) = (84.0, 40.0);
/// Space at the top and on the right.
const EDGE: f64 = 16.0;
/// Number of intervals between the lines of the grid.
const INTERVALS: u32 = 5;
/// Colours of the players, which people with colour blindness can tell apart (Okabe and Ito).
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];

/// Positions of scores and ranks in the picture.
struct Scale {
    highest: u64,
    games: usize,
}

impl Scale {
    fn x(&self, rank: usize) -> f64 {
        let share = rank as f64 / (self.games.max(2) - 1) as f64;
        MARGIN.0 + share * (WIDTH - MARGIN.0 - EDGE)
    }

    fn y(&self, score: f64) -> f64 {
        let share = score / self.highest.max(1) as f64;
        HEIGHT - MARGIN.1 - share * (HEIGHT - MARGIN.1 - EDGE)
    }
}

impl Contest {
    /// Returns a plot as an SVG file.
    pub fn svg(&self) -> String {
        let games = || self.series.iter().map(|series| &series.games);
        let scale = Scale {
            highest: games().flatten().map(|game| game.score).max().unwrap_or(0),
            games: games().map(Vec::len).max().unwrap_or(0),
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
        );
        for line in 0..=INTERVALS {
            let score = scale.highest as f64 * f64::from(line) / f64::from(INTERVALS);
            let (y, left, right) = (scale.y(score), MARGIN.0, WIDTH - EDGE);
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(
                svg,
                "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{score:.0}</text>",
                left - 8.0,
                y + 4.0
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} games, from the lowest to the highest score in {}</text>",
            WIDTH - EDGE,
            HEIGHT - 12.0,
            scale.games,
            self.unit
        );
        for (number, series) in self.series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let mut scores: Vec<u64> = series.games.iter().map(|game| game.score).collect();
            scores.sort_unstable();
            let points = scores
                .iter()
                .enumerate()
                .map(|(rank, &score)| format!("{:.1},{:.1}", scale.x(rank), scale.y(score as f64)));
            let points: Vec<String> = points.collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
                points.join(" "),
                MARGIN.0 + 12.0,
                HEIGHT - MARGIN.1 - 12.0 - 16.0 * (self.series.len() - 1 - number) as f64,
                escaped(&series.name)
            );
        }
        svg + "</svg>\n"
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use crate::{Contest, GameRecord, Series};

    #[test]
    fn plot_has_the_sorted_scores_of_every_player() {
        let series = |name: &str, scores: [u64; 3]| Series {
            name: name.to_owned(),
            games: scores
                .map(|score| GameRecord {
                    score,
                    lines: 0,
                    pieces: 0,
                    is_complete: true,
                })
                .to_vec(),
            seconds: 1.0,
        };
        let contest = Contest {
            series: vec![series("a<b", [50, 0, 100]), series("c", [100, 100, 100])],
            unit: "points",
            goal: None,
        };
        let svg = contest.svg();
        assert!(
            svg.contains("points=\"84.0,380.0 394.0,198.0 704.0,16.0\""),
            "{svg}"
        );
        assert!(
            svg.contains("points=\"84.0,16.0 394.0,16.0 704.0,16.0\""),
            "{svg}"
        );
        assert!(
            svg.contains(">a&lt;b</text>") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
    }
}
