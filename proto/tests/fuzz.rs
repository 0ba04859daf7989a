//! A bounded run of the fuzz target for batches, with random and damaged input. `fuzz/README.md` describes
//! longer runs.

#[path = "../../fuzz/src/batches.rs"]
mod batches;
#[path = "../../fuzz/src/mutate.rs"]
mod mutate;

use hatebeam_game::{Geometry, Well};
use hatebeam_proto::batch;
use hatebeam_search::{Node, NodeWell};

fn nodes() -> Vec<Node> {
    let node = |row: u16| {
        let mut rows = [0; 16];
        rows[15] = row;
        Node {
            score: i32::from(row) - 20,
            well: NodeWell::pack(Geometry::STANDARD, &Well::from_rows(rows)),
            lines: row % 3,
            hint: row as u8,
        }
    };
    (0..40).map(node).collect()
}

/// Returns valid batches, each preceded by a byte that selects a geometry of 16 rows.
fn valid_batches() -> Vec<Vec<u8>> {
    [false, true]
        .map(|compress| mutate::seed(15, batch::pack(Geometry::STANDARD, &nodes(), compress)))
        .to_vec()
}

#[test]
fn invalid_batches_never_panic() {
    mutate::run(batches::batch, &valid_batches(), 2_000);
}

#[test]
fn valid_batches_are_accepted() {
    for valid in valid_batches() {
        let mut back = Vec::new();
        batch::unpack(Geometry::STANDARD, &valid[1..], &mut back).unwrap();
        assert_eq!(back, nodes());
    }
}
