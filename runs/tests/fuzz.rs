//! Runs the fuzz target of this crate's parsers a limited number of times on valid, damaged and random inputs. For longer
//! runs, see `fuzz/README.md`.

#[path = "../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../fuzz/src/runs.rs"]
mod runs;

use hatebeam_game::{Geometry, Well};
use hatebeam_runs::{DepthTables, Manifest, encode_nodes};
use hatebeam_search::{Node, NodeWell};
use mutate::seed;

const MANIFESTS: [&str; 6] = [
    include_str!("formats/manifest-1.json"),
    include_str!("formats/manifest-2.json"),
    include_str!("formats/manifest-3.json"),
    include_str!("formats/manifest-4.json"),
    include_str!("formats/manifest-5.json"),
    include_str!("formats/manifest-6.json"),
];
const TABLES: &str = r#"[{"shard":1,"key":"frontier/00001/3-w1","offset":100,"bytes":50,
    "checksum":"fa1267e7a1e2980c","count":2,"digest":"000102030405060708090a0b0c0d0e0f"}]"#;

/// Returns valid objects, each preceded by the byte that selects their parser.
fn objects() -> Vec<Vec<u8>> {
    let node = Node {
        score: -20,
        well: NodeWell::pack(Geometry::STANDARD, &Well::EMPTY),
        lines: 3,
        hint: 7,
    };
    let changed = r#"[{"well":"000000003c1e","piece":"Z"}]"#;
    let tables = format!(r#"{{"tables":{TABLES},"changed":{changed}}}"#);
    // The sum of the sizes is out of range.
    let large = MANIFESTS[5].replace(r#""bytes": 1234"#, &format!(r#""bytes": {}"#, u64::MAX));
    let manifests = MANIFESTS.iter().map(|manifest| seed(0, manifest));
    let others = [
        seed(0, large),
        seed(1, TABLES),
        seed(1, tables),
        seed(2, encode_nodes(&[node; 4])),
    ];
    manifests.chain(others).collect()
}

#[test]
fn seeds_are_valid() {
    let manifests = MANIFESTS.map(|text| Manifest::parse(text.as_bytes()));
    assert!(manifests.iter().all(Result::is_ok), "{manifests:?}");
    assert!(DepthTables::parse(TABLES.as_bytes()).is_ok());
}

#[test]
fn object_parsers_handle_any_input() {
    mutate::run(runs::object, &objects(), 10_000);
}
