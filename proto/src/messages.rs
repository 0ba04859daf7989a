//! The messages between the coordinator and the workers as plain Rust types. Every field is parsed and within its
//! bounds. [`convert`](crate::convert) converts them from and to the generated types.

use bytes::Bytes;
use hatebeam_cost::Machine;
use hatebeam_runs::{FrontierSummary, RunSpec, Table};
use hatebeam_search::{CountQuery, NodeWell};
use std::time::Duration;

/// A message from a worker to its coordinator.
#[derive(Clone, Debug, PartialEq)]
pub enum FromWorker {
    /// The first message of a session.
    Hello(Hello),
    /// Sent once per interval.
    Heartbeat(Heartbeat),
    /// The answer to an order.
    Answer(Answer),
    /// The worker asks to be released.
    Leaving(Leaving),
}

/// A message from the coordinator to a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum ToWorker {
    /// The first message of a session.
    Welcome(Welcome),
    /// Something to do.
    Order(Order),
    /// The worker has no shards any more and may exit.
    Released,
}

/// A worker that joins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// Name, unique among the workers.
    pub name: String,
    /// URI at which other workers reach this one.
    pub address: String,
    /// Threads that search.
    pub threads: u32,
    /// Memory that the worker may use, in bytes.
    pub memory_bytes: u64,
    /// Free space on the scratch directory's disk.
    pub disk_free_bytes: u64,
    /// Size of the scratch directory's disk.
    pub disk_bytes: u64,
    /// Version of the program.
    pub version: String,
    /// The machine and its price.
    pub machine: Machine,
    /// When the process started, in milliseconds since 1970. A worker that reconnects keeps it.
    pub started_ms: u64,
}

/// Progress and resources of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// The current epoch; 0 before the first.
    pub epoch: u64,
    /// The current depth.
    pub depth: u32,
    /// Parents of the current depth that are expanded.
    pub expanded: u64,
    /// Parents of the current depth.
    pub parents: u64,
    /// Resident memory of the process.
    pub rss_bytes: u64,
    /// Free space on the scratch directory's disk.
    pub disk_free_bytes: u64,
    /// Object store requests since the process started that are priced as writes: writes and lists.
    pub store_writes: u64,
    /// Object store requests since the process started that are priced as reads.
    pub store_reads: u64,
    /// Bytes of tables that are not uploaded yet.
    pub uploading_bytes: u64,
}

/// A worker's request to be released.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaving {
    /// Reason for people; empty if a person asked the worker to leave. At most
    /// [`MAX_REASON`](crate::convert::MAX_REASON) characters.
    pub reason: String,
}

/// The coordinator's answer to [`Hello`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Interval of heartbeats.
    pub heartbeat: Duration,
    /// Silence after which the coordinator or a peer counts as lost.
    pub lost_after: Duration,
}

/// Something a worker must do. A worker refuses orders of an earlier epoch than its current one.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The epoch it belongs to.
    pub epoch: u64,
    /// Identifier that the answer repeats.
    pub id: u64,
    /// What to do.
    pub kind: OrderKind,
}

/// What a worker must do.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderKind {
    /// Begin an epoch and load its frontier.
    Prepare(Box<Prepare>),
    /// Make the children of the frontier.
    Expand(Expand),
    /// Count candidates by rank.
    Count(Count),
    /// Check a cut.
    ValidateCut(ValidateCut),
    /// Keep the candidates that survive the cut and begin to commit them.
    Select(Select),
    /// Answer once the tables of a depth are in the object store.
    WaitCommit(WaitCommit),
    /// End the current epoch.
    Halt,
}

impl OrderKind {
    /// Name of the order in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Prepare(_) => "prepare",
            Self::Expand(_) => "expand",
            Self::Count(_) => "count",
            Self::ValidateCut(_) => "validate_cut",
            Self::Select(_) => "select",
            Self::WaitCommit(_) => "wait_commit",
            Self::Halt => "halt",
        }
    }
}

/// A new epoch: the owners of all shards and the frontier to continue from.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    /// Name of the run.
    pub run: String,
    /// The run's specification.
    pub spec: RunSpec,
    /// Depth of the frontier.
    pub depth: u32,
    /// For each shard the index of its owner in `members`.
    pub owners: Vec<u32>,
    /// All workers of the epoch.
    pub members: Vec<Peer>,
    /// Tables of the worker's shards at this depth. Empty at the run's first depth.
    pub tables: Vec<Table>,
}

/// A worker of an epoch, as the others know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// URI at which other workers reach it.
    pub address: String,
}

