//! What a run has to say of itself to a person: its facts, and its best game as a film.

use crate::spec::{RunSpec, SpecError, Start};
use hatebeam_game::{Enemy, Game, Key, Well, WellError};
use hatebeam_report::{DepthFacts, End, Facts, Film, FilmError};
use hatebeam_store::DepthRecord;
use thiserror::Error;

/// Why a game of a run cannot be shown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ShowError {
    /// The run itself cannot be searched.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The well that it starts from cannot be one.
    #[error("the well to start from")]
    Well(#[from] WellError),
    /// There is no film of it.
    #[error(transparent)]
    Film(#[from] FilmError),
}

impl RunSpec {
    /// A game of this search, played from its keys through the exact rules: from the well that the search
    /// starts with, if it starts with one.
    ///
    /// # Errors
    /// [`ShowError`].
    pub fn film(&self, keys: &[Key]) -> Result<Film, ShowError> {
        let (geometry, rules) = (
            self.well.geometry().map_err(SpecError::from)?,
            self.well.rules(),
        );
        let game = match &self.start {
            Start::Well { hex } => {
                let well = Well::from_hex(geometry, hex)?;
                Game::from_well(geometry, rules, Enemy::Hatetris, &well)?
            }
            Start::Empty | Start::Replay { .. } => Game::new(geometry, rules, Enemy::Hatetris),
        };
        Ok(Film::of_game(game, keys)?)
    }

    /// What there is to say of a run of this search with these depths.
    ///
    /// # Errors
    /// [`SpecError::Geometry`].
    pub fn facts<'a>(
        &self,
        run: &str,
        records: impl Iterator<Item = &'a DepthRecord>,
        end: End,
    ) -> Result<Facts, SpecError> {
        let geometry = self.well.geometry()?;
        let mut digest = "";
        let depths: Vec<DepthFacts> = records
            .map(|record| {
                digest = &record.digest;
                let well = Well::from_hex(geometry, &record.best_well);
                DepthFacts {
                    depth: record.depth,
                    count: record.count,
                    best_eval: record.best_eval,
                    median_eval: record.median_eval,
                    worst_eval: record.worst_eval,
                    best_lines: u32::from(record.best_lines),
                    height: well.map_or(0, |well| well.stack_height()),
                    children: record.children,
                    seconds: record.seconds,
                    bytes: record.bytes,
                }
            })
            .collect();
        Ok(Facts {
            run: run.to_owned(),
            width: self.width,
            evaluator: self.evaluator.kind.name(),
            quiescence: self.evaluator.quiescence.name(),
            spec: serde_json::to_string(self).unwrap_or_default(),
            geometry,
            end,
            digest: digest.to_owned(),
            stored_bytes: depths.iter().map(|depth| depth.bytes).sum(),
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
    use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Quiescence, Weights};

    #[test]
    fn a_film_begins_where_the_search_does() {
        let geometry = Geometry::new(6, 6).unwrap();
        let well = Well::from_picture(geometry, "#####.\n#.####\n").unwrap();
        let mut spec = RunSpec {
            width: 10,
            well: WellSpec::new(geometry, Rules::default()),
            start: Start::Well {
                hex: well.to_hex(geometry),
            },
            evaluator: EvaluatorSpec {
                kind: EvaluatorKind::Plain,
                weights: Weights::default(),
                quiescence: Quiescence::Off,
            },
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
