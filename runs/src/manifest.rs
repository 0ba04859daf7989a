//! The manifest of a run in the object store: `runs/<name>/manifest.json`.
//!
//! Only the coordinator writes it. A table contains the wells of one shard (a range of well hashes) at one depth. For
//! each depth, the manifest names a list of tables (`tables/<depth>-<epoch>.json`), and the list names the tables with
//! their lengths and checksums. Lists that the manifest does not name, and their tables, are garbage.

use crate::end::{EndReason, RunState, end_in_words};
use crate::error::ManifestError;
use crate::game_result::GameResult;
use crate::limits::Limits;
use crate::local::REPLAYS;
use crate::retention::Retention;
use crate::spec::{RunSpec, SpecError};
use crate::table::{DepthTables, TableList, check_tables};
use hatebeam_cost::{Micros, UsageLedger};
use hatebeam_objects::Objects;
use hatebeam_report::Facts;
use hatebeam_search::{DepthRecord, MAX_SHARDS, ShardLayout};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Name of the folder that contains all runs in the object store.
pub const RUNS: &str = "runs";
/// Format number of the manifests that this version writes. Older formats remain readable.
///
/// Format 6 moved the changed pieces from the records to the lists of tables. Format 5 added the number of shards to the
/// entries of these lists. Format 4 added `search` to the specification and `waiting_micros` to the depths. Format 3
/// renamed `bill` to `ledger`, `outcome` to `result`, `stopped_by` to `end`, and `is_to_stop` to `stop_requested`. It also
/// merged `max_depth` and `budget` into `limits`.
pub(crate) const FORMAT: u64 = 6;

/// A committed depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommittedDepth {
    /// Record of the depth. Its field `kept` indicates whether the tables are stored. Its field `changed` is empty: the list
    /// of tables contains the changed pieces. Only depths from before format 6 have them here.
    pub record: DepthRecord,
    /// Number of children that workers sent to other workers.
    pub sent: u64,
    /// Total size of the messages that carried these children, in bytes.
    pub sent_bytes: u64,
    /// List of the tables. The first depth has no list, because the specification determines its only well.
    pub tables: Option<TableList>,
    /// Cost of the run between the commits of the previous depth and this depth.
    #[serde(default, rename = "cost_micros")]
    pub cost: Micros,
    /// Part of `cost` that arose while the run waited for workers or in failed attempts.
    #[serde(default, rename = "waiting_micros")]
    pub waiting: Micros,
}

/// State of a run, as stored in the object store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Format of the manifest.
    pub format: u64,
    /// Name of the run.
    pub name: String,
    /// Specification of the search.
    pub spec: RunSpec,
    /// Rule that determines which depths keep their tables.
    pub keep: Retention,
    /// Number of shards into which the current epoch divides each frontier (the wells kept at a depth). An epoch with
    /// more workers may have more shards than the one before.
    pub shards: u32,
    /// Limits of the run.
    #[serde(default)]
    pub limits: Limits,
    /// Time of submission, in milliseconds since 1970.
    pub submitted_ms: u64,
    /// State of the run.
    pub state: RunState,
    /// The reason why the run failed, or another remark for the user.
    pub note: String,
    /// Number of the current epoch, which is a period with a fixed set of workers.
    pub epoch: u64,
    /// The coordinator that wrote the manifest, identified by its name and a random suffix.
    pub coordinator: String,
    /// Time spent searching, in seconds.
    pub seconds: f64,
    /// The committed depths, ascending and without gaps.
    pub depths: Vec<CommittedDepth>,
    /// The best game, once the run has ended.
    pub result: Option<GameResult>,
    /// Resources used so far.
    #[serde(default)]
    pub ledger: UsageLedger,
    /// The reason why the search ended, once it has ended.
    #[serde(default)]
    pub end: Option<EndReason>,
    /// Whether a user requested that the run stop. The run remains open until the coordinator has stopped it.
    #[serde(default)]
    pub stop_requested: bool,
}

