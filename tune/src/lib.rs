//! Optimizers of weights whose values are measured by games.
//!
//! The optimizers are those of other crates; this crate gives them one interface. They work in a cube whose edges are
//! divided into [`GRID`] steps, so two searches with the same settings ask for exactly the same points. A [`Journal`]
//! records the value of every point. A search that is interrupted starts again from its first point and takes the
//! recorded values from the journal, so no optimizer needs to save its state.

mod folder;
mod journal;
mod method;
mod parameter;
mod search;
pub mod text;

pub use folder::{Objective, replace_file, tune};
pub use journal::{Journal, JournalError};
pub use method::{Method, UnknownMethod};
pub use parameter::{GRID, Parameter, ParameterError, Point};
pub use search::{Evaluation, Outcome, SearchError, Settings, search};
