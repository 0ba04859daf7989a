//! The game of a replay, as a film.

use crate::error::ApiError;
use axum::http::StatusCode;
use hatebeam_game::{Encoding, Enemy, Game, Geometry, Rules, Well};
use hatebeam_report::Film;
use serde::Deserialize;

/// The part of a run specification that determines how its games are played. Other fields are ignored.
#[derive(Debug, Deserialize)]
struct GameSetup {
    well: WellSize,
    start: Start,
}

#[derive(Debug, Deserialize)]
struct WellSize {
    columns: usize,
    rows: usize,
    clear_above_bar: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Start {
    Empty,
    Well {
        hex: String,
    },
    /// The game starts with the empty well, and its first keys are those of a replay.
    Replay {},
}

/// Plays a replay of a run with this specification.
pub(crate) fn film(spec: &str, replay: &str) -> Result<Film, ApiError> {
    let invalid = |what: &str, error: &dyn std::fmt::Display| {
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{what} is invalid: {error}"),
        )
    };
    let setup: GameSetup =
        serde_json::from_str(spec).map_err(|error| invalid("the run's specification", &error))?;
    let geometry = Geometry::new(setup.well.columns, setup.well.rows)
        .map_err(|error| invalid("the run's well", &error))?;
    let rules = Rules {
        clear_above_bar: setup.well.clear_above_bar,
    };
    let game = match &setup.start {
        Start::Empty | Start::Replay {} => Game::new(geometry, rules, Enemy::Hatetris),
        Start::Well { hex } => Well::from_hex(geometry, hex)
            .and_then(|well| Game::from_well(geometry, rules, Enemy::Hatetris, &well))
            .map_err(|error| invalid("the run's starting well", &error))?,
    };
    let keys = Encoding::Base2048
        .decode(replay)
        .map_err(|error| invalid("the replay", &error))?;
    Film::of_game(game, &keys).map_err(|error| invalid("the replay", &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Key, encode};
    use serde_json::json;

    #[test]
    fn film_starts_with_the_well_of_its_run() {
        let replay = encode(&[Key::Down; 40], Encoding::Base2048);
        let of = |start: serde_json::Value| {
            let well = json!({ "columns": 6, "rows": 8, "clear_above_bar": false });
            let spec = json!({ "width": 5, "well": well, "start": start, "evaluator": {} });
            film(&spec.to_string(), &replay)
        };
        let empty = of(json!("empty")).unwrap();
        assert_eq!((empty.width, empty.height), (6, 8));
        assert_eq!(empty.turns[0].well, "0".repeat(16));
        let replayed = of(json!({ "replay": { "base2048": "x", "piece": 3 } })).unwrap();
        assert_eq!(replayed, empty);
        let hex = format!("{}1f2f", "0".repeat(12));
        let from_well = of(json!({ "well": { "hex": hex } })).unwrap();
        assert_eq!(from_well.turns[0].well, hex);
        let error = of(json!({ "well": { "hex": "zz" } })).unwrap_err();
        assert!(error.text.contains("starting well"), "{error:?}");
    }

    #[test]
    fn invalid_spec_or_replay_is_rejected() {
        assert!(film("{}", "௨ටໃݹ").is_err());
        let spec = r#"{"well":{"columns":10,"rows":16,"clear_above_bar":false},"start":"empty"}"#;
        assert!(film(spec, "not a replay!").is_err());
        assert!(film(spec, "௨ටໃݹ௨ටໃݹठ").unwrap().over);
    }
}
