//! How long a depth takes on a cluster, and what limits it. Nothing here but arithmetic:
//! `docs/cluster-model.md` tells the formula in words, where each number was measured, and how far it holds.

use hatebeam_search::{DEFAULT_SIGMAS, EvaluatorKind, MAX_SHARDS, Quiescence};
use serde::Serialize;

/// What was measured, or where the comment says so assumed. Nanoseconds are those of one thread on one core
/// of the machine that was measured: an AMD EPYC (Zen 5) at 2.6 GHz.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs {
    /// Distinct children of a well, the mean of a whole game.
    pub(crate) children_per_well: f64,
    /// To make, score and drop or merge a child.
    pub(crate) ns_per_child: f64,
    /// To expand a well, select it, write it and read it back, besides.
    pub(crate) ns_per_well: f64,
    /// Of that, to sort it among those of its shard, which one thread does while all others wait.
    pub(crate) ns_per_well_sorted: f64,
    /// Of that, to write it to its shard's table, which one thread does behind the search.
    pub(crate) ns_per_well_written: f64,
    /// To add up a worker's wells, which one thread does.
    pub(crate) ns_per_well_digested: f64,
    /// To make a table on disk, however small.
    pub(crate) ns_per_table: f64,
    /// To pack, carry, unpack and offer a child that goes to another worker, both sides together.
    pub(crate) ns_per_sent: f64,
    /// Bytes of a child on the wire.
    pub(crate) bytes_per_sent: f64,
    /// Bytes of a well in a table.
    pub(crate) bytes_per_well: f64,
    /// Times that a table is written to the worker's disk: by itself, and into the file that is sent.
    pub(crate) disk_writes: f64,
    /// Children that pass a floor, against what pure chance among distinct ones would have: the same well
    /// is made by several parents.
    pub(crate) duplicates: f64,
    /// What two hyperthreads of a core do together, against one alone. ASSUMED.
    pub(crate) smt_gain: f64,
    /// Orders of a depth that wait for each other: expand, four counts, judge, select.
    pub(crate) rounds: f64,
    /// Seconds of an order and its answer, besides the work. ASSUMED for machines in one zone.
    pub(crate) round_seconds: f64,
    /// For each thread and question of a count, to make a histogram and add it to the others.
    pub(crate) ns_per_histogram: f64,
    /// Histograms of a depth: four for the cut, three more for the median.
    pub(crate) questions: f64,
    /// Seconds of the coordinator's work for each worker and depth.
    pub(crate) coordinator_seconds_per_worker: f64,
    /// Objects that the coordinator writes for a depth, one after the other, when all tables are there.
    pub(crate) coordinator_puts: f64,
    /// Seconds until an object store has taken a small object. ASSUMED for S3.
    pub(crate) put_seconds: f64,
    /// Bytes a second that S3 takes of one worker: four parts at once. ASSUMED.
    pub(crate) upload_bytes_per_second: f64,
    /// Writes a second that the object store takes.
    pub(crate) puts_per_second: f64,
    /// Bytes of memory for a well of width, and for the process besides.
    pub(crate) memory_bytes: (f64, f64),
    /// The part of a machine's memory that a worker may have.
    pub(crate) memory_part: f64,
}

/// What the step's benchmark (`cargo bench -p hatebeam-search`) says of the machine that was measured,
/// nanoseconds a child.
pub(crate) const BENCHMARK_NS: f64 = 197.0;
/// The same for the evaluator `knewjade`, and for `patterns` with forced quiescence.
const BENCHMARK_KNEWJADE_NS: f64 = 148.0;
const BENCHMARK_FORCED_NS: f64 = 468.0;

