//! Messages between the coordinator and the workers, and between workers, as plain Rust types. Each field has a type
//! that fits its meaning. The module [`convert`](crate::convert) converts these messages from and to the generated
//! types.
//!
//! The *frontier* contains the wells that the search keeps at a depth. A *shard* is a range of well hashes that one
//! worker owns. A *child* of a well results from placing one more piece. A *candidate* is a child that may enter the
//! next frontier. Its *rank* is its score with tie-breaks. The *cut* is the lowest rank that survives.
//!
//! A *table* is a file with the wells of one shard at one depth. A *candidate table* holds candidates in memory. An
//! *epoch* is a period of a run with a fixed set of workers.

// These messages need no other form than the generated one.
pub use crate::v1::{Heartbeat, Prepared, ReadBack, Rescored, ValidateCut, WaitCommit};

use bytes::Bytes;
use hatebeam_cost::Machine;
use hatebeam_game::{Geometry, Piece};
use hatebeam_runs::{FoundNode, FrontierSummary, RunSpec, Table};
use hatebeam_search::{ChangedPiece, CountQuery, NodeWell, Origin};
use std::time::Duration;

/// A message from a worker to the coordinator.
#[derive(Clone, Debug, PartialEq)]
pub enum FromWorker {
    /// The first message of a session.
    Hello(Box<Hello>),
    /// Progress and resources, sent once per heartbeat interval.
    Heartbeat(Heartbeat),
    /// The answer to an order.
    Answer(Answer),
    /// A request to be released.
    Leaving(Leaving),
}

/// A message from the coordinator to a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum ToWorker {
    /// The first message of a session.
    Welcome(Welcome),
    /// An operation for the worker to perform.
    Order(Order),
    /// The worker no longer owns any shards and may exit.
    Released,
}

/// Description of a worker that joins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// Name of the worker, unique among all workers.
    pub name: String,
    /// URI at which other workers reach this worker.
    pub address: String,
    /// Number of search threads.
    pub threads: u32,
    /// Memory that the worker may use, in bytes.
    pub memory_bytes: u64,
    /// Free space on the scratch directory's disk, in bytes.
    pub disk_free_bytes: u64,
    /// Size of the scratch directory's disk, in bytes.
    pub disk_bytes: u64,
    /// Version of the worker's program.
    pub version: String,
    /// The machine and its price.
    pub machine: Machine,
    /// Start time of the process, in milliseconds since the Unix epoch. It does not change when the worker
    /// reconnects.
    pub started_ms: u64,
    /// Fingerprint of the worker's search. It differs between programs that find different frontiers for the same
    /// specification, so it must equal the coordinator's.
    pub search: String,
    /// Identifier of the lease in the worker's object store; empty if it contains none. It must equal the coordinator's,
    /// which shows that both use the same object store.
    pub lease: String,
}

/// A worker's request to be released.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaving {
    /// Human-readable reason of at most [`MAX_REASON`](crate::convert::MAX_REASON) characters. Empty if a user asked
    /// the worker to leave.
    pub reason: String,
}

/// The coordinator's answer to [`Hello`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Interval between heartbeats.
    pub heartbeat: Duration,
    /// Time without messages after which the coordinator or a peer is considered lost.
    pub lost_after: Duration,
}

/// An operation for a worker to perform. A worker refuses orders from epochs before its current one.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Epoch of the order.
    pub epoch: u64,
    /// Identifier that the answer repeats.
    pub id: u64,
    /// The operation.
    pub kind: OrderKind,
}

/// Operation that an order requests.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderKind {
    /// Begin an epoch and load its frontier.
    Prepare(Box<Prepare>),
    /// Generate the children of the frontier.
    Expand(Expand),
    /// Count candidates by rank.
    Count(Count),
    /// Check a cut.
    ValidateCut(ValidateCut),
    /// Keep the candidates that survive the cut and give them their scores with quiescence. A second cut follows.
    Rescore(Select),
    /// Keep the candidates that survive the cut and begin to commit them.
    Select(Select),
    /// Answer once the tables of a depth are in the object store.
    WaitCommit(WaitCommit),
    /// End the current epoch.
    Halt,
    /// Find the nodes of the best game of a run.
    ReadBack(ReadBack),
}

impl OrderKind {
    /// Returns the name that metrics use for the order.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Prepare(_) => "prepare",
            Self::Expand(_) => "expand",
            Self::Count(_) => "count",
            Self::ValidateCut(_) => "validate_cut",
            Self::Rescore(_) => "rescore",
            Self::Select(_) => "select",
            Self::WaitCommit(_) => "wait_commit",
            Self::Halt => "halt",
            Self::ReadBack(_) => "read_back",
        }
    }
}

