//! A property of batches of children that must hold for any received bytes. The fuzz target and a short test in the test
//! suite (`proto/tests/fuzz.rs`) check it. `proto/tests/messages.rs` decodes damaged messages.

use hatebeam_game::Geometry;
use hatebeam_proto::batch;

/// Checks that unpacking a batch of children returns an error, or nodes that packing and unpacking preserve.
pub(crate) fn batch(data: &[u8]) {
    let [height, data @ ..] = data else {
        return;
    };
    let Ok(geometry) = Geometry::new(10, 1 + usize::from(*height) % 16) else {
        return;
    };
    let mut nodes = Vec::new();
    if batch::unpack(geometry, data, &mut nodes).is_err() {
        assert!(nodes.is_empty(), "an invalid batch must not leave nodes");
        return;
    }
    for node in &nodes {
        assert!(node.well.unpack(geometry).is_ok(), "{node:?}");
    }
    for compress in [false, true] {
        let mut again = Vec::new();
        let packed = batch::pack(geometry, &nodes, compress);
        let unpacked = batch::unpack(geometry, &packed, &mut again);
        assert!(unpacked.is_ok() && again == nodes, "{unpacked:?}");
    }
}
