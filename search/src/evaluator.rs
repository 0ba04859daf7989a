//! What a well is worth.
//!
//! Scores are integers, the greater the better, so that no processor and no order of additions can
//! change a frontier. Weights are decimals in files and on the command line; inside they are
//! multiples of 1/256, rounded to the nearest.

use crate::features::{self, Features, LANES, Rows};
use crate::patterns::Patterns;
use hatebeam_game::{Children, Clears, Emulator, MAX_HEIGHT, SimdLevel, Well};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Scores are in units of one over this.
pub const SCALE: f64 = 256.0;

/// The most wells looked at for one quiescence.
const MAX_QUIET_NODES: u32 = 256;

/// The weights of a sum that is *minimised*: what is bad counts positive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Weights {
    /// A hole: [`Features::holes`].
    pub holes: f64,
    /// An enclosed hole: [`Features::enclosed`].
    pub enclosed: f64,
    /// A line with enclosed holes: [`Features::enclosed_lines`].
    pub enclosed_lines: f64,
    /// A row that the surface is higher: [`Features::surface_height`].
    pub surface_height: f64,
    /// A row that the stack is higher: [`Features::stack_height`]. Not among the published ones.
    pub stack_height: f64,
    /// A row that neighbouring columns differ by: [`Features::bumpiness`]. Not among the published
    /// ones.
    pub bumpiness: f64,
    /// A run of empty cells in a row that can be cleared: [`Features::gaps`]. Not among the published
    /// ones.
    pub gaps: f64,
    /// A cell that differs from the one above it: [`Features::steps`]. Not among the published ones.
    pub steps: f64,
    /// A piece that can clear a line: [`hatebeam_game::Clears::pieces`].
    pub erasability: f64,
    /// The same, counted once more for S and Z, which HATETRIS gives most. Not among the published
    /// ones.
    pub erasability_sz: f64,
    /// A point of the game.
    pub score: f64,
}

impl Weights {
    /// The published weights of *knewjade*.
    pub const KNEWJADE: Weights = Weights {
        holes: 11.2106,
        enclosed: 83.7646,
        enclosed_lines: 83.7646,
        surface_height: -83.7646,
        stack_height: 0.0,
        bumpiness: 0.0,
        gaps: 0.0,
        steps: 0.0,
        erasability: -83.7646,
        erasability_sz: 0.0,
        score: -332.2211,
    };
}

impl Default for Weights {
    fn default() -> Self {
        Weights::KNEWJADE
    }
}

/// Which evaluator, as a run specification names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluatorKind {
    /// All features, holes counted only above the lowest row of the surface.
    Knewjade,
    /// `holes + 2 enclosed - 1,000,000 lines`, holes counted everywhere.
    Plain,
    /// The same without the lines.
    PlainHoles,
    /// Learned tables of small patterns: scores far more than the others at the same width.
    Patterns,
}

impl EvaluatorKind {
    /// All of them.
    pub const ALL: [EvaluatorKind; 4] = [
        EvaluatorKind::Knewjade,
        EvaluatorKind::Plain,
        EvaluatorKind::PlainHoles,
        EvaluatorKind::Patterns,
    ];

    /// The name in a run specification.
    pub const fn name(self) -> &'static str {
        match self {
            EvaluatorKind::Knewjade => "knewjade",
            EvaluatorKind::Plain => "plain",
            EvaluatorKind::PlainHoles => "plain-holes",
            EvaluatorKind::Patterns => "patterns",
        }
    }
}

/// Whether a child is worth the best that it can reach by clearing lines in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quiescence {
    /// It is worth what it is.
    Off,
    /// By the first piece that can clear exactly one line and no more, whichever piece comes. Hopes
    /// for too much: the enemy gives such a piece only where it must.
    Single,
    /// The same, but only in wells where each of the seven pieces can clear a line, so that the enemy
    /// cannot help it.
    Forced,
}

impl Quiescence {
    /// All of them.
    pub const ALL: [Quiescence; 3] = [Quiescence::Off, Quiescence::Single, Quiescence::Forced];

    /// The name in a run specification.
    pub const fn name(self) -> &'static str {
        match self {
            Quiescence::Off => "off",
            Quiescence::Single => "single",
            Quiescence::Forced => "forced",
        }
    }

    fn goes_on(self, clears: Clears) -> bool {
        match self {
            Quiescence::Off => false,
            Quiescence::Single => clears.single().is_some(),
            Quiescence::Forced => clears.pieces == ALL_PIECES && clears.single().is_some(),
        }
    }
}

/// An evaluator as a run specification has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluatorSpec {
    /// Which features.
    pub kind: EvaluatorKind,
    /// Weights; used by `knewjade` alone.
    #[serde(default)]
    pub weights: Weights,
    /// Whether it looks further where lines can be cleared.
    pub quiescence: Quiescence,
}

