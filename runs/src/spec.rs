//! The specification of a run.
//!
//! A specification contains everything that can change a frontier (the wells kept at a depth), and nothing else. Runs
//! with equal specifications have equal frontiers on every machine and with any number of threads.

use crate::retention::{NotRetention, Retention};
use hatebeam_game::{
    Emulator, Encoding, Enemy, Geometry, GeometryError, ReplayError, Rules, Well, WellError, play,
};
use hatebeam_search::{EvaluatorError, EvaluatorSpec, Fingerprint, NodeWell, fnv1a};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Maximum width. At this width, the indices of wells fit in 32 bits.
pub const MAX_WIDTH: u64 = 1 << 30;

/// Specification of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Width of the beam: the maximum number of wells in a frontier.
    pub width: u64,
    /// Size of the well and variants of the rules.
    pub well: WellSpec,
    /// Start of the search.
    pub start: Start,
    /// Evaluator of the wells.
    pub evaluator: EvaluatorSpec,
    /// Whether the search applies the loop rule. Specifications that ignore the rule do not contain this field.
    #[serde(default, skip_serializing_if = "LoopRule::is_ignored")]
    pub loops: LoopRule,
    /// Fingerprint of the search algorithm. Specifications that version 0.1.0 wrote do not contain it.
    #[serde(default = "Fingerprint::first")]
    pub search: Fingerprint,
}

/// Whether a search applies the loop rule of HATETRIS, which changes a piece if a well of the game would occur
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoopRule {
    /// The search expands wells like HATETRIS Mild. A game that was read back is cut short at the first piece that
    /// the loop rule changes.
    #[default]
    Ignore,
    /// Each well gets the piece that HATETRIS gives in the game that leads to the well.
    Exact,
}

impl LoopRule {
    /// All values.
    pub const ALL: [LoopRule; 2] = [LoopRule::Ignore, LoopRule::Exact];

    /// Returns the name used in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            LoopRule::Ignore => "ignore",
            LoopRule::Exact => "exact",
        }
    }

    /// Returns a usual number of depths of a run. With the rule, `selftaught` plays 2,084 pieces at 100,000 wells. Without it,
    /// most searches end after 130 to 420.
    pub const fn usual_depths(self) -> u32 {
        match self {
            LoopRule::Ignore => 250,
            LoopRule::Exact => 2000,
        }
    }

    /// Returns whether the search ignores the rule.
    pub const fn is_ignored(&self) -> bool {
        matches!(self, LoopRule::Ignore)
    }
}

/// Size of the well and variants of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WellSpec {
    /// Number of columns.
    pub columns: usize,
    /// Number of rows below the bar. A game is over when a locked piece fills a cell above the bar.
    pub rows: usize,
    /// See [`Rules::clear_above_bar`].
    pub clear_above_bar: bool,
}

impl WellSpec {
    /// Returns the specification for a geometry and rules.
    pub fn new(geometry: Geometry, rules: Rules) -> WellSpec {
        WellSpec {
            columns: geometry.width(),
            rows: geometry.height(),
            clear_above_bar: rules.clear_above_bar,
        }
    }

    /// Returns the geometry.
    ///
    /// # Errors
    /// Returns the same errors as [`Geometry::new`].
    pub fn geometry(self) -> Result<Geometry, GeometryError> {
        Geometry::new(self.columns, self.rows)
    }

    /// Returns the rules.
    pub fn rules(self) -> Rules {
        Rules {
            clear_above_bar: self.clear_above_bar,
        }
    }
}

/// Start of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Start {
    /// The empty well.
    Empty,
    /// A well without a preceding game. The count of cleared rows starts at 0.
    Well {
        /// The well in the format of [`Well::to_hex`].
        hex: String,
    },
    /// The well that the given piece of a replay enters. The count of cleared rows includes the rows that the
    /// replay has cleared before this piece.
    Replay {
        /// The replay, encoded in Base2048.
        base2048: String,
        /// Number of the piece, counted from 1.
        piece: u32,
    },
}

