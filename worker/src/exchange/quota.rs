//! Limits on the number of children (candidate wells for the next depth) that peers send, if the run applies the loop rule.
//!
//! Candidate tables keep each child once, but the edges from parents to children are collected until the cut. So a peer that
//! sends the same children again and again could exhaust the memory of a worker.

use crate::lock;
use hatebeam_game::Geometry;
use hatebeam_proto::LinkError;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Number of rows above the geometry's height in which a piece can rest.
const ROWS_ABOVE: u64 = 4;

/// The children that each peer has sent in an attempt, on all of its streams.
pub(crate) struct ChildQuota {
    max_per_parent: u64,
    received: Mutex<BTreeMap<String, u64>>,
}

impl ChildQuota {
    pub(crate) fn new(geometry: Geometry) -> ChildQuota {
        // A piece has at most `4 W - 4` orientations and columns. With the same ones, it can rest in at most every second row.
        let positions = 4 * (geometry.width() as u64 - 1);
        let heights = (geometry.height() as u64 + ROWS_ABOVE).div_ceil(2);
        ChildQuota {
            max_per_parent: positions * heights,
            received: Mutex::default(),
        }
    }

    /// Adds a number of children from a peer with this number of parents.
    ///
    /// # Errors
    /// Returns an error if the parents cannot have so many children.
    pub(super) fn add(&self, from: &str, parents: u64, children: usize) -> Result<(), LinkError> {
        let mut received = lock(&self.received);
        let received = received.entry(from.to_owned()).or_default();
        *received = received.saturating_add(children as u64);
        if *received > parents.saturating_mul(self.max_per_parent) {
            return Err(LinkError::bad_message(format!(
                "{from} has sent {received} children of {parents} wells"
            )));
        }
        Ok(())
    }
}
