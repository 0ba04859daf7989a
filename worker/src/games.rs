//! The games that lead to the wells of all workers, in a run that applies the loop rule.

use crate::epoch::Assignment;
use crate::error::OrderError;
use crate::exchange::{Expected, FrontierGather, ShardWells};
use crate::lock;
use hatebeam_game::{Emulator, Geometry};
use hatebeam_runs::FrontierGames;
use hatebeam_search::{Edges, Frontier, Owner, Past, shard_starts};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The games that lead to the frontier of all workers.
pub(crate) struct Games(Mutex<State>);

struct State {
    known: KnownGames,
    /// This worker's part of a frontier that is newer than the one in `known`.
    own: Option<Arc<Vec<ShardWells>>>,
}

/// The games that lead to a frontier.
#[derive(Clone)]
pub(crate) struct KnownGames {
    pub(crate) past: Arc<Past>,
    /// For each shard, the index of its first well in the frontier of all workers.
    pub(crate) starts: Arc<Vec<u32>>,
}

impl KnownGames {
    /// Returns the number of wells of each peer in the frontier.
    pub(crate) fn wells_of_peers(&self, assignment: &Assignment) -> BTreeMap<String, u64> {
        let ends = self.starts.iter().skip(1).copied();
        let ends = ends.chain([self.past.newest().len() as u32]);
        let mut wells = BTreeMap::new();
        for ((owner, &start), end) in assignment.owners.iter().zip(&*self.starts).zip(ends) {
            if let Owner::Peer(peer) = *owner {
                let name = &assignment.peers[usize::from(peer)].name;
                *wells.entry(name.clone()).or_default() += u64::from(end - start);
            }
        }
        wells
    }
}

impl Games {
    pub(crate) fn new(games: FrontierGames) -> Games {
        Games(Mutex::new(State {
            known: KnownGames {
                past: Arc::new(games.past),
                starts: Arc::new(games.starts),
            },
            own: None,
        }))
    }

    pub(crate) fn known(&self) -> KnownGames {
        lock(&self.0).known.clone()
    }

    /// Finds the parents of this worker's part of the next frontier. `edges` are those of the expansion.
    ///
    /// # Errors
    /// Returns an error if a well has no parent.
    pub(crate) fn select(
        &self,
        edges: &Edges,
        frontier: &Frontier,
        threads: usize,
    ) -> Result<(), OrderError> {
        let past = self.known().past;
        let parents = edges.parents(&past, &frontier.shards, threads);
        let parents = parents
            .ok_or_else(|| OrderError::Worker("a well of the frontier has no parent".to_owned()))?;
        let mut parents = parents.into_iter();
        let shards = frontier.shards.iter().map(|nodes| ShardWells {
            wells: nodes.iter().map(|node| node.well).collect(),
            parents: parents.by_ref().take(nodes.len()).collect(),
        });
        let own = Arc::new(shards.collect());
        lock(&self.0).own = Some(own);
        Ok(())
    }

    /// Begins to collect the frontier of all workers, which has `wells` wells. Returns `None` if it is known.
    pub(crate) fn gather(
        &self,
        geometry: Geometry,
        assignment: &Assignment,
        wells: u64,
    ) -> Option<Arc<FrontierGather>> {
        let state = lock(&self.0);
        let own = state.own.as_deref()?.clone();
        let peers = assignment.peers.iter().map(|peer| peer.name.clone());
        let expected = Expected {
            geometry,
            layout: assignment.layout,
            owners: Arc::clone(&assignment.owners),
            peers: peers.collect(),
            wells,
            parents: state.known.past.newest().len(),
        };
        Some(Arc::new(FrontierGather::new(expected, own)))
    }

    /// Adds the collected frontier. `random` selects the wells whose parents are checked.
    ///
    /// # Errors
    /// Returns an error if its number of wells or a checked parent is wrong.
    pub(crate) fn push(
        &self,
        gather: &FrontierGather,
        emulator: &Emulator,
        random: impl FnMut() -> u64,
    ) -> Result<(), OrderError> {
        let shards = gather.take()?;
        let wrong = gather.wrong_parents(&self.known().past, emulator, &shards, random);
        if !wrong.is_empty() {
            return Err(OrderError::WrongChildren(wrong));
        }
        let starts = shard_starts(shards.iter().map(|shard| shard.wells.len()));
        let (mut wells, mut parents) = (Vec::new(), Vec::new());
        for shard in shards {
            wells.extend(shard.wells);
            parents.extend(shard.parents);
        }
        let mut state = lock(&self.0);
        // The expansion of the previous depth has ended, so nothing is cloned.
        Arc::make_mut(&mut state.known.past).push(wells, parents);
        state.known.starts = Arc::new(starts);
        state.own = None;
        Ok(())
    }

    /// Returns this worker's part of a frontier whose wells its peers do not know yet.
    pub(crate) fn own(&self) -> Arc<Vec<ShardWells>> {
        lock(&self.0).own.clone().unwrap_or_default()
    }
}
