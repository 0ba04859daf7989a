//! The worker process of a cluster.
//!
//! A [worker](work) carries out its coordinator's orders, depth by depth: it expands its shards, sends the
//! children to the owners of their shards (`exchange`), counts them for the search for the cut, keeps the
//! survivors (`executor`), and puts their tables into the object store (`tables`). Only what the run's
//! [manifest](hatebeam_runs::Manifest) names counts, and only the coordinator writes it. So nothing that a
//! lost or disconnected worker still does changes a run.

mod exchange;
mod executor;
mod session;
mod tables;

pub use session::{MemberError, Membership, work};

// A batch of children fits into a message with room to spare.
const _: () = assert!(hatebeam_proto::batch::MAX_BYTES * 4 < hatebeam_net::MAX_MESSAGE);
