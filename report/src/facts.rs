//! What there is to say of a run, wherever it was searched.

use crate::words::grouped;
use hatebeam_game::Geometry;

/// What there is to say of a run.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The run's name.
    pub run: String,
    /// The beam's width.
    pub width: u64,
    /// The evaluator's name.
    pub evaluator: &'static str,
    /// The name of its quiescence.
    pub quiescence: &'static str,
    /// What is searched, as JSON.
    pub spec: String,
    /// The size of its wells.
    pub geometry: Geometry,
    /// Whether it has ended, and why.
    pub end: End,
    /// The committed depths, ascending.
    pub depths: Vec<DepthFacts>,
    /// The digest of the last of them.
    pub digest: String,
    /// What is stored of it.
    pub stored_bytes: u64,
    /// The scores of a whole depth, where they are at hand; or why they cannot be read.
    pub scores: Option<Result<Scores, String>>,
}

/// Whether a run has ended, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It goes on, or could.
    Open,
    /// No well of the last depth has a child that is alive.
    Over,
    /// It was stopped before, by the limit of this name, such as `max-depth`.
    Stopped(String),
}

impl End {
    /// The one of this name: `over`, or the limit that stopped it.
    pub fn of(name: &str) -> End {
        match name {
            "over" => End::Over,
            limit => End::Stopped(limit.to_owned()),
        }
    }

    /// In words.
    pub fn words(&self) -> String {
        match self {
            End::Open => "not finished".to_owned(),
            End::Over => "searched to the end".to_owned(),
            End::Stopped(limit) => match limit.as_str() {
                "max-depth" => "searched to the depth it was to stop at".to_owned(),
                "max-cost" => "stopped when it had cost what it may cost".to_owned(),
                "max-hours" => "stopped when it had taken the time it may take".to_owned(),
                other => format!("stopped: {other}"),
            },
        }
    }
}

/// What is known of a committed depth. Scores are the evaluator's.
#[derive(Clone, Debug, PartialEq)]
pub struct DepthFacts {
    /// How many pieces were placed.
    pub depth: u32,
    /// Wells.
    pub count: u64,
    /// The greatest score.
    pub best_eval: i32,
    /// The median of the scores.
    pub median_eval: i32,
    /// The least score.
    pub worst_eval: i32,
    /// The most lines of a game.
    pub lines: u32,
    /// The height of that game's stack.
    pub height: usize,
    /// Children that were made.
    pub children: u64,
    /// How long that took.
    pub seconds: f64,
    /// Bytes of its tables that are there.
    pub bytes: u64,
}

/// How the scores of a depth are distributed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scores {
    /// The depth.
    pub depth: u32,
    /// Its wells.
    pub count: u64,
    /// How many of them have the least score.
    pub at_cut: usize,
    /// Their median.
    pub median: i32,
    /// All scores, or evenly chosen ones.
    pub values: Vec<i32>,
}

impl Facts {
    /// The most lines of any game.
    pub fn lines(&self) -> u32 {
        self.depths
            .iter()
            .map(|depth| depth.lines)
            .max()
            .unwrap_or(0)
    }

    /// What was searched, as a person says it.
    pub fn about(&self) -> String {
        format!(
            "a beam of {} wells, evaluator {}, quiescence {}",
            grouped(self.width),
            self.evaluator,
            self.quiescence
        )
    }
}
