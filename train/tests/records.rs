//! Tests of the games in `examples/records` and `examples/cycles`.

use hatebeam_game::{Enemy, Geometry, Rules, Well, decode, play};
use std::collections::HashSet;
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
    assert!(records >= 9, "{records}");
}

#[test]
fn cycle_of_mild_repeats_a_well_after_50_pieces() {
    let text = include_str!("../../examples/cycles/mild-50.txt");
    let (keys, _) = decode(text).unwrap();
    let record = play(Geometry::STANDARD, Rules::default(), Enemy::Mild, &keys);
    let wells: Vec<Well> = record.wells().collect();
    assert_eq!(wells.len(), 120);
    assert_eq!(wells[69], wells[119]);
    assert_eq!(wells.iter().collect::<HashSet<_>>().len(), 119);
    let lines = record.turns[119].score - record.turns[69].score;
    assert_eq!(lines, 20);
    // HATETRIS changes the piece that would repeat the well.
    let exact = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
    assert_eq!(exact.first_difference(&record), Some(119));
}
