//! What a run leaves behind: its best game as a film of wells, a picture, and files for people.

mod film;

pub use film::{Film, FilmError, FilmTurn, MAX_KEYS};