/// Why weights cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("the weight of {name} is {value}: it must be a number from -{limit} to {limit}")]
pub struct WeightError {
    /// The feature.
    pub name: &'static str,
    /// Its weight.
    pub value: f64,
    /// The greatest.
    pub limit: f64,
}

/// All seven pieces in [`hatebeam_game::Clears::pieces`].
const ALL_PIECES: u8 = 0x7f;
/// S and Z there.
const S_AND_Z: u8 = 0b11;

/// Weights in fixed point.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    holes: i32,
    enclosed: i32,
    enclosed_lines: i32,
    surface_height: i32,
    stack_height: i32,
    bumpiness: i32,
    gaps: i32,
    steps: i32,
    erasability: i32,
    erasability_sz: i32,
    score: i32,
    everywhere: bool,
}

/// The greatest weight, by size: with it, the features of no well bring the sum near the limit of 32
/// bits, and 2,047 points still fit (more are cut off there).
const MAX_WEIGHT: f64 = 4096.0;

impl Fixed {
    fn new(spec: &EvaluatorSpec) -> Result<Fixed, WeightError> {
        let plain = |score| Fixed {
            holes: -1,
            enclosed: -2,
            score,
            enclosed_lines: 0,
            surface_height: 0,
            stack_height: 0,
            bumpiness: 0,
            gaps: 0,
            steps: 0,
            erasability: 0,
            erasability_sz: 0,
            everywhere: true,
        };
        // A point must outweigh all holes: at most 3 × 256 of them.
        match spec.kind {
            EvaluatorKind::Plain => return Ok(plain(1_000_000)),
            // Patterns have weights of their own.
            EvaluatorKind::PlainHoles | EvaluatorKind::Patterns => return Ok(plain(0)),
            EvaluatorKind::Knewjade => {}
        }
        let fixed = |name, value: f64| {
            if value.is_nan() || value.abs() > MAX_WEIGHT {
                let limit = MAX_WEIGHT;
                return Err(WeightError { name, value, limit });
            }
            Ok(-(value * SCALE).round() as i32)
        };
        let weights = &spec.weights;
        Ok(Fixed {
            holes: fixed("holes", weights.holes)?,
            enclosed: fixed("enclosed", weights.enclosed)?,
            enclosed_lines: fixed("enclosed_lines", weights.enclosed_lines)?,
            surface_height: fixed("surface_height", weights.surface_height)?,
            stack_height: fixed("stack_height", weights.stack_height)?,
            bumpiness: fixed("bumpiness", weights.bumpiness)?,
            gaps: fixed("gaps", weights.gaps)?,
            steps: fixed("steps", weights.steps)?,
            erasability: fixed("erasability", weights.erasability)?,
            erasability_sz: fixed("erasability_sz", weights.erasability_sz)?,
            score: fixed("score", weights.score)?,
            everywhere: false,
        })
    }

    fn uses_clears(&self) -> bool {
        self.erasability != 0 || self.erasability_sz != 0
    }

    /// What a well is worth but for the pieces that can clear lines.
    #[inline]
    fn sum(&self, features: &Features, lines: u16) -> i32 {
        let [holes, enclosed, enclosed_lines] = if self.everywhere {
            features.all
        } else {
            [features.holes, features.enclosed, features.enclosed_lines]
        };
        let part = self.holes * i32::from(holes)
            + self.enclosed * i32::from(enclosed)
            + self.enclosed_lines * i32::from(enclosed_lines)
            + self.surface_height * i32::from(features.surface_height)
            + self.stack_height * i32::from(features.stack_height)
            + self.bumpiness * i32::from(features.bumpiness)
            + self.gaps * i32::from(features.gaps)
            + self.steps * i32::from(features.steps);
        part.saturating_add(self.score.saturating_mul(i32::from(lines)))
    }

    /// What the pieces that can clear lines add.
    #[inline]
    fn of_clears(&self, clears: Clears) -> i32 {
        self.erasability * clears.pieces.count_ones() as i32
            + self.erasability_sz * (clears.pieces & S_AND_Z).count_ones() as i32
    }
}

/// A well to be judged, for the child `root` of a batch.
#[derive(Clone, Copy)]
struct Pending {
    root: u32,
    lines: u16,
}

/// Scores batches of wells. One a thread: it has buffers of its own.
pub struct Evaluator {
    emulator: Emulator,
    level: SimdLevel,
    weights: Fixed,
    patterns: Option<&'static Patterns>,
    most_of_clears: i32,
    quiescence: Quiescence,
    children: Children,
    features: [Features; LANES],
    open: Rows,
    wells: Vec<Well>,
    pending: Vec<Pending>,
    next_wells: Vec<Well>,
    next: Vec<Pending>,
    seen: Vec<u32>,
}