/// Children of a batch, and seconds between two tellings of the floors (`worker::cluster::exchange`).
const BATCH: f64 = 4096.0;
const TELL_SECONDS: f64 = 0.02;
/// Batches that wait for a peer, and the one that is filled.
const BATCHES_HELD: f64 = 5.0;
/// Children that a thread gathers for a peer (`search::step`).
const REMOTE_BATCH: f64 = 256.0;
/// Wells of width for each table in memory (`search::step::layout`).
const TABLE_WELLS: u64 = 16_384;
/// Bytes of a child in memory.
const CHILD_BYTES: f64 = 28.0;
/// Bytes of a part of an object, and of the most that is sent whole.
const PART_BYTES: f64 = 16_777_216.0;
/// Parts of an object that are on their way at once.
const PARTS_AT_ONCE: f64 = 4.0;
/// Wells of width for each shard, and the fewest shards, where nothing else is said (`coordinator::service`).
const SHARD_WELLS: u64 = 1 << 20;
const SHARDS: u64 = 64;
/// More workers than this take part in no search.
pub(crate) const MAX_WORKERS: u32 = 4096;

impl Inputs {
    /// As they were measured.
    pub(crate) fn measured(kind: EvaluatorKind, quiescence: Quiescence) -> Inputs {
        let evaluator = match kind {
            EvaluatorKind::Patterns => 0.0,
            _ => BENCHMARK_KNEWJADE_NS - BENCHMARK_NS,
        };
        let quiescence = match quiescence {
            Quiescence::Off => 0.0,
            _ => BENCHMARK_FORCED_NS - BENCHMARK_NS,
        };
        Inputs {
            children_per_well: 19.0,
            ns_per_child: 200.0 + evaluator + quiescence,
            ns_per_well: 2200.0,
            ns_per_well_sorted: 95.0,
            ns_per_well_written: 340.0,
            ns_per_well_digested: 2.5,
            ns_per_table: 1.25e6,
            ns_per_sent: 250.0,
            bytes_per_sent: 27.0,
            bytes_per_well: 10.4,
            disk_writes: 2.0,
            duplicates: 1.37,
            smt_gain: 1.25,
            rounds: 7.0,
            round_seconds: 0.001,
            ns_per_histogram: 19_000.0,
            questions: 7.0,
            coordinator_seconds_per_worker: 0.0005,
            coordinator_puts: 2.0,
            put_seconds: 0.060,
            upload_bytes_per_second: 340e6,
            puts_per_second: 3500.0,
            memory_bytes: (100.0, 210e6),
            memory_part: 0.9,
        }
    }
}

/// A machine as the model sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// Threads of a worker.
    pub(crate) threads: f64,
    pub(crate) cores: f64,
    pub(crate) core_speed: f64,
    pub(crate) memory_bytes: f64,
    /// Bytes a second each way.
    pub(crate) network_bytes_per_second: f64,
    pub(crate) disk_bytes_per_second: f64,
}

impl Machine {
    /// How many cores of the machine that was measured do as much.
    fn power(&self, inputs: &Inputs) -> f64 {
        let is_smt = self.threads > self.cores;
        self.cores * self.core_speed * if is_smt { inputs.smt_gain } else { 1.0 }
    }
}

/// What a depth waits for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Limit {
    /// Expanding, scoring, sending, writing.
    Cores,
    /// Children and tables on their way.
    Network,
    /// The worker's own disk.
    Disk,
    /// Writing a depth's tables and sending them to the object store, which may not take longer than the
    /// next depth.
    Commit,
    /// Writes that the object store takes.
    Requests,
    /// Orders and answers, counting, and the manifest: what cannot be divided.
    Rounds,
}

impl Limit {
    /// As it stands in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Limit::Cores => "cores",
            Limit::Network => "network",
            Limit::Disk => "disk",
            Limit::Commit => "commit",
            Limit::Requests => "requests",
            Limit::Rounds => "rounds",
        }
    }
}

