//! The order `expand`, which generates the children of this worker's part of the frontier (the wells of the current
//! depth).

use super::Executor;
use crate::epoch::{BegunAttempt, Epoch};
use crate::error::OrderError;
use crate::exchange::{ChildQuota, FrontierGather, InboundLoops, Outbound, PeerStreams, Position};
use crate::games::Games;
use hatebeam_env::Env;
use hatebeam_proto::messages::{ChangedWell, Expand, Expanded, Secret, StreamHeader};
use hatebeam_search::{Candidates, Exchange, Loops, Step, StepStats, Targets};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The blocking part of an expansion, which runs on the search threads.
struct Expansion {
    epoch: Arc<Epoch>,
    attempt: BegunAttempt,
    /// The frontier of all workers, if the games that lead to it are not known yet.
    gather: Option<Arc<FrontierGather>>,
    streams: PeerStreams,
    progress: Arc<AtomicU64>,
    env: Env,
    threads: usize,
}

impl Executor {
    pub(super) async fn expand(
        &self,
        epoch: &Arc<Epoch>,
        order: Expand,
    ) -> Result<Expanded, OrderError> {
        let attempt = epoch.begin_attempt(order)?;
        let progress = &self.state.progress;
        progress.begin_depth(order.depth, attempt.frontier.len());
        let mut streams = self.open_streams(epoch, order, &attempt.candidates);
        let position = Position {
            epoch: epoch.number,
            depth: order.depth,
            attempt: order.attempt,
        };
        let games = epoch.games.as_ref();
        let gather =
            games.and_then(|games| games.gather(epoch.geometry(), &epoch.assignment, order.wells));
        let known = games.filter(|_| gather.is_none()).map(Games::known);
        let wells_of_peers = known.map(|known| known.wells_of_peers(&epoch.assignment));
        let loops = attempt.edges.as_ref().map(|edges| InboundLoops {
            edges: Arc::clone(edges),
            gather: gather.clone(),
            wells_of_peers: Arc::new(wells_of_peers.unwrap_or_default()),
            quota: Arc::new(ChildQuota::new(epoch.geometry())),
            samples: Arc::default(),
            wells: order.wells,
        });
        self.inbound.open(position, &attempt.candidates, loops);
        if let (Some(games), Some(gather)) = (games, &gather) {
            streams.send_frontier(&games.own()).await;
            tokio::select! {
                biased;
                error = streams.failed() => return Err(error),
                () = gather.complete() => {}
            }
        }
        let expansion = Expansion {
            epoch: Arc::clone(epoch),
            attempt,
            gather,
            streams,
            progress: Arc::clone(&progress.expanded),
            env: self.env.clone(),
            threads: self.threads,
        };
        let began = self.env.now();
        let expanded = self.env.run_blocking(move || expansion.run());
        let (expanded, streams) = expanded.await?;
        let waited = streams.stalled() / u32::try_from(self.threads).unwrap_or(u32::MAX);
        let busy = began.elapsed().saturating_sub(waited);
        let metrics = &self.traffic.metrics;
        metrics
            .expanded
            .add(progress.expanded.load(Ordering::Relaxed));
        let (stats, changed) = match expanded {
            Ok(expanded) => expanded,
            Err(_) if epoch.is_over() => {
                return Err(OrderError::superseded("the epoch has ended"));
            }
            // The expansion stops if a stream to a peer fails. In this case, the stream's error is the cause.
            Err(error) => return Err(streams.failure().await.unwrap_or(error)),
        };
        metrics.children.add(stats.children);
        metrics.offered.add(stats.offered);
        let sent_bytes = streams.finish().await?;
        let StepStats { children, sent, .. } = stats;
        tracing::debug!(children, sent, sent_bytes, "expanded frontier");
        Ok(Expanded {
            children,
            sent,
            sent_bytes,
            busy_micros: busy.as_micros() as u64,
            changed,
        })
    }

    fn open_streams(
        &self,
        epoch: &Epoch,
        order: Expand,
        candidates: &Arc<Candidates>,
    ) -> PeerStreams {
        let (streams, handles) = PeerStreams::open(Outbound {
            env: &self.env,
            link: &self.peers,
            peers: &epoch.assignment.peers,
            header: StreamHeader {
                run: epoch.run.clone(),
                epoch: epoch.number,
                depth: order.depth,
                attempt: order.attempt,
                from: self.name.clone(),
                // A placeholder: each stream replaces it with the secret that this worker shares with the peer.
                secret: Secret::default(),
            },
            owners: &epoch.assignment.owners,
            geometry: epoch.geometry(),
            compress: self.compress,
            queued_batches: self.queued_batches,
            candidates,
            traffic: &self.traffic,
        });
        epoch.set_streams(handles);
        streams
    }
}

impl Expansion {
    fn run(
        self,
    ) -> (
        Result<(StepStats, Vec<ChangedWell>), OrderError>,
        PeerStreams,
    ) {
        (self.expand(), self.streams)
    }

    /// Returns the statistics and the pieces that the loop rule changes.
    fn expand(&self) -> Result<(StepStats, Vec<ChangedWell>), OrderError> {
        let Epoch {
            emulator,
            spec,
            assignment,
            cancel,
            games,
            ..
        } = &*self.epoch;
        if let (Some(games), Some(gather)) = (games, &self.gather) {
            games.push(gather, emulator, || self.env.random())?;
        }
        let known = games.as_ref().map(Games::known);
        let BegunAttempt {
            frontier,
            candidates,
            edges,
        } = &self.attempt;
        let step = Step::new(emulator, spec.evaluator, assignment.layout, self.threads)
            .map_err(|error| OrderError::bad_order(error.to_string()))?;
        let loops = known.as_ref().zip(edges.as_ref());
        let targets = Targets {
            candidates,
            exchange: Some(Exchange {
                owners: &assignment.owners,
                sink: &self.streams,
                peers: assignment.peers.len() as u16,
            }),
            loops: loops.map(|(known, edges)| Loops {
                past: &known.past,
                edges,
                starts: &known.starts,
            }),
        };
        let stats = step
            .expand(frontier, targets, cancel, &self.progress)
            .and_then(|stats| self.streams.flush().map(|()| stats))
            .map_err(|_| OrderError::superseded("the expansion was stopped"))?;
        let changed = loops.map(|(known, edges)| edges.changed(&known.past));
        let changed = changed.iter().flatten();
        let changed =
            changed.filter_map(|changed| ChangedWell::from_text(emulator.geometry(), changed));
        Ok((stats, changed.collect()))
    }
}
