//! The list of searches. [`find_search`] finds a search by its name.
//!
//! To add a search, write a file with its type and its implementation of [`Search`], and add an entry to [`SEARCHES`].

use super::{Bfs, Branching, Learned, Search, Widths, built_in_patterns};
use hatebeam_tetris::nes::{FEATURE_NAMES, Rows, WEIGHTS_BFS};
use thiserror::Error;

/// A search that [`find_search`] can find by its name.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredSearch {
    /// Name of the search.
    pub name: &'static str,
    /// One-line description of the search.
    pub description: &'static str,
    /// Names of the weights. The list is empty if the weights are those of a file that [`learn`](super::learn) wrote.
    pub weight_names: &'static [&'static str],
    /// Default weights. The list is empty if they are those of [`built_in_patterns`].
    pub weights: &'static [f64],
    /// Default widths, or `None` if the search has no widths.
    pub widths: Option<Widths>,
    make: fn(Rows, Widths, &[f64]) -> Box<dyn Search>,
}

impl RegisteredSearch {
    /// Creates the search with widths, or with its default widths if `widths` is `None`.
    ///
    /// # Panics
    /// Panics if there is not one weight for each of [`Self::weight_names`]. If it is empty, there must be no weights or
    /// all weights of a file.
    pub fn with_weights(
        &self,
        rows: Rows,
        widths: Option<Widths>,
        weights: &[f64],
    ) -> Box<dyn Search> {
        let widths = widths.or(self.widths).unwrap_or(Widths::ARTICLE);
        (self.make)(rows, widths, weights)
    }
}

/// Converts weights to an array.
fn array<const N: usize>(weights: &[f64]) -> [f64; N] {
    weights.try_into().expect("every feature has a weight")
}

/// The searches that [`find_search`] can find.
pub const SEARCHES: &[RegisteredSearch] = &[
    RegisteredSearch {
        name: "bfs",
        description: "all placements of both known pieces",
        weight_names: &FEATURE_NAMES,
        weights: &WEIGHTS_BFS,
        widths: None,
        make: |rows, _, weights| Box::new(Bfs::new(rows, array(weights))),
    },
    RegisteredSearch {
        name: "branching",
        description: "the best placements of both known pieces and of every possible following piece",
        weight_names: &FEATURE_NAMES,
        weights: &WEIGHTS_BFS,
        widths: Some(Widths::ARTICLE),
        make: |rows, widths, weights| Box::new(Branching::new(rows, array(weights), widths)),
    },
    RegisteredSearch {
        name: "learned",
        description: "learned weights, and the expected value of the best placements of both known pieces",
        weight_names: &[],
        weights: &[],
        widths: Some(Widths::LEARNED),
        make: |_, widths, weights| {
            let weights = match weights {
                [] => built_in_patterns(),
                weights => weights.iter().map(|&weight| weight as f32).collect(),
            };
            Box::new(Learned::new(weights, widths))
        },
    },
];

/// Error for an unknown search name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{name}` is not a search: use one of {known}")]
pub struct UnknownSearch {
    name: String,
    known: String,
}

/// Returns the search with the given name.
pub fn find_search(name: &str) -> Result<&'static RegisteredSearch, UnknownSearch> {
    let found = SEARCHES.iter().find(|search| search.name == name);
    found.ok_or_else(|| UnknownSearch {
        name: name.to_owned(),
        known: SEARCHES
            .iter()
            .map(|search| search.name)
            .collect::<Vec<_>>()
            .join(", "),
    })
}
