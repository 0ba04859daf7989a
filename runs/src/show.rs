//! Preparation of a run for its report: facts about the run, and films, which contain every key and well of a game.

use crate::spec::{RunSpec, SpecError, Start};
use hatebeam_game::{Encoding, Enemy, Game, Key, ReplayError, Well, WellError};
use hatebeam_report::{Facts, Film, FilmError};
use hatebeam_search::DepthRecord;
use thiserror::Error;

/// The reason why a game of a run cannot be shown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ShowError {
    /// The specification is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The well from which the search starts is invalid.
    #[error("the well to start from is invalid")]
    Well(#[from] WellError),
    /// The keys cannot be played to create a film.
    #[error(transparent)]
    Film(#[from] FilmError),
    /// The text cannot be decoded as a replay.
    #[error("cannot decode the replay")]
    Replay(#[from] ReplayError),
    /// The replay does not have the expected result.
    #[error(
        "the replay clears {lines} lines when it is played{}, but {expected} are expected",
        if *over { "" } else { " and does not end" }
    )]
    OtherGame {
        /// Number of rows that the replay clears.
        lines: u32,
        /// Whether the game of the replay is over.
        over: bool,
        /// Expected number of cleared rows.
        expected: u32,
    },
}

impl RunSpec {
    /// Plays a game of this search by the exact rules and returns it as a film. If the search starts from a
    /// well, so does the film.
    ///
    /// # Errors
    /// Returns a [`ShowError`] if the specification or a key is invalid.
    pub fn film(&self, keys: &[Key]) -> Result<Film, ShowError> {
        let geometry = self.well.geometry().map_err(SpecError::from)?;
        let rules = self.well.rules();
        let game = match &self.start {
            Start::Well { hex } => {
                let well = Well::from_hex(geometry, hex)?;
                Game::from_well(geometry, rules, Enemy::Hatetris, &well)?
            }
            Start::Empty | Start::Replay { .. } => Game::new(geometry, rules, Enemy::Hatetris),
        };
        Ok(Film::of_game(game, keys)?)
    }

    /// Decodes a Base2048 replay and plays it by the exact rules. The game must be over and clear exactly
    /// `lines` rows.
    ///
    /// # Errors
    /// Returns a [`ShowError`] if the replay is invalid or has another result.
    pub fn checked_film(&self, base2048: &str, lines: u32) -> Result<Film, ShowError> {
        let film = self.film(&Encoding::Base2048.decode(base2048)?)?;
        if film.score == lines && film.over {
            return Ok(film);
        }
        Err(ShowError::OtherGame {
            lines: film.score,
            over: film.over,
            expected: lines,
        })
    }

    /// Returns the facts about a run with this specification. `end` is a description of why the run ended.
    ///
    /// # Errors
    /// Returns [`SpecError::Geometry`] if the specification has an invalid geometry.
    pub fn facts(
        &self,
        run: &str,
        depths: Vec<DepthRecord>,
        end: &'static str,
    ) -> Result<Facts, SpecError> {
        Ok(Facts {
            run: run.to_owned(),
            width: self.width,
            evaluator: self.evaluator.kind.name(),
            quiescence: self.evaluator.quiescence.name(),
            spec: serde_json::to_string(self).unwrap_or_default(),
            geometry: self.well.geometry()?,
            end,
            depths,
            scores: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::WellSpec;
    use hatebeam_game::{Geometry, Rules};
    use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Quiescence};

    #[test]
    fn film_begins_with_start_of_search() {
        let geometry = Geometry::new(6, 6).unwrap();
        let well = Well::from_picture(geometry, "#####.\n#.####\n").unwrap();
        let evaluator = EvaluatorSpec::new(EvaluatorKind::Plain, Quiescence::Off);
        let mut spec = RunSpec {
            well: WellSpec::new(geometry, Rules::default()),
            start: Start::Well {
                hex: well.to_hex(geometry),
            },
            ..RunSpec::new(10, evaluator)
        };
        let film = spec.film(&[Key::Down]).unwrap();
        assert_eq!(film.turns[0].well, well.to_hex(geometry));
        spec.start = Start::Empty;
        let film = spec.film(&[Key::Down]).unwrap();
        assert_eq!(film.turns[0].well, Well::EMPTY.to_hex(geometry));
        spec.start = Start::Well {
            hex: "no well".to_owned(),
        };
        assert!(matches!(spec.film(&[Key::Down]), Err(ShowError::Well(_))));
    }
}
