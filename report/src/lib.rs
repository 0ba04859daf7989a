//! Human-readable results of a run: its best game as a film, a picture and an HTML page, and the names of these files.
//!
//! All results are made from a [`Film`], which records every key and well of a game, and from [`Facts`] about a run on one
//! machine or in a cluster. This crate does not depend on where runs are stored.

mod causes;
mod facts;
mod files;
mod film;
mod numbers;
mod page;
mod picture;
mod save;
#[cfg(test)]
mod testing;

pub use causes::with_causes;
pub use facts::{Facts, Scores};
pub use files::{Format, UnknownFormat, known_stem, stem};
pub use film::{Film, FilmError, FilmTurn, MAX_KEYS};
pub use numbers::{bytes, count, date, duration, grouped};
pub use page::{Curve, Curves, page, training_page};
pub use picture::picture;
pub use save::{FileSink, GameFile, GameFiles, save_files, save_files_blocking};
