//! A model of a search in a cluster. It computes the time, the size and the bottleneck of a depth, which is one step of
//! the search. `docs/cluster-model.md` explains the formula, the source of each number, and the accuracy of the result.

use hatebeam_search::{
    DEFAULT_SIGMAS, EvaluatorKind, MAX_SHARDS, MIN_SHARD_WELLS, Node, NodeWell, Quiescence,
    REMOTE_BATCH, ShardLayout, TABLE_WELLS, buffer_bytes,
};
use serde::Serialize;
use std::time::Duration;

/// Maximum number of workers. It equals the maximum number of shards, because a worker without a shard has no work.
pub const MAX_WORKERS: u32 = MAX_SHARDS as u32;
/// Result of the benchmark of a search step (`cargo bench -p hatebeam-search`) with the evaluator `patterns`, in
/// nanoseconds per child. [`ModelInputs`] names the machine.
pub const BENCHMARK_NS: f64 = 197.0;
/// Result of the benchmark with the evaluator `knewjade`.
const BENCHMARK_KNEWJADE_NS: f64 = 148.0;
/// Estimated result of the benchmark with a network: 1.53 times [`BENCHMARK_NS`]. The factor was measured on an Intel
/// Xeon (511 ns with a network, 334 ns with `patterns`, at a width of 20,000 on a busy host).
const BENCHMARK_NETWORK_NS: f64 = 301.0;
/// Result of the benchmark with the evaluator `patterns` and forced quiescence.
const BENCHMARK_FORCED_NS: f64 = 468.0;
/// Time of a depth with forced quiescence and a network, relative to no quiescence: 46 and 14 seconds for 60 depths of
/// `network` and 20,000 wells.
const FORCED_NETWORK_FACTOR: f64 = 3.3;
/// The same with `single` (197 seconds).
const SINGLE_FACTOR: f64 = 14.0;
/// Time of a depth with `first`, relative to no quiescence: 75 and 8.5 ms in whole games of `chains` and 4,000 wells. The
/// factor is 5 to 17, depending on the evaluator, the width and the part of the game.
const FIRST_FACTOR: f64 = 9.0;
/// The same with `first-of-best` (24 ms); 2 to 4.
const FIRST_OF_BEST_FACTOR: f64 = 2.8;
/// Upper bound on the memory of a worker per well that its tables of candidates keep, in bytes, without the buffers of
/// the threads.
pub const MEMORY_PER_WELL: u64 = 100;
/// Upper bound on the memory that a process needs in addition to its wells, in bytes.
pub const MEMORY_OF_PROCESS: u64 = 200 << 20;
/// Size of a child in memory.
const CHILD_BYTES: f64 = size_of::<Node>() as f64;

/// Constants of the exchange between workers and of uploads. The crates that define these constants depend on this
/// crate, so the caller passes them in.
#[derive(Clone, Copy, Debug)]
pub struct ProgramConstants {
    /// Number of children in a batch.
    pub batch_children: usize,
    /// Maximum number of batches that wait for a peer.
    pub queued_batches: usize,
    /// Time between two messages in which a receiver reports its floors: the lowest ranks that its tables of candidates
    /// still accept.
    pub floor_interval: Duration,
    /// Size of each part of a multipart upload, and maximum size of an object that is uploaded in one request.
    pub part_bytes: usize,
    /// Number of parts of an object that are uploaded at the same time.
    pub parallel_parts: usize,
}

