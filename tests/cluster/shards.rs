//! Tests of clusters that divide a beam into more shards (ranges of hashes, each with an owner) when workers join.

use crate::harness::Cluster;
use crate::one_process;
use serde_json::Value;

/// A width at which one worker gets eight shards and two workers get sixteen. The first depths have fewer wells.
const WIDTH: [&str; 4] = ["--width", "524288", "--evaluator", "plain"];

/// Returns the number of shards at each depth of a run. The first depth has no tables.
fn shards(manifest: &Value) -> Vec<u64> {
    let depths = manifest["depths"].as_array().unwrap().iter();
    let shards = depths.filter_map(|depth| depth["tables"]["shards"].as_u64());
    shards.collect()
}

#[test]
fn shards_are_split_when_a_second_worker_joins() {
    let until = |depth| [&WIDTH[..], &["--max-depth", depth]].concat();
    let mut cluster = Cluster::start(&["w0"]);
    let run = cluster.submit_name(&[&until("3")[..], &["--shards", "1"]].concat());
    cluster.watch().assert_same(&one_process(&until("3")));
    assert_eq!(shards(&cluster.manifest(&run)), [8; 3]);
    // Each worker keeps its part of the tables of depth 3.
    cluster.start_worker("w1", &["--threads", "1"]);
    cluster.workers["w1"].wait_for_log("joined the coordinator");
    assert_eq!(cluster.submit_name(&until("5")), run);
    cluster.watch().assert_same(&one_process(&until("5")));
    assert_eq!(shards(&cluster.manifest(&run)), [8, 8, 8, 16, 16]);
}
