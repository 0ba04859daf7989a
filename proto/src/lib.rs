//! What clients, the coordinator and the workers say to each other: the generated [messages and
//! services](v1), and how children are packed on their way from one worker to another ([`batch`]).

pub mod batch;

/// Version 1 of the interface. The `.proto` files say what everything means.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::unwrap_used)]
pub mod v1 {
    tonic::include_proto!("hatebeam.v1");
    /// The compiled files, for the reflection service.
    pub const FILES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/hatebeam.bin"));
}
