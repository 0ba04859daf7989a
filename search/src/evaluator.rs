//! The evaluators, which assign scores to wells.
//!
//! Scores are integers, so they do not depend on the processor or on the order of additions. A
//! greater score is better. The weights of the evaluator `knewjade` are decimal numbers in files
//! and on the command line, and are rounded to multiples of 1/256 here.

use crate::features::{self, Features, LANES, Rows};
use crate::generation::{Generation, Reached};
use crate::network::{Described, Network, NetworkDigest, NetworkScorer, RowInputs};
use crate::patterns::{ALL_PIECES, Memory, Patterns, S_AND_Z};
use hatebeam_game::{
    Children, Clears, Emulator, Follow, Geometry, MAX_HEIGHT, Piece, SimdLevel, Well,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;

/// Number of score units that represent a weight of 1.
pub const SCALE: f64 = 256.0;

/// Maximum number of wells that the [`Quiescence`] search scores for one child, in addition to the child.
const MAX_QUIESCENCE_NODES: u32 = 256;

/// The weights of the evaluator `knewjade`, which a player with this name published. A well with a
/// *lower* weighted sum is better, so features of bad wells have positive weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Weights {
    /// Weight of a hole: [`Features::holes`].
    pub holes: f64,
    /// Weight of an enclosed cell: [`Features::enclosed`].
    pub enclosed: f64,
    /// Weight of a row that contains enclosed cells: [`Features::enclosed_lines`].
    pub enclosed_lines: f64,
    /// Weight of one row of surface height: [`Features::surface_height`].
    pub surface_height: f64,
    /// Weight of one row of stack height: [`Features::stack_height`]. Not part of the published
    /// evaluator.
    pub stack_height: f64,
    /// Weight of one row of height difference between neighbouring columns:
    /// [`Features::bumpiness`]. Not part of the published evaluator.
    pub bumpiness: f64,
    /// Weight of a run of empty cells in a row without enclosed cells: [`Features::gaps`]. Not part of
    /// the published evaluator.
    pub gaps: f64,
    /// Weight of a cell that differs from the cell above it: [`Features::steps`]. Not part of the
    /// published evaluator.
    pub steps: f64,
    /// Weight of a piece that can clear a line: [`hatebeam_game::Clears::pieces`].
    pub erasability: f64,
    /// Additional weight of S and Z, the pieces that HATETRIS gives most often, if they can clear a
    /// line. Not part of the published evaluator.
    pub erasability_sz: f64,
    /// Weight of a cleared line.
    pub score: f64,
}

impl Weights {
    /// Maximum absolute value of a weight. At this limit, the weighted features of any well are far below the 32-bit limit,
    /// and a score saturates only after about 2,047 lines.
    pub const MAX: f64 = 4096.0;

    /// The weights that *knewjade* published.
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

/// The kind of an evaluator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluatorKind {
    /// The sum of all features weighted by [`Weights`]. Rows below the lowest cell that pieces can still
    /// reach do not contribute holes or enclosed cells.
    Knewjade,
    /// Prefers wells with a low `holes + 2 × enclosed - 1,000,000 × lines`, counted in all rows.
    Plain,
    /// Prefers wells with a low `holes + 2 × enclosed`, counted in all rows.
    PlainHoles,
    /// A sum over learned tables of small patterns. At the same beam width, games found with it clear
    /// about twice as many lines as games found with `knewjade`.
    Patterns,
    /// The network with this digest.
    Network(NetworkDigest),
}

impl EvaluatorKind {
    /// All evaluator kinds except networks.
    pub const ALL: [EvaluatorKind; 4] = [
        EvaluatorKind::Knewjade,
        EvaluatorKind::Plain,
        EvaluatorKind::PlainHoles,
        EvaluatorKind::Patterns,
    ];

