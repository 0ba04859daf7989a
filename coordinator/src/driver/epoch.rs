//! One epoch: a fixed set of workers prepares, and then searches one depth after another.

use super::assign::{WorkerCapacity, assign, layout_for, shards_in};
use super::commit::{Pending, Selected};
use super::error::EpochError;
use super::state::{RunDriver, RunEnd};
use super::updates::Until;
use super::workers::{EpochWorkers, Explored, NextDepth, total};
use crate::registry::{Member, WorkerError};
use hatebeam_env::Env;
use hatebeam_proto::messages::{Peer, Prepare, Secret};
use hatebeam_runs::{CellBalance, EndReason, FrontierSummary, Table, may_exceed_max_lines};
use hatebeam_search::{RecentCuts, ShardLayout};
use std::ops::RangeInclusive;
use std::pin::pin;
use tokio::sync::oneshot;
use tracing::{Instrument, Span};

/// A secret for each ordered pair of workers in an epoch. A worker that receives children (newly generated wells) from
/// another worker uses the secret to verify the sender.
struct PairSecrets(Vec<Vec<Secret>>);

impl PairSecrets {
    fn random(env: &Env, workers: usize) -> PairSecrets {
        let secret = || {
            let halves = [env.random(), env.random()].map(u64::to_le_bytes);
            Secret(std::array::from_fn(|at| halves[at / 8][at % 8]))
        };
        let row = || (0..workers).map(|_| secret()).collect();
        PairSecrets((0..workers).map(|_| row()).collect())
    }
}

/// Returns the members of an epoch, each with the secrets that it shares with the member at index `place`.
fn peers_of(place: usize, members: &[Member], PairSecrets(secrets): &PairSecrets) -> Vec<Peer> {
    let peer = |(other, member): (usize, &Member)| Peer {
        name: member.name.clone(),
        address: member.address.clone(),
        send_secret: secrets[place][other],
        receive_secret: secrets[other][place],
    };
    members.iter().enumerate().map(peer).collect()
}

/// Reason why an epoch ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpochEnd {
    Run(RunEnd),
    /// The set of available workers changed.
    WorkersChanged,
}

/// The shards and the tables from which workers load their wells.
struct OwnWells<'a> {
    tables: &'a [Table],
    /// The layout of the tables.
    stored: ShardLayout,
    layout: ShardLayout,
    /// Index of each shard's owner.
    owners: &'a [u32],
}

impl OwnWells<'_> {
    /// Returns how many wells a worker may have. The number is exact unless a table has wells of several workers.
    fn of(&self, worker: u32) -> RangeInclusive<u64> {
        let (mut least, mut most) = (0u64, 0u64);
        for table in self.tables {
            let shards = self.layout.overlapping(self.stored, table.shard as usize);
            let owners = &self.owners[shards];
            if owners.contains(&worker) {
                most = most.saturating_add(table.count);
            }
            if owners.iter().all(|owner| *owner == worker) {
                least = least.saturating_add(table.count);
            }
        }
        least..=most
    }
}

impl RunDriver {
    /// Searches with these workers until the set of workers changes or the run ends.
    pub(super) async fn search(&mut self, workers: &EpochWorkers) -> Result<EpochEnd, EpochError> {
        let balance = CellBalance::of(&self.manifest().spec)?;
        let mut depth = self.prepare(workers).await?;
        self.note("");
        let mut pending: Option<Pending> = None;
        let mut cuts = self.recent_cuts();
        let last = self.manifest().last().map(|last| &last.record);
        let mut parents = last.map_or(0, |last| last.count);
        let mut best_lines = last.map_or(0, |last| last.best_lines);
        let began = self.parts.env.now();
        let seconds_before = self.seconds;
        loop {
            self.apply_pending().await?;
            if let Some(end) = self.epoch_end(workers, depth, best_lines) {
                self.commit(pending.take()).await?;
                return Ok(end);
            }
            // Workers that want to leave and are not in this epoch need not wait until it ends.
            self.parts.registry.release(&workers.members);
            let started = self.parts.env.now();
            depth += 1;
            let span = tracing::info_span!("depth", depth);
            let next = NextDepth {
                depth,
                parents,
                floor: cuts.floor(),
            };
            let exploring = self.explore(workers, next, pending.take(), &span).await?;
            let Some(explored) = exploring else {
                self.note_failed_attempt();
                return Ok(EpochEnd::Run(RunEnd::Cancelled));
            };
            self.measure(workers, parents, &explored);
            let selecting = workers.select(&explored, &balance);
            let parts = selecting.instrument(span.clone()).await?;
            let mut frontier = FrontierSummary::default();
            parts.iter().for_each(|part| frontier.join(part));
            self.seconds = seconds_before + began.elapsed().as_secs_f64();
            self.manifest_mut().seconds = self.seconds;
            cuts.add(
                frontier.count,
                frontier.worst_eval,
                self.manifest().spec.width,
            );
            parents = frontier.count;
            best_lines = frontier.best.map_or(0, |node| node.lines);
            if frontier.count == 0 {
                return Ok(EpochEnd::Run(RunEnd::Over(EndReason::Over)));
            }
            let selected = Selected {
                depth,
                explored,
                frontier,
                parts,
                seconds: started.elapsed().as_secs_f64(),
                span,
            };
            pending = Some(self.pending(workers, selected)?);
        }
    }

