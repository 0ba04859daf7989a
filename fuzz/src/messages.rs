//! Properties of the decoders of cluster messages that must hold for any received bytes. The fuzz targets and a short
//! test in the test suite (`proto/tests/fuzz.rs`) check these properties.

use hatebeam_game::Geometry;
use hatebeam_proto::{batch, v1};
use prost::Message;

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

/// Checks that decoding a message of a worker's streams returns an error, or a message that encoding and decoding
/// preserve.
pub(crate) fn message(data: &[u8]) {
    let [kind, data @ ..] = data else {
        return;
    };
    match kind % 4 {
        0 => round_trips::<v1::FromWorker>(data),
        1 => round_trips::<v1::ToWorker>(data),
        2 => round_trips::<v1::SendRequest>(data),
        _ => round_trips::<v1::SendResponse>(data),
    }
}

fn round_trips<M: Message + Default + std::fmt::Debug>(data: &[u8]) {
    if let Ok(message) = M::decode(data) {
        let written = message.encode_to_vec();
        let again = M::decode(written.as_slice()).map(|again| again.encode_to_vec());
        // Compares bytes instead of messages, because NaN is not equal to itself.
        assert!(again.is_ok_and(|again| again == written), "{message:?}");
    }
}
