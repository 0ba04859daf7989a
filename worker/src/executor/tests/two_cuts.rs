//! Tests of depths with two cuts, between which the best children are scored again.

use super::*;
use hatebeam_search::Quiescence;
use std::sync::atomic::Ordering;

/// Searches a depth with two cuts. Sends the order to rescore several times. Returns the digest of the frontier, and the
/// number of children that got new scores.
async fn depth_with_two_cuts(epoch: &Epoch<'_>, depth: u32, times: usize) -> (Digest, u64) {
    epoch.expand(first_attempt(depth)).await;
    let children_per_well = Quiescence::FirstOfBest.children_per_well().unwrap();
    let gathered = Epoch {
        workers: epoch.workers.clone(),
        number: epoch.number,
        width: epoch.width * children_per_well as u64,
    };
    let (cut, is_sound) = gathered.cut(depth).await;
    assert!(is_sound);
    let rescore = OrderKind::Rescore(select_of(depth, cut));
    for _ in 0..times {
        for answer in epoch.ask(rescore.clone()).await {
            assert!(matches!(answer, AnswerKind::Rescored(_)), "{answer:?}");
        }
    }
    let mut rescored = 0;
    for worker in &epoch.workers {
        let progress = &worker.executor.state.progress;
        let done = progress.expanded.load(Ordering::Relaxed);
        assert_eq!(done, progress.parents.load(Ordering::Relaxed));
        rescored += done;
    }
    let (cut, is_sound) = epoch.cut(depth).await;
    assert!(is_sound);
    (epoch.select(depth, cut).await.0, rescored)
}

#[tokio::test]
async fn repeated_rescore_gives_same_frontier_and_reports_progress() {
    let names = ["w0", "w1"];
    let mut order = prepare(WIDTH, &names);
    order.spec.evaluator.quiescence = Quiescence::FirstOfBest;
    let expected = alone_with(&order.spec, DEPTHS);
    for times in [1, 2] {
        let cluster = Cluster::new();
        let workers = names.map(|name| cluster.worker(name));
        let epoch = Epoch::new(1, workers.each_ref());
        epoch.prepare(&order).await;
        let mut rescored = 0;
        for (depth, &expected) in (1..).zip(&expected) {
            let digest;
            (digest, rescored) = depth_with_two_cuts(&epoch, depth, times).await;
            assert_eq!(digest, expected, "depth {depth}");
        }
        assert_eq!(rescored, 3 * WIDTH);
    }
}