    /// Expands a depth and finds its cut (the lowest score that stays in the beam), while the previous depth is being
    /// committed. Returns `None` as soon as the previous depth is committed and the run is to be cancelled: a wide depth takes
    /// minutes, and a faulty worker may never finish it.
    async fn explore(
        &mut self,
        workers: &EpochWorkers,
        next: NextDepth,
        pending: Option<Pending>,
        span: &Span,
    ) -> Result<Option<Explored>, EpochError> {
        let width = self.manifest().layout().width();
        let quiescence = self.manifest().spec.evaluator.quiescence;
        let (done, is_done) = oneshot::channel();
        let exploring = async {
            let exploring = workers.explore(next, width, quiescence);
            let explored = exploring.instrument(span.clone()).await;
            drop(done);
            explored
        };
        let committing = async {
            self.commit(pending).await?;
            Ok::<_, EpochError>(self.apply_pending_until(is_done).await?)
        };
        let (mut exploring, mut committing) = (pin!(exploring), pin!(committing));
        // If one future fails, the other one still runs to completion: a manifest write must not be abandoned, and a
        // depth that can be committed should be committed.
        let (explored, committed) = tokio::select! {
            biased;
            explored = &mut exploring => (explored, committing.await),
            committed = &mut committing => match committed {
                Ok(Until::Cancelled) => return Ok(None),
                committed => (exploring.await, committed),
            },
        };
        committed?;
        Ok(Some(explored?))
    }

    /// Returns the cuts of the committed depths, from which the search estimates the floor of the next depth.
    fn recent_cuts(&self) -> RecentCuts {
        let manifest = self.manifest();
        let mut cuts = RecentCuts::default();
        for record in manifest.records() {
            cuts.add(record.count, record.worst_eval, manifest.spec.width);
        }
        cuts
    }

    /// Returns the reason to end the epoch after this depth, at which games have at most `best_lines` lines. Returns `None`
    /// if the epoch continues.
    fn epoch_end(&self, workers: &EpochWorkers, depth: u32, best_lines: u16) -> Option<EpochEnd> {
        let manifest = self.manifest();
        let over = |limit| EpochEnd::Run(RunEnd::Over(limit));
        if manifest.stop_requested {
            Some(EpochEnd::Run(RunEnd::Cancelled))
        } else if may_exceed_max_lines(best_lines) {
            // This depth may not be committed yet.
            Some(over(EndReason::MaxLines))
        } else if manifest.limits.max_depth.is_some_and(|max| depth >= max) {
            Some(over(EndReason::MaxDepth))
        } else if let Some(limit) = self.reached_limit() {
            Some(over(limit))
        } else if self.parts.registry.members() != workers.members {
            Some(EpochEnd::WorkersChanged)
        } else {
            None
        }
    }

    /// Splits shards if the epoch of these workers needs more of them. The tables of the committed depths stay as they
    /// are: a worker loads the tables that contain wells of its shards.
    pub(super) fn split_shards(&mut self, members: &[Member]) {
        let least = self.parts.settings.min_shard_wells;
        let layout = layout_for(members, self.manifest().layout(), least);
        let (before, shards) = (self.manifest().shards, layout.shards() as u32);
        if shards > before {
            tracing::info!(before, shards, workers = members.len(), "split shards");
            self.manifest_mut().shards = shards;
        }
    }