impl Manifest {
    /// Creates the manifest of a queued run.
    pub fn new(
        name: String,
        spec: RunSpec,
        keep: Retention,
        shards: u32,
        submitted_ms: u64,
    ) -> Manifest {
        Manifest {
            format: FORMAT,
            name,
            spec,
            keep,
            shards,
            limits: Limits::default(),
            submitted_ms,
            state: RunState::Queued,
            note: String::new(),
            epoch: 0,
            coordinator: String::new(),
            seconds: 0.0,
            depths: Vec::new(),
            result: None,
            ledger: UsageLedger::default(),
            end: None,
            stop_requested: false,
        }
    }

    /// Returns whether the run is queued or running.
    pub fn is_open(&self) -> bool {
        self.state.is_open()
    }

    /// Returns the reason why the search has ended if the best game is still being read back, and `None` otherwise.
    pub fn reading_back(&self) -> Option<EndReason> {
        let is_reading = self.state == RunState::Running && !self.stop_requested;
        self.end.filter(|_| is_reading)
    }

    /// Returns the key prefix of the run's objects.
    pub fn prefix(&self) -> String {
        format!("{RUNS}/{}", self.name)
    }

    /// Returns the key prefix of the files of the best game, with a `/` at the end.
    pub fn replays_prefix(&self) -> String {
        format!("{}/{REPLAYS}/", self.prefix())
    }

    /// Returns the layout that divides a frontier into shards in the current epoch.
    pub fn layout(&self) -> ShardLayout {
        self.layout_with(self.shards)
    }

    /// Returns the layout that divided a frontier into the tables in `list`.
    pub fn layout_of(&self, list: &TableList) -> ShardLayout {
        self.layout_with(list.shards)
    }

    fn layout_with(&self, shards: u32) -> ShardLayout {
        let width = usize::try_from(self.spec.width).unwrap_or(usize::MAX);
        ShardLayout::new(width, shards as usize)
    }

    /// Returns the last committed depth, from which the search resumes.
    pub fn last(&self) -> Option<&CommittedDepth> {
        self.depths.last()
    }

    /// Returns a committed depth, or `None` if it is not committed.
    pub fn committed(&self, depth: u32) -> Option<&CommittedDepth> {
        let first = self.depths.first()?.record.depth;
        self.depths.get(depth.checked_sub(first)? as usize)
    }

    /// Returns the records of the committed depths.
    pub fn records(&self) -> impl Iterator<Item = &DepthRecord> {
        self.depths.iter().map(|depth| &depth.record)
    }

    /// Returns the maximum number of rows cleared by any game so far.
    pub fn best_lines(&self) -> u32 {
        let lines = self.records().map(|record| record.best_lines);
        lines.max().map_or(0, u32::from)
    }