/// Inputs of the model. They are measured, except for those marked ASSUMED. Times in nanoseconds are for one thread on
/// one core of the measured machine, an AMD EPYC (Zen 5) at 2.6 GHz.
#[derive(Clone, Copy, Debug)]
pub struct ModelInputs {
    /// Number of distinct children of a well, averaged over a whole game.
    pub children_per_well: f64,
    /// Time to generate a child, score it, and drop it or merge it into a table of candidates in memory.
    pub ns_per_child: f64,
    /// Additional time to expand a well, select it, write it and read it again for the next depth.
    pub ns_per_well: f64,
    /// Part of `ns_per_well` for sorting the well within its shard. One thread sorts a shard while the others wait.
    pub ns_per_well_sorted: f64,
    /// Part of `ns_per_well` for writing the well to its shard's table on disk. One thread writes a table during the
    /// search.
    pub ns_per_well_written: f64,
    /// Time for the digest (the checksum over a worker's wells) per well. One thread computes it.
    pub ns_per_well_digested: f64,
    /// Time to create a table on disk, regardless of its size.
    pub ns_per_table: f64,
    /// Total time, on the sender and the receiver, to pack, send, unpack and merge a child that goes to another worker.
    pub ns_per_sent: f64,
    /// Size of a child on the wire.
    pub bytes_per_sent: f64,
    /// Size of a well in a table on disk.
    pub bytes_per_well: f64,
    /// Number of times that a table is written to the worker's disk: once into its own file, and once into the file
    /// that is uploaded.
    pub disk_writes: f64,
    /// Number of children that pass a floor (the lowest rank that a full table of candidates accepts), relative to the
    /// number of distinct children that pass it. It exceeds 1 because several parents generate the same well.
    pub duplicates: f64,
    /// Number of children that pass the floor with which a depth begins, relative to the number that pass the depth's
    /// cut. The cut is the lowest rank that is kept, and the first floor is an estimate of the cut. Infinite if a
    /// depth begins without an estimate.
    pub estimate_excess: f64,
    /// Fraction of the depths that are searched twice, because the estimate was above the cut.
    pub repeated_share: f64,
    /// Throughput of a core's two hyperthreads, relative to one thread alone. ASSUMED.
    pub smt_gain: f64,
    /// Number of consecutive orders at a depth: expand, four counts, validate the cut, select.
    pub rounds: f64,
    /// Round trip time of an order in seconds, without the work. ASSUMED for machines in one zone.
    pub round_seconds: f64,
    /// Time, per thread and histogram, to build a histogram and add it to the others.
    pub ns_per_histogram: f64,
    /// Number of histograms per depth: four for the cut, three more for the median.
    pub questions: f64,
    /// Work of the coordinator per worker and depth, in seconds.
    pub coordinator_seconds_per_worker: f64,
    /// Number of objects that the coordinator writes consecutively for a depth, after all tables are stored.
    pub coordinator_puts: f64,
    /// Mean number of seconds until the object store has accepted a small object. ASSUMED for S3.
    pub put_seconds: f64,
    /// Part of `put_seconds` that varies between requests, with an exponential distribution. ASSUMED.
    pub put_variation: f64,
    /// Bytes per second that S3 accepts from one worker that uploads four parts at the same time. ASSUMED.
    pub upload_bytes_per_second: f64,
    /// Writes per second that the object store accepts.
    pub puts_per_second: f64,
    /// Whether the times were measured with this quiescence and loop rule. If not, they are a rough guess.
    pub has_time: bool,
    /// Number of wells that the tables of candidates keep for each well of the width.
    pub gathered_per_well: f64,
    /// Memory in bytes for each well that the tables of candidates keep, excluding the buffers of the threads.
    pub memory_per_well: f64,
    /// Memory in bytes that each worker needs for each well of the width to apply the loop rule; 0 without the rule.
    pub memory_per_game: f64,
    /// Size of a well that a worker sends to each other worker for the loop rule.
    pub bytes_per_game: f64,
    /// Additional memory of the process, in bytes.
    pub memory_base: f64,
    /// Fraction of a machine's memory that a worker may use.
    pub memory_share: f64,
    /// Constants of the program.
    pub program: ProgramConstants,
}

