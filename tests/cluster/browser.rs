//! Test of a real cluster's dashboard in a browser. The script `dashboard/tests/browser/cluster.mjs` acts as the user.
//! It sends commands to this test, for example to start or to kill processes.

#[path = "../../dashboard/tests/support/mod.rs"]
mod support;

use crate::harness::Cluster;
use crate::one_process;
use crate::program::hatebeam;
use crate::servers::free_port;
use serde_json::Value;
use std::path::Path;
use support::Browser;

/// Width of a run that takes about a minute. For most of the time it has one worker with one thread.
const WIDTH: &str = "10000";

fn start_worker(cluster: &mut Cluster, name: &str) {
    let flags = [
        "--machine",
        "c5d.18xlarge",
        "--market",
        "spot",
        "--threads",
        "1",
        "--price-per-hour",
        "1.20",
    ];
    cluster.start_worker(name, &flags);
}

/// Returns `true` if a replay is valid and has the given score and number of pieces.
fn is_valid(replay: &str, score: &str, pieces: &str) -> bool {
    let mut verify = hatebeam();
    verify.args(["replay", "verify", "--json", "--expect-score", score]);
    let output = verify.arg(replay).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    output.status.success() && report["pieces"].as_u64() == pieces.parse().ok()
}

#[test]
fn browser_submits_run_and_follows_it_to_its_end() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let expected = one_process(&["--width", WIDTH]);
    let mut cluster = Cluster::new();
    let address = format!("127.0.0.1:{}", free_port());
    cluster.set_coordinator_flags(&["--dashboard", &address]);
    cluster.start_coordinator();
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboard/tests/browser/cluster.mjs");
    let url = format!("http://{address}/");
    browser.run(&script, &url, |command| {
        let words: Vec<&str> = command.split(' ').collect();
        match words[..] {
            ["width"] => return WIDTH.to_owned(),
            ["workers"] => ["w0", "w1"]
                .iter()
                .for_each(|name| start_worker(&mut cluster, name)),
            ["kill"] => cluster.coordinator().kill(),
            ["start"] => cluster.start_coordinator(),
            ["verify", score, pieces, replay] => {
                return is_valid(replay, score, pieces).to_string();
            }
            _ => panic!("unknown command {command:?}"),
        }
        String::new()
    });
    // The script has killed the coordinator, drained a worker, and stopped and resumed the run.
    cluster.watch().assert_same(&expected);
}
