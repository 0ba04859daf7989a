//! SVG plots for the HTML page. `script.js` contains copies of their size and margins.

use super::escaped;
use std::fmt::Write as _;

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 260.0;
/// Margins around the plot area. The left and the bottom margins contain the axis labels.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 34.0;
/// Number of bars in a histogram.
const BARS: usize = 80;

/// A curve in a plot.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Name of the values, for the legend.
    pub name: &'static str,
    /// Pairs of coordinates: the depth or generation, and the value.
    pub points: Vec<(f64, f64)>,
}

/// A plot of values by depth or by generation: curves with the same unit.
#[derive(Clone, Debug)]
pub struct Curves {
    /// Title of the plot.
    pub title: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// Returns about five round numbers within the range, for the labels of an axis.
fn ticks(range: &Range) -> Vec<f64> {
    let (low, high) = (range.low, range.high);
    let span = (high - low).max(1e-9);
    let rough = span / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    (first..)
        .map(|index| index as f64 * step)
        .take_while(|tick| *tick <= high + span * 1e-9)
        .take(12)
        .collect()
}

/// Formats a number in a short form, such as "1.2 M".
fn short(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        _ if size >= 1e12 => (value / 1e12, " T"),
        _ if size >= 1e9 => (value / 1e9, " G"),
        _ if size >= 1e6 => (value / 1e6, " M"),
        _ if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let text = match scaled.abs() {
        large if large >= 100.0 || large.fract() == 0.0 => format!("{scaled:.0}"),
        large if large >= 1.0 => format!("{scaled:.1}"),
        _ => format!("{scaled:.3}"),
    };
    text + unit
}

/// The axes of a plot, which map values to coordinates.
struct Frame {
    x: Range,
    y: Range,
}

/// The lowest and the highest value on an axis.
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    /// Returns the relative position of a value: 0 for the lowest value of the range, and 1 for the highest.
    fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low).max(1e-9)
    }
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - TOP - BOTTOM)
    }

    fn begin(&self, page: &mut String, title: &str, below: &str) {
        let _ = writeln!(
            page,
            "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
            WIDTH,
            HEIGHT,
            escaped(title)
        );
        for tick in ticks(&self.y) {
            let y = self.y(tick);
            let _ = writeln!(
                page,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text class=\"y\" x=\"{}\" \
                 y=\"{:.1}\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                short(tick)
            );
        }
        for tick in ticks(&self.x) {
            let _ = writeln!(
                page,
                "<text class=\"x\" x=\"{:.1}\" y=\"{}\">{}</text>",
                self.x(tick),
                HEIGHT - BOTTOM + 16.0,
                short(tick)
            );
        }
        let _ = writeln!(
            page,
            "<text class=\"x\" x=\"{}\" y=\"{}\">{}</text>",
            LEFT + (WIDTH - LEFT - RIGHT) / 2.0,
            HEIGHT - 3.0,
            escaped(below)
        );
    }
}

/// Returns the range of the values. The range starts at 0 if the lowest value is positive and less than half the highest.
fn range(values: impl Iterator<Item = f64>) -> Range {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if !low.is_finite() || !high.is_finite() {
        return Range {
            low: 0.0,
            high: 1.0,
        };
    }
    let low = if low > 0.0 && low < high / 2.0 {
        0.0
    } else {
        low
    };
    let high = if high - low > 1e-9 { high } else { low + 1.0 };
    Range { low, high }
}