impl ModelInputs {
    /// Returns the measured inputs for an evaluator.
    pub fn measured(
        kind: EvaluatorKind,
        quiescence: Quiescence,
        program: ProgramConstants,
    ) -> ModelInputs {
        let evaluator = match kind {
            EvaluatorKind::Patterns => 0.0,
            EvaluatorKind::Network(_) => BENCHMARK_NETWORK_NS - BENCHMARK_NS,
            _ => BENCHMARK_KNEWJADE_NS - BENCHMARK_NS,
        };
        let is_network = matches!(kind, EvaluatorKind::Network(_));
        let plain = 200.0 + evaluator;
        let ns_per_child = match quiescence {
            Quiescence::Off => plain,
            Quiescence::Forced if is_network => plain * FORCED_NETWORK_FACTOR,
            Quiescence::Forced => plain + BENCHMARK_FORCED_NS - BENCHMARK_NS,
            Quiescence::Single => plain * SINGLE_FACTOR,
            Quiescence::First => plain * FIRST_FACTOR,
            Quiescence::FirstOfBest => plain * FIRST_OF_BEST_FACTOR,
        };
        let gathered = quiescence.children_per_well();
        // With `first-of-best`, a depth has two cuts, and scores the survivors of the first one again.
        let rounds = if gathered.is_some() { 13.0 } else { 7.0 };
        ModelInputs {
            children_per_well: 19.0,
            ns_per_child,
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
            estimate_excess: 1.8,
            repeated_share: 0.008,
            smt_gain: 1.25,
            rounds,
            round_seconds: 0.001,
            ns_per_histogram: 19_000.0,
            questions: 7.0,
            coordinator_seconds_per_worker: 0.0005,
            coordinator_puts: 2.0,
            put_seconds: 0.060,
            put_variation: 0.5,
            upload_bytes_per_second: 340e6,
            puts_per_second: 3500.0,
            has_time: matches!(quiescence, Quiescence::Off | Quiescence::Forced),
            gathered_per_well: gathered.unwrap_or(1) as f64,
            memory_per_well: MEMORY_PER_WELL as f64,
            memory_per_game: 0.0,
            bytes_per_game: 0.0,
            memory_base: MEMORY_OF_PROCESS as f64,
            memory_share: 0.9,
            program,
        }
    }

    /// Returns the inputs for a run that applies the loop rule. The time for the rule is not known. `memory_per_well` is the memory that each worker needs for
    /// each well of the width, in bytes.
    #[must_use]
    pub fn with_loop_rule(self, memory_per_well: u64) -> ModelInputs {
        ModelInputs {
            memory_per_game: memory_per_well as f64,
            bytes_per_game: size_of::<NodeWell>() as f64 + size_of::<u32>() as f64,
            has_time: false,
            ..self
        }
    }
}

/// Capacity of a machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineProfile {
    /// Number of threads of a worker.
    pub threads: f64,
    /// Number of physical cores.
    pub cores: f64,
    /// Speed of a core, relative to the measured machine.
    pub core_speed: f64,
    /// Memory in bytes.
    pub memory_bytes: f64,
    /// Network throughput in each direction, in bytes per second.
    pub network_bytes_per_second: f64,
    /// Write throughput of the disk in bytes per second.
    pub disk_bytes_per_second: f64,
}

impl MachineProfile {
    /// Returns the machine's throughput, in units of one core of the measured machine.
    fn power(&self, inputs: &ModelInputs) -> f64 {
        let is_smt = self.threads > self.cores;
        self.cores * self.core_speed * if is_smt { inputs.smt_gain } else { 1.0 }
    }
}

/// Resource that limits the speed of a depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bottleneck {
    /// Processor time for expanding, scoring, sending and writing.
    Cores,
    /// Transfer of children and tables.
    Network,
    /// The worker's local disk.
    Disk,
    /// Writing and uploading a depth's tables during the search of the next depth.
    Commit,
    /// Requests to the object store.
    Requests,
    /// Orders and their answers, counting, digests and sorting.
    Rounds,
}

impl Bottleneck {
    /// Returns the name that JSON output uses.
    pub fn name(self) -> &'static str {
        match self {
            Bottleneck::Cores => "cores",
            Bottleneck::Network => "network",
            Bottleneck::Disk => "disk",
            Bottleneck::Commit => "commit",
            Bottleneck::Requests => "requests",
            Bottleneck::Rounds => "rounds",
        }
    }
}

/// Predicted time and size of a depth at full width. Counts and sizes are for all workers together.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DepthModel {
    /// Seconds from one depth to the next.
    pub seconds: f64,
    /// Resource that limits the speed.
    pub limit: Bottleneck,
    /// Time that the cores need.
    pub cores_seconds: f64,
    /// Time that the network needs.
    pub network_seconds: f64,
    /// Time that the disk needs.
    pub disk_seconds: f64,
    /// Time that the commit needs.
    pub commit_seconds: f64,
    /// Time that the requests to the object store need.
    pub requests_seconds: f64,
    /// Time of [`Bottleneck::Rounds`], which is added to the longest of the times above.
    pub rounds_seconds: f64,
    /// Number of shards into which the workers divide the wells.
    pub shards: u64,
    /// Number of children of all wells.
    pub children: f64,
    /// Number of children that are sent to another worker.
    pub sent: f64,
    /// Size of the sent children on the wire, in bytes.
    pub sent_bytes: f64,
    /// Size of the depth's tables, in bytes.
    pub stored_bytes: f64,
    /// Number of write requests to the object store.
    pub puts: f64,
    /// Memory in bytes that the worker with the most wells needs.
    pub memory_bytes: f64,
    /// Whether `memory_bytes` fits in the machine's memory.
    pub fits: bool,
}

