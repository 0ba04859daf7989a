//! Values for tests.

use crate::{Facts, Film};
use hatebeam_game::{Enemy, Geometry};

/// Replay of a game with 148 lines.
pub(crate) const RECORD: &str = include_str!("../../examples/games/david-and-felipe-148.txt");

/// Returns the film of [`RECORD`].
pub(crate) fn film() -> Film {
    Film::of(RECORD, Enemy::Hatetris, Geometry::STANDARD).unwrap()
}

pub(crate) fn facts(width: u64) -> Facts {
    Facts {
        run: "r".to_owned(),
        width,
        evaluator: "patterns",
        quiescence: "off",
        spec: "{}".to_owned(),
        geometry: Geometry::STANDARD,
        end: "searched to the end",
        depths: Vec::new(),
        scores: None,
    }
}
