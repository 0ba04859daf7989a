//! What must hold of the messages of a cluster, whatever comes over the wire. The fuzz targets and the
//! bounded run in the test suite (`proto/tests/fuzz.rs`) share these.

use hatebeam_game::Geometry;
use hatebeam_proto::{batch, v1};
use prost::Message;

/// A batch of children: refused, or what packing what came out of it gives.
pub(crate) fn batch(data: &[u8]) {
    let [height, data @ ..] = data else {
        return;
    };
    let Ok(geometry) = Geometry::new(10, 1 + usize::from(*height) % 16) else {
        return;
    };
    let mut nodes = Vec::new();
    if batch::unpack(geometry, data, &mut nodes).is_err() {
        assert!(nodes.is_empty(), "what is refused leaves nothing behind");
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

/// The messages that carry wells: refused, or the same again when they are written and read.
pub(crate) fn message(data: &[u8]) {
    let [kind, data @ ..] = data else {
        return;
    };
    match kind % 4 {
        0 => comes_back::<v1::FromWorker>(data),
        1 => comes_back::<v1::ToWorker>(data),
        2 => comes_back::<v1::SendRequest>(data),
        _ => comes_back::<v1::SendResponse>(data),
    }
}

fn comes_back<M: Message + Default + std::fmt::Debug>(data: &[u8]) {
    if let Ok(message) = M::decode(data) {
        let written = message.encode_to_vec();
        let again = M::decode(written.as_slice()).map(|again| again.encode_to_vec());
        // By their bytes: a number that is none is not equal to itself.
        assert!(again.is_ok_and(|again| again == written), "{message:?}");
    }
}