/// Makes the children of the frontier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expand {
    /// Depth of the children.
    pub depth: u32,
    /// Number of the attempt at this depth within the epoch. A repeat has a higher number, so that no worker mixes
    /// children of two attempts.
    pub attempt: u32,
    /// Room in a candidate table, in standard deviations.
    pub sigmas: f64,
}

/// Counts candidates whose rank begins with a prefix by their next digit; one or two prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Depth of the candidates.
    pub depth: u32,
    /// The prefixes.
    pub queries: Vec<CountQuery>,
}

/// Checks that nothing above the cut was dropped, and lists the wells of the cut's own rank on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateCut {
    /// Depth of the candidates.
    pub depth: u32,
    /// Rank of the cut.
    pub cut: u64,
    /// Whether the answer lists the wells of this rank.
    pub tied: bool,
}

/// Keeps the candidates that survive the cut and begins to commit them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// Depth of the candidates.
    pub depth: u32,
    /// Rank of the cut.
    pub cut: u64,
    /// The wells of the cut's own rank that survive, ascending; `None` if all do.
    pub ties: Option<Vec<NodeWell>>,
}

/// Asks for the tables of a depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitCommit {
    /// The depth.
    pub depth: u32,
}

/// The answer to an [`Order`].
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Epoch of the order.
    pub epoch: u64,
    /// Identifier of the order.
    pub id: u64,
    /// The result.
    pub kind: AnswerKind,
}

/// The result of an order.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerKind {
    /// To [`OrderKind::Prepare`].
    Prepared(Prepared),
    /// To [`OrderKind::Expand`].
    Expanded(Expanded),
    /// To [`OrderKind::Count`]: one histogram per query.
    Counted(Vec<Histogram>),
    /// To [`OrderKind::ValidateCut`].
    CutVerdict(CutVerdict),
    /// To [`OrderKind::Select`]: the worker's part of the new frontier.
    Selected(FrontierSummary),
    /// To [`OrderKind::WaitCommit`].
    Committed(Vec<Table>),
    /// To [`OrderKind::Halt`].
    Halted,
    /// The order was not carried out.
    Failed(Failed),
}

/// A worker's frontier at the start of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Wells in its shards.
    pub wells: u64,
    /// Tables that it fetched from the object store.
    pub fetched: u32,
}

/// What an expansion made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// Distinct children of each parent, summed over the parents.
    pub children: u64,
    /// Children sent to other workers.
    pub sent: u64,
    /// Bytes of those on the wire.
    pub sent_bytes: u64,
}

/// Counts of candidates by digit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The counts that are not zero, ascending by digit.
    pub counts: Vec<DigitCount>,
}

/// Candidates that have a digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigitCount {
    /// The digit.
    pub digit: u16,
    /// How many candidates have it.
    pub count: u64,
}

/// Whether a cut is sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutVerdict {
    /// Whether a candidate above the cut was dropped for lack of room.
    pub dropped: bool,
    /// The wells of the cut's own rank, if asked for.
    pub tied: Vec<NodeWell>,
}

/// Why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Reason for people, at most [`MAX_FAILURE`](crate::convert::MAX_FAILURE) characters.
    pub reason: String,
    /// What the coordinator can do about it.
    pub kind: FailureKind,
}

/// What the coordinator can do about a failed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The order is invalid or does not fit the worker's state.
    BadOrder,
    /// A table differs from what was committed.
    Damaged,
    /// The object store is unavailable: a later attempt may work.
    Unavailable,
    /// The connection to another worker failed.
    PeerUnreachable {
        /// Name of that worker.
        peer: String,
    },
    /// The epoch or the attempt has ended.
    Superseded,
    /// The worker itself failed, for example because its disk is full.
    Worker,
}

impl FailureKind {
    /// Whether the same worker may carry out the same order later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable)
    }
}

/// A message to the owner of children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerRequest {
    /// The first message of a stream.
    Header(StreamHeader),
    /// Children, packed by [`batch::pack`](crate::batch::pack).
    Batch(Bytes),
}

/// What the children of a stream belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// Name of the run.
    pub run: String,
    /// The epoch.
    pub epoch: u64,
    /// Depth of the children.
    pub depth: u32,
    /// Number of the attempt at this depth.
    pub attempt: u32,
    /// Name of the sender.
    pub from: String,
}

/// A message to the sender of children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerResponse {
    /// Current floors of the receiver's shards.
    pub floors: Vec<ShardFloor>,
    /// Number of children received. In the last message only.
    pub received: Option<u64>,
}

/// The floor of a shard: it takes no child of a lower rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardFloor {
    /// The shard.
    pub shard: u32,
    /// The rank.
    pub floor: u64,
}