    /// Returns the total size of the stored tables.
    pub fn stored_bytes(&self) -> u64 {
        let bytes = self.records().map(|record| record.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Returns the facts about the run for its report.
    ///
    /// # Errors
    /// Returns [`SpecError::Geometry`] if the specification has an invalid geometry.
    pub fn facts(&self) -> Result<Facts, SpecError> {
        let records = self.records().cloned().collect();
        self.spec.facts(&self.name, records, end_in_words(self.end))
    }

    /// Parses and checks a manifest in the current format or an older one.
    ///
    /// # Errors
    /// Returns [`ManifestError::Newer`] if the format is newer, [`ManifestError::Damaged`] if the contents
    /// are invalid, and [`ManifestError::Spec`] if the specification is invalid.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let damaged = |error: serde_json::Error| ManifestError::Damaged(error.to_string());
        let mut value: Value = serde_json::from_slice(bytes).map_err(damaged)?;
        match value.get("format").and_then(Value::as_u64) {
            Some(found) if found > FORMAT => return Err(ManifestError::Newer { found }),
            Some(found) if found < FORMAT => upgrade(&mut value, found),
            Some(_) => {}
            None => return Err(ManifestError::Damaged("the manifest has no format".into())),
        }
        let manifest: Manifest = serde_json::from_value(value).map_err(damaged)?;
        manifest.spec.check()?;
        let lists = manifest.depths.iter().flat_map(|depth| &depth.tables);
        let mut shards = lists.map(|list| list.shards).chain([manifest.shards]);
        if let Some(shards) = shards.find(|&shards| !(1..=MAX_SHARDS).contains(&(shards as usize)))
        {
            return Err(ManifestError::Damaged(format!(
                "shard count {shards} is out of range"
            )));
        }
        let mut pairs = manifest.depths.windows(2);
        let ascend =
            pairs.all(|pair| pair[0].record.depth.checked_add(1) == Some(pair[1].record.depth));
        if !ascend {
            return Err(ManifestError::Damaged("a depth is missing".into()));
        }
        Ok(manifest)
    }

    /// Reads and checks the list of a depth's tables. The first depth has none.
    ///
    /// # Errors
    /// Returns [`ManifestError::Damaged`] if the tables do not match the depth, and otherwise the same errors
    /// as [`TableList::read`].
    pub async fn tables(
        &self,
        objects: &Objects,
        depth: &CommittedDepth,
    ) -> Result<DepthTables, ManifestError> {
        let Some(list) = &depth.tables else {
            return Ok(DepthTables::default());
        };
        let mut found = list.read(objects, &self.name).await?;
        found.changed.extend_from_slice(&depth.record.changed);
        match check_tables(&found.tables, list.shards, depth.record.count) {
            Ok(()) => Ok(found),
            Err(reason) => Err(ManifestError::Damaged(format!("{}: {reason}", list.key))),
        }
    }
}

/// Converts a manifest from an older format to the current one.
fn upgrade(value: &mut Value, format: u64) {
    let Value::Object(manifest) = value else {
        return;
    };
    if format < 3 {
        upgrade_limits(manifest);
    }
    if format < 5 {
        upgrade_shards(manifest);
    }
    manifest.insert("format".to_owned(), json!(FORMAT));
}

/// Adds the number of shards to the entries of the lists of tables. Before format 5, it was the same at all depths.
fn upgrade_shards(manifest: &mut Map<String, Value>) {
    let shards = manifest.get("shards").cloned().unwrap_or_default();
    let depths = manifest.get_mut("depths").and_then(Value::as_array_mut);
    for depth in depths.into_iter().flatten() {
        let list = depth.get_mut("tables").and_then(Value::as_object_mut);
        if let Some(list) = list {
            list.insert("shards".to_owned(), shards.clone());
        }
    }
}

/// Converts the limits and the names of some fields from format 1 or 2 to format 3.
fn upgrade_limits(manifest: &mut Map<String, Value>) {
    let max_depth = manifest.remove("max_depth").unwrap_or(Value::Null);
    let mut limits = match manifest.remove("budget") {
        Some(Value::Object(budget)) => budget,
        _ => Map::from_iter([
            ("max_cost_micros".to_owned(), Value::Null),
            ("max_seconds".to_owned(), Value::Null),
        ]),
    };
    limits.insert("max_depth".to_owned(), max_depth.clone());
    let stopped_by = manifest.remove("stopped_by").unwrap_or(Value::Null);
    let is_finished = manifest.get("state") == Some(&json!(RunState::Finished));
    let end = match stopped_by {
        Value::Null if is_finished => {
            // Before cost and time limits existed, only the depth limit could stop a run.
            let depths = manifest.get("depths").and_then(Value::as_array);
            let depth = depths.and_then(|depths| depths.last()?["record"]["depth"].as_u64());
            match max_depth.as_u64() {
                Some(max) if depth >= Some(max) => json!(EndReason::MaxDepth),
                _ => json!(EndReason::Over),
            }
        }
        end => end,
    };
    for (old, new) in [
        ("bill", "ledger"),
        ("outcome", "result"),
        ("is_to_stop", "stop_requested"),
    ] {
        if let Some(value) = manifest.remove(old) {
            manifest.insert(new.to_owned(), value);
        }
    }
    manifest.insert("limits".to_owned(), Value::Object(limits));
    manifest.insert("end".to_owned(), end);
}
