#![doc = include_str!("../README.md")]

#[cfg(target_family = "wasm")]
mod abi;
mod answer;
mod beam;
mod clears;
#[cfg(not(target_family = "wasm"))]
mod files;
mod hatetris;
mod scores;
mod series;
mod session;
mod watch;

#[cfg(not(target_family = "wasm"))]
pub use files::{FILES, File};
pub use session::Session;
