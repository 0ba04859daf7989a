//! Runs the fuzz target of this crate's parsers a limited number of times on valid, damaged and random inputs. For longer
//! runs, see `fuzz/README.md`.

#[path = "../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../fuzz/src/training.rs"]
mod training;

use hatebeam_game::{Geometry, Well};
use hatebeam_search::NodeWell;
use hatebeam_train::{Recipe, SHIPPED_RECIPE};
use mutate::seed;

#[test]
fn recipe_parser_handles_any_input() {
    let texts = [
        SHIPPED_RECIPE,
        include_str!("../recipes/games-2.toml"),
        include_str!("../recipes/relay.toml"),
        include_str!("../recipes/foresight.toml"),
        include_str!("../recipes/outlook.toml"),
        include_str!("../recipes/unaided.toml"),
    ];
    for text in texts {
        Recipe::from_toml(text).unwrap();
    }
    mutate::run(training::file, &texts.map(|text| seed(0, text)), 500);
}

#[test]
fn training_folder_handles_any_input() {
    let well = NodeWell::pack(Geometry::STANDARD, &Well::EMPTY).0;
    let samples = [&well[..], &12.5f32.to_le_bytes()].concat().repeat(3);
    let text = training::checkpoint_text();
    assert!(training::folder(text.as_bytes(), &samples));
    for seconds in ["[-1.0,0.0,0.0]", "[1e300,0.0,0.0]"] {
        let forged = text.replace("[1.0,2.0,3.0]", seconds);
        let forged = forged.replace(r#""samples":5"#, r#""samples":18446744073709551615"#);
        assert!(forged != text && training::folder(forged.as_bytes(), &samples));
    }
    // The digest of the samples is part of the header of the network.
    let long = text.replace(r#""00""#, &format!("{:?}", "0".repeat(2 << 20)));
    assert!(!training::folder(long.as_bytes(), &samples));
    mutate::run(training::file, &[seed(1, text), seed(2, samples)], 3);
}
