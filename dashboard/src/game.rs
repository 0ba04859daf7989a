//! Conversion of a run's replay to a film, which contains all keys and wells of the game.

use crate::error::ApiError;
use axum::http::StatusCode;
use hatebeam_game::Encoding;
use hatebeam_report::Film;
use hatebeam_runs::RunSpec;

/// Returns the film of a replay in Base2048. The game starts at the starting well of the run specification `spec`.
pub(crate) fn film(spec: &str, replay: &str) -> Result<Film, ApiError> {
    let invalid = |what: &str, error: &dyn std::fmt::Display| {
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{what} is invalid: {error}"),
        )
    };
    let spec: RunSpec =
        serde_json::from_str(spec).map_err(|error| invalid("the run's specification", &error))?;
    let keys = Encoding::Base2048
        .decode(replay)
        .map_err(|error| invalid("the replay", &error))?;
    spec.film(&keys)
        .map_err(|error| invalid("the run's game", &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Key, encode};
    use serde_json::json;

    fn spec(start: serde_json::Value) -> String {
        let well = json!({ "columns": 6, "rows": 8, "clear_above_bar": false });
        let evaluator = json!({ "kind": "patterns", "quiescence": "off" });
        json!({ "width": 5, "well": well, "start": start, "evaluator": evaluator }).to_string()
    }

    #[test]
    fn film_starts_with_the_starting_well_of_the_run() {
        let replay = encode(&[Key::Down; 40], Encoding::Base2048);
        let of = |start: serde_json::Value| film(&spec(start), &replay);
        let empty = of(json!("empty")).unwrap();
        assert_eq!((empty.width, empty.height), (6, 8));
        assert_eq!(empty.turns[0].well, "0".repeat(16));
        let replayed = of(json!({ "replay": { "base2048": "x", "piece": 3 } })).unwrap();
        assert_eq!(replayed, empty);
        let hex = format!("{}1f2f", "0".repeat(12));
        let from_well = of(json!({ "well": { "hex": hex } })).unwrap();
        assert_eq!(from_well.turns[0].well, hex);
        assert!(of(json!({ "well": { "hex": "zz" } })).is_err());
    }

    #[test]
    fn invalid_spec_or_replay_is_rejected() {
        assert!(film("{}", "௨ටໃݹ").is_err());
        assert!(film(&spec(json!("empty")), "not a replay!").is_err());
        let over = film(&spec(json!("empty")), "௨ටໃݹ௨ටໃݹठ").unwrap().over;
        assert!(over);
    }
}
