//! Optimizers for weights whose value is measured by playing games.
//!
//! Most of the optimizers come from other crates; this crate gives them a common interface. Points are rounded to a
//! grid with [`GRID`] steps per weight. A [`Journal`] records the value of every point. When an interrupted search is
//! started again, it begins at the first point and reads known values from the journal. The optimizers therefore do not
//! need to save their state.

mod folder;
mod journal;
mod method;
mod parameter;
mod search;

pub use folder::{Objective, tune};
pub use journal::{Journal, JournalError, MAX_EVALUATIONS, Measured};
pub use method::{Method, UnknownMethod};
pub use parameter::{GRID, Parameter, ParameterError, Point, TunedWeight, TunedWeightError};
pub use search::{Evaluation, Outcome, SearchError, Settings, search};
