//! Searches that can be created by name.
//!
//! To add a search, write a file with its type and its implementation of [`Search`], and add an entry to [`SEARCHES`].

use super::{Bfs, Branching, Search, Widths};
use hatebeam_tetris::nes::{Rows, WEIGHTS_BFS};
use thiserror::Error;

/// A search that can be created by name.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredSearch {
    /// Name of the search.
    pub name: &'static str,
    /// One-line description of the search.
    pub description: &'static str,
    /// Function that creates the search with its published weights. The widths apply only to `branching`.
    pub make: fn(Rows, Widths) -> Box<dyn Search>,
}

/// The searches that [`find_search`] can find.
pub const SEARCHES: &[RegisteredSearch] = &[
    RegisteredSearch {
        name: "bfs",
        description: "all placements of both known pieces",
        make: |rows, _| Box::new(Bfs::new(rows, WEIGHTS_BFS)),
    },
    RegisteredSearch {
        name: "branching",
        description: "the best placements of both known pieces and of every possible following piece",
        make: |rows, widths| Box::new(Branching::new(rows, WEIGHTS_BFS, widths)),
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