impl Curves {
    /// Appends the plot with its title and legend to the page. The horizontal axis has the label `axis` and starts at
    /// `first`.
    pub(super) fn draw(&self, page: &mut String, first: f64, axis: &str) {
        let all = || self.curves.iter().flat_map(|curve| &curve.points);
        let last = all().map(|(x, _)| *x).fold(first, f64::max);
        let frame = Frame {
            x: Range {
                low: first,
                high: last.max(first + 1.0),
            },
            y: range(all().map(|(_, y)| *y)),
        };
        let _ = writeln!(
            page,
            "<figure class=\"card\" data-axis=\"{}\" data-low=\"{}\" data-high=\"{}\">\
             <figcaption>{} <small>({})</small>",
            escaped(axis),
            frame.x.low,
            frame.x.high,
            escaped(self.title),
            escaped(self.unit)
        );
        for (index, curve) in self.curves.iter().enumerate() {
            if self.curves.len() > 1 {
                let name = escaped(curve.name);
                let _ = write!(page, " <span class=\"key s{index}\">{name}</span>");
            }
        }
        page.push_str("<output></output></figcaption>\n");
        frame.begin(page, self.title, axis);
        for (index, curve) in self.curves.iter().enumerate() {
            let mut line = String::new();
            let mut values = String::new();
            for (at, (x, y)) in curve.points.iter().enumerate() {
                let letter = if at == 0 { 'M' } else { 'L' };
                let _ = write!(line, "{letter}{:.1} {:.1}", frame.x(*x), frame.y(*y));
                let comma = if at == 0 { "" } else { "," };
                let _ = write!(values, "{comma}{x}:{}", short(*y));
            }
            let _ = writeln!(
                page,
                "<path class=\"line s{index}\" d=\"{line}\" data-name=\"{}\" data-values=\"{values}\"/>",
                escaped(curve.name)
            );
        }
        page.push_str("<path class=\"hair\" d=\"\"/></svg></figure>\n");
    }
}

/// Appends a histogram of the scores to the page, with a vertical line at the median.
pub(super) fn histogram(page: &mut String, scores: &[i32], median: i32, scale: f64) {
    let low = scores.iter().copied().min().unwrap_or(0);
    let high = scores.iter().copied().max().unwrap_or(0);
    let span = (i64::from(high) - i64::from(low) + 1) as u64;
    let mut bars = [0u64; BARS];
    for score in scores {
        let offset = (i64::from(*score) - i64::from(low)) as u64;
        bars[(u128::from(offset) * BARS as u128 / u128::from(span)) as usize] += 1;
    }
    let most = bars.iter().copied().max().unwrap_or(1);
    let frame = Frame {
        x: Range {
            low: f64::from(low) / scale,
            high: f64::from(high).max(f64::from(low) + scale) / scale,
        },
        y: Range {
            low: 0.0,
            high: most as f64,
        },
    };
    page.push_str("<figure class=\"card wide\">\n");
    frame.begin(
        page,
        "Distribution of scores",
        "score; left end: cut, line: median",
    );
    let width = (WIDTH - LEFT - RIGHT) / BARS as f64;
    let mut path = String::new();
    for (index, count) in bars.iter().enumerate() {
        let (x, y) = (LEFT + index as f64 * width, frame.y(*count as f64));
        let height = HEIGHT - BOTTOM - y;
        let _ = write!(
            path,
            "M{x:.1} {y:.1}h{:.1}v{height:.1}h-{:.1}z",
            width * 0.9,
            width * 0.9
        );
    }
    let _ = writeln!(
        page,
        "<path class=\"bars\" d=\"{path}\"/><path class=\"median\" d=\"M{:.1} {TOP}V{}\"/></svg></figure>",
        frame.x(f64::from(median) / scale),
        HEIGHT - BOTTOM
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_round_numbers() {
        let ticks = |low, high| ticks(&Range { low, high });
        assert_eq!(ticks(0.0, 10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(0.0, 1.0).len(), 6);
        for (low, high) in [(0.0, 0.0), (-5.0, 1e12), (3.0, 3.1), (-1e9, -1.0)] {
            let ticks = ticks(low, high);
            assert!(!ticks.is_empty() && ticks.len() <= 12, "{ticks:?}");
        }
    }

    #[test]
    fn short_keeps_few_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.250"),
            (1500.0, "1500"),
            (2.5e6, "2.5 M"),
            (-3e9, "-3 G"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
