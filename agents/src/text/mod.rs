//! Help texts of the commands. They document the formats of input and output.

pub mod drop;
pub mod nes;
pub mod pc;
