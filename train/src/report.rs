//! Human-readable output: a table with one row per generation, and an HTML report with curves.

use crate::exam::ExamResult;
use crate::recipe::Player;
use crate::trainer::{BeamRecord, GenerationRecord, Trainer};
use hatebeam_report::{Curve, Curves, duration, training_page};
use std::time::Duration;

/// Header of the table whose rows [`GenerationRecord::row`] returns.
pub const TABLE_HEADER: &str =
    " gen    own    others  new loss    bias  held out      time  exam  longest\n";

impl GenerationRecord {
    /// Returns the table row of the generation, including the line break at its end.
    pub fn row(&self) -> String {
        let or_dash =
            |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
        let longest = self.own_games.first().map(|&pieces| pieces as u32);
        let time = Duration::from_secs_f64(self.seconds.iter().sum());
        format!(
            "{:>4}  {:>5}  {:>8}  {:>8.4}  {:>+6.3}  {:>8.4}  {:>8}  {:>4}  {:>7}\n",
            self.generation,
            or_dash(most_lines(&self.beams, is_own)),
            or_dash(most_lines(&self.beams, is_other)),
            self.fresh_loss,
            self.fresh_bias,
            self.held_out_loss,
            duration(time),
            or_dash(median(&self.exam)),
            or_dash(longest),
        )
    }
}

impl Trainer {
    /// Returns the report of the training run as HTML.
    pub fn report(&self) -> String {
        let records = self.records();
        let seconds: f64 = records.iter().flat_map(|record| record.seconds).sum();
        let samples: usize = records.iter().map(|record| record.samples).sum();
        let recipe = serde_json::to_string(self.recipe()).unwrap_or_default();
        let facts = [
            ("Network", self.network().digest().to_string()),
            ("Wells", samples.to_string()),
            ("Time", duration(Duration::from_secs_f64(seconds))),
            ("Recipe", recipe),
        ];
        let generations = format!("{} generations", records.len());
        let has_points = |plot: &Curves| plot.curves.iter().any(|curve| !curve.points.is_empty());
        let plots: Vec<Curves> = plots(records).into_iter().filter(has_points).collect();
        training_page(&generations, &facts, &plots)
    }
}

fn is_own(player: Player) -> bool {
    player == Player::Own
}

fn is_other(player: Player) -> bool {
    player != Player::Own
}

/// Returns the maximum number of lines that the chosen players' beams cleared.
fn most_lines(beams: &[BeamRecord], chosen: fn(Player) -> bool) -> Option<u32> {
    let beams = beams.iter().filter(|beam| chosen(beam.player));
    beams.map(|beam| beam.lines).max()
}

/// Returns the median number of lines in an examination. If the number of results is even, this is the greater of the
/// two middle numbers.
fn median(exam: &[ExamResult]) -> Option<u32> {
    let mut lines: Vec<u32> = exam.iter().map(|result| result.lines).collect();
    lines.sort_unstable();
    lines.get(lines.len() / 2).copied()
}

fn plots(records: &[GenerationRecord]) -> [Curves; 6] {
    let curve = |name, value: &dyn Fn(&GenerationRecord) -> Option<f64>| Curve {
        name,
        points: records
            .iter()
            .filter_map(|record| Some((f64::from(record.generation), value(record)?)))
            .collect(),
    };
    let lines =
        |chosen| move |record: &GenerationRecord| most_lines(&record.beams, chosen).map(f64::from);
    [
        Curves {
            title: "Examination",
            unit: "lines, median over the widths",
            curves: vec![curve("exam", &|record| median(&record.exam).map(f64::from))],
        },
        Curves {
            title: "Best beam of the generation",
            unit: "lines",
            curves: vec![
                curve("own", &lines(is_own)),
                curve("others", &lines(is_other)),
            ],
        },
        Curves {
            title: "Own games",
            unit: "pieces",
            curves: vec![
                curve("longest", &|record| {
                    record.own_games.first().map(|&pieces| pieces as f64)
                }),
                curve("shortest", &|record| {
                    record.own_games.last().map(|&pieces| pieces as f64)
                }),
            ],
        },
        Curves {
            title: "Loss",
            unit: "Huber",
            curves: vec![
                curve("wells not seen before", &|record| Some(record.fresh_loss)),
                curve("training", &|record| Some(record.train_loss)),
                curve("held out", &|record| Some(record.held_out_loss)),
            ],
        },
        Curves {
            title: "Calibration",
            unit: "prediction minus target",
            curves: vec![curve("bias", &|record| Some(record.fresh_bias))],
        },
        Curves {
            title: "Time",
            unit: "seconds",
            curves: vec![
                curve("beams", &|record| Some(record.seconds[0])),
                curve("training", &|record| Some(record.seconds[1])),
                curve("examination", &|record| Some(record.seconds[2])),
            ],
        },
    ]
}
