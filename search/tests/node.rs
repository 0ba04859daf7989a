//! Tests that the hash of a packed well and the digest of a frontier never change. Stored files depend
//! on both.

use hatebeam_search::{Digest, Node, NodeWell};

fn nodes() -> [Node; 2] {
    let bytes = std::array::from_fn(|at| at as u8 + 1);
    let first = Node {
        score: 0,
        well: NodeWell::default(),
        lines: 0,
        hint: 0,
    };
    let second = Node {
        score: -2,
        well: NodeWell(bytes),
        lines: 0x0102,
        hint: 0xab,
    };
    [first, second]
}

/// The expected values were computed from the formulas by an independent program.
#[test]
fn hashes_of_packed_wells_never_change() {
    let hashes = nodes().map(|node| node.well.hash());
    assert_eq!(hashes, [0x2ebf_facf_8a5a_fe2f, 0xa488_110d_b42c_dd5a]);
}

/// The expected values were computed from the formulas by an independent program.
#[test]
fn digests_never_change() {
    let [first, second] = nodes();
    for (nodes, expected) in [
        (&[][..], "00000000000000000000000000000000"),
        (&[first], "bafde6e38dd32b71102e86908fc0a63f"),
        (&[second], "d04c70940835378500855dc2cd0d5d33"),
        (&[second, first], "8b4a5777960862f610b3e4535cce0372"),
    ] {
        let digest = Digest::of(nodes);
        assert_eq!(digest.to_string(), expected);
        assert_eq!(expected.parse(), Ok(digest));
    }
}