/// The game up to the start of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartingPosition {
    /// Wells of the game. The search begins with the last well.
    pub wells: Vec<Well>,
    /// Number of rows cleared by the game.
    pub lines: u16,
}

impl StartingPosition {
    /// Returns the well with which the search begins.
    pub fn well(&self) -> &Well {
        self.wells.last().unwrap_or(&Well::EMPTY)
    }

    /// Returns the depth at which the search begins: the number of pieces placed before it.
    pub fn depth(&self) -> u32 {
        u32::try_from(self.wells.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }
}

/// The reason why a specification is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The specification has the fingerprint of a different search algorithm.
    #[error(
        "the run has search fingerprint {run}, and this program has {program}: use the program that began the run"
    )]
    Search {
        /// Fingerprint in the specification.
        run: Fingerprint,
        /// Fingerprint of this program.
        program: Fingerprint,
    },
    /// The width is out of range.
    #[error("width {0} is out of range: give a number from 1 to {MAX_WIDTH}")]
    Width(u64),
    /// The size of the well is out of range.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// A node of the search cannot store wells of this size.
    #[error(
        "a beam holds wells of at most 160 cells, such as 10 x 16, but {columns} x {rows} is larger"
    )]
    TooLarge {
        /// Number of columns.
        columns: usize,
        /// Number of rows below the bar.
        rows: usize,
    },
    /// A weight is not a number or is out of range.
    #[error(transparent)]
    Evaluator(#[from] EvaluatorError),
    /// The well from which the search starts is invalid.
    #[error("the well to start from is invalid")]
    Well(#[from] WellError),
    /// No game reaches the well from which the search starts.
    #[error(
        "the well to start from has an empty row below a filled one, which no game can reach: remove the row"
    )]
    Gap,
    /// The replay from which the search starts cannot be decoded.
    #[error("the replay to start from is invalid")]
    Replay(#[from] ReplayError),
    /// The replay does not have a piece with this number.
    #[error(
        "the replay to start from has no piece {piece}: pass --from-piece with a number from 1 to {pieces}, or another replay \
         if this one should be longer"
    )]
    NoPiece {
        /// The requested number, counted from 1.
        piece: u32,
        /// Number of pieces in the replay.
        pieces: usize,
    },
    /// The run needs the tables of all depths, but the retention rule drops some.
    #[error(
        "a run with --loops exact, the default of networks such as selftaught, needs the wells of all depths, but --keep is \
         {0}: pass --keep all or --loops ignore"
    )]
    Keep(Retention),
    /// The replay clears more rows than a node can count.
    #[error("the replay to start from clears {0} lines: at most 65,000 are supported")]
    Lines(u32),
}

impl RunSpec {
    /// Returns the specification of a search from the empty standard well with this program's search algorithm.
    pub fn new(width: u64, evaluator: EvaluatorSpec) -> RunSpec {
        RunSpec {
            width,
            well: WellSpec::new(Geometry::STANDARD, Rules::default()),
            start: Start::Empty,
            evaluator,
            loops: LoopRule::Ignore,
            search: Fingerprint::current(),
        }
    }

    /// Returns the retention rule of a run for which none is given. The loop rule needs the wells of all depths.
    pub fn default_keep(&self) -> Retention {
        match self.loops {
            LoopRule::Exact => Retention::All,
            LoopRule::Ignore => Retention::default_for(self.width),
        }
    }

    /// Parses a retention rule. If the text is empty, returns the default.
    ///
    /// # Errors
    /// Returns [`NotRetention`] if the text is not a retention rule.
    pub fn keep(&self, text: &str) -> Result<Retention, NotRetention> {
        match text {
            "" => Ok(self.default_keep()),
            text => text.parse(),
        }
    }

