//! What a run leaves behind: its best game as a film of wells, a picture, and files for people.
//!
//! All of it is made from a [`Film`], which was played by the exact rules, and from [`Facts`], which a run on
//! one machine and a run of a cluster can both give. Nothing here knows where runs are kept.

mod facts;
mod files;
mod film;
mod picture;
mod report;
mod words;

pub use facts::{DepthFacts, End, Facts, Scores};
pub use files::{Format, UnknownFormat, known_stem, stem};
pub use film::{Film, FilmError, FilmTurn, MAX_KEYS};
pub use picture::picture;
pub use report::report;
pub use words::{bytes, date, duration, grouped};
