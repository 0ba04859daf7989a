//! Help of the commands, which documents the formats of their input and output.

pub mod drop;
pub mod nes;
pub mod pc;
