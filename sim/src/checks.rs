//! Checks of the simulation's invariants at every write to the object store and at the end. The checks allow for the
//! faults in the plan (the list of faults and client requests that the seed determines).

mod manifests;

use crate::money::Presence;
use crate::oracle::Oracle;
use crate::process::{Clock, Process};
use crate::trace::Trace;
use bytes::Bytes;
use hatebeam_game::{Enemy, decode, play};
use hatebeam_objects::faults::{Call, Operation};
use hatebeam_objects::{Memory, ObjectError, Objects, Options};
use hatebeam_runs::{
    EndReason, LEASE, Manifest, RUNS, Retention, RunState, TableList, VersionedManifest,
};
use hatebeam_search::ChangedPiece;
use manifests::{changes, check_owner, check_record};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Time after a fault during which a coordinator may fail to renew its lease. A hanging request lasts up to six
/// minutes.
const DISTURBANCE: Duration = Duration::from_secs(400);

/// Time after the last fault within which a coordinator may save that a run has failed because of the faults.
const SAVE: Duration = Duration::from_secs(2);

/// Maximum number of epochs (periods with a fixed set of workers) of a run. Each fault ends at most a few epochs, and
/// no seed has enough faults for so many.
const MAX_EPOCHS: usize = 300;

/// What a list of tables references.
struct Referenced {
    /// Keys of the list and its tables.
    keys: BTreeSet<String>,
    changed: Vec<ChangedPiece>,
}

/// Observed state of one run.
#[derive(Clone)]
struct Known {
    manifest: Manifest,
    /// Names of the processes that may have begun each epoch. There are several if a late write, applied after its
    /// caller had timed out, may have written the first manifest with this epoch.
    begun: BTreeMap<u64, Vec<String>>,
    /// Keys of the objects that the manifest references, by depth.
    referenced: BTreeMap<u32, BTreeSet<String>>,
    /// Number of times that charging the run was stopped: its ledger's `until_ms` became `None`.
    closed: u64,
}

impl Known {
    /// Returns an upper bound on the number of times that a process began to charge the run for machine time. Each
    /// process begins once, and charging begins once more after each time that it was stopped.
    fn resumed(&self) -> u64 {
        let processes: BTreeSet<&String> = self.begun.values().flatten().collect();
        self.closed + processes.len() as u64
    }
}

#[derive(Default)]
struct Seen {
    runs: BTreeMap<String, Known>,
    /// Names of the runs whose manifest the plan has damaged.
    damaged: BTreeSet<String>,
    /// Keys of the tables that the plan has deleted.
    deleted_tables: BTreeSet<String>,
    /// Runs and depths whose tables the plan has deleted.
    damaged_depths: BTreeSet<(String, u32)>,
    /// Whether runs may fail even after all faults have ended, because too few workers have enough memory.
    may_fail: bool,
    /// Whether a worker may have caused other results than those of the single-threaded search.
    may_differ: bool,
    /// Names of the processes that have held the lease, in order.
    holders: Vec<String>,
    /// Key and process of each write that may be applied after its caller has timed out.
    late: Vec<(String, String)>,
    /// The last observed content of the lease object.
    lease: Option<Bytes>,
    /// Last time, by machine, at which a fault may have kept its process from renewing the lease.
    disturbed: BTreeMap<String, Instant>,
    violations: Vec<String>,
    /// Time at which all faults ended.
    quiet_since: Option<Instant>,
    totals: Totals,
}

impl Seen {
    /// Whether a table of `run` at a depth greater than `depth` was deleted or may be wrong.
    fn has_damage_after(&self, run: &str, depth: u32) -> bool {
        let mut damaged = self.damaged_depths.iter();
        self.may_differ || damaged.any(|(of, at)| of == run && *at > depth)
    }
}

/// Totals over all runs of a simulation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Number of committed depths.
    pub depths: u64,
    /// Number of epochs (periods of a run with a fixed set of workers).
    pub epochs: u64,
    /// Number of epochs that have split the shards of the depth at which they began.
    pub splits: u64,
    /// Number of false messages of workers that lie.
    pub lies: u64,
    /// Number of times that committed depths were dropped.
    pub drops: u64,
}

/// Observer of the store, which checks the invariants and collects violations.
pub(crate) struct Checker {
    /// Access to the store without faults.
    direct: Objects,
    trace: Arc<Trace>,
    presence: OnceLock<Arc<Presence>>,
    seen: Mutex<Seen>,
    violated: Notify,
}

