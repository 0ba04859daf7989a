//! Tests the text form, the picture, the packed form and the hash of wells, and the errors for invalid
//! wells.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

mod common;

use common::{Random, bench_wells, random_wells};
use hatebeam_game::{Emulator, Geometry, GeometryError, Rules, Well, WellError};
use std::collections::HashSet;

/// Returns a well with random cells and no full row.
fn any_well(random: &mut Random, geometry: Geometry) -> Well {
    let mut rows = [0; 16];
    for row in &mut rows[..geometry.height()] {
        *row = random.next() as u16 & geometry.full_row();
        if *row == geometry.full_row() {
            *row &= !(1 << random.below(geometry.width()));
        }
    }
    Well::from_rows(rows)
}

fn check_forms(geometry: Geometry, well: &Well) {
    well.check(geometry).unwrap();
    let packed = well.pack(geometry);
    assert_eq!(packed.as_bytes().len(), geometry.packed_len());
    assert_eq!(Well::unpack(geometry, packed.as_bytes()).as_ref(), Ok(well));
    let text = well.to_hex(geometry);
    assert_eq!(text.len(), geometry.text_len());
    assert_eq!(Well::from_hex(geometry, &text).as_ref(), Ok(well));
    assert_eq!(
        Well::from_picture(geometry, &well.picture(geometry)).as_ref(),
        Ok(well)
    );
}

#[test]
fn every_form_round_trips_in_every_geometry() {
    let mut random = Random(1);
    for (width, height) in (4..=16).flat_map(|w| (1..=16).map(move |h| (w, h))) {
        let geometry = Geometry::new(width, height).unwrap();
        for _ in 0..20 {
            check_forms(geometry, &any_well(&mut random, geometry));
        }
    }
}

#[test]
fn every_form_of_random_wells_round_trips() {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    for well in random_wells(&emulator, 100_000, 3) {
        check_forms(Geometry::STANDARD, &well);
    }
}

#[test]
fn packed_form_has_twenty_bytes_and_starts_with_bottom_row() {
    let text = "000000000000000000000000000000000000000000001203";
    let well = Well::from_hex(Geometry::STANDARD, text).unwrap();
    let mut expected = [0; 20];
    expected[..3].copy_from_slice(&[0x03, 0x02 | 0x01 << 2, 0]);
    assert_eq!(well.pack(Geometry::STANDARD).as_bytes(), expected);
}

/// The hash is part of the storage format: a stored well contains the lowest byte of its parent's
/// hash.
#[test]
fn hashes_never_change() {
    let wells = bench_wells("bench_beam.txt");
    let found = [
        Well::EMPTY.hash(),
        wells[0].hash(),
        wells[1].hash(),
        wells[2].hash(),
    ];
    assert_eq!(found, HASHES, "{found:#x?}");
}

/// Hashes that an independent program computed from the formula in [`Well::hash`].
const HASHES: [u64; 4] = [
    0x63ad_1e62_e02c_a924,
    0x63ce_cba0_1c38_5b19,
    0x4854_06ef_033e_9314,
    0xdf76_4242_255e_13b4,
];

#[test]
fn hashes_are_distinct_and_evenly_distributed() {
    let wells: HashSet<Well> = bench_wells("bench_beam.txt")
        .into_iter()
        .chain(bench_wells("bench_random.txt"))
        .collect();
    let hashes: HashSet<u64> = wells.iter().map(Well::hash).collect();
    assert_eq!(hashes.len(), wells.len());
    for shift in [0, 32, 56] {
        let mut shards = [0usize; 256];
        for hash in &hashes {
            shards[(hash >> shift) as usize & 255] += 1;
        }
        let expected = hashes.len() / 256;
        assert!(
            shards.iter().all(|&n| n > expected / 2 && n < expected * 2),
            "{shards:?}"
        );
    }
}

#[test]
fn geometry_out_of_range_is_rejected() {
    assert_eq!(Geometry::new(3, 16), Err(GeometryError::Width(3)));
    assert_eq!(Geometry::new(17, 16), Err(GeometryError::Width(17)));
    assert_eq!(Geometry::new(10, 0), Err(GeometryError::Height(0)));
    assert_eq!(Geometry::new(10, 17), Err(GeometryError::Height(17)));
}

fn error(text: &str) -> String {
    Well::from_hex(Geometry::STANDARD, text)
        .unwrap_err()
        .to_string()
}

#[test]
fn error_reports_position_of_problem_in_well() {
    let empty = "0".repeat(48);
    assert_eq!(error(""), "a 10x16 well has 48 hex digits, not 0");
    assert_eq!(error(&empty[1..]), "a 10x16 well has 48 hex digits, not 47");
    assert_eq!(
        error(&format!("{}x{}", &empty[..5], &empty[6..])),
        "unexpected character 'x' at position 6: expected a hex digit"
    );
    assert_eq!(
        error(&format!("{}400", &empty[3..])),
        "row 16 has cells outside the 10 columns"
    );
    assert_eq!(
        error(&format!("3ff{}", &empty[3..])),
        "row 1 is full: the game removes full rows"
    );
    let above = format!("000000000001{empty}");
    assert_eq!(
        error(&above),
        "row 4 is above the bar and not empty: the game is over in such a well"
    );
    let picture = Well::from_picture(Geometry::STANDARD, "..........\n....?.....");
    assert!(matches!(
        picture,
        Err(WellError::Character {
            character: '?',
            position: 5,
            ..
        })
    ));
    let packed = Well::unpack(Geometry::STANDARD, &[0; 19])
        .unwrap_err()
        .to_string();
    assert_eq!(packed, "a 10x16 well has 20 bytes, not 19");
    let padding = Well::unpack(Geometry::new(5, 1).unwrap(), &[0b100_00000]);
    assert_eq!(padding, Err(WellError::Padding));
}

#[test]
fn hex_may_include_rows_above_bar_and_picture_may_omit_empty_rows() {
    let text = "0".repeat(57) + "003";
    let well = Well::from_hex(Geometry::STANDARD, &text).unwrap();
    assert_eq!(well.rows()[0], 3);
    let picture = Well::from_picture(Geometry::STANDARD, "  ##........\n").unwrap();
    assert_eq!(picture, well);
}