/// Width of a run, and its number of shards: the parts of the beam, each of which one worker holds.
#[derive(Clone, Copy, Debug)]
pub struct Beam {
    /// Width in wells.
    pub width: u64,
    /// Number of shards before they are split for many workers.
    pub shards: u64,
}

impl Beam {
    /// Returns a beam with the given number of shards, or the default number if `shards` is `None`.
    pub fn new(width: u64, shards: Option<u32>) -> Beam {
        let width = width.max(1);
        let shards = shards.unwrap_or_else(|| ShardLayout::default_shards(width));
        Beam {
            width,
            shards: u64::from(shards).clamp(1, MAX_SHARDS as u64),
        }
    }

    /// Returns the beam with the number of shards that a coordinator uses for these workers.
    fn for_workers(self, workers: u32, machine: &MachineProfile) -> Beam {
        let layout = ShardLayout::new(self.width as usize, self.shards as usize);
        let threads = (f64::from(workers) * machine.threads) as usize;
        let layout = layout.for_workers(workers as usize, threads, MIN_SHARD_WELLS);
        Beam {
            shards: layout.shards() as u64,
            ..self
        }
    }

    /// Returns the fraction of the wells that the worker with the most shards holds.
    fn largest_share(self, workers: f64) -> f64 {
        let shards = self.shards as f64;
        (shards / workers).ceil() / shards
    }
}

/// Work of the worker with the most shards at one depth. All other workers wait for this worker.
struct Work<'a> {
    inputs: &'a ModelInputs,
    machine: &'a MachineProfile,
    beam: Beam,
    workers: f64,
    /// Number of wells that this worker holds.
    wells: f64,
    /// Fraction of all wells that this worker holds.
    share: f64,
    /// Throughput of the machine, in units of one core of the measured machine.
    power: f64,
}

impl Work<'_> {
    /// Returns the seconds for `ns` nanoseconds of work that is divided among all cores.
    fn in_parallel(&self, ns: f64) -> f64 {
        ns * 1e-9 / self.power
    }

    /// Returns the seconds for all wells of the worker if each well takes `ns` nanoseconds and one thread works on each
    /// shard.
    fn by_shard(&self, ns: f64) -> f64 {
        let one_shard = self.beam.width as f64 / self.beam.shards as f64;
        let one_thread = one_shard * ns * 1e-9 / self.machine.core_speed;
        self.in_parallel(self.wells * ns).max(one_thread)
    }

    /// Returns the seconds for generating and selecting wells, without the exchange.
    fn own_seconds(&self) -> f64 {
        let inputs = self.inputs;
        let shards = (self.beam.shards as f64 * self.share).round();
        let ns_per_well = inputs.children_per_well * inputs.ns_per_child + inputs.ns_per_well
            - inputs.ns_per_well_sorted;
        self.in_parallel(self.wells * ns_per_well + shards * inputs.ns_per_table)
    }

    /// Returns the seconds from the end of a depth until the manifest names the depth's tables.
    fn commit_seconds(&self, upload: f64) -> f64 {
        let inputs = self.inputs;
        let part = inputs.program.part_bytes as f64;
        let parallel = inputs.program.parallel_parts as f64;
        // The upload of a large object has three steps: start it, send its parts, complete it.
        let waits = if upload > part { 3 } else { 1 };
        let rate = inputs.upload_bytes_per_second * (upload / part / parallel).clamp(0.25, 1.0);
        self.by_shard(inputs.ns_per_well_written)
            + upload / self.machine.disk_bytes_per_second
            + upload / rate
            + slowest_seconds(inputs, self.workers.min(self.beam.shards as f64), waits)
            + inputs.coordinator_puts * inputs.put_seconds
    }

    /// Returns the seconds of [`Bottleneck::Rounds`].
    fn rounds_seconds(&self) -> f64 {
        let (inputs, machine) = (self.inputs, self.machine);
        let histograms = inputs.questions * inputs.ns_per_histogram * machine.threads;
        inputs.rounds * inputs.round_seconds
            + inputs.coordinator_seconds_per_worker * self.workers
            + histograms * 1e-9 / machine.core_speed
            + self.wells * inputs.ns_per_well_digested * 1e-9 / machine.core_speed
            + self.by_shard(inputs.ns_per_well_sorted)
    }

    /// Returns the number of requests that upload an object of this size.
    fn puts(&self, bytes: f64) -> f64 {
        let part = self.inputs.program.part_bytes as f64;
        if bytes <= part {
            1.0
        } else {
            (bytes / part).ceil() + 2.0
        }
    }
}

