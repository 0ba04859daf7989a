//! The dashboard of a real cluster in a real browser: `dashboard/tests/browser/cluster.mjs` clicks, this has the
//! processes.

#[path = "../../dashboard/tests/support/mod.rs"]
mod support;

use crate::alone;
use crate::rig::{Rig, hatebeam};
use serde_json::Value;
use std::path::Path;
use support::Browser;

/// Some tens of seconds for two workers of one thread.
const WIDTH: &str = "10000";

fn start_worker(rig: &mut Rig, name: &str) {
    let machine = ["--machine", "c5d.18xlarge", "--market", "spot"];
    let told = ["--threads", "1", "--price-per-hour", "1.20"];
    rig.start_worker(name, &[&machine[..], &told[..]].concat());
}

/// Whether the program finds that a replay is what the page says it is.
fn holds(replay: &str, score: &str, pieces: &str) -> bool {
    let output = hatebeam()
        .args([
            "replay",
            "verify",
            "--json",
            "--expect-score",
            score,
            replay,
        ])
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    output.status.success() && said["pieces"].as_u64() == pieces.parse().ok()
}

#[test]
fn a_run_is_seen_from_its_form_to_its_last_piece() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let expected = alone(&["--width", WIDTH]);
    let mut rig = Rig::new();
    let address = format!("127.0.0.1:{}", crate::rig::free_port());
    rig.coordinator_flags = vec!["--dashboard".to_owned(), address.clone()];
    rig.start_coordinator();
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboard/tests/browser/cluster.mjs");
    let url = format!("http://{address}/");
    browser.run(&script, &url, |order| {
        let words: Vec<&str> = order.split(' ').collect();
        match words[..] {
            ["width"] => return WIDTH.to_owned(),
            ["workers"] => ["w0", "w1"]
                .iter()
                .for_each(|name| start_worker(&mut rig, name)),
            ["kill"] => rig.coordinator.as_mut().unwrap().kill(),
            ["start"] => rig.start_coordinator(),
            ["ended", worker] => {
                let ended = rig.workers.get_mut(worker).unwrap().ends();
                return format!("{}", ended.unwrap());
            }
            ["verify", score, pieces, replay] => return holds(replay, score, pieces).to_string(),
            _ => panic!("unknown order {order:?}"),
        }
        String::new()
    });
    // Killed, drained and stopped in between, it is the same.
    rig.watch().assert_same(&expected);
}
