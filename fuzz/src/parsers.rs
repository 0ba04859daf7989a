//! Properties of the parsers of replays and wells that must hold for any input. The fuzz targets and a short test in
//! the test suite (`game/tests/fuzz.rs`) check these properties.

use hatebeam_game::{
    Encoding, Enemy, Geometry, Key, MAX_HEIGHT, MAX_WIDTH, Rules, Well, decode, encode,
};

/// Returns the geometry that the first two bytes select, and the remaining bytes.
fn geometry(data: &[u8]) -> Option<(Geometry, &[u8])> {
    let [width, height, rest @ ..] = data else {
        return None;
    };
    let width = 4 + usize::from(*width) % (MAX_WIDTH - 3);
    let height = 1 + usize::from(*height) % MAX_HEIGHT;
    Some((Geometry::new(width, height).ok()?, rest))
}

/// Returns `true` if encoding and decoding preserve `keys`, except for padding.
fn encoding_keeps(keys: &[Key], encoding: Encoding) -> bool {
    let again = encoding
        .decode(&encode(keys, encoding))
        .expect("an encoded replay can be decoded");
    // Hex pads an odd number of keys with one D. The run-length encoding pads an odd number of runs
    // with one L.
    again.starts_with(keys) && again.len() <= keys.len() + 1
}

/// Checks that decoding a replay returns an error, or keys that every encoding preserves except for padding.
pub(crate) fn replay(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok((keys, _)) = decode(text) {
        for encoding in Encoding::ALL {
            assert!(
                keys.is_empty() || encoding_keeps(&keys, encoding),
                "{encoding}: {keys:?}"
            );
        }
    }
}

/// Checks that playing a game with any geometry, rules, enemy and keys does not panic, and returns a consistent record.
pub(crate) fn play(data: &[u8]) {
    let Some((geometry, rest)) = geometry(data) else {
        return;
    };
    let [choice, rest @ ..] = rest else { return };
    let enemy = Enemy::ALL[usize::from(*choice) % Enemy::ALL.len()];
    let rules = Rules {
        clear_above_bar: choice & 0x80 != 0,
    };
    // The limit on the number of keys keeps the game short.
    let bytes = &rest[..rest.len().min(256)];
    let keys: Vec<Key> = bytes
        .iter()
        .flat_map(|byte| [0, 2, 4, 6].map(|shift| Key::ALL[usize::from(byte >> shift & 3)]))
        .collect();
    let record = hatebeam_game::play(geometry, rules, enemy, &keys);
    assert_eq!(record.keys_used + record.keys_unused, keys.len());
    assert!(record.over || record.keys_unused == 0);
    assert!(
        record
            .turns
            .iter()
            .all(|turn| turn.well.check(geometry).is_ok())
    );
}

/// Checks that parsing a well from hex digits returns an error, or a well with the same digits.
pub(crate) fn well_hex(data: &[u8]) {
    let Some((geometry, rest)) = geometry(data) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    if let Ok(well) = Well::from_hex(geometry, text) {
        assert_eq!(well.check(geometry), Ok(()));
        assert!(text.trim().to_lowercase().ends_with(&well.to_hex(geometry)));
    }
}

/// Checks that parsing a well from a picture returns an error, or a well that drawing and parsing preserve.
pub(crate) fn well_picture(data: &[u8]) {
    let Some((geometry, rest)) = geometry(data) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    if let Ok(well) = Well::from_picture(geometry, text) {
        assert_eq!(
            Well::from_picture(geometry, &well.picture(geometry)),
            Ok(well)
        );
    }
}

/// Checks that unpacking a well returns an error, or a well that packs to the same bytes.
pub(crate) fn well_packed(data: &[u8]) {
    let Some((geometry, rest)) = geometry(data) else {
        return;
    };
    if let Ok(well) = Well::unpack(geometry, rest) {
        assert_eq!(well.pack(geometry).as_bytes(), rest);
    }
}
