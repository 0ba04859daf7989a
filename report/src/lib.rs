//! The results of a run for people: its best game as a film, as a picture and as an HTML page, and the names of these
//! files.
//!
//! Everything is made from a [`Film`], which was played by the exact rules, and from [`Facts`], which both a run on one
//! machine and a run of a cluster can provide. This crate does not know where runs are stored.

mod facts;
mod files;
mod film;
mod numbers;
mod page;
mod picture;
mod save;

pub use facts::{Facts, Scores};
pub use files::{Format, UnknownFormat, known_stem, stem};
pub use film::{Film, FilmError, FilmTurn, MAX_KEYS};
pub use numbers::{bytes, count, date, duration, grouped};
pub use page::page;
pub use picture::picture;
pub use save::{FileSink, GameFile, GameFiles, save_files, save_files_blocking};
