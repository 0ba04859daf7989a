//! Human-readable output: a table with one row per generation, and an HTML report with curves.

use crate::exam::ExamResult;
use crate::recipe::Player;
use crate::trainer::{BeamRecord, GenerationRecord, Trainer};
use hatebeam_report::{Curve, Curves, duration, training_page};
use std::time::Duration;

/// Header of the table whose rows [`GenerationRecord::row`] returns.
pub const TABLE_HEADER: &str =
    " gen    own    others  new loss    bias  held out      time  exam  longest\n";
/// Size from which values are not plotted. Only forged checkpoints contain them, and an axis has no labels for them.
const TOO_LARGE: f64 = 1e15;

impl GenerationRecord {
    /// Returns the table row of the generation, including the line break at its end.
    pub fn row(&self) -> String {
        let loss = |loss: Option<f64>| or_dash(loss.map(|loss| format!("{loss:.4}")));
        format!(
            "{:>4}  {:>5}  {:>8}  {:>8}  {:>6}  {:>8}  {:>8}  {:>4}  {:>7}\n",
            self.generation,
            or_dash(most_lines(&self.beams, is_own)),
            or_dash(most_lines(&self.beams, is_other)),
            loss(self.fresh_loss),
            or_dash(self.fresh_bias.map(|bias| format!("{bias:+.3}"))),
            loss(self.held_out_loss),
            time(self.seconds),
            or_dash(median(&self.exam)),
            or_dash(self.own_games.first()),
        )
    }
}

impl Trainer {
    /// Returns the report of the training run as HTML.
    pub fn report(&self) -> String {
        let records = self.records();
        let seconds = records.iter().flat_map(|record| record.seconds);
        let samples = records.iter().map(|record| record.samples);
        let samples = samples.fold(0, usize::saturating_add);
        let recipe = serde_json::to_string(self.recipe()).unwrap_or_default();
        let facts = [
            ("Network", self.network().digest().to_string()),
            ("Wells", samples.to_string()),
            ("Time", time(seconds)),
            ("Recipe", recipe),
        ];
        let generations = format!("{} generations", records.len());
        let has_points = |plot: &Curves| plot.curves.iter().any(|curve| !curve.points.is_empty());
        let plots: Vec<Curves> = plots(records).into_iter().filter(has_points).collect();
        training_page(&generations, &facts, &plots)
    }
}

/// Returns the sum of durations as text. The sum of durations in a forged checkpoint may be out of range.
fn time(seconds: impl IntoIterator<Item = f64>) -> String {
    let time = Duration::try_from_secs_f64(seconds.into_iter().sum());
    duration(time.unwrap_or_default())
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
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
            .filter(|(_, value)| value.abs() < TOO_LARGE)
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
                curve("wells not seen before", &|record| record.fresh_loss),
                curve("training", &|record| Some(record.train_loss)),
                curve("held out", &|record| record.held_out_loss),
            ],
        },
        Curves {
            title: "Calibration",
            unit: "prediction minus target",
            curves: vec![curve("bias", &|record| record.fresh_bias)],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    /// Returns a record with a JSON that earlier versions wrote.
    fn record() -> GenerationRecord {
        let json = concat!(
            r#"{"generation":7,"beams":[],"samples":5,"fresh_loss":0.12346,"fresh_bias":-0.5,"train_loss":0.2,"#,
            r#""held_out_loss":0.03,"data_digest":"00","seconds":[1.0,2.0,3.0],"exam":[]}"#
        );
        let record: GenerationRecord = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), json);
        record
    }

    fn report(records: Vec<GenerationRecord>) -> String {
        let mut trainer = Trainer::new(Recipe::default()).unwrap();
        trainer.records = records;
        trainer.report()
    }

    #[test]
    fn losses_without_held_out_samples_are_missing() {
        let mut record = record();
        let cells = |record: &GenerationRecord| {
            let row = record.row();
            assert_eq!(row.len(), TABLE_HEADER.len(), "{row}");
            let cells = row.split_whitespace().map(str::to_owned);
            cells.collect::<Vec<String>>()[3..6].to_vec()
        };
        assert_eq!(cells(&record), ["0.1235", "-0.500", "0.0300"]);
        assert!(report(vec![record.clone()]).contains("7:0.030"));
        record.fresh_loss = None;
        record.fresh_bias = None;
        record.held_out_loss = None;
        assert_eq!(cells(&record), ["-"; 3]);
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(
            serde_json::from_str::<GenerationRecord>(&json).unwrap(),
            record
        );
        let page = report(vec![record]);
        assert!(
            page.contains("7:0.200") && !page.contains("Calibration"),
            "{page}"
        );
    }

    #[test]
    fn records_of_forged_checkpoint_are_reported() {
        for seconds in [[-1.0, 0.0, 0.0], [1e300; 3], [f64::MAX; 3]] {
            let forged = GenerationRecord {
                samples: usize::MAX,
                fresh_loss: Some(1e300),
                seconds,
                ..record()
            };
            assert!(forged.row().contains("  0 ms  "), "{}", forged.row());
            let page = report(vec![forged; 2]);
            assert!(page.contains(&usize::MAX.to_string()), "{page}");
        }
    }
}