    /// Orders each worker to load its shards of the last committed depth. Returns that depth.
    async fn prepare(&mut self, workers: &EpochWorkers) -> Result<u32, EpochError> {
        let owners = self.assign_shards(&workers.members);
        let manifest = self.manifest();
        let Some(last) = manifest.last() else {
            return Err(
                WorkerError::failed("coordinator", "the manifest contains no depth").into(),
            );
        };
        let (depth, count) = (last.record.depth, last.record.count);
        let list = manifest.tables(&self.parts.objects, last).await;
        let list = list.map_err(|error| match error.is_damage() {
            true => EpochError::Damaged(error),
            false => error.into(),
        })?;
        let layout = manifest.layout();
        let stored = last.tables.as_ref();
        let stored = stored.map_or(layout, |list| manifest.layout_of(list));
        let secrets = PairSecrets::random(&self.parts.env, workers.members.len());
        let order = |index: usize| {
            let is_own = |table: &&Table| {
                let shards = layout.overlapping(stored, table.shard as usize);
                owners[shards].contains(&(index as u32))
            };
            Prepare {
                run: manifest.name.clone(),
                spec: manifest.spec.clone(),
                depth,
                owners: owners.clone(),
                members: peers_of(index, &workers.members, &secrets),
                tables: list.tables.iter().filter(is_own).cloned().collect(),
                table_shards: stored.shards() as u32,
            }
        };
        let prepared = workers.prepare(order).await?;
        for (index, (member, prepared)) in workers.members.iter().zip(&prepared).enumerate() {
            let own = OwnWells {
                tables: &list.tables,
                stored,
                layout,
                owners: &owners,
            };
            let expected = own.of(index as u32);
            // The first depth has no tables.
            if !list.tables.is_empty() && !expected.contains(&prepared.wells) {
                let wells = prepared.wells;
                let wrong = format!("it has {wells} wells at depth {depth}, not {expected:?}");
                return Err(WorkerError::failed(&member.name, wrong).into());
            }
        }
        let wells = total(&prepared, |prepared| prepared.wells);
        if wells != count {
            let wrong = format!("the workers have {wells} wells at depth {depth}, not {count}");
            return Err(WorkerError::failed("coordinator", wrong).into());
        }
        let fetched = total(&prepared, |prepared| prepared.fetched.into());
        tracing::info!(depth, workers = prepared.len(), fetched, "began epoch");
        self.parts.registry.set_shards(&workers.members, &owners);
        Ok(depth)
    }

    /// Adds the expansion times of a depth to the measured speeds. Assumes that the parents (the expanded wells) are
    /// spread evenly over the shards.
    fn measure(&mut self, workers: &EpochWorkers, parents: u64, explored: &Explored) {
        let shards = self.owners.len().max(1) as u64;
        for (member, &busy) in workers.members.iter().zip(&explored.busy_micros) {
            let owned = self.owners.iter().filter(|owner| **owner == member.name);
            let wells = parents.saturating_mul(owned.count() as u64) / shards;
            self.speeds.add(&member.name, wells, busy);
        }
    }

    /// Assigns the shards to the workers and returns the index of each shard's owner.
    fn assign_shards(&mut self, members: &[Member]) -> Vec<u32> {
        let manifest = self.manifest();
        let (spec, layout) = (&manifest.spec, manifest.layout());
        let threads: Vec<(&str, u32)> = members
            .iter()
            .map(|member| (member.name.as_str(), member.threads))
            .collect();
        let weights = self.speeds.weights(&threads);
        let capacity = |(member, weight): (&Member, u64)| WorkerCapacity {
            name: member.name.clone(),
            weight,
            max_shards: shards_in(member.memory_bytes, member.threads, spec, layout),
        };
        let workers: Vec<WorkerCapacity> = members.iter().zip(weights).map(capacity).collect();
        let shards = self.manifest().shards as usize;
        let owners = assign(&self.owners, shards, &workers);
        let name = |&owner: &u32| members[owner as usize].name.clone();
        self.owners = owners.iter().map(name).collect();
        owners
    }
}