impl Checker {
    pub(crate) fn new(memory: &Memory, trace: &Arc<Trace>) -> Result<Arc<Checker>, ObjectError> {
        Ok(Arc::new(Checker {
            direct: Objects::in_memory(memory, &Options::default())?,
            trace: Arc::clone(trace),
            presence: OnceLock::new(),
            seen: Mutex::default(),
            violated: Notify::new(),
        }))
    }

    /// Returns the record of the times at which machines were present, which bounds the machine time that runs are
    /// charged for. The first call sets the clocks.
    pub(crate) fn presence(&self, clocks: Vec<Arc<Clock>>) -> Arc<Presence> {
        let presence = || Arc::new(Presence::new(clocks));
        Arc::clone(self.presence.get_or_init(presence))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn violate(&self, what: String) {
        self.trace.event("check", format_args!("VIOLATION: {what}"));
        self.seen().violations.push(what);
        self.violated.notify_one();
    }

    pub(crate) async fn violated(&self) {
        self.violated.notified().await;
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.seen().violations.clone()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.seen().totals
    }

    /// Returns access to the store without faults.
    pub(crate) fn direct(&self) -> &Objects {
        &self.direct
    }

    /// Returns the last observed manifest of a run.
    pub(crate) fn manifest(&self, run: &str) -> Option<Manifest> {
        let seen = self.seen();
        seen.runs.get(run).map(|known| known.manifest.clone())
    }

    /// Records that the plan damages the manifest of a run. The run is no longer checked.
    pub(crate) fn damage(&self, run: &str) {
        let mut seen = self.seen();
        seen.runs.remove(run);
        seen.damaged.insert(run.to_owned());
    }

    /// Records that the plan deletes a table.
    pub(crate) fn delete_table(&self, run: &str, depth: u32, key: &str) {
        let mut seen = self.seen();
        seen.deleted_tables.insert(key.to_owned());
        seen.damaged_depths.insert((run.to_owned(), depth));
    }

    pub(crate) fn allow_failures(&self) {
        self.seen().may_fail = true;
    }

    /// Counts a false message.
    pub(crate) fn note_lie(&self) {
        self.seen().totals.lies += 1;
    }

    /// Allows runs to find other wells than the single-threaded search, and to drop depths with such wells.
    pub(crate) fn allow_other_results(&self) {
        self.seen().may_differ = true;
    }

    pub(crate) fn is_damaged(&self, run: &str) -> bool {
        self.seen().damaged.contains(run)
    }

    /// Returns the name of the process that took the lease last.
    pub(crate) fn holder(&self) -> Option<String> {
        self.seen().holders.last().cloned()
    }

    /// Records that a write of a process may be applied late.
    pub(crate) fn expect_late(&self, process: &Process, key: &str) {
        let late = (key.to_owned(), process.name.clone());
        self.seen().late.push(late);
    }

    /// Checks the store after a process has made a request. `is_done` is `true` if the request succeeded.
    pub(crate) async fn saw(&self, process: &Process, call: &Call<'_>, is_done: bool) {
        let is_write = is_done && call.operation.is_write();
        self.see_late(is_write.then_some(call.key)).await;
        if !is_write {
            return;
        }
        if call.key == LEASE {
            self.saw_lease(&process.name).await;
        } else if call.operation == Operation::Delete {
            self.saw_deletion(&process.name, call.key);
        } else if let Some(run) = run_of_manifest(call.key) {
            self.saw_manifest(std::slice::from_ref(&process.name), run)
                .await;
        }
    }

    /// Checks the objects that late writes may have changed. Skips the key `written`, which the caller checks.
    async fn see_late(&self, written: Option<&str>) {
        let late = self.seen().late.clone();
        let keys: BTreeSet<&String> = late.iter().map(|(key, _)| key).collect();
        for key in keys {
            let of_key = late.iter().filter(|(of, _)| of == key);
            let writers: Vec<String> = of_key.map(|(_, process)| process.clone()).collect();
            if Some(key.as_str()) == written {
                continue;
            } else if key == LEASE {
                self.see_late_lease(&writers).await;
            } else if let Some(run) = run_of_manifest(key) {
                self.saw_manifest(&writers, run).await;
            }
        }
    }

    /// Checks the lease if one of the processes in `writers` has written it late. The machine's name in the lease
    /// identifies the writer.
    async fn see_late_lease(&self, writers: &[String]) {
        let Ok((bytes, _)) = self.direct.get(LEASE).await else {
            return;
        };
        if self.seen().lease.as_ref() == Some(&bytes) {
            return;
        }
        let record: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let machine = record["coordinator"].as_str().unwrap_or_default();
        let prefix = format!("{machine}.");
        let mut writers = writers.iter().rev();
        if let Some(writer) = writers.find(|writer| writer.starts_with(&prefix)) {
            self.saw_lease(writer).await;
        }
    }

    /// Records that a fault affects a machine or has just ended. The fault may keep the machine's process from renewing
    /// the lease.
    pub(crate) fn disturb(&self, machine: &str) {
        self.seen()
            .disturbed
            .insert(machine.to_owned(), Instant::now());
    }

    async fn saw_lease(&self, process: &str) {
        let found = self.direct.get(LEASE).await;
        let found = found.ok().map(|(bytes, _)| bytes);
        let mut seen = self.seen();
        let before = std::mem::replace(&mut seen.lease, found);
        let holder = seen.holders.last().cloned();
        if holder.as_deref() == Some(process) {
            return;
        }
        self.trace.event(process, "holds the lease");
        seen.holders.push(process.to_owned());
        let is_released = before.is_some_and(|before| is_released(&before));
        let Some(holder) = holder.filter(|_| !is_released) else {
            return;
        };
        let machine = holder.split('.').next().unwrap_or_default();
        let disturbed = seen.disturbed.get(machine);
        let is_explained = disturbed.is_some_and(|when| when.elapsed() < DISTURBANCE);
        drop(seen);
        if !is_explained {
            self.violate(format!(
                "{process} took the lease from {holder}, although no fault affects {holder}"
            ));
        }
    }

    fn saw_deletion(&self, process: &str, key: &str) {
        let is_referenced = {
            let seen = self.seen();
            let mut keys = seen
                .runs
                .values()
                .flat_map(|known| known.referenced.values());
            keys.any(|keys| keys.contains(key))
        };
        if is_referenced {
            self.violate(format!(
                "{process} deleted {key}, which a manifest references"
            ));
        }
    }

    /// Checks the manifest of a run, which one of the processes in `writers` may have written.
    async fn saw_manifest(&self, writers: &[String], run: &str) {
        if self.is_damaged(run) {
            return;
        }
        let wrong = match VersionedManifest::load(&self.direct, run, true).await {
            Ok(found) => self.compare(writers, run, found.manifest).await,
            // The manifest has never been written.
            Err(_) if self.manifest(run).is_none() => return,
            Err(reason) => vec![format!("the manifest cannot be read: {reason}")],
        };
        wrong
            .into_iter()
            .for_each(|what| self.violate(format!("{run}: {what}")));
    }

    /// Compares a manifest with the previous one of the run, and returns the violations.
    async fn compare(&self, writers: &[String], run: &str, manifest: Manifest) -> Vec<String> {
        let before = self.seen().runs.get(run).cloned();
        if before
            .as_ref()
            .is_some_and(|before| before.manifest == manifest)
        {
            return Vec::new();
        }
        let text = format!(
            "wrote {run}: {}, epoch {}, {} depths {}",
            manifest.state,
            manifest.epoch,
            manifest.depths.len(),
            manifest.note
        );
        self.trace.event(&writers.join(" or "), text);
        let mut wrong = Vec::new();
        let mut known = Known {
            begun: BTreeMap::new(),
            referenced: BTreeMap::new(),
            closed: 0,
            manifest,
        };
        let mut depths = 0;
        if let Some(before) = before {
            depths = before.manifest.depths.len();
            let last = known.manifest.last().map_or(0, |last| last.record.depth);
            let has_damage = self.seen().has_damage_after(run, last);
            wrong.extend(changes(&before.manifest, &known.manifest, has_damage));
            depths = depths.min(known.manifest.depths.len());
            let is_open = before.manifest.ledger.until_ms.is_some();
            let is_closed = is_open && known.manifest.ledger.until_ms.is_none();
            known.closed = before.closed + u64::from(is_closed);
            (known.begun, known.referenced) = (before.begun, before.referenced);
            wrong.extend(self.unjustified_failure(&before.manifest, &known.manifest));
        }
        let epoch = known.manifest.epoch;
        let is_new = !known.begun.contains_key(&epoch);
        known.begun.entry(epoch).or_insert_with(|| writers.to_vec());
        wrong.extend(self.saw_depths(&mut known, depths, writers).await);
        let presence = self.presence.get();
        let excess =
            |presence: &Arc<Presence>| presence.excess(&known.manifest.ledger, known.resumed());
        wrong.extend(presence.and_then(excess));
        if is_new && known.begun.len() > MAX_EPOCHS {
            wrong.push(format!("more than {MAX_EPOCHS} epochs have begun"));
        }
        let last = known.manifest.last().and_then(|last| last.tables.as_ref());
        let is_split = is_new && last.is_some_and(|list| list.shards < known.manifest.shards);
        let mut seen = self.seen();
        let before = seen.runs.get(run);
        let is_dropped =
            before.is_some_and(|one| one.manifest.depths.len() > known.manifest.depths.len());
        seen.totals.drops += u64::from(is_dropped);
        seen.totals.epochs += u64::from(is_new);
        seen.totals.splits += u64::from(is_split);
        seen.totals.depths += known.manifest.depths.len().saturating_sub(depths) as u64;
        seen.runs.insert(run.to_owned(), known);
        wrong
    }

    /// Returns a violation if a run has failed without a valid reason. A run may fail only while faults occur or if
    /// [failures are allowed](Checker::allow_failures), and its note must name the depth that failed.
    fn unjustified_failure(&self, before: &Manifest, after: &Manifest) -> Option<String> {
        let has_failed = after.state == RunState::Failed && before.state != RunState::Failed;
        let seen = self.seen();
        let has_faults = seen.quiet_since.is_none_or(|since| since.elapsed() < SAVE);
        let is_justified = (has_faults || seen.may_fail) && after.note.starts_with("depth ");
        (has_failed && !is_justified).then(|| format!("the run failed: {}", after.note))
    }

    /// Whether all faults have ended.
    pub(crate) fn is_quiet(&self) -> bool {
        self.seen().quiet_since.is_some()
    }

    /// Records that all faults have ended.
    pub(crate) fn set_quiet(&self) {
        self.seen().quiet_since = Some(Instant::now());
    }

    /// Checks all depths except the first `before` ones, and updates the referenced keys. Returns the violations.
    async fn saw_depths(
        &self,
        known: &mut Known,
        before: usize,
        writers: &[String],
    ) -> Vec<String> {
        let oracle = match Oracle::of(&known.manifest.spec) {
            Ok(oracle) => oracle,
            Err(error) => return vec![error.to_string()],
        };
        let mut wrong = Vec::new();
        let may_differ = self.seen().may_differ;
        let last = known.manifest.last().map_or(0, |last| last.record.depth);
        known.referenced.retain(|depth, _| *depth <= last);
        for (at, depth) in known.manifest.depths.iter().enumerate() {
            let number = depth.record.depth;
            if !depth.record.kept {
                known.referenced.remove(&number);
            }
            if at < before {
                continue;
            }
            if !may_differ {
                wrong.extend(check_record(&oracle, depth));
            }
            wrong.extend(check_owner(depth, &known.begun, writers));
            let Some(list) = depth.tables.as_ref().filter(|_| depth.record.kept) else {
                continue;
            };
            match self.referenced(&known.manifest, list).await {
                Ok(Referenced { keys, changed }) => {
                    let expected = oracle
                        .record(number)
                        .map_or(&[][..], |record| &record.changed);
                    if changed != expected && !may_differ {
                        wrong.push(format!(
                            "depth {number} has the changed pieces {changed:?} instead of {expected:?}"
                        ));
                    }
                    known.referenced.insert(number, keys);
                }
                Err(reason) => wrong.push(format!("depth {number}: {reason}")),
            }
        }
        wrong
    }

    /// Returns what the list of a depth's tables references. Returns an error if one of these objects is missing, if the
    /// list does not match the manifest, or if an object is too short for its table.
    async fn referenced(
        &self,
        manifest: &Manifest,
        list: &TableList,
    ) -> Result<Referenced, String> {
        let prefix = manifest.prefix();
        let mut keys = BTreeSet::from([format!("{prefix}/{}", list.key)]);
        let list = list.read(&self.direct, &manifest.name).await;
        let list = list.map_err(|error| error.to_string())?;
        for table in list.tables {
            let key = format!("{prefix}/{}", table.key);
            let size = self
                .direct
                .size(&key)
                .await
                .map_err(|error| error.to_string())?;
            if size < table.offset + table.bytes {
                let shard = table.shard;
                return Err(format!(
                    "{key} ends before the end of the table of shard {shard}"
                ));
            }
            keys.insert(key);
        }
        Ok(Referenced {
            keys,
            changed: list.changed,
        })
    }

    /// Checks the result of a finished run.
    pub(crate) async fn check_end(&self, manifest: &Manifest) {
        let run = &manifest.name;
        if self.seen().may_differ {
            if let Some(wrong) = invalid_game(manifest) {
                self.violate(format!("{run}: {wrong}"));
            }
            return self.check_tables(manifest).await;
        }
        let oracle = match Oracle::of(&manifest.spec) {
            Ok(oracle) => oracle,
            Err(error) => return self.violate(error.to_string()),
        };
        let depth = manifest.last().map_or(0, |last| last.record.depth);
        if depth != oracle.last_depth() || manifest.end != Some(EndReason::Over) {
            let last = oracle.last_depth();
            self.violate(format!("{run} ended at depth {depth} instead of {last}"));
        }
        match (&manifest.result, oracle.best_game(depth)) {
            (Some(found), Some(game)) if found.lines != game.score => {
                let (found, expected) = (found.lines, game.score);
                self.violate(format!(
                    "the best game of {run} has {found} lines instead of {expected}"
                ));
            }
            (Some(found), Some(game)) if is_whole(manifest) => {
                let film = manifest.spec.film(&game.keys);
                if film.map(|film| film.base2048).ok().as_ref() != Some(&found.replay) {
                    self.violate(format!(
                        "the best game of {run} is not that of the single-threaded search"
                    ));
                }
            }
            (None, Some(game)) if manifest.keep == Retention::All => {
                let (lines, note) = (game.score, &manifest.note);
                self.violate(format!(
                    "{run} ended without its best game of {lines} lines: {note}"
                ));
            }
            _ => {}
        }
        self.check_tables(manifest).await;
    }

    /// Reads every table that a manifest references, except deleted ones. Reading verifies the checksums.
    async fn check_tables(&self, manifest: &Manifest) {
        for depth in manifest.depths.iter().filter(|depth| depth.record.kept) {
            let list = match manifest.tables(&self.direct, depth).await {
                Ok(list) => list,
                Err(error) => return self.violate(error.to_string()),
            };
            for table in list.tables {
                let key = format!("{}/{}", manifest.prefix(), table.key);
                if self.seen().deleted_tables.contains(&key) {
                    continue;
                }
                if let Err(error) = table.read(&self.direct, &manifest.name).await {
                    self.violate(error.to_string());
                }
            }
        }
    }
}

/// Returns a violation if a finished run has no game although its retention rule permits one, or if its game is not valid by
/// the exact rules.
fn invalid_game(manifest: &Manifest) -> Option<String> {
    let Some(result) = &manifest.result else {
        let has_game = manifest.keep != Retention::Last;
        return has_game.then(|| format!("it ended without a game: {}", manifest.note));
    };
    let (Ok(geometry), Ok((keys, _))) = (manifest.spec.well.geometry(), decode(&result.replay))
    else {
        return Some(format!("the replay is invalid: {}", result.replay));
    };
    let played = play(geometry, manifest.spec.well.rules(), Enemy::Hatetris, &keys);
    let is_valid = played.over && played.score == result.lines;
    (!is_valid).then(|| {
        let (found, lines) = (played.score, result.lines);
        format!("the replay clears {found} lines instead of {lines}, or does not end")
    })
}

/// Whether the tables of all depths of a run are stored. Games are read back across other depths by other rules.
fn is_whole(manifest: &Manifest) -> bool {
    manifest.depths.iter().all(|depth| depth.record.kept)
}

/// Whether a lease object is marked as released by its holder.
fn is_released(lease: &[u8]) -> bool {
    let record: serde_json::Value = serde_json::from_slice(lease).unwrap_or_default();
    record["is_gone"].as_bool().unwrap_or_default()
}

/// Returns the name of the run if the key has the form `runs/<name>/manifest.json`.
fn run_of_manifest(key: &str) -> Option<&str> {
    let rest = key.strip_prefix(RUNS)?.strip_prefix('/')?;
    rest.strip_suffix("/manifest.json")
}
