//! Reading back the best game of a run: finding its wells in the stored tables.
//!
//! A worker reads the game back, because a coordinator's machine is usually smaller. The worker answers with the nodes that
//! its lookups have found. The coordinator finds the game again from these nodes, which takes no tables and little time, and
//! plays it by the exact rules. If no worker succeeds, the coordinator reads the game back itself.

use super::error::DriverError;
use super::state::RunDriver;
use crate::registry::Member;
use hatebeam_proto::messages::{AnswerKind, GameNodes, OrderKind, ReadBack as ReadBackOrder};
use hatebeam_report::with_causes;
use hatebeam_runs::{
    Fetched, GameResult, ReadBack, ReadError, Retention, VerifiedGame, verify_game,
};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// First pause before reading back is retried. Each further pause is twice as long, up to [`MAX_PAUSE`].
const PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Maximum number of workers that try to read a game back.
const MAX_WORKERS: usize = 2;
/// Time for which reading back waits for the first worker. After a takeover, workers reconnect within this time.
const WORKER_WAIT: Duration = Duration::from_secs(5);
/// Maximum time that a worker may take to read a game back. A game of 250 depths takes some minutes.
const READ_LIMIT: Duration = Duration::from_secs(3600);
/// Interval between updates of the run's note.
const NOTE_INTERVAL: Duration = Duration::from_secs(1);

/// Result of reading back the best game.
pub(super) enum BestGameRead {
    /// The run ends with this game.
    Found(Box<GameResult>),
    /// The tables that are needed were not kept, so the run ends without a game. A note in the manifest says so.
    NotKept,
    /// The depths contradicted each other, and some were dropped. The search must continue.
    Contradicted,
}

