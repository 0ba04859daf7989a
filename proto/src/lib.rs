//! The messages between clients, the coordinator and the workers.
//!
//! [`v1`] contains the generated types and services, [`messages`] the plain Rust types that the coordinator
//! and the workers use, and [`convert`] the conversions between them. [`batch`] packs the children that
//! workers exchange. [`LinkError`] describes why a stream of messages failed.

pub mod batch;
#[cfg(feature = "messages")]
pub mod convert;
mod link;
#[cfg(feature = "messages")]
pub mod messages;

pub use link::{BoxStream, LinkError, LinkErrorKind};

/// Version 1 of the interface. The `.proto` files document all messages.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::unwrap_used)]
pub mod v1 {
    tonic::include_proto!("hatebeam.v1");
    /// The compiled `.proto` files, for the gRPC reflection service.
    pub const FILES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/hatebeam.bin"));
}
