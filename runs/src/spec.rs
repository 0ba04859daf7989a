//! What a run searches. Everything that can change a frontier is here, and nothing else: the same
//! specification gives the same digests, whoever runs it with however many threads.

use hatebeam_game::{
    Emulator, Encoding, Enemy, Geometry, GeometryError, ReplayError, Rules, Well, WellError, play,
};
use hatebeam_search::{Evaluator, EvaluatorSpec, NodeWell, WeightError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The widest beam: 64 times the widest known, and far from where 32 bits would not do.
pub const MAX_WIDTH: u64 = 1 << 30;

/// What a run searches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// The beam's width: the most wells a frontier has.
    pub width: u64,
    /// The well, and the rules that vary.
    pub well: WellSpec,
    /// Where the search begins.
    pub start: Start,
    /// What a well is worth.
    pub evaluator: EvaluatorSpec,
}

/// The size of the well, and the rules that vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WellSpec {
    /// Columns.
    pub columns: usize,
    /// Rows below the bar.
    pub rows: usize,
    /// [`Rules::clear_above_bar`].
    pub clear_above_bar: bool,
}

impl WellSpec {
    /// Of a geometry and rules.
    pub fn new(geometry: Geometry, rules: Rules) -> WellSpec {
        WellSpec {
            columns: geometry.width(),
            rows: geometry.height(),
            clear_above_bar: rules.clear_above_bar,
        }
    }

    /// The geometry.
    ///
    /// # Errors
    /// What [`Geometry::new`] says.
    pub fn geometry(self) -> Result<Geometry, GeometryError> {
        Geometry::new(self.columns, self.rows)
    }

    /// The rules.
    pub fn rules(self) -> Rules {
        Rules {
            clear_above_bar: self.clear_above_bar,
        }
    }
}

/// Where a search begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Start {
    /// The empty well.
    Empty,
    /// This well, without a game that led to it; its lines do not count.
    Well {
        /// In hex, as [`Well::to_hex`] has it.
        hex: String,
    },
    /// The well that a piece of a replay comes into; the lines before it count.
    Replay {
        /// The replay in Base2048.
        base2048: String,
        /// The number of the piece, from 1.
        piece: u32,
    },
}

/// The game up to where a search begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartingPosition {
    /// The wells of the game, the last being the one the search begins with.
    pub wells: Vec<Well>,
    /// Lines cleared on the way.
    pub lines: u16,
}

impl StartingPosition {
    /// The well the search begins with.
    pub fn well(&self) -> &Well {
        self.wells.last().unwrap_or(&Well::EMPTY)
    }

    /// The depth of that well: how many pieces were placed before.
    pub fn depth(&self) -> u32 {
        u32::try_from(self.wells.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }
}

/// Why a specification cannot be searched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No beam is that wide.
    #[error("the width is {0}: it must be from 1 to {MAX_WIDTH}")]
    Width(u64),
    /// No well has that size.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// Wells of that size do not fit into a node.
    #[error("a beam holds wells of at most 160 cells, such as 10 x 16, not {columns} x {rows}")]
    TooLarge {
        /// Columns.
        columns: usize,
        /// Rows below the bar.
        rows: usize,
    },
    /// A weight is not a number or too great.
    #[error(transparent)]
    Weight(#[from] WeightError),
    /// The well to start from cannot be one.
    #[error("the well to start from")]
    Well(#[from] WellError),
    /// The replay to start from cannot be read.
    #[error("the replay to start from")]
    Replay(#[from] ReplayError),
    /// The replay has no such piece.
    #[error("the replay to start from has pieces 1 to {pieces}, and no piece {piece}")]
    NoPiece {
        /// The number asked for.
        piece: u32,
        /// How many there are.
        pieces: usize,
    },
    /// The replay has more lines than a node counts.
    #[error("the replay to start from has {0} lines: at most 65,000 fit")]
    Lines(u32),
}

impl RunSpec {
    /// Checks it, and works out the game up to where the search begins.
    ///
    /// # Errors
    /// [`SpecError`] names what cannot be searched.
    pub fn check(&self) -> Result<StartingPosition, SpecError> {
        if !(1..=MAX_WIDTH).contains(&self.width) {
            return Err(SpecError::Width(self.width));
        }
        let geometry = self.well.geometry()?;
        if !NodeWell::fits(geometry) {
            let WellSpec { columns, rows, .. } = self.well;
            return Err(SpecError::TooLarge { columns, rows });
        }
        Evaluator::new(&self.emulator()?, &self.evaluator)?;
        self.starting_position(geometry)
    }

    fn starting_position(&self, geometry: Geometry) -> Result<StartingPosition, SpecError> {
        match &self.start {
            Start::Empty => Ok(StartingPosition {
                wells: vec![Well::EMPTY],
                lines: 0,
            }),
            Start::Well { hex } => Ok(StartingPosition {
                wells: vec![Well::from_hex(geometry, hex)?],
                lines: 0,
            }),
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

    /// The emulator of its geometry and rules.
    ///
    /// # Errors
    /// [`SpecError::Geometry`].
    pub fn emulator(&self) -> Result<Emulator, SpecError> {
        Ok(Emulator::new(self.well.geometry()?, self.well.rules()))
    }

    /// The depth of the well the search begins with: how many pieces were placed before.
    pub fn start_depth(&self) -> u32 {
        match self.start {
            Start::Replay { piece, .. } => piece.saturating_sub(1),
            Start::Empty | Start::Well { .. } => 0,
        }
    }

    /// A name for the run: what a person would say of it, and a hash of the rest.
    pub fn name(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        // FNV-1a; two runs whose hashes agree are still told apart when one is opened.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        format!(
            "{}-{}-{:08x}",
            self.evaluator.kind.name(),
            self.width,
            hash >> 32
        )
    }
}