    /// Returns the evaluator of a run that names none. For wells of 10 columns it is the network [`Network::DEFAULT`],
    /// which was trained on 16 rows. For other wells it is `patterns`.
    ///
    /// With 10 columns, 6, 8 and 10 to 15 rows, and widths of 500 to 2,000, the network places up to 37 % more pieces than
    /// `patterns`, and fewer in one of 24 searches. With 5, 7, 8 and 9 columns and 16 rows, it places fewer. With 6, 11 and 12
    /// columns, it depends on the width which is better, and with 14 columns and 11 rows, the network is.
    pub fn default_for(geometry: Geometry) -> EvaluatorKind {
        let trained = geometry.width() == Geometry::STANDARD.width();
        let shipped = Network::shipped(Network::DEFAULT).filter(|_| trained);
        shipped.map_or(EvaluatorKind::Patterns, |network| {
            EvaluatorKind::Network(network.digest())
        })
    }

    /// Returns the name in a run specification.
    pub const fn name(self) -> &'static str {
        match self {
            EvaluatorKind::Knewjade => "knewjade",
            EvaluatorKind::Plain => "plain",
            EvaluatorKind::PlainHoles => "plain-holes",
            EvaluatorKind::Patterns => "patterns",
            EvaluatorKind::Network(_) => "network",
        }
    }
}

/// The setting of the quiescence search, which continues from a child with pieces that clear lines,
/// and scores the wells that it reaches. The final score of the child is the highest of its own score
/// and these scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quiescence {
    /// No quiescence search: each child keeps its own score.
    #[default]
    Off,
    /// Clears lines with the piece that [`Clears::single`] returns, even if the enemy would give a
    /// different piece. This is too optimistic, because the enemy gives a piece that clears lines only
    /// if it has no alternative.
    Single,
    /// Like [`Quiescence::Single`], but only in wells in which all seven pieces can clear a line,
    /// so that the enemy cannot prevent a clear.
    Forced,
    /// Clears lines with the piece that [`Clears::first`] returns. In nearly all wells this piece
    /// is S, which HATETRIS gives more than half of the time. The published searches that set score
    /// records used this setting.
    First,
    /// Like [`Quiescence::First`], but only for the children that are best by their own scores: three for each well that a
    /// depth keeps. All other children are dropped before the quiescence search.
    FirstOfBest,
}

impl Quiescence {
    /// All values.
    pub const ALL: [Quiescence; 5] = [
        Quiescence::Off,
        Quiescence::Single,
        Quiescence::Forced,
        Quiescence::First,
        Quiescence::FirstOfBest,
    ];

    /// Returns the name in a run specification.
    pub const fn name(self) -> &'static str {
        match self {
            Quiescence::Off => "off",
            Quiescence::Single => "single",
            Quiescence::Forced => "forced",
            Quiescence::First => "first",
            Quiescence::FirstOfBest => "first-of-best",
        }
    }

    /// Returns the number of children for each well that a depth keeps for which the quiescence search is done, or `None`
    /// if it is done for all children. The others are dropped by their own scores.
    ///
    /// With `chains` and widths of 1,000 to 11,000, two children for each well lose up to a quarter of the pieces, and three
    /// none.
    pub const fn children_per_well(self) -> Option<usize> {
        match self {
            Quiescence::FirstOfBest => Some(3),
            _ => None,
        }
    }

    /// Returns a function that chooses the piece with which the quiescence search continues.
    fn choice(self) -> fn(Clears) -> Option<Piece> {
        match self {
            Quiescence::Off => |_| None,
            Quiescence::Single => Clears::single,
            Quiescence::Forced => |clears| match clears.pieces {
                ALL_PIECES => clears.single(),
                _ => None,
            },
            Quiescence::First | Quiescence::FirstOfBest => Clears::first,
        }
    }
}

/// The specification of an evaluator. It is part of a run specification.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluatorSpec {
    /// The kind of evaluator.
    pub kind: EvaluatorKind,
    /// The weights. Only `knewjade` uses them.
    #[serde(default)]
    pub weights: Weights,
    /// The setting of the quiescence search.
    pub quiescence: Quiescence,
}