/// An order to begin an epoch: the owners of all shards, and the frontier to continue from.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    /// Name of the run.
    pub run: String,
    /// The run's specification.
    pub spec: RunSpec,
    /// Depth of the frontier.
    pub depth: u32,
    /// For each shard, the index of its owner in `members`.
    pub owners: Vec<u32>,
    /// All workers of the epoch.
    pub members: Vec<Peer>,
    /// Tables at this depth that contain wells of the worker's shards. Empty at the run's first depth.
    pub tables: Vec<Table>,
    /// Number of shards into which the tables divide the frontier. It may differ from the number of `owners`.
    pub table_shards: u32,
}

/// A worker of an epoch, as described to another worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Name of the worker.
    pub name: String,
    /// URI at which other workers reach this worker.
    pub address: String,
    /// Secret that the receiver of the order presents when it sends children to this worker.
    pub send_secret: Secret,
    /// Secret that this worker presents when it sends children to the receiver of the order.
    pub receive_secret: Secret,
}

/// A secret that two workers share for one epoch. Its `Debug` output hides the bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Secret(pub [u8; 16]);

impl Secret {
    /// Compares two secrets in a time that does not depend on where they differ.
    pub fn is(&self, other: &Secret) -> bool {
        let bits = self.0.iter().zip(other.0).map(|(one, other)| one ^ other);
        std::hint::black_box(bits.fold(0, |all, bits| all | bits)) == 0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// An order to generate the children of the frontier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expand {
    /// Depth of the children.
    pub depth: u32,
    /// Index of the attempt at this depth within the epoch. Each retry has a higher index, so that no worker
    /// mixes children from two attempts.
    pub attempt: u32,
    /// Spare capacity of a candidate table, in standard deviations.
    pub sigmas: f64,
    /// Initial floor (the lowest accepted rank) of all candidate tables, estimated to be a little below the cut. 0 if
    /// there is no estimate.
    pub floor: u64,
    /// Number of wells in the frontier of all workers.
    pub wells: u64,
}

/// An order to count the candidates whose rank begins with a prefix, grouped by the next 16-bit digit of the rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Depth of the candidates.
    pub depth: u32,
    /// One or two prefixes.
    pub queries: Vec<CountQuery>,
}

/// An order to keep the candidates that survive the cut. [`OrderKind`] tells what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// Depth of the candidates.
    pub depth: u32,
    /// The cut.
    pub cut: u64,
    /// Surviving wells whose rank equals the cut, in ascending order. `None` if all wells with that rank survive.
    pub ties: Option<Vec<NodeWell>>,
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
    /// Answer to [`OrderKind::Prepare`].
    Prepared(Prepared),
    /// Answer to [`OrderKind::Expand`].
    Expanded(Expanded),
    /// Answer to [`OrderKind::Count`], with one histogram per query.
    Counted(Vec<Histogram>),
    /// Answer to [`OrderKind::ValidateCut`].
    CutVerdict(CutVerdict),
    /// Answer to [`OrderKind::Rescore`].
    Rescored(Rescored),
    /// Answer to [`OrderKind::Select`]: a summary of the worker's part of the new frontier.
    Selected(FrontierSummary),
    /// Answer to [`OrderKind::WaitCommit`].
    Committed(Vec<Table>),
    /// Answer to [`OrderKind::Halt`].
    Halted,
    /// Answer to [`OrderKind::ReadBack`].
    GameNodes(GameNodes),
    /// The order failed.
    Failed(Failed),
}

/// Result of a worker's expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// Number of distinct children of each parent, summed over all parents.
    pub children: u64,
    /// Number of children sent to other workers.
    pub sent: u64,
    /// Size of the sent children on the wire, in bytes.
    pub sent_bytes: u64,
    /// Time of the expansion in microseconds, excluding the time spent waiting for other workers.
    pub busy_micros: u64,
    /// Wells in which the loop rule changes the piece. Empty if the run ignores the loop rule.
    pub changed: Vec<ChangedWell>,
}

/// A well in which HATETRIS gives another piece than HATETRIS Mild, because of the loop rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedWell {
    /// The well.
    pub well: NodeWell,
    /// The piece that HATETRIS gives.
    pub piece: Piece,
}

