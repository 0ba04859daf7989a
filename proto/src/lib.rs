//! The messages between clients, the coordinator and the workers.
//!
//! [`v1`] has the generated types and services, [`messages`] the plain types that the coordinator and the workers
//! compute with, [`convert`] the conversions between the two. [`batch`] packs the children that workers exchange, and
//! [`LinkError`] is why a stream of messages failed.

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
    /// The compiled files, for the reflection service.
    pub const FILES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/hatebeam.bin"));
}