/// Returns the expected seconds until the slowest of `workers` has made `waits` consecutive requests.
///
/// The sum of the variable parts of a worker's requests has an Erlang distribution. The expected maximum of several
/// times is the integral of the probability that not all of them have elapsed.
fn slowest_seconds(inputs: &ModelInputs, workers: f64, waits: u32) -> f64 {
    const STEP: f64 = 0.01;
    let variable = inputs.put_seconds * inputs.put_variation;
    let least = inputs.put_seconds - variable;
    // Returns the probability that all workers are done. `time` is in units of the mean of the variable part.
    let all_done = |time: f64| {
        let terms = (0..waits).scan(1.0, |term, at| {
            let value = *term;
            *term *= time / f64::from(at + 1);
            Some(value)
        });
        (1.0 - (-time).exp() * terms.sum::<f64>()).powf(workers)
    };
    let times = (0..10_000).map(|at| (f64::from(at) + 0.5) * STEP);
    let expected: f64 = times.map(|time| (1.0 - all_done(time)) * STEP).sum();
    f64::from(waits) * least + variable * expected
}

/// Returns the predicted time and size of a depth at full width with the given number of workers.
pub fn model_depth(
    inputs: &ModelInputs,
    machine: &MachineProfile,
    beam: Beam,
    workers: u32,
) -> DepthModel {
    let (wells, count) = (beam.width as f64, f64::from(workers.max(1)));
    let beam = beam.for_workers(workers.max(1), machine);
    let share = beam.largest_share(count);
    let work = Work {
        inputs,
        machine,
        beam,
        workers: count,
        wells: wells * share,
        share,
        power: machine.power(inputs),
    };
    let children = wells * inputs.children_per_well;
    let own_seconds = work.own_seconds();
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
    let upload = stored_bytes * share;
    let puts = work.puts(upload) * count.min(beam.shards as f64) + inputs.coordinator_puts;
    let searches = 1.0 + inputs.repeated_share;
    let cores_seconds =
        searches * (own_seconds + work.in_parallel(sent * share * inputs.ns_per_sent));
    // Each worker receives the wells of all others, and sends its own to each of them.
    let games_bytes = work.wells * (count - 1.0) * inputs.bytes_per_game;
    let network_seconds =
        (sent_bytes * share + upload + games_bytes) / machine.network_bytes_per_second;
    let disk_seconds = upload * inputs.disk_writes / machine.disk_bytes_per_second;
    let commit_seconds = work.commit_seconds(upload);
    let requests_seconds = puts / inputs.puts_per_second;
    let rounds_seconds = work.rounds_seconds();
    // These activities overlap, so the longest one determines the time. The rounds are added to it.
    let (overlapped, longest) = slowest([
        (Bottleneck::Cores, cores_seconds),
        (Bottleneck::Network, network_seconds),
        (Bottleneck::Disk, disk_seconds),
        (Bottleneck::Commit, commit_seconds),
        (Bottleneck::Requests, requests_seconds),
    ]);
    let limit = if rounds_seconds > longest {
        Bottleneck::Rounds
    } else {
        overlapped
    };
    let memory_bytes = memory(inputs, machine, beam, count);
    DepthModel {
        seconds: longest + rounds_seconds,
        limit,
        cores_seconds,
        network_seconds,
        disk_seconds,
        commit_seconds,
        requests_seconds,
        rounds_seconds,
        shards: beam.shards,
        children,
        sent,
        sent_bytes,
        stored_bytes,
        puts,
        memory_bytes,
        fits: memory_bytes <= machine.memory_bytes * inputs.memory_share,
    }
}

