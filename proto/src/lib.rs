//! The messages that clients, the coordinator and the workers exchange: the generated [messages and
//! services](v1), and the format of a [batch of children](batch) between two workers.

pub mod batch;

/// Version 1 of the interface. The `.proto` files say what everything means.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::unwrap_used)]
pub mod v1 {
    tonic::include_proto!("hatebeam.v1");
    /// The compiled files, for the reflection service.
    pub const FILES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/hatebeam.bin"));

    impl order::Kind {
        /// Name of the order in metrics.
        pub fn name(&self) -> &'static str {
            match self {
                Self::Prepare(_) => "prepare",
                Self::Expand(_) => "expand",
                Self::Count(_) => "count",
                Self::ValidateCut(_) => "validate_cut",
                Self::Select(_) => "select",
                Self::Halt(_) => "halt",
                Self::WaitCommit(_) => "wait_commit",
            }
        }
    }
}