/// Error for a weight that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("the weight of {name} is {value}: it must be a number from -{limit} to {limit}")]
pub struct WeightError {
    /// Name of the feature.
    pub name: &'static str,
    /// The weight.
    pub value: f64,
    /// Maximum absolute value of a weight.
    pub limit: f64,
}

/// Error for an evaluator that cannot be created.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum EvaluatorError {
    /// A weight is out of range.
    #[error(transparent)]
    Weight(#[from] WeightError),
    /// The network is not available.
    #[error("network {0} is not available: pass its file with --evaluator")]
    UnknownNetwork(NetworkDigest),
}

/// Weights in fixed-point form, negated so that a greater sum is better.
#[derive(Clone, Copy, Debug)]
struct FixedWeights {
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
    /// Whether holes and enclosed cells in all rows count ([`Features::all`]).
    all_rows: bool,
}

impl FixedWeights {
    fn new(spec: &EvaluatorSpec) -> Result<FixedWeights, WeightError> {
        let plain = |score| FixedWeights {
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
            all_rows: true,
        };
        match spec.kind {
            // One line outweighs all holes and enclosed cells, whose weighted sum is at most 3 × 256.
            EvaluatorKind::Plain => return Ok(plain(1_000_000)),
            // Patterns and networks have their own weights and do not use these.
            EvaluatorKind::PlainHoles | EvaluatorKind::Patterns | EvaluatorKind::Network(_) => {
                return Ok(plain(0));
            }
            EvaluatorKind::Knewjade => {}
        }
        let fixed = |name, value: f64| {
            if value.is_nan() || value.abs() > Weights::MAX {
                let limit = Weights::MAX;
                return Err(WeightError { name, value, limit });
            }
            Ok(-(value * SCALE).round() as i32)
        };
        let weights = &spec.weights;
        Ok(FixedWeights {
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
            all_rows: false,
        })
    }

    fn uses_clears(&self) -> bool {
        self.erasability != 0 || self.erasability_sz != 0
    }