/// A depth of a run, every worker doing its share.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Depth {
    /// From one depth to the next.
    pub(crate) seconds: f64,
    pub(crate) limit: Limit,
    /// What each part takes by itself.
    pub(crate) cores_seconds: f64,
    pub(crate) network_seconds: f64,
    pub(crate) disk_seconds: f64,
    pub(crate) commit_seconds: f64,
    pub(crate) requests_seconds: f64,
    pub(crate) rounds_seconds: f64,
    /// Children of all wells, and those that went to another worker.
    pub(crate) children: f64,
    pub(crate) sent: f64,
    pub(crate) sent_bytes: f64,
    pub(crate) stored_bytes: f64,
    /// Objects, and parts of objects, that are written.
    pub(crate) puts: f64,
    /// Bytes of memory of the worker that has most.
    pub(crate) memory_bytes: f64,
    pub(crate) fits: bool,
}

/// How wide a run is, and how divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beam {
    pub(crate) width: u64,
    pub(crate) shards: u64,
}

impl Beam {
    /// With so many shards, or as many as a run has where nothing is said.
    pub(crate) fn new(width: u64, shards: Option<u32>) -> Beam {
        let width = width.max(1);
        let usual = || width.div_ceil(SHARD_WELLS).max(SHARDS);
        let shards = shards.map_or_else(usual, u64::from);
        Beam {
            width,
            shards: shards.clamp(1, MAX_SHARDS as u64),
        }
    }
}

/// A depth at full width.
pub(crate) fn depth(inputs: &Inputs, machine: &Machine, beam: Beam, workers: u32) -> Depth {
    let (wells, count) = (beam.width as f64, f64::from(workers.max(1)));
    let shards = beam.shards as f64;
    let power = machine.power(inputs);
    // The worker with most shards keeps the others waiting.
    let most_shards = (shards / count).ceil();
    let share = most_shards / shards;
    let mine = wells * share;
    let children = wells * inputs.children_per_well;
    let in_parallel = |ns: f64| ns * 1e-9 / power;
    let own_seconds = in_parallel(
        mine * (inputs.children_per_well * inputs.ns_per_child + inputs.ns_per_well
            - inputs.ns_per_well_sorted)
            + most_shards * inputs.ns_per_table,
    );
    let stream = Stream {
        children: children / (count * count),
        threads: machine.threads,
        seconds: own_seconds,
    };
    let sent = match workers {
        0 | 1 => 0.0,
        _ => children * (1.0 - 1.0 / count) * stream.part_sent(inputs, beam, children),
    };
    let sent_bytes = sent * inputs.bytes_per_sent;
    let stored_bytes = wells * inputs.bytes_per_well;

    // A shard is sorted, and written, by one thread.
    let by_shard =
        |ns: f64| in_parallel(mine * ns).max(wells / shards * ns * 1e-9 / machine.core_speed);
    let cores_seconds = own_seconds + in_parallel(sent * share * inputs.ns_per_sent);
    let upload = stored_bytes * share;
    let network_seconds = (sent_bytes * share + upload) / machine.network_bytes_per_second;
    let disk_seconds = upload * inputs.disk_writes / machine.disk_bytes_per_second;
    let puts = puts(upload) * count.min(shards) + inputs.coordinator_puts;
    let requests_seconds = puts / inputs.puts_per_second;
    // A large object is begun, sent in parts and completed.
    let waits = if upload > PART_BYTES { 3.0 } else { 1.0 };
    let rate =
        inputs.upload_bytes_per_second * (upload / PART_BYTES / PARTS_AT_ONCE).clamp(0.25, 1.0);
    let commit_seconds = by_shard(inputs.ns_per_well_written)
        + upload / machine.disk_bytes_per_second
        + upload / rate
        + (waits + inputs.coordinator_puts) * inputs.put_seconds;
    let rounds_seconds = inputs.rounds * inputs.round_seconds
        + inputs.coordinator_seconds_per_worker * count
        + inputs.questions * inputs.ns_per_histogram * 1e-9 * machine.threads / machine.core_speed
        + mine * inputs.ns_per_well_digested * 1e-9 / machine.core_speed
        + by_shard(inputs.ns_per_well_sorted);
    let (limit, longest) = [
        (Limit::Cores, cores_seconds),
        (Limit::Network, network_seconds),
        (Limit::Disk, disk_seconds),
        (Limit::Commit, commit_seconds),
        (Limit::Requests, requests_seconds),
    ]
    .into_iter()
    .fold((Limit::Cores, 0.0), |most, next| {
        if next.1 > most.1 { next } else { most }
    });
    let memory_bytes = memory(inputs, machine, mine, count);
    Depth {
        seconds: longest + rounds_seconds,
        limit: if rounds_seconds > longest {
            Limit::Rounds
        } else {
            limit
        },
        cores_seconds,
        network_seconds,
        disk_seconds,
        commit_seconds,
        requests_seconds,
        rounds_seconds,
        children,
        sent,
        sent_bytes,
        stored_bytes,
        puts,
        memory_bytes,
        fits: memory_bytes <= machine.memory_bytes * inputs.memory_part,
    }
}

