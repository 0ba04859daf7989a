//! The exchange of the frontier (the wells kept at a depth), which precedes that of the children if the run applies the loop
//! rule. The rule depends on the games that lead to a well, and the parents of a worker's wells were on any worker. So each
//! worker knows the wells of all workers, with their parents.

use crate::error::OrderError;
use crate::lock;
use hatebeam_env::watch;
use hatebeam_game::{Emulator, Geometry};
use hatebeam_proto::LinkError;
use hatebeam_proto::messages::FrontierPart;
use hatebeam_search::{NodeWell, Owner, Past, ShardLayout};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Number of wells of each shard whose parents are checked. Each takes about as long as the expansion of a well.
const CHECKED_PARENTS: usize = 8;

/// The wells of a shard, each with the index of its parent in the frontier of the previous depth.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShardWells {
    pub(crate) wells: Vec<NodeWell>,
    pub(crate) parents: Vec<u32>,
}

/// What a worker expects to receive of a frontier.
pub(crate) struct Expected {
    pub(crate) geometry: Geometry,
    pub(crate) layout: ShardLayout,
    pub(crate) owners: Arc<Vec<Owner>>,
    /// Names of the peers, in the order of [`Owner::Peer`].
    pub(crate) peers: Vec<String>,
    /// Number of wells of all workers.
    pub(crate) wells: u64,
    /// Number of wells of all workers at the previous depth.
    pub(crate) parents: usize,
}

/// Collects the frontier of all workers.
pub(crate) struct FrontierGather {
    expected: Expected,
    state: Mutex<Gathered>,
    /// Number of peers that have further wells.
    open: watch::Sender<usize>,
}

struct Gathered {
    shards: Vec<ShardWells>,
    /// Number of wells in `shards`.
    wells: u64,
    /// Number of wells of each peer.
    of_peers: Vec<u64>,
    /// Whether each peer has sent its last part.
    is_complete: Vec<bool>,
}

impl FrontierGather {
    /// Begins to collect a frontier. `own` contains an element for each shard, which is empty if a peer owns the shard.
    pub(crate) fn new(expected: Expected, own: Vec<ShardWells>) -> FrontierGather {
        let peers = expected.peers.len();
        FrontierGather {
            expected,
            state: Mutex::new(Gathered {
                wells: own.iter().map(|shard| shard.wells.len() as u64).sum(),
                shards: own,
                of_peers: vec![0; peers],
                is_complete: vec![false; peers],
            }),
            open: watch::Sender::new(peers),
        }
    }

    fn index_of(&self, peer: &str) -> Option<usize> {
        self.expected.peers.iter().position(|name| name == peer)
    }