impl Evaluator {
    /// An evaluator of wells of the emulator's geometry.
    ///
    /// # Errors
    /// [`WeightError`] if a weight is not a number or too great.
    pub fn new(emulator: &Emulator, spec: &EvaluatorSpec) -> Result<Evaluator, WeightError> {
        let level = emulator.level();
        assert!(
            SimdLevel::available().any(|has| has == level),
            "an emulator exists only at a level the processor has"
        );
        let weights = Fixed::new(spec)?;
        let patterns = (spec.kind == EvaluatorKind::Patterns).then(Patterns::standard);
        Ok(Evaluator {
            emulator: emulator.clone(),
            level,
            weights,
            patterns,
            most_of_clears: most_of_clears(|clears| match patterns {
                Some(patterns) => patterns.of_clears(clears),
                None => weights.of_clears(clears),
            }),
            quiescence: spec.quiescence,
            children: Children::new(),
            features: [Features::default(); LANES],
            open: [[0; LANES]; MAX_HEIGHT],
            wells: Vec::new(),
            pending: Vec::new(),
            next_wells: Vec::new(),
            next: Vec::new(),
            seen: Vec::new(),
        })
    }

    /// The scores of `wells`, each with the game's score so far, into `out` (emptied first).
    pub fn score(&mut self, wells: &[Well], lines: &[u16], out: &mut Vec<i32>) {
        self.score_from(i32::MIN, wells, lines, out);
    }

    /// The same where only scores of `floor` and more matter: what is worth less may be given as
    /// [`i32::MIN`], which is less work.
    pub fn score_from(&mut self, floor: i32, wells: &[Well], lines: &[u16], out: &mut Vec<i32>) {
        // With quiescence even the worst may come to something.
        let floor = match self.quiescence {
            Quiescence::Off => floor,
            _ => i32::MIN,
        };
        assert_eq!(wells.len(), lines.len(), "one number of lines per well");
        out.clear();
        out.resize(wells.len(), i32::MIN);
        self.seen.clear();
        self.seen.resize(wells.len(), 0);
        self.wells.clear();
        self.wells.extend_from_slice(wells);
        self.pending.clear();
        self.pending.extend(
            lines
                .iter()
                .zip(0..)
                .map(|(&lines, root)| Pending { root, lines }),
        );
        // Breadth first, so that features are always counted for many wells at a time. What becomes
        // of one child does not depend on the others in the batch.
        while !self.wells.is_empty() {
            self.score_generation(floor, out);
            std::mem::swap(&mut self.wells, &mut self.next_wells);
            std::mem::swap(&mut self.pending, &mut self.next);
            self.next_wells.clear();
            self.next.clear();
        }
    }

    fn score_generation(&mut self, floor: i32, out: &mut [i32]) {
        let geometry = self.emulator.geometry();
        let wants_clears = self.quiescence != Quiescence::Off
            || self.patterns.is_some()
            || self.weights.uses_clears();
        for (wells, pending) in self.wells.chunks(LANES).zip(self.pending.chunks(LANES)) {
            features::count_open(
                self.level,
                geometry,
                wells,
                &mut self.features,
                &mut self.open,
            );
            let judged = wells.iter().zip(pending).zip(&self.features);
            for (lane, ((well, at), features)) in judged.enumerate() {
                let mut score = match self.patterns {
                    Some(patterns) => patterns.sum(well, &self.open, lane, features, at.lines),
                    None => self.weights.sum(features, at.lines),
                };
                // Which pieces can clear a line is half of the work: it is asked only where the answer
                // could matter.
                if score.saturating_add(self.most_of_clears) < floor {
                    continue;
                }
                if wants_clears {
                    let quiet = (self.quiescence != Quiescence::Off).then_some(&mut self.children);
                    let lowest = usize::from(features.surface_height);
                    let clears = self.emulator.clears(well, lowest, quiet);
                    score = score.saturating_add(match self.patterns {
                        Some(patterns) => patterns.of_clears(clears),
                        None => self.weights.of_clears(clears),
                    });
                    if self.quiescence.goes_on(clears) {
                        let seen = &mut self.seen[at.root as usize];
                        for (child, lines) in self.children.iter() {
                            if *seen < MAX_QUIET_NODES {
                                *seen += 1;
                                self.next_wells.push(*child);
                                self.next.push(Pending {
                                    root: at.root,
                                    lines: at.lines.saturating_add(u16::from(lines)),
                                });
                            }
                        }
                    }
                }
                let best = &mut out[at.root as usize];
                *best = (*best).max(score);
            }
        }
    }
}

/// The most that any set of clearing pieces adds.
fn most_of_clears(of_clears: impl Fn(Clears) -> i32) -> i32 {
    let sets = (0..=ALL_PIECES).flat_map(|pieces| {
        let several = (0..=ALL_PIECES).filter(move |several| several & !pieces == 0);
        several.map(move |several| Clears { pieces, several })
    });
    sets.map(of_clears).max().unwrap_or(0)
}
