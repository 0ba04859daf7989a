//! A run searched by many machines.
//!
//! A [worker](work) attends a coordinator and does what it is told, depth by depth: expand its shards and
//! hand the children to the owners of theirs (`exchange`), count them for the search for the cut, keep the
//! survivors (`hand`), and put their tables into the object store (`tables`). What counts is what the run's
//! [manifest](Manifest) names, which the coordinator alone writes; so whatever a worker that was lost or
//! cut off still does, changes nothing.
//!
//! What all this costs is in the manifest, too (`bill`).
//!
//! With a manifest and its tables any one machine can read a game back ([`Archive`]).

mod archive;
mod bill;
mod exchange;
mod hand;
mod manifest;
mod member;
mod sweep;
mod tables;

pub use archive::Archive;
pub use bill::{Bill, Budget, Charge, Machine, Present, Rates, StoppedBy, once_a_machine};
pub use manifest::{
    Depth, Expected, Kept, Manifest, ManifestError, Outcome, RUNS, State, Table, first_record,
    list_manifests,
};
pub use member::{MemberError, Membership, work};
pub use sweep::sweep;
