//! The list of all metrics, which is the only place that defines their names.
//!
//! `docs/metrics.md` contains this list for users, and a test compares the document with the list. The glossary in
//! `ARCHITECTURE.md` defines the terms. No label identifies a shard or a depth, because each shard or depth would add a
//! time series that is never removed.

use crate::registry::{
    Counter, Definition, Gauge, Histogram, Info, Labeled, Metric, Registry, Seconds,
};

/// Defines a group of metrics. Each line has the form `field: Kind, "name" [in unit] [by label ["value" ...]]
/// [with label ...], "meaning";`.
macro_rules! group {
    ($(#[$doc:meta])* $group:ident {
        $($field:ident: $kind:ty, $base:literal
            $(in $unit:ident)? $(by $label:ident [$($value:literal)*])? $(with $($info:ident)*)?, $help:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $group {
            $(#[doc = $help] pub $field: $kind,)*
        }

        impl $group {
            /// Definitions of the metrics, in the order of the fields.
            pub const DEFINITIONS: &'static [Definition] = &[$(Definition {
                base: concat!("hatebeam_", $base),
                unit: concat!($(stringify!($unit))?),
                kind: <$kind as Metric>::KIND,
                labels: &[$(stringify!($label))? $($(stringify!($info)),*)?],
                values: &[$($($value),*)?],
                help: $help,
            }),*];

            /// Adds the group to a registry. Call this function only once per registry, because names must be
            /// unique.
            pub fn register(registry: &Registry) -> $group {
                let mut definitions = Self::DEFINITIONS.iter();
                // Fields and definitions are in the same order.
                let mut next = || definitions.next().unwrap_or(&Self::DEFINITIONS[0]);
                $group {
                    $($field: registry.register(next()),)*
                }
            }
        }
    };
}

group! {
    /// State of the current or last run, exported by a coordinator or by a search on one machine.
    RunMetrics {
        info: Info, "run_info" with run state, "Run that the other run metrics describe; always 1, absent until a run starts";
        depth: Gauge, "run_depth", "Last committed depth";
        width: Gauge, "run_width_wells", "Beam width";
        wells: Gauge, "run_wells", "Wells at the last committed depth";
        best_lines: Gauge, "run_best_lines", "Most lines cleared by any game so far";
        stored: Gauge, "run_stored" in bytes, "Size of the run's wells in storage";
        searched: Gauge, "run_searched" in seconds, "Search time so far, over all processes that worked on the run";
        depth_wells: Gauge, "run_depth_wells", "Wells to expand for the depth in progress";
        depth_wells_expanded: Gauge, "run_depth_wells_expanded", "Wells expanded for the depth in progress";
        depths: Counter, "run_depths", "Depths committed by this process";
        children: Counter, "run_children", "Distinct children per well, summed over all wells of the depths committed by this process";
        depth_seconds: Histogram, "run_depth" in seconds, "Duration of the depths committed by this process";
        cost: Labeled<Gauge>, "run_cost" in dollars by part ["machines" "requests" "storage"],
            "Cost so far, without machines of unknown price; 0 for a search on one machine";
        budget: Gauge, "run_budget" in dollars, "Cost limit; 0 if there is no limit";
    }
}

group! {
    /// Metrics of a coordinator.
    CoordinatorMetrics {
        runs: Labeled<Gauge>, "coordinator_runs" by state ["queued" "running" "finished" "cancelled" "failed"],
            "Runs in the object store";
        workers: Labeled<Gauge>, "coordinator_workers" by state ["idle" "working" "draining" "drained" "quarantined"],
            "Connected workers";
        workers_slow: Gauge, "coordinator_workers_slow", "Connected workers that are far behind the others, or silent";
        joined: Counter, "coordinator_workers_joined", "Workers that connected";
        lost: Counter, "coordinator_workers_lost", "Workers that disconnected without being released";
        epochs: Counter, "coordinator_epochs", "Epochs started, each with a new assignment of shards to workers";
        failures: Labeled<Counter>, "coordinator_depth_failures" by cause ["lost" "failed"],
            "Depths restarted because a worker was lost or failed to execute an order";
        repeats: Counter, "coordinator_depth_repeats", "Depths expanded again because the candidate tables were too small";
        high_floors: Counter, "coordinator_high_floors", "Depths expanded again because the estimated floor (the rank below which children are dropped) was above the cut (the lowest rank kept)";
        phases: Labeled<Histogram>, "coordinator_phase" in seconds by phase ["expand" "cut" "rescore" "select" "commit"],
            "Duration of each phase of a depth; commit runs in parallel with the next depth";
        orders: Labeled<Counter>, "coordinator_orders"
            by order ["prepare" "expand" "count" "validate_cut" "rescore" "select" "wait_commit" "halt" "read_back"],
            "Orders sent to workers";
        manifests: Counter, "coordinator_manifest_writes", "Manifests written";
        exchanged: Counter, "coordinator_children_exchanged", "Children sent from one worker to another in committed depths";
        exchanged_bytes: Counter, "coordinator_exchanged" in bytes, "Size of the batches of children sent from one worker to another in committed depths";
        per_hour: Gauge, "coordinator_dollars_per_hour",
            "Price per hour of all connected machines, including the coordinator's";
        unpriced: Gauge, "coordinator_workers_unpriced", "Connected machines whose price is unknown";
    }
}