/// The fewest workers that such a width fits into.
pub(crate) fn fewest_workers(inputs: &Inputs, machine: &Machine, beam: Beam) -> Option<u32> {
    let shards = beam.shards as f64;
    (1..=MAX_WORKERS).find(|&workers| {
        let count = f64::from(workers);
        let mine = beam.width as f64 * (shards / count).ceil() / shards;
        memory(inputs, machine, mine, count) <= machine.memory_bytes * inputs.memory_part
    })
}

fn memory(inputs: &Inputs, machine: &Machine, wells: f64, workers: f64) -> f64 {
    let link = (BATCHES_HELD * BATCH + machine.threads * REMOTE_BATCH) * CHILD_BYTES;
    inputs.memory_bytes.0 * wells + inputs.memory_bytes.1 + (workers - 1.0) * link
}

/// The writes that an object of so many bytes takes.
fn puts(bytes: f64) -> f64 {
    if bytes <= PART_BYTES {
        1.0
    } else {
        (bytes / PART_BYTES).ceil() + 2.0
    }
}

/// The children of a depth that one worker makes for another.
pub(crate) struct Stream {
    pub(crate) children: f64,
    /// That make them.
    pub(crate) threads: f64,
    /// How long they take to make them.
    pub(crate) seconds: f64,
}

impl Stream {
    /// Steps in which a stream is followed.
    const STEPS: u32 = 1000;

    /// The part of them that is sent: those that pass the floor which the sender knows of.
    ///
    /// When a part `x` of the children is made, the best `width` of them are its `width / (x children)`th
    /// part, and the floor lets no more through. But a sender knows the floor of some time ago: it is told
    /// now and then, and what it has gathered and not handed on has not raised it yet.
    pub(crate) fn part_sent(&self, inputs: &Inputs, beam: Beam, children: f64) -> f64 {
        let kept = inputs.duplicates * room(beam) * beam.width as f64 / children;
        let held = BATCH / 2.0 + self.threads * REMOTE_BATCH / 2.0;
        let telling = TELL_SECONDS / self.seconds;
        let step = 1.0 / f64::from(Stream::STEPS);
        let (mut sent, mut passes) = (0.0, 1.0);
        for at in 0..Stream::STEPS {
            let made = (f64::from(at) + 0.5) * step;
            let known = made - telling - held / (self.children * passes);
            passes = if known <= kept { 1.0 } else { kept / known };
            sent += passes * step;
        }
        // What is no number (nothing is made) is nothing sent.
        if sent.is_nan() {
            0.0
        } else {
            sent.clamp(0.0, 1.0)
        }
    }
}

/// What the tables in memory keep, against the width.
fn room(beam: Beam) -> f64 {
    let tables = beam.shards * (beam.width / beam.shards / TABLE_WELLS).max(1);
    let wells = (beam.width as f64 / tables as f64).max(1.0);
    (wells + DEFAULT_SIGMAS * wells.sqrt() + 16.0) / wells
}