/// Returns the activity that takes the most time, in seconds. If several take equally long, returns the first of them.
fn slowest<const N: usize>(activities: [(Bottleneck, f64); N]) -> (Bottleneck, f64) {
    activities
        .into_iter()
        .fold((Bottleneck::Cores, 0.0), |most, next| {
            if next.1 > most.1 { next } else { most }
        })
}

/// Returns the smallest number of workers whose memory is sufficient for the beam, or `None` if even [`MAX_WORKERS`]
/// are too few.
pub fn fewest_workers(inputs: &ModelInputs, machine: &MachineProfile, beam: Beam) -> Option<u32> {
    (1..=MAX_WORKERS).find(|&workers| {
        let beam = beam.for_workers(workers, machine);
        let memory = memory(inputs, machine, beam, f64::from(workers));
        memory <= machine.memory_bytes * inputs.memory_share
    })
}

/// Returns the memory in bytes of the worker with the most wells.
fn memory(inputs: &ModelInputs, machine: &MachineProfile, beam: Beam, workers: f64) -> f64 {
    let width = beam.width as f64;
    let wells = width * beam.largest_share(workers);
    let program = &inputs.program;
    // For each peer, a worker holds the batches that wait to be sent, and the batch that is being filled.
    let batches = (program.queued_batches + 1) * program.batch_children;
    let peer = (batches as f64 + machine.threads * REMOTE_BATCH as f64) * CHILD_BYTES;
    let gathered = wells * inputs.gathered_per_well;
    // Each thread collects children for each of the worker's tables of candidates.
    let tables = (gathered / TABLE_WELLS as f64).ceil() as u64;
    let buffers = machine.threads * buffer_bytes(tables) as f64;
    let games = width * inputs.memory_per_game;
    inputs.memory_per_well * gathered
        + games
        + buffers
        + inputs.memory_base
        + (workers - 1.0) * peer
}

/// Children of a depth that one worker generates for another.
pub(crate) struct Stream {
    /// Number of children.
    pub(crate) children: f64,
    /// Number of threads that generate the children.
    pub(crate) threads: f64,
    /// Seconds during which the children are generated.
    pub(crate) seconds: f64,
}

impl Stream {
    /// Number of steps of the numeric integration.
    const STEPS: u32 = 1000;

    /// Returns the fraction of the children that are sent. A sender drops the children below the floor that the
    /// receiver last reported. The floor is the lowest rank that the receiver's tables of candidates accept.
    ///
    /// Once a fraction `x` of all children has been generated, the best `width` of them are a fraction `width / (x *
    /// children)`. Only this fraction of further children passes the floor. But the sender's floor is out of date,
    /// because the receiver reports the floor only at intervals. The children that the sender has collected but not
    /// yet sent have not raised the floor either. Until the sender's floor exceeds the estimate with which the depth
    /// began, a fraction `estimate_excess * width / children` passes.
    pub(crate) fn part_sent(&self, inputs: &ModelInputs, beam: Beam, children: f64) -> f64 {
        let program = &inputs.program;
        let kept = inputs.duplicates * room(beam) * beam.width as f64 / children;
        let held = program.batch_children as f64 / 2.0 + self.threads * REMOTE_BATCH as f64 / 2.0;
        let delay = program.floor_interval.as_secs_f64() / self.seconds;
        let step = 1.0 / f64::from(Stream::STEPS);
        let first =
            (inputs.estimate_excess * inputs.duplicates * beam.width as f64 / children).min(1.0);
        let (mut sent, mut passes) = (0.0, first);
        for at in 0..Stream::STEPS {
            let made = (f64::from(at) + 0.5) * step;
            let known = made - delay - held / (self.children * passes);
            passes = if known * first <= kept {
                first
            } else {
                kept / known
            };
            sent += passes * step;
        }
        // If there are no children, the quotients are NaN.
        if sent.is_nan() {
            0.0
        } else {
            sent.clamp(0.0, 1.0)
        }
    }
}

/// Returns the number of wells that the tables of candidates in memory can hold, relative to the width.
fn room(beam: Beam) -> f64 {
    let tables = beam.shards * (beam.width / beam.shards / TABLE_WELLS as u64).max(1);
    let wells = (beam.width as f64 / tables as f64).max(1.0);
    (wells + DEFAULT_SIGMAS * wells.sqrt() + 16.0) / wells
}

#[cfg(test)]
pub(crate) mod tests;
