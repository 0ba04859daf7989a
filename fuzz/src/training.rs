//! Properties of the parsers of training recipes and of the files of a training run that must hold for any input. The fuzz
//! target and a short test in the test suite (`train/tests/fuzz.rs`) check these properties.

use hatebeam_files::sealed;
use hatebeam_game::{Geometry, MAX_HEIGHT, Well};
use hatebeam_search::FEATURES;
use hatebeam_train::{GenerationRecord, OwnGamesRecipe, Recipe, Trainer, TrainingFolder};
use serde_json::{Value, json};

/// Length of the weights in a checkpoint without previous weights: five numbers for each weight of 16 lanes.
const WEIGHT_BYTES: usize = 5 * 4 * 16 * (FEATURES + 2);

/// Checks the parser that the first byte selects.
pub(crate) fn file(data: &[u8]) {
    let [parser, data @ ..] = data else {
        return;
    };
    match parser % 3 {
        0 => recipe(data),
        1 => checkpoint(data),
        _ => samples(data),
    }
}

/// Checks that reading a recipe returns an error, or a recipe whose TOML and JSON give the same recipe.
fn recipe(data: &[u8]) {
    let Ok(recipe) = Recipe::from_bytes(data) else {
        return;
    };
    let text = toml::to_string(&recipe).expect("a recipe can be written as TOML");
    assert_eq!(Recipe::from_bytes(text.as_bytes()).as_ref(), Ok(&recipe));
    // The headers of networks contain recipes as JSON.
    let text = serde_json::to_string(&recipe).expect("a recipe can be written as JSON");
    let again = serde_json::from_str(&text);
    assert!(again.is_ok_and(|again: Recipe| again == recipe), "{text}");
}

/// Checks a checkpoint with this text. Skips texts that are not JSON, because a checkpoint has 15 MB.
fn checkpoint(text: &[u8]) {
    if serde_json::from_slice::<Value>(text).is_ok() {
        folder(text, &[]);
    }
}

/// Checks samples. Skips incomplete samples for the same reason.
fn samples(samples: &[u8]) {
    if samples.len().is_multiple_of(24) {
        folder(checkpoint_text().as_bytes(), samples);
    }
}

/// Checks that loading a training folder with one generation returns an error, or a training run that can be reported, saved
/// and loaded again. Returns whether it can be loaded.
pub(crate) fn folder(text: &[u8], samples: &[u8]) -> bool {
    let dir = tempfile::tempdir().expect("the folder for temporary files is writable");
    let write = |name: &str, magic: &[u8], contents: &[&[u8]]| {
        let version = 1u32.to_le_bytes();
        let bytes = [&[magic, &version], contents].concat().concat();
        std::fs::write(dir.path().join(name), sealed(bytes)).expect("the folder is writable");
    };
    let length = (text.len() as u32).to_le_bytes();
    let weights = vec![0; WEIGHT_BYTES];
    write("checkpoint", b"hatechk\n", &[&length, text, &weights]);
    write("samples-1", b"hatesmp\n", &[samples]);
    let folder = TrainingFolder::open(dir.path()).expect("no other process uses the folder");
    let Ok(Some(trainer)) = folder.load() else {
        return false;
    };
    let rows = trainer.records().iter().map(GenerationRecord::row);
    assert!(rows.chain([trainer.report()]).all(|text| !text.is_empty()));
    folder.save(&trainer).expect("the folder is writable");
    let again = folder.load().ok().flatten();
    let state = |trainer: Trainer| -> (Recipe, Vec<GenerationRecord>) {
        (trainer.recipe().clone(), trainer.records().to_vec())
    };
    assert_eq!(again.map(state), Some(state(trainer)));
    true
}

/// Returns the text of a valid checkpoint after one generation.
pub(crate) fn checkpoint_text() -> String {
    let recipe = Recipe {
        own_games: Some(OwnGamesRecipe {
            keep: 2,
            first: Vec::new(),
        }),
        ..Recipe::default()
    };
    let record = json!({
        "generation": 1, "beams": [{"player": "own", "width": 2, "lines": 3, "pieces": 4}], "samples": 5, "fresh_loss": 0.1,
        "fresh_bias": -0.5, "train_loss": 0.2, "held_out_loss": 0.3, "data_digest": "00", "seconds": [1.0, 2.0, 3.0],
        "exam": [], "own_games": [1],
    });
    let mut rows = [0; MAX_HEIGHT];
    rows[0] = 0b1111;
    let wells = [Well::EMPTY, Well::from_rows(rows)];
    let game = wells.map(|well| well.to_hex(Geometry::STANDARD));
    json!({"recipe": recipe, "steps": 7, "records": [record], "own_games": [game]}).to_string()
}