    /// Returns the score of a well without the part that depends on the pieces that can clear
    /// lines.
    #[inline]
    fn sum(&self, features: &Features, lines: u16) -> i32 {
        let [holes, enclosed, enclosed_lines] = if self.all_rows {
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

    /// Returns the part of the score that depends on the pieces that can clear lines.
    #[inline]
    fn clears_score(&self, clears: Clears) -> i32 {
        self.erasability * clears.pieces.count_ones() as i32
            + self.erasability_sz * (clears.pieces & S_AND_Z).count_ones() as i32
    }
}

/// Scores batches of wells. Scoring changes internal buffers, so each thread needs its own evaluator.
pub struct Evaluator {
    emulator: Emulator,
    level: SimdLevel,
    weights: FixedWeights,
    patterns: Option<&'static Patterns>,
    memory: Memory,
    network: Option<NetworkScorer>,
    /// The inputs of the network for the rows of several wells.
    rows: Box<RowInputs>,
    /// Maximum of the part of a score that depends on which pieces can clear lines.
    max_clears_score: i32,
    quiescence: Quiescence,
    children: Children,
    features: [Features; LANES],
    open: Rows,
    /// The wells that are being scored.
    generation: Generation,
    /// The wells that quiescence reaches from `generation`.
    next: Generation,
    /// Indices into `next`: first the wells reached from the first well in `generation`, and so on.
    followers: Vec<u32>,
    /// For each well in `generation`, the end of its part of `followers`.
    ends: Vec<usize>,
    /// The scores of the wells in `generation`.
    scores: Vec<i32>,
    /// For each well in `generation`, the lowest score that can change a result.
    needed: Vec<i32>,
    reached: Vec<Reached>,
    next_reached: Vec<Reached>,
    /// For each child, the number of additional wells that quiescence has scored.
    added: Vec<u32>,
    /// For each child, the well with the highest score so far.
    leaves: Vec<Well>,
}

impl EvaluatorSpec {
    /// Returns the specification of an evaluator with the published weights.
    pub fn new(kind: EvaluatorKind, quiescence: Quiescence) -> EvaluatorSpec {
        EvaluatorSpec {
            kind,
            weights: Weights::default(),
            quiescence,
        }
    }

    /// Checks the weights. Does not check that a network is available.
    ///
    /// # Errors
    /// Returns [`EvaluatorError::Weight`] if a weight is not a number or is out of range.
    pub fn check(&self) -> Result<(), EvaluatorError> {
        FixedWeights::new(self)?;
        Ok(())
    }
}

impl Evaluator {
    /// Creates an evaluator for wells of the emulator's geometry.
    ///
    /// # Errors
    /// Returns [`EvaluatorError`] if a weight is not a number or is out of range, or if the network is
    /// not [available](Network::find).
    pub fn new(emulator: &Emulator, spec: &EvaluatorSpec) -> Result<Evaluator, EvaluatorError> {
        if let EvaluatorKind::Network(digest) = spec.kind {
            let network = Network::find(digest).ok_or(EvaluatorError::UnknownNetwork(digest))?;
            return Ok(Evaluator::with_network(emulator, network, spec.quiescence));
        }
        let level = emulator.level();
        assert!(
            SimdLevel::available().any(|has| has == level),
            "the processor supports the SIMD level of the emulator"
        );
        let weights = FixedWeights::new(spec)?;
        let patterns = (spec.kind == EvaluatorKind::Patterns).then(Patterns::standard);
        Ok(Evaluator {
            emulator: emulator.clone(),
            level,
            weights,
            patterns,
            memory: Memory::new(),
            network: None,
            rows: Box::new(RowInputs::new()),
            max_clears_score: max_clears_score(|clears| match patterns {
                Some(patterns) => patterns.clears_score(clears),
                None => weights.clears_score(clears),
            }),
            quiescence: spec.quiescence,
            children: Children::new(),
            features: [Features::default(); LANES],
            open: [[0; LANES]; MAX_HEIGHT],
            generation: Generation::default(),
            next: Generation::default(),
            followers: Vec::new(),
            ends: Vec::new(),
            scores: Vec::new(),
            needed: Vec::new(),
            reached: Vec::new(),
            next_reached: Vec::new(),
            added: Vec::new(),
            leaves: Vec::new(),
        })
    }

    /// Creates an evaluator that uses a network.
    pub fn with_network(
        emulator: &Emulator,
        network: Arc<Network>,
        quiescence: Quiescence,
    ) -> Evaluator {
        let spec = EvaluatorSpec::new(EvaluatorKind::PlainHoles, quiescence);
        let mut evaluator = Evaluator::new(emulator, &spec).expect("plain weights are in range");
        evaluator.network = Some(NetworkScorer::new(network));
        evaluator
    }

    /// Replaces the contents of `out` with the scores of `wells`. For each well, `lines` contains the
    /// number of lines cleared so far.
    pub fn score(&mut self, wells: &[Well], lines: &[u16], out: &mut Vec<i32>) {
        self.score_from(i32::MIN, wells, lines, out);
    }

    /// Like [`Evaluator::score`], but instead of a score below `floor`, a lower one may be returned, which saves work.
    /// The leaf of such a score is then unknown.
    pub fn score_from(&mut self, floor: i32, wells: &[Well], lines: &[u16], out: &mut Vec<i32>) {
        assert_eq!(wells.len(), lines.len(), "each well has a line count");
        self.generation.clear();
        self.generation.wells.extend_from_slice(wells);
        self.generation.lines.extend_from_slice(lines);
        self.leaves.clear();
        self.leaves.extend_from_slice(wells);
        self.needed.clear();
        self.needed.resize(wells.len(), floor);
        self.score_generation(out);
        if self.quiescence == Quiescence::Off {
            return;
        }
        self.added.clear();
        self.added.resize(wells.len(), 0);
        self.reached.clear();
        let roots = (0..wells.len() as u32).map(|root| Reached { root, well: root });
        self.reached.extend(roots);
        // The search is breadth-first, so that features are always counted for many wells at a
        // time. A third of the wells are reached more than once, because different orders of the
        // same clears lead to the same well. Each well is scored only once. The score of a child does
        // not depend on the other children in the batch.
        loop {
            self.follow();
            if self.reached.is_empty() {
                return;
            }
            self.find_needed(floor, out);
            let mut scores = std::mem::take(&mut self.scores);
            self.score_generation(&mut scores);
            for reached in &self.reached {
                let (root, score) = (reached.root as usize, scores[reached.well as usize]);
                if score > out[root] {
                    out[root] = score;
                    self.leaves[root] = self.generation.wells[reached.well as usize];
                }
            }
            self.scores = scores;
        }
    }

    /// Like [`Evaluator::score_from`], but without quiescence: each child keeps its own score.
    pub fn score_own_from(
        &mut self,
        floor: i32,
        wells: &[Well],
        lines: &[u16],
        out: &mut Vec<i32>,
    ) {
        let quiescence = std::mem::replace(&mut self.quiescence, Quiescence::Off);
        self.score_from(floor, wells, lines, out);
        self.quiescence = quiescence;
    }

    /// Returns the setting of the quiescence search.
    pub fn quiescence(&self) -> Quiescence {
        self.quiescence
    }

    /// Replaces `generation` with `next`, and `reached` with the wells that are reached in the new
    /// generation, up to [`MAX_QUIESCENCE_NODES`] in total for each child.
    fn follow(&mut self) {
        self.next_reached.clear();
        for reached in &self.reached {
            let well = reached.well as usize;
            let begin = well.checked_sub(1).map_or(0, |before| self.ends[before]);
            let followers = &self.followers[begin..self.ends[well]];
            let added = &mut self.added[reached.root as usize];
            let room = MAX_QUIESCENCE_NODES - *added;
            let followers = followers.iter().take(room as usize);
            *added += followers.len() as u32;
            let root = reached.root;
            let next = followers.map(|&well| Reached { root, well });
            self.next_reached.extend(next);
        }
        std::mem::swap(&mut self.reached, &mut self.next_reached);
        std::mem::swap(&mut self.generation, &mut self.next);
    }

    /// Finds the lowest scores of wells in `generation` that raise the score of a child to at least `floor`. `scores`
    /// contains the scores of the children so far.
    fn find_needed(&mut self, floor: i32, scores: &[i32]) {
        self.needed.clear();
        self.needed.resize(self.generation.wells.len(), i32::MAX);
        for reached in &self.reached {
            let higher = scores[reached.root as usize].saturating_add(1);
            let needed = &mut self.needed[reached.well as usize];
            *needed = (*needed).min(higher.max(floor));
        }
    }

    /// Returns the source of each score in the last batch: the well itself, or a well that quiescence
    /// reached from it.
    pub fn leaves(&self) -> &[Well] {
        &self.leaves
    }

    /// Returns whether the scores depend on the pieces that can clear lines.
    fn uses_clears(&self) -> bool {
        let network = self.network.as_ref();
        self.patterns.is_some()
            || network.is_some_and(NetworkScorer::sees_clears)
            || self.weights.uses_clears()
    }

    /// Replaces the contents of `out` with the scores of the wells in `generation`, or with [`i32::MIN`] where a score is
    /// below the one in `needed`. Fills `next`, `followers` and `ends`.
    fn score_generation(&mut self, out: &mut Vec<i32>) {
        let is_off = self.quiescence == Quiescence::Off;
        let generation = std::mem::take(&mut self.generation);
        out.clear();
        out.resize(generation.wells.len(), i32::MIN);
        self.next.clear();
        self.followers.clear();
        self.ends.clear();
        for (first, wells) in (0..).step_by(LANES).zip(generation.wells.chunks(LANES)) {
            features::count_open(
                self.level,
                self.emulator.geometry(),
                wells,
                &mut self.features,
                &mut self.open,
                self.network.is_some().then_some(&mut *self.rows),
            );
            for (lane, well) in wells.iter().enumerate() {
                let index: usize = first + lane;
                let lines = generation.lines[index];
                let begun = self.begin(well, lane, lines);
                let matters = begun.bound >= self.needed[index];
                if !matters && is_off {
                    continue;
                }
                let (clears, is_followed) = self.find_clears(well, lane, matters);
                if matters {
                    out[index] = begun.score.saturating_add(self.clears_score(clears));
                }
                if is_followed {
                    for (child, more) in self.children.iter() {
                        let lines = lines.saturating_add(u16::from(more));
                        self.followers.push(self.next.insert(child, lines));
                    }
                }
                if !is_off {
                    self.ends.push(self.followers.len());
                }
            }
        }
        self.generation = generation;
    }

    /// Begins to score a well, whose features are in `lane`.
    #[inline]
    fn begin(&mut self, well: &Well, lane: usize, lines: u16) -> Begun {
        let features = &self.features[lane];
        if let Some(network) = &mut self.network {
            let rows = &self.rows;
            let described = Described {
                rows,
                lane,
                features,
            };
            let bound = network.begin(self.level, &described);
            return Begun { score: 0, bound };
        }
        let score = match self.patterns {
            Some(patterns) => {
                let (memory, open) = (&mut self.memory, &self.open);
                patterns.sum(memory, well, open, lane, features, lines)
            }
            None => self.weights.sum(features, lines),
        };
        let bound = score.saturating_add(self.max_clears_score);
        Begun { score, bound }
    }

    /// Returns the pieces that can clear lines, and whether the quiescence search continues from the well. If it does,
    /// `children` contains the wells that it reaches. `matters` tells whether the score of the well depends on the pieces.
    #[inline]
    fn find_clears(&mut self, well: &Well, lane: usize, matters: bool) -> (Clears, bool) {
        let lowest = usize::from(self.features[lane].surface_height);
        let is_scored = matters && self.uses_clears();
        let children = &mut self.children;
        match self.quiescence {
            Quiescence::Off if is_scored => (self.emulator.clears(well, lowest, None), false),
            Quiescence::Off => (Clears::default(), false),
            // In beams of 3,000 wells with `first`, one of ten wells can raise the score of a child enough. Finding only
            // the first piece for the others saves 8 % of the time of a step.
            Quiescence::First | Quiescence::FirstOfBest if !is_scored => {
                let first = self.emulator.first_clear(well, lowest, children);
                (Clears::default(), first.is_some())
            }
            quiescence => {
                let choose = quiescence.choice();
                let follow = Some(Follow { choose, children });
                let clears = self.emulator.clears(well, lowest, follow);
                (clears, choose(clears).is_some())
            }
        }
    }

    /// Returns the part of the score that depends on the pieces that can clear lines, for the well that was last passed
    /// to [`Evaluator::begin`].
    #[inline]
    fn clears_score(&self, clears: Clears) -> i32 {
        match (&self.network, self.patterns) {
            (Some(network), _) => network.finish(self.level, clears),
            (None, Some(patterns)) => patterns.clears_score(clears),
            (None, None) => self.weights.clears_score(clears),
        }
    }
}

/// A well that is being scored.
struct Begun {
    /// The score without the part that depends on the pieces that can clear lines.
    score: i32,
    /// An upper bound of the whole score.
    bound: i32,
}

/// Returns the maximum of `clears_score`.
fn max_clears_score(clears_score: impl Fn(Clears) -> i32) -> i32 {
    Clears::all().map(clears_score).max().unwrap_or(0)
}
