//! The exchange of the frontier (the wells kept at a depth), which precedes that of the children if the run applies the loop
//! rule. The rule depends on the games that lead to a well, and the parents of a worker's wells were on any worker. So each
//! worker knows the wells of all workers, with their parents.

use crate::error::OrderError;
use crate::lock;
use hatebeam_env::watch;
use hatebeam_game::Geometry;
use hatebeam_proto::LinkError;
use hatebeam_proto::messages::{FrontierPart, Peer};
use hatebeam_search::{NodeWell, Owner};
use std::sync::{Arc, Mutex};

/// The wells of a shard, each with the index of its parent in the frontier of the previous depth.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShardWells {
    pub(crate) wells: Vec<NodeWell>,
    pub(crate) parents: Vec<u32>,
}

/// What a worker expects to receive of a frontier.
pub(crate) struct Expected<'a> {
    pub(crate) geometry: Geometry,
    pub(crate) owners: &'a Arc<Vec<Owner>>,
    pub(crate) peers: &'a [Peer],
    /// Number of wells of all workers.
    pub(crate) wells: u64,
    /// Number of wells of all workers at the previous depth.
    pub(crate) parents: usize,
}

/// Collects the frontier of all workers.
pub(crate) struct FrontierGather {
    geometry: Geometry,
    owners: Arc<Vec<Owner>>,
    /// Names of the peers, in the order of [`Owner::Peer`].
    peers: Vec<String>,
    wells: u64,
    parents: usize,
    state: Mutex<Gathered>,
    /// Number of peers that have further wells.
    open: watch::Sender<usize>,
}

struct Gathered {
    shards: Vec<ShardWells>,
    /// Number of wells in `shards`.
    wells: u64,
    /// Whether each peer has sent its last part.
    is_complete: Vec<bool>,
}

impl FrontierGather {
    /// Begins to collect a frontier. `own` contains an element for each shard, which is empty if a peer owns the shard.
    pub(crate) fn new(expected: Expected<'_>, own: Vec<ShardWells>) -> FrontierGather {
        let peers = expected.peers.iter().map(|peer| peer.name.clone());
        FrontierGather {
            geometry: expected.geometry,
            owners: Arc::clone(expected.owners),
            peers: peers.collect(),
            wells: expected.wells,
            parents: expected.parents,
            state: Mutex::new(Gathered {
                wells: own.iter().map(|shard| shard.wells.len() as u64).sum(),
                shards: own,
                is_complete: vec![false; expected.peers.len()],
            }),
            open: watch::Sender::new(expected.peers.len()),
        }
    }

    /// Adds a part that a peer has sent.
    ///
    /// # Errors
    /// Returns an error if the part is invalid.
    pub(crate) fn add(&self, from: &str, part: FrontierPart) -> Result<(), LinkError> {
        let bad = |reason: &str| Err(LinkError::bad_message(reason));
        let Some(peer) = self.peers.iter().position(|name| name == from) else {
            return bad("the sender of a part of the frontier is not a peer");
        };
        let is_valid = |well: &NodeWell| well.unpack(self.geometry).is_ok();
        if !part.wells.iter().all(is_valid) {
            return bad("a well of the frontier is invalid");
        }
        if part
            .parents
            .iter()
            .any(|&parent| parent as usize >= self.parents)
        {
            return bad("a well of the frontier has an unknown parent");
        }
        let shard = part.shard as usize;
        let is_owner = self.owners.get(shard) == Some(&Owner::Peer(peer as u16));
        if !part.wells.is_empty() && !is_owner {
            return bad("a part of the frontier is from a shard that its sender does not own");
        }
        let mut state = lock(&self.state);
        if state.is_complete[peer] {
            return bad("a part of the frontier follows the last one");
        }
        state.wells += part.wells.len() as u64;
        if state.wells > self.wells {
            return bad("the frontier has too many wells");
        }
        if !part.wells.is_empty() {
            let wells = &mut state.shards[shard];
            wells.wells.extend(part.wells);
            wells.parents.extend(part.parents);
        }
        if part.last {
            state.is_complete[peer] = true;
            drop(state);
            self.open.send_modify(|open| *open -= 1);
        }
        Ok(())
    }