group! {
    /// Metrics of a worker.
    WorkerMetrics {
        connected: Gauge, "worker_connected", "1 while connected to a coordinator, 0 otherwise";
        connect_attempts: Counter, "worker_connect_attempts", "Attempts to connect to a coordinator";
        threads: Gauge, "worker_threads", "Search threads";
        disk_free: Gauge, "worker_disk_free" in bytes, "Free space on the disk of the scratch directory";
        epoch: Gauge, "worker_epoch", "Current epoch";
        depth: Gauge, "worker_depth", "Depth in progress";
        shards: Gauge, "worker_shards", "Shards assigned to the worker";
        frontier: Gauge, "worker_frontier_wells", "Wells of the frontier in the worker's shards";
        depth_wells: Gauge, "worker_depth_wells", "Wells that the worker has to expand for the depth in progress";
        depth_wells_expanded: Gauge, "worker_depth_wells_expanded",
            "Wells that the worker has expanded for the depth in progress";
        candidates: Gauge, "worker_candidate_tables" in bytes, "Memory used by the candidate tables, which collect children";
        expanded: Counter, "worker_wells_expanded", "Wells expanded";
        children: Counter, "worker_children", "Distinct children per expanded well, summed over all wells";
        offered: Counter, "worker_children_offered", "Children that were passed to a candidate table of this worker";
        sent: Counter, "worker_children_sent", "Children sent to other workers";
        received: Counter, "worker_children_received", "Children received from other workers";
        batches_sent: Counter, "worker_exchange_batches_sent", "Batches of children sent to other workers";
        batches_received: Counter, "worker_exchange_batches_received", "Batches of children received from other workers";
        batches_waiting: Gauge, "worker_exchange_batches_waiting", "Batches waiting to be sent, over all streams";
        sent_bytes: Counter, "worker_exchange_sent" in bytes, "Size of the batches sent";
        received_bytes: Counter, "worker_exchange_received" in bytes, "Size of the batches received";
        refused: Counter, "worker_exchange_refusals", "Streams from other workers that were refused or aborted";
        stalls: Counter, "worker_exchange_stalls", "Number of times that a thread waited because a stream's queue was full";
        stalled: Seconds, "worker_exchange_stalled" in seconds,
            "Time that threads waited because a stream's queue was full, summed over the threads";
        phases: Labeled<Histogram>, "worker_phase" in seconds
            by phase ["prepare" "expand" "count" "validate_cut" "rescore" "select" "write" "upload" "cache"],
            "Duration of each phase of a depth; write, upload and cache run in parallel with the next depth";
        tables_fetched: Counter, "worker_tables_fetched", "Tables fetched from the object store";
        tables_written: Counter, "worker_tables_written", "Tables written to the object store";
        tables_bytes: Counter, "worker_tables_written" in bytes, "Size of the tables written to the object store";
        uploading: Gauge, "worker_tables_uploading" in bytes, "Size of the tables being uploaded to the object store";
        failed: Counter, "worker_orders_failed", "Orders that failed";
    }
}

group! {
    /// Metrics of a process's object store operations.
    ObjectMetrics {
        operations: Labeled<Counter>, "objects_operations" by operation ["put" "get" "list" "delete"],
            "Successful operations: objects written, read and deleted, and listings";
        received: Counter, "objects_received" in bytes, "Bytes read";
        sent: Counter, "objects_sent" in bytes, "Bytes written";
        requests: Counter, "objects_requests", "Requests sent to a server, including retries; 0 if the store is a folder";
        retries: Counter, "objects_retries", "Requests repeated after a failure";
        errors: Counter, "objects_errors", "Operations that failed after all retries";
    }
}

group! {
    /// Metrics of every process.
    ProcessMetrics {
        build: Info, "build_info" with version search process,
            "Version, search fingerprint and kind of the process, in the labels; always 1";
        memory: Gauge, "process_resident_memory" in bytes, "Resident memory";
        cpu: Seconds, "process_cpu" in seconds, "Processor time, summed over the threads";
        open_fds: Gauge, "process_open_fds", "Open files and sockets";
        started: Gauge, "process_start_time" in seconds, "Start time, as Unix time";
        memory_limit: Gauge, "process_memory_limit" in bytes,
            "Memory of the machine, or the limit of the control group if that is lower; 0 if unknown";
    }
}

group! {
    /// Metrics of a process's certificate.
    CertificateMetrics {
        expiry: Gauge, "certificate_expiry" in seconds,
            "Time at which the certificate or its CA expires, as Unix time; 0 without a certificate";
    }
}

/// Returns the groups of metrics that a kind of process exports, or no groups if the kind is unknown. `process` is the
/// value of the label `process` in `hatebeam_build_info`.
pub fn of_process(process: &str) -> Vec<&'static [Definition]> {
    match process {
        "coordinator" => vec![
            RunMetrics::DEFINITIONS,
            CoordinatorMetrics::DEFINITIONS,
            ObjectMetrics::DEFINITIONS,
            ProcessMetrics::DEFINITIONS,
            CertificateMetrics::DEFINITIONS,
        ],
        "worker" => vec![
            WorkerMetrics::DEFINITIONS,
            ObjectMetrics::DEFINITIONS,
            ProcessMetrics::DEFINITIONS,
            CertificateMetrics::DEFINITIONS,
        ],
        "run" => vec![RunMetrics::DEFINITIONS, ProcessMetrics::DEFINITIONS],
        _ => Vec::new(),
    }
}
