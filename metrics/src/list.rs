//! All metrics there are: the one place where they are named.
//!
//! `docs/metrics.md` is this list for people; a test compares the two. Names say what is measured in the words of
//! the field, and never which shard or depth: that would be a series for each, for ever.

use crate::registry::{
    By, Counter, Definition, Facts, Gauge, Histogram, Metric, Registry, Seconds,
};

/// A group of metrics: `field: Kind, "name" [in unit] [by label ["value" ...]] [told label ...], "what it means";`
macro_rules! group {
    ($(#[$doc:meta])* $group:ident {
        $($field:ident: $kind:ty, $base:literal
            $(in $unit:ident)? $(by $label:ident [$($value:literal)*])? $(told $($fact:ident)*)?, $help:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $group {
            $(#[doc = $help] pub $field: $kind,)*
        }

        impl $group {
            /// What each of them is.
            pub const DEFINITIONS: &'static [Definition] = &[$(Definition {
                base: concat!("hatebeam_", $base),
                unit: concat!($(stringify!($unit))?),
                kind: <$kind as Metric>::KIND,
                labels: &[$(stringify!($label))? $($(stringify!($fact)),*)?],
                values: &[$($($value),*)?],
                help: $help,
            }),*];

            /// Adds them to a process's metrics. Once for each registry: names come once.
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
    /// How the run stands that is searched, or was the last: of a coordinator, and of a search on one machine.
    RunMetrics {
        info: Facts, "run_info" told run state, "The run that the others are about; 1, or absent before there is one";
        depth: Gauge, "run_depth", "The last depth that is committed";
        width: Gauge, "run_width_wells", "The beam's width";
        wells: Gauge, "run_wells", "Wells of the last depth that is committed";
        best_lines: Gauge, "run_best_lines", "The most lines of any game so far";
        stored: Gauge, "run_stored" in bytes, "What the run's wells take where they are kept";
        searched: Gauge, "run_searched" in seconds, "How long it was searched for, over all processes that did";
        depth_wells: Gauge, "run_depth_wells", "Wells to be expanded for the depth that is under way";
        depth_wells_expanded: Gauge, "run_depth_wells_expanded", "How many of these are expanded";
        depths: Counter, "run_depths", "Depths that this process has committed";
        children: Counter, "run_children", "Distinct children of each well, added up over these depths";
        depth_seconds: Histogram, "run_depth" in seconds, "Time that each of these depths took";
        cost: By<Gauge>, "run_cost" in dollars by part ["machines" "requests" "storage"],
            "What it has cost so far, as far as the machines' prices are known; 0 where nobody accounts";
        budget: Gauge, "run_budget" in dollars, "What it may cost at most; 0 if there is no limit";
    }
}

group! {
    /// What a coordinator counts.
    CoordinatorMetrics {
        runs: By<Gauge>, "coordinator_runs" by state ["queued" "running" "finished" "cancelled" "failed"],
            "Runs in the object store";
        workers: By<Gauge>, "coordinator_workers" by state ["idle" "working" "draining" "left out"], "Workers that attend";
        workers_slow: Gauge, "coordinator_workers_slow", "Those that are far behind the others, or silent";
        joined: Counter, "coordinator_workers_joined", "Workers that came";
        lost: Counter, "coordinator_workers_lost", "Workers that went without being let go";
        epochs: Counter, "coordinator_epochs", "Crews that were given shards";
        failures: By<Counter>, "coordinator_depth_failures" by cause ["lost" "failed"],
            "Depths begun anew because a worker was lost, or could not do its part";
        repeats: Counter, "coordinator_depth_repeats", "Depths expanded again because the tables were too small";
        phases: By<Histogram>, "coordinator_phase" in seconds by phase ["expand" "cut" "select" "commit"],
            "Time that the parts of a depth took; commit is only what was waited for";
        orders: By<Counter>, "coordinator_orders"
            by order ["prepare" "expand" "count" "judge" "select" "wait_commit" "halt"], "Orders given to workers";
        manifests: Counter, "coordinator_manifest_writes", "Manifests written";
        exchanged: Counter, "coordinator_children_exchanged", "Children that went from one worker to another, of committed depths";
        exchanged_bytes: Counter, "coordinator_exchanged" in bytes, "What these took on the way";
        per_hour: Gauge, "coordinator_dollars_per_hour", "What all machines that attend cost in an hour, this one's included";
        unpriced: Gauge, "coordinator_workers_unpriced", "Machines that attend and whose price is not known";
    }
}

group! {
    /// What a worker counts.
    WorkerMetrics {
        attends: Gauge, "worker_attends", "1 while a coordinator has it, else 0";
        knocks: Counter, "worker_knocks", "Times that it asked a coordinator to be let in";
        threads: Gauge, "worker_threads", "Threads that search";
        disk_free: Gauge, "worker_disk_free" in bytes, "Room on the disk of its folder";
        epoch: Gauge, "worker_epoch", "The epoch that it works in";
        depth: Gauge, "worker_depth", "The depth that is under way";
        shards: Gauge, "worker_shards", "Shards that it owns";
        frontier: Gauge, "worker_frontier_wells", "Wells of the frontier that it holds";
        depth_wells: Gauge, "worker_depth_wells", "Wells that it expands for the depth that is under way";
        depth_wells_expanded: Gauge, "worker_depth_wells_expanded", "How many of these are expanded";
        candidates: Gauge, "worker_candidate_tables" in bytes, "Memory of the tables that children are gathered in";
        expanded: Counter, "worker_wells_expanded", "Wells expanded";
        children: Counter, "worker_children", "Distinct children of each of these wells, added up";
        offered: Counter, "worker_children_offered", "Of these, the ones that reached a table here";
        sent: Counter, "worker_children_sent", "Of these, the ones that were sent to other workers";
        received: Counter, "worker_children_received", "Children taken in from other workers";
        batches_sent: Counter, "worker_exchange_batches_sent", "Batches of children sent";
        batches_received: Counter, "worker_exchange_batches_received", "Batches of children taken in";
        batches_waiting: Gauge, "worker_exchange_batches_waiting", "Batches that wait to be sent, over all links";
        sent_bytes: Counter, "worker_exchange_sent" in bytes, "What the batches sent took";
        received_bytes: Counter, "worker_exchange_received" in bytes, "What the batches taken in took";
        refused: Counter, "worker_exchange_refusals", "Streams of other workers that were refused or broken off";
        stalls: Counter, "worker_exchange_stalls", "Times that a thread found a link full and waited";
        stalled: Seconds, "worker_exchange_stalled" in seconds, "How long threads waited so, added up over threads";
        phases: By<Histogram>, "worker_phase" in seconds
            by phase ["prepare" "expand" "count" "judge" "select" "write" "upload" "keep"],
            "Time that the parts of a depth took; the last three are the commit, beside the next depth";
        tables_fetched: Counter, "worker_tables_fetched", "Tables fetched from the object store";
        tables_written: Counter, "worker_tables_written", "Tables written and put into the object store";
        tables_bytes: Counter, "worker_tables_written" in bytes, "What these take";
        uploading: Gauge, "worker_tables_uploading" in bytes, "Tables that are on their way to the object store";
        failed: Counter, "worker_orders_failed", "Orders that it could not carry out";
    }
}

group! {
    /// What an object store was asked.
    ObjectMetrics {
        operations: By<Counter>, "objects_operations" by operation ["put" "get" "list" "delete"],
            "Objects written, read and deleted, and listings";
        received: Counter, "objects_received" in bytes, "Bytes read";
        sent: Counter, "objects_sent" in bytes, "Bytes written";
        requests: Counter, "objects_requests", "Requests to a server, those sent again included; none of a folder";
        retries: Counter, "objects_retries", "Requests sent again after a failure";
        errors: Counter, "objects_errors", "Operations that failed in the end";
    }
}

group! {
    /// What holds of any process.
    ProcessMetrics {
        build: Facts, "build_info" told version process, "1; the labels say what runs";
        memory: Gauge, "process_resident_memory" in bytes, "Memory that it holds";
        cpu: Seconds, "process_cpu" in seconds, "Processor time, over all threads";
        open_fds: Gauge, "process_open_fds", "Files and sockets that it has open";
        started: Gauge, "process_start_time" in seconds, "When it began, since 1970";
    }
}

/// Which groups a process has, by what it is called in the label `process` of `hatebeam_build_info`.
pub fn of_process(process: &str) -> Vec<&'static [Definition]> {
    match process {
        "coordinator" => vec![
            RunMetrics::DEFINITIONS,
            CoordinatorMetrics::DEFINITIONS,
            ObjectMetrics::DEFINITIONS,
            ProcessMetrics::DEFINITIONS,
        ],
        "worker" => vec![
            WorkerMetrics::DEFINITIONS,
            ObjectMetrics::DEFINITIONS,
            ProcessMetrics::DEFINITIONS,
        ],
        "run" => vec![RunMetrics::DEFINITIONS, ProcessMetrics::DEFINITIONS],
        _ => Vec::new(),
    }
}
