//! The list of searches. [`find_search`] finds a search by its name.
//!
//! To add a search, write a file with its type and its implementation of [`Search`], and add an entry to [`SEARCHES`].

use super::{Bfs, Branching, Search, Widths};
use hatebeam_tetris::nes::{Rows, Weights};
use thiserror::Error;

/// A search that [`find_search`] can find by its name.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredSearch {
    /// Name of the search.
    pub name: &'static str,
    /// One-line description of the search.
    pub description: &'static str,
    /// Function that creates the search. The widths apply only to `branching`. The published weights are
    /// [`WEIGHTS_BFS`](hatebeam_tetris::nes::WEIGHTS_BFS).
    pub make: fn(Rows, Widths, Weights) -> Box<dyn Search>,
}

/// The searches that [`find_search`] can find.
pub const SEARCHES: &[RegisteredSearch] = &[
    RegisteredSearch {
        name: "bfs",
        description: "all placements of both known pieces",
        make: |rows, _, weights| Box::new(Bfs::new(rows, weights)),
    },
    RegisteredSearch {
        name: "branching",
        description: "the best placements of both known pieces and of every possible following piece",
        make: |rows, widths, weights| Box::new(Branching::new(rows, weights, widths)),
    },
];

/// Error for an unknown search name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a search: use bfs or branching")]
pub struct UnknownSearch(String);

/// Returns the search with the given name.
pub fn find_search(name: &str) -> Result<&'static RegisteredSearch, UnknownSearch> {
    let found = SEARCHES.iter().find(|search| search.name == name);
    found.ok_or_else(|| UnknownSearch(name.to_owned()))
}