    /// Checks the specification and returns the game up to the start of the search. If the evaluator uses a network, the
    /// network need not be available.
    ///
    /// # Errors
    /// Returns a [`SpecError`] if the specification is invalid.
    pub fn check(&self) -> Result<StartingPosition, SpecError> {
        if !(1..=MAX_WIDTH).contains(&self.width) {
            return Err(SpecError::Width(self.width));
        }
        let geometry = self.well.geometry()?;
        if !NodeWell::fits(geometry) {
            let WellSpec { columns, rows, .. } = self.well;
            return Err(SpecError::TooLarge { columns, rows });
        }
        self.evaluator.check()?;
        self.starting_position(geometry)
    }

    /// Checks that a run keeps the tables that its search needs: the loop rule depends on the wells of all depths.
    ///
    /// # Errors
    /// Returns [`SpecError::Keep`] if the run does not keep all tables, but needs them.
    pub fn check_keep(&self, keep: Retention) -> Result<(), SpecError> {
        match self.loops {
            LoopRule::Exact if keep != Retention::All => Err(SpecError::Keep(keep)),
            _ => Ok(()),
        }
    }

    fn starting_position(&self, geometry: Geometry) -> Result<StartingPosition, SpecError> {
        match &self.start {
            Start::Empty => Ok(StartingPosition {
                wells: vec![Well::EMPTY],
                lines: 0,
            }),
            Start::Well { hex } => {
                let well = Well::from_hex(geometry, hex)?;
                // The backward emulator finds no parents of such a well, so no game could be read back.
                if well.has_gap() {
                    return Err(SpecError::Gap);
                }
                Ok(StartingPosition {
                    wells: vec![well],
                    lines: 0,
                })
            }
            Start::Replay { base2048, piece } => {
                let keys = Encoding::Base2048.decode(base2048)?;
                let record = play(geometry, self.well.rules(), Enemy::Hatetris, &keys);
                let no_piece = || SpecError::NoPiece {
                    piece: *piece,
                    pieces: record.turns.len(),
                };
                let index = piece.checked_sub(1).ok_or_else(no_piece)? as usize;
                let turn = record.turns.get(index).ok_or_else(no_piece)?;
                let lines = u16::try_from(turn.score)
                    .ok()
                    .filter(|&score| score <= 65_000)
                    .ok_or(SpecError::Lines(turn.score))?;
                Ok(StartingPosition {
                    wells: record.wells().take(index + 1).collect(),
                    lines,
                })
            }
        }
    }

    /// Checks that the specification has the fingerprint `program`. Programs with equal fingerprints find the same
    /// frontiers.
    ///
    /// # Errors
    /// Returns [`SpecError::Search`] if the fingerprints differ.
    pub fn check_search(&self, program: &Fingerprint) -> Result<(), SpecError> {
        if self.search == *program {
            return Ok(());
        }
        Err(SpecError::Search {
            run: self.search.clone(),
            program: program.clone(),
        })
    }

    /// Returns an emulator for the geometry and rules.
    ///
    /// # Errors
    /// Returns [`SpecError::Geometry`] if the geometry is invalid.
    pub fn emulator(&self) -> Result<Emulator, SpecError> {
        Ok(Emulator::new(self.well.geometry()?, self.well.rules()))
    }

    /// Returns the depth at which the search begins: the number of pieces placed before it.
    pub fn start_depth(&self) -> u32 {
        match self.start {
            Start::Replay { piece, .. } => piece.saturating_sub(1),
            Start::Empty | Start::Well { .. } => 0,
        }
    }

    /// Returns the default name of the run, which consists of the evaluator, the width, and a hash of the whole
    /// specification.
    pub fn name(&self) -> String {
        let mut text = serde_json::to_string(self).unwrap_or_default();
        // Runs with the first fingerprint keep the names that they had before specifications contained fingerprints.
        let first = format!(",\"search\":\"{}\"}}", Fingerprint::first());
        if let Some(before) = text.strip_suffix(&first) {
            text = format!("{before}}}");
        }
        // If the hashes of two runs collide, opening the second run fails, because specifications are compared in full.
        let hash = fnv1a(text.bytes());
        format!(
            "{}-{}-{:08x}",
            self.evaluator.kind.name(),
            self.width,
            hash >> 32
        )
    }
}
