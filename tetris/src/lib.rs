#![doc = include_str!("../README.md")]

mod bits;
pub mod drop;
mod field;
pub mod nes;
mod piece;
mod rng;
pub mod srs;

pub use field::{Field, FieldError, MAX_HEIGHT, MAX_WIDTH, RowError};
pub use piece::{Piece, PieceError};
pub use rng::{Mt19937, Rng};