    /// Waits until all peers have sent their last parts.
    pub(crate) async fn complete(&self) {
        let mut open = self.open.subscribe();
        // The sender is not dropped before `self`.
        let _ = open.wait_for(|open| *open == 0).await;
    }

    /// Returns the wells of all shards.
    ///
    /// # Errors
    /// Returns an error if their number is not the expected one.
    pub(crate) fn take(&self) -> Result<Vec<ShardWells>, OrderError> {
        let mut state = lock(&self.state);
        if state.wells != self.wells {
            let (found, expected) = (state.wells, self.wells);
            return Err(OrderError::Worker(format!(
                "the workers have sent {found} wells of the frontier, not {expected}"
            )));
        }
        Ok(std::mem::take(&mut state.shards))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::prepare;
    use hatebeam_game::Well;

    const GEOMETRY: Geometry = Geometry::STANDARD;

    fn well(number: u16) -> NodeWell {
        NodeWell::pack(GEOMETRY, &Well::from_rows([number; 16].map(|row| row & 1)))
    }

    fn part(shard: u32, wells: usize, last: bool) -> FrontierPart {
        FrontierPart {
            shard,
            wells: vec![well(0); wells],
            parents: vec![2; wells],
            last,
        }
    }

    /// Returns a collection on a worker that owns the first of three shards, with one well.
    fn gather() -> FrontierGather {
        let peers = prepare(100, &["w1", "w2"]).members;
        let owners = Arc::new(vec![Owner::Here, Owner::Peer(0), Owner::Peer(1)]);
        let expected = Expected {
            geometry: GEOMETRY,
            owners: &owners,
            peers: &peers,
            wells: 6,
            parents: 3,
        };
        let mut own = vec![ShardWells::default(); 3];
        own[0].wells.push(well(0));
        own[0].parents.push(0);
        FrontierGather::new(expected, own)
    }

    #[tokio::test]
    async fn frontier_is_complete_after_the_last_part_of_each_peer() {
        let gather = gather();
        gather.add("w2", part(2, 1, false)).unwrap();
        gather.add("w1", part(1, 3, true)).unwrap();
        let complete = gather.complete();
        tokio::pin!(complete);
        let pending = tokio::time::timeout(std::time::Duration::ZERO, &mut complete).await;
        assert!(pending.is_err());
        gather.add("w2", part(2, 1, true)).unwrap();
        complete.await;
        let shards = gather.take().unwrap();
        let lengths: Vec<usize> = shards.iter().map(|shard| shard.wells.len()).collect();
        assert_eq!(lengths, [1, 3, 2]);
        assert_eq!(shards[2].parents, [2, 2]);
    }

    #[test]
    fn invalid_parts_are_refused() {
        let unknown_parent = FrontierPart {
            parents: vec![3],
            ..part(1, 1, true)
        };
        let invalid_well = FrontierPart {
            wells: vec![NodeWell([0xff; 20])],
            ..part(1, 1, true)
        };
        for (from, part, expected) in [
            ("w3", part(1, 1, true), "is not a peer"),
            ("w1", part(2, 1, true), "does not own"),
            ("w1", part(0, 1, true), "does not own"),
            ("w1", part(3, 1, true), "does not own"),
            ("w1", part(1, 6, true), "too many wells"),
            ("w1", unknown_parent, "unknown parent"),
            ("w1", invalid_well, "is invalid"),
        ] {
            let error = gather().add(from, part).unwrap_err();
            assert!(error.reason.contains(expected), "{error}");
        }
        let gather = gather();
        gather.add("w1", part(1, 1, true)).unwrap();
        let error = gather.add("w1", part(1, 1, true)).unwrap_err();
        assert!(error.reason.contains("follows the last one"), "{error}");
        gather.add("w2", part(2, 1, true)).unwrap();
        let error = gather.take().unwrap_err().to_string();
        assert!(error.contains("3 wells of the frontier, not 6"), "{error}");
    }
}
