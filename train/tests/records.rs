//! Tests of the games in `examples/records`.

use hatebeam_game::{Enemy, Geometry, Rules, decode, play};
use std::fs;
use std::path::Path;

#[test]
fn records_clear_number_of_lines_in_their_names() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/records");
    let mut records = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let (keys, _) = decode(&fs::read_to_string(&path).unwrap()).unwrap();
        let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
        assert!(record.over, "{name}");
        let lines = name.rsplit('-').next().unwrap();
        assert_eq!(record.score.to_string(), lines, "{name}");
        records += 1;
    }
    assert!(records >= 6, "{records}");
}
