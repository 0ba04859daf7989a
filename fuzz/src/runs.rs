//! Properties of the parsers of a run's objects in the object store that must hold for any input. The fuzz target and a
//! short test in the test suite (`runs/tests/fuzz.rs`) check these properties.

use hatebeam_runs::{DepthTables, Manifest, Table, check_tables, decode_nodes, encode_nodes};

/// Checks the parser that the first byte selects.
pub(crate) fn object(data: &[u8]) {
    let [parser, data @ ..] = data else {
        return;
    };
    match parser % 3 {
        0 => manifest(data),
        1 => depth_tables(data),
        _ => nodes(data),
    }
}

/// Checks that parsing a manifest returns an error, or a manifest whose JSON gives the same manifest, and from which facts
/// can be derived.
fn manifest(data: &[u8]) {
    let Ok(manifest) = Manifest::parse(data) else {
        return;
    };
    let text = serde_json::to_vec(&manifest).expect("a manifest can be written as JSON");
    let again = Manifest::parse(&text);
    assert!(again.is_ok_and(|again| again == manifest), "{manifest:?}");
    assert!(manifest.facts().is_ok(), "{manifest:?}");
    manifest.layout();
    let largest = manifest.depths.iter().map(|depth| depth.record.bytes).max();
    assert!(manifest.stored_bytes() >= largest.unwrap_or(0));
    for list in manifest.depths.iter().flat_map(|depth| &depth.tables) {
        manifest.layout_of(list);
    }
}

/// Checks that parsing a list of tables returns an error, or a list whose JSON gives the same list, and which can be
/// checked.
fn depth_tables(data: &[u8]) {
    let Ok(list) = DepthTables::parse(data) else {
        return;
    };
    let text = serde_json::to_vec(&list).expect("a list can be written as JSON");
    let again = DepthTables::parse(&text);
    assert!(again.is_ok_and(|again| again == list), "{list:?}");
    let count = |sum: u64, table: &Table| sum.saturating_add(table.count);
    let count = list.tables.iter().fold(0, count);
    let _ = check_tables(&list.tables, 2, count);
}

/// Checks that decoding nodes returns an error, or nodes that encode to the same bytes.
fn nodes(data: &[u8]) {
    if let Ok(nodes) = decode_nodes(0, data) {
        assert_eq!(encode_nodes(&nodes), data);
    }
}