impl RunDriver {
    /// Reads back the best game and stores its files. Retries while the object store is unavailable.
    pub(super) async fn read_back(&mut self) -> Result<BestGameRead, DriverError> {
        let mut pause = PAUSE;
        // Names of the workers that have tried.
        let mut tried = BTreeSet::new();
        // Depths whose tables were damaged when they were read. Tables that are marked as damaged are deleted at the end of
        // the run, so a single wrong read, for example because of a faulty network, is not enough.
        let mut suspects = BTreeSet::new();
        loop {
            let error = match self.try_read_back(&mut tried).await {
                Ok(result) => {
                    self.manifest_mut().note = String::new();
                    return Ok(BestGameRead::Found(Box::new(result)));
                }
                Err(error) => error,
            };
            let is_contradiction = error.contradiction().is_some();
            if error.is_dropped() || is_contradiction && self.manifest().keep == Retention::Last {
                let reason = with_causes(&error);
                self.manifest_mut().note = format!("the best game was not kept: {reason}");
                return Ok(BestGameRead::NotKept);
            }
            if self.drop_contradicting(&error).await {
                return Ok(BestGameRead::Contradicted);
            }
            let reason = with_causes(&error);
            if let Some(depth) = error.damaged_depth() {
                if suspects.insert(depth) {
                    tracing::warn!(
                        depth,
                        error = reason,
                        "cannot read tables of depth: reading them again"
                    );
                    continue;
                }
                tracing::warn!(
                    depth,
                    error = reason,
                    "cannot read tables of damaged depth: reading back without them"
                );
                self.mark_damaged(depth);
                self.save().await?;
                continue;
            }
            if !error.is_transient() {
                return Err(DriverError::Game(reason));
            }
            tracing::warn!(error = reason, "cannot read back the best game; retrying");
            self.note(format!(
                "reading back the best game failed, retrying: {reason}"
            ));
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn try_read_back(&self, tried: &mut BTreeSet<String>) -> Result<GameResult, ReadError> {
        let read = match self.read_on_workers(tried).await {
            Some(read) => read,
            None => self.read_here().await?,
        };
        let Fetched { tables, bytes } = read.fetched;
        let manifest = self.manifest();
        let result = self.parts.reader.store_files(manifest, read).await?;
        tracing::info!(
            run = manifest.name,
            lines = result.lines,
            pieces = result.pieces,
            lookups = result.lookups,
            tables,
            bytes,
            "read back best game"
        );
        Ok(result)
    }

    /// Reads the game back in this process.
    async fn read_here(&self) -> Result<ReadBack, ReadError> {
        let (reader, progress) = (&self.parts.reader, Arc::<AtomicU32>::default());
        tokio::select! {
            biased;
            read = reader.read(self.manifest(), None, &progress) => read,
            never = self.note_reading("", || progress.load(Ordering::Relaxed)) => match never {},
        }
    }

    /// Lets workers read the game back, one after another. Returns `None` if none of them succeeds.
    async fn read_on_workers(&self, tried: &mut BTreeSet<String>) -> Option<ReadBack> {
        while tried.len() < MAX_WORKERS {
            let member = self.next_reader(tried).await?;
            tried.insert(member.name.clone());
            match self.read_on(&member).await {
                Ok(read) => return Some(read),
                Err(reason) => {
                    let worker = member.name;
                    tracing::warn!(worker, reason, "worker cannot read back the best game");
                }
            }
        }
        None
    }

    /// Returns the available worker with the most memory that has not tried yet. If none has tried, waits for the first
    /// one.
    async fn next_reader(&self, tried: &BTreeSet<String>) -> Option<Member> {
        let registry = &self.parts.registry;
        let mut changes = registry.changes();
        let next = || {
            let members = registry.members().into_iter();
            members
                .filter(|member| !tried.contains(&member.name))
                .max_by_key(|member| {
                    let name = Reverse(member.name.clone());
                    (member.memory_bytes, member.threads, name)
                })
        };
        if !tried.is_empty() {
            return next();
        }
        let first = async {
            loop {
                changes.mark_unchanged();
                if let Some(member) = next() {
                    return Some(member);
                }
                changes.changed().await.ok()?;
            }
        };
        tokio::time::timeout(WORKER_WAIT, first).await.ok()?
    }

    /// Lets a worker read the game back. Returns the reason if it does not succeed.
    async fn read_on(&self, member: &Member) -> Result<ReadBack, String> {
        let (registry, manifest) = (&self.parts.registry, self.manifest());
        let began = self.parts.env.now();
        let order = OrderKind::ReadBack(ReadBackOrder {
            run: manifest.name.clone(),
        });
        let asking = registry.ask(member, manifest.epoch, order);
        let place = format!(" on worker {}", member.name);
        let answer = tokio::select! {
            biased;
            answer = tokio::time::timeout(READ_LIMIT, asking) => answer,
            never = self.note_reading(&place, || registry.depth_of(member)) => match never {},
        };
        let answer = answer.map_err(|_| format!("took longer than {READ_LIMIT:?}"))?;
        let AnswerKind::GameNodes(GameNodes {
            nodes,
            tables,
            bytes,
        }) = answer.map_err(|error| error.reason)?
        else {
            return Err("answered another order".to_owned());
        };
        let manifest = manifest.clone();
        let verifying = self
            .parts
            .env
            .run_blocking(move || verify_game(manifest, &nodes));
        let verified = verifying.await.map_err(|error| error.to_string())?;
        let VerifiedGame { game, film } =
            verified.map_err(|error| format!("sent a wrong game: {}", with_causes(&error)))?;
        Ok(ReadBack {
            game,
            film,
            nodes: Vec::new(),
            fetched: Fetched {
                tables: tables as usize,
                bytes,
            },
            seconds: began.elapsed().as_secs_f64(),
        })
    }

    /// Keeps the run's note up to date while the game is read back.
    async fn note_reading(&self, place: &str, depth: impl Fn() -> u32) -> Infallible {
        let last = self.depth();
        loop {
            match depth() {
                0 => self.note(format!("reading back the best game{place}")),
                depth => self.note(format!(
                    "reading back the best game{place}: depth {depth} of {last}"
                )),
            }
            tokio::time::sleep(NOTE_INTERVAL).await;
        }
    }
}