impl ChangedWell {
    /// Converts the text form, or returns `None` if it is invalid.
    pub fn from_text(geometry: Geometry, changed: &ChangedPiece) -> Option<ChangedWell> {
        let (well, piece) = changed.parse(geometry)?;
        let well = NodeWell::pack(geometry, &well);
        Some(ChangedWell { well, piece })
    }

    /// Returns the text form, or `None` if the well is invalid.
    pub fn to_text(self, geometry: Geometry) -> Option<ChangedPiece> {
        let well = self.well.unpack(geometry).ok()?;
        Some(ChangedPiece::new(geometry, &well, self.piece))
    }
}

/// Numbers of candidates, grouped by the next digit of their rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The counts that are not zero, in ascending order of their digits.
    pub counts: Vec<DigitCount>,
}

/// A digit and its number of candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigitCount {
    /// The digit.
    pub digit: u16,
    /// Number of candidates with this digit.
    pub count: u64,
}

/// Result of checking a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutVerdict {
    /// Whether a candidate at or above the cut may have been dropped. If so, the cut is invalid.
    pub dropped: bool,
    /// The wells whose rank equals the cut, if requested.
    pub tied: Vec<NodeWell>,
}

/// The nodes of a game, with which the coordinator finds the game again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GameNodes {
    /// The nodes that lookups have found, at most [`MAX_GAME_NODES`].
    pub nodes: Vec<FoundNode>,
    /// Number of tables that the worker fetched from the object store.
    pub tables: u64,
    /// Total size of these tables, in bytes.
    pub bytes: u64,
}

/// Maximum number of nodes in [`GameNodes`]. The message is then smaller than the maximum size of messages, 4 MiB.
pub const MAX_GAME_NODES: usize = 64 << 10;

/// The reason why an order failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Human-readable reason of at most [`MAX_FAILURE`](crate::convert::MAX_FAILURE) characters.
    pub reason: String,
    /// Category of the failure.
    pub kind: FailureKind,
}

/// Category of a failed order, which determines the coordinator's reaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The order is invalid or does not match the worker's state.
    BadOrder,
    /// A table or the evaluator's network is missing or damaged.
    Damaged {
        /// Depth of the table, if it is known.
        depth: Option<u32>,
    },
    /// A well in the tables of a depth has no parent in those of the depth before.
    Contradiction {
        /// Depth of the well.
        depth: u32,
        /// The well in hex.
        well: String,
    },
    /// The object store is unavailable. A later attempt may succeed.
    Unavailable,
    /// The exchange of children with other workers failed.
    PeersUnreachable {
        /// Names of the unreachable workers.
        peers: Vec<String>,
    },
    /// Children from other workers have failed a spot check.
    WrongChildren {
        /// Names of the workers that have sent these children.
        peers: Vec<String>,
    },
    /// The epoch or the attempt has ended.
    Superseded,
    /// The worker itself failed, for example because its disk is full.
    Worker,
}

/// A message from a worker that sends children to the owner of their shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerRequest {
    /// The first message of a stream.
    Header(StreamHeader),
    /// A part of the sender's frontier. Comes before the first batch, and only if the run applies the loop rule.
    Frontier(FrontierPart),
    /// Children for the receiver's shards.
    Batch(Batch),
}

/// Wells of a shard at the depth before that of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontierPart {
    /// The shard.
    pub shard: u32,
    /// The next wells of the shard.
    pub wells: Vec<NodeWell>,
    /// For each well, the index of its parent in the frontier of the previous depth.
    pub parents: Vec<u32>,
    /// Whether the sender has no further wells.
    pub last: bool,
}

/// Children for one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The children, packed by [`batch::pack`](crate::batch::pack).
    pub children: Bytes,
    /// The origin of each child. Empty if the run ignores the loop rule.
    pub origins: Vec<Origin>,
}

/// Origin of the children in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// Name of the run.
    pub run: String,
    /// Epoch of the children.
    pub epoch: u64,
    /// Depth of the children.
    pub depth: u32,
    /// Index of the attempt at this depth.
    pub attempt: u32,
    /// Name of the sending worker.
    pub from: String,
    /// Secret that proves the sender's identity.
    pub secret: Secret,
}

/// A message from the receiver of children to their sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerResponse {
    /// Current floors of the receiver's shards.
    pub floors: Vec<ShardFloor>,
    /// Number of children received. Set only in the last message.
    pub received: Option<u64>,
}

/// Floor of a shard: the lowest rank that the shard accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardFloor {
    /// The shard.
    pub shard: u32,
    /// The rank.
    pub floor: u64,
}
