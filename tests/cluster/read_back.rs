//! Tests of workers that read the best game back: they find its wells in the stored tables after the search.

use crate::harness::Cluster;
use crate::program::wait_until;
use crate::{WIDTH, one_process};

#[track_caller]
fn wait_for_note(cluster: &Cluster, note: &str) {
    let has_note = |run: serde_json::Value| run["note"].as_str().unwrap().contains(note);
    wait_until(
        || cluster.status().is_some_and(has_note),
        || {
            format!(
                "no note {note:?}: {:?} {}",
                cluster.status(),
                cluster.logs()
            )
        },
    );
}

#[test]
fn game_is_read_back_by_second_worker_if_first_is_killed() {
    const READ: &str = "read back best game";
    let mut cluster = Cluster::new();
    cluster.set_coordinator_flags(&["--min-workers", "2"]);
    cluster.start_all(&["w0", "w1"]);
    let run = cluster.submit_name(&WIDTH);
    cluster.wait_for_depth(10);
    // One worker is too few for the search, so the search waits until a limit ends it. Then it needs no answer from w0,
    // which reads the game back, but is suspended.
    cluster.kill_worker("w1");
    wait_for_note(&cluster, "waiting for workers: 1 of 2");
    cluster.workers["w0"].signal("-STOP");
    let limited = cluster.client(&["limit", &run, "--max-depth", "5"]);
    assert!(limited.status.success(), "{limited:?}");
    wait_for_note(&cluster, "reading back the best game on worker w0");
    cluster.start_worker("w2", &["--threads", "1"]);
    wait_until(
        || cluster.worker_status().len() == 2,
        || format!("w2 is not connected: {}", cluster.logs()),
    );
    cluster.kill_worker("w0");

    let run = cluster.watch();
    assert_eq!(run.end["state"], "finished");
    let depth = run.end["depth"].to_string();
    run.assert_same(&one_process(
        &[&WIDTH[..], &["--max-depth", &depth]].concat(),
    ));
    let coordinator = cluster.coordinator().log();
    let lost = "worker cannot read back the best game";
    assert_eq!(coordinator.matches(lost).count(), 1, "{coordinator}");
    assert!(coordinator.contains(READ), "{coordinator}");
    let reader = cluster.workers["w2"].log();
    assert_eq!(reader.matches(READ).count(), 1, "{reader}");
}