    /// Adds a part that a peer has sent.
    ///
    /// # Errors
    /// Returns an error if the part is invalid.
    pub(crate) fn add(&self, from: &str, part: FrontierPart) -> Result<(), LinkError> {
        let bad = |reason: &str| Err(LinkError::bad_message(reason));
        let expected = &self.expected;
        let Some(peer) = self.index_of(from) else {
            return bad("the sender of a part of the frontier is not a peer");
        };
        let is_valid = |well: &NodeWell| well.unpack(expected.geometry).is_ok();
        if !part.wells.iter().all(is_valid) {
            return bad("a well of the frontier is invalid");
        }
        if part
            .parents
            .iter()
            .any(|&parent| parent as usize >= expected.parents)
        {
            return bad("a well of the frontier has an unknown parent");
        }
        let shard = part.shard as usize;
        let is_owner = expected.owners.get(shard) == Some(&Owner::Peer(peer as u16));
        if !part.wells.is_empty() && !is_owner {
            return bad("a part of the frontier is from a shard that its sender does not own");
        }
        let layout = expected.layout;
        let mut shards = part.wells.iter().map(|well| layout.shard_of(well));
        if !shards.all(|found| found == shard) {
            return bad("a well of the frontier is not in the shard of its part");
        }
        let mut state = lock(&self.state);
        if state.is_complete[peer] {
            return bad("a part of the frontier follows the last one");
        }
        let last = state.shards.get(shard).and_then(|wells| wells.wells.last());
        if !last
            .into_iter()
            .chain(&part.wells)
            .is_sorted_by(|a, b| a < b)
        {
            return bad("the wells of a shard of the frontier are not in ascending order");
        }
        state.wells += part.wells.len() as u64;
        if state.wells > expected.wells {
            return bad("the frontier has too many wells");
        }
        state.of_peers[peer] += part.wells.len() as u64;
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

    /// Returns the number of wells of a peer that has sent its last part, and otherwise 0.
    pub(super) fn wells_of(&self, from: &str) -> u64 {
        let state = lock(&self.state);
        let peer = self.index_of(from);
        let peer = peer.filter(|&peer| state.is_complete[peer]);
        peer.map_or(0, |peer| state.of_peers[peer])
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
        let (found, expected) = (state.wells, self.expected.wells);
        if found != expected {
            return Err(OrderError::Worker(format!(
                "the workers have sent {found} wells of the frontier, not {expected}"
            )));
        }
        Ok(std::mem::take(&mut state.shards))
    }

    /// Checks the parents of some random wells of each peer. Returns the peers that have sent a wrong parent, each with a
    /// description. `past` are the games that lead to the frontier of the parents.
    pub(crate) fn wrong_parents(
        &self,
        past: &Past,
        emulator: &Emulator,
        shards: &[ShardWells],
        mut random: impl FnMut() -> u64,
    ) -> BTreeMap<String, String> {
        let mut wrong = BTreeMap::new();
        let Expected { owners, peers, .. } = &self.expected;
        for (owner, ShardWells { wells, parents }) in owners.iter().zip(shards) {
            let Owner::Peer(peer) = *owner else {
                continue;
            };
            for _ in 0..CHECKED_PARENTS.min(wells.len()) {
                let at = (random() % wells.len() as u64) as usize;
                let parent = parents[at];
                if !past.is_child(emulator, &wells[at], parent) {
                    let reason =
                        format!("it sent a well that is no child of well {parent} before it");
                    wrong.insert(peers[usize::from(peer)].clone(), reason);
                }
            }
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::{Children, Rules, Well};

    const GEOMETRY: Geometry = Geometry::STANDARD;

    fn layout() -> ShardLayout {
        ShardLayout::new(100, 3)
    }

    /// Returns a well that belongs to a shard.
    fn well(shard: u32) -> NodeWell {
        wells(shard)[0]
    }

    /// Returns some wells that belong to a shard, in ascending order.
    fn wells(shard: u32) -> Vec<NodeWell> {
        let wells = (0..512).map(|row| {
            let mut rows = [0; 16];
            rows[0] = row;
            NodeWell::pack(GEOMETRY, &Well::from_rows(rows))
        });
        let wells = wells.filter(|well| layout().shard_of(well) == shard as usize);
        let mut wells: Vec<NodeWell> = wells.collect();
        wells.sort_unstable();
        wells
    }

    fn part(shard: u32, wells: usize, last: bool) -> FrontierPart {
        FrontierPart {
            shard,
            wells: self::wells(shard.min(2))[..wells].to_vec(),
            parents: vec![2; wells],
            last,
        }
    }

    /// Returns a collection on a worker that owns the first of three shards, with one well.
    fn gather() -> FrontierGather {
        let expected = Expected {
            geometry: GEOMETRY,
            layout: layout(),
            owners: Arc::new(vec![Owner::Here, Owner::Peer(0), Owner::Peer(1)]),
            peers: ["w1", "w2"].map(str::to_owned).into(),
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
        assert_eq!((gather.wells_of("w1"), gather.wells_of("w2")), (3, 0));
        let next = FrontierPart {
            wells: vec![wells(2)[1]],
            ..part(2, 1, true)
        };
        gather.add("w2", next).unwrap();
        assert_eq!(gather.wells_of("w2"), 2);
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
        let other_shard = FrontierPart {
            wells: vec![well(2)],
            ..part(1, 1, true)
        };
        let mut descending = part(1, 2, true);
        descending.wells.reverse();
        let mut repeated = part(1, 2, true);
        repeated.wells[1] = repeated.wells[0];
        for (from, part, expected) in [
            ("w1", descending, "not in ascending order"),
            ("w1", repeated, "not in ascending order"),
            ("w1", other_shard, "not in the shard"),
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
        gather.add("w2", part(2, 1, false)).unwrap();
        let error = gather.add("w2", part(2, 1, false)).unwrap_err();
        assert!(error.reason.contains("not in ascending order"), "{error}");
        gather.add("w1", part(1, 1, true)).unwrap();
        let error = gather.add("w1", part(1, 1, true)).unwrap_err();
        assert!(error.reason.contains("follows the last one"), "{error}");
        gather.add("w2", part(2, 0, true)).unwrap();
        let error = gather.take().unwrap_err().to_string();
        assert!(error.contains("3 wells of the frontier, not 6"), "{error}");
    }

    #[test]
    fn wrong_parents_are_found() {
        let emulator = Emulator::new(GEOMETRY, Rules::default());
        let past = Past::new(GEOMETRY, &[Well::EMPTY]);
        let mut children = Children::new();
        emulator.expand(&Well::EMPTY, &mut children);
        let child = NodeWell::pack(GEOMETRY, &children.wells()[0]);
        let shards = |first, second| {
            let shard = |well| ShardWells {
                wells: vec![well; 20],
                parents: vec![0; 20],
            };
            [ShardWells::default(), shard(first), shard(second)]
        };
        let mut number = 0;
        let mut random = || {
            number += 7;
            number
        };
        let gather = gather();
        let mut check =
            |shards: [ShardWells; 3]| gather.wrong_parents(&past, &emulator, &shards, &mut random);
        assert!(check(shards(child, child)).is_empty());
        let wrong = check(shards(child, NodeWell::pack(GEOMETRY, &Well::EMPTY)));
        assert_eq!(wrong.keys().collect::<Vec<_>>(), ["w2"]);
        let mut unknown = shards(child, child);
        unknown[1].parents.fill(1);
        assert_eq!(check(unknown).keys().collect::<Vec<_>>(), ["w1"]);
    }
}
