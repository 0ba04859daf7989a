#![doc = include_str!("../README.md")]

mod emulator;
mod piece;
pub mod reference;
mod rules;
mod well;

pub use emulator::{Children, Emulator, SimdLevel, UnknownSimdLevel};
pub use piece::{Cells, Piece};
pub use rules::{Board, Key, Lock, Placement, Position, Rules};
pub use well::{
    Geometry, GeometryError, MAX_HEIGHT, MAX_WIDTH, PackedWell, ROWS_ABOVE_BAR, Well, WellError,
};
