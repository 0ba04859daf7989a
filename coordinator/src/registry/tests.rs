use super::*;
use crate::tests::cluster::hello;
use hatebeam_env::Env;
use hatebeam_metrics::{CoordinatorMetrics, Registry};
use hatebeam_proto::messages::{
    Expand, FromWorker, Heartbeat, Hello, Leaving, OrderKind, ToWorker, WaitCommit,
};
use hatebeam_proto::{LinkError, LinkErrorKind};
use hatebeam_search::{DEFAULT_SIGMAS, Fingerprint};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

const LOST_AFTER: Duration = Duration::from_secs(5);

fn registry() -> Arc<WorkerRegistry> {
    let metrics = CoordinatorMetrics::register(&Registry::default());
    let settings = RegistrySettings {
        heartbeat: LOST_AFTER / 5,
        lost_after: LOST_AFTER,
        search: Fingerprint::current(),
        lease: "12ab".to_owned(),
    };
    WorkerRegistry::new(&Env::system(), settings, &metrics)
}

struct Connection {
    tx: mpsc::Sender<FromWorker>,
    rx: mpsc::Receiver<ToWorker>,
}

impl Connection {
    async fn beat(&self, heartbeat: Heartbeat) {
        let _ = self.tx.send(FromWorker::Heartbeat(heartbeat)).await;
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
}

/// Joins a worker whose object store contains the registry's lease.
fn join(registry: &Arc<WorkerRegistry>, mut hello: Hello) -> Result<Connection, LinkError> {
    registry.settings.lease.clone_into(&mut hello.lease);
    join_with_lease(registry, hello)
}

fn join_with_lease(registry: &Arc<WorkerRegistry>, hello: Hello) -> Result<Connection, LinkError> {
    let (tx, inbound) = mpsc::channel(16);
    let (outbound, rx) = mpsc::channel(16);
    let inbound = Box::pin(ReceiverStream::new(inbound).map(Ok));
    registry.join(hello, inbound, outbound)?;
    Ok(Connection { tx, rx })
}

fn names(registry: &WorkerRegistry) -> Vec<String> {
    let members = registry.members().into_iter();
    members.map(|member| member.name).collect()
}

#[tokio::test(start_paused = true)]
async fn worker_is_lost_when_it_stops_sending_heartbeats() {
    let registry = registry();
    let mut worker = join(&registry, hello("w")).unwrap();
    assert!(matches!(worker.rx.recv().await, Some(ToWorker::Welcome(_))));
    assert_eq!(names(&registry), ["w"]);
    for _ in 0..10 {
        tokio::time::sleep(LOST_AFTER / 2).await;
        worker.beat(Heartbeat::default()).await;
    }
    assert_eq!(names(&registry), ["w"]);
    tokio::time::sleep(LOST_AFTER * 2).await;
    assert!(names(&registry).is_empty());
    let lost = registry.recently_lost();
    assert_eq!(lost[0].name, "w");
    assert_eq!(lost[0].reason, "silent for 5s");
    assert!(worker.rx.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn second_process_with_the_same_name_is_refused_until_the_first_is_lost() {
    let registry = registry();
    let first = join(&registry, hello("w")).unwrap();
    let other = Hello {
        started_ms: 2,
        address: "http://elsewhere:1".to_owned(),
        ..hello("w")
    };
    let error = join(&registry, other.clone()).err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::Transient);
    assert!(error.reason.contains("http://w:1"), "{error}");
    assert!(error.reason.contains("http://elsewhere:1"), "{error}");
    // The refusal does not affect the first process.
    first.beat(Heartbeat::default()).await;
    assert_eq!(registry.members()[0].session, 1);
    // The first process is lost, because it sends nothing for too long.
    tokio::time::sleep(LOST_AFTER * 2).await;
    let _other = join(&registry, other).unwrap();
    assert_eq!(registry.members()[0].address, "http://elsewhere:1");
}

#[tokio::test(start_paused = true)]
async fn reconnecting_worker_replaces_its_session() {
    let registry = registry();
    let mut first = join(&registry, hello("w")).unwrap();
    let members = registry.members();
    let _second = join(&registry, hello("w")).unwrap();
    assert_eq!(names(&registry), ["w"]);
    assert_ne!(registry.members(), members);
    assert!(matches!(first.rx.recv().await, Some(ToWorker::Welcome(_))));
    assert!(first.rx.recv().await.is_none());
    // The end of the first connection does not end the second session.
    drop(first);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(names(&registry), ["w"]);
}

#[tokio::test(start_paused = true)]
async fn invalid_workers_are_refused() {
    let registry = registry();
    let refused = |change: fn(&mut Hello)| {
        let mut hello = hello("w");
        change(&mut hello);
        let error = join(&registry, hello).err().unwrap();
        assert_eq!(error.kind, LinkErrorKind::BadMessage, "{error}");
        error.reason
    };
    refused(|hello| hello.name = String::new());
    refused(|hello| hello.name = "../w".to_owned());
    refused(|hello| hello.name = "w".repeat(129));
    refused(|hello| hello.threads = 0);
    refused(|hello| hello.address = "a".repeat(1025));
    let reason = refused(|hello| hello.version = "9.9.9".to_owned());
    assert!(reason.contains("9.9.9"), "{reason}");
    let reason = refused(|hello| hello.search = "2-other".to_owned());
    assert!(
        reason.contains("worker w has search fingerprint 2-other"),
        "{reason}"
    );
    assert!(reason.contains(Fingerprint::current().as_str()), "{reason}");
    assert!(names(&registry).is_empty());
}

#[tokio::test(start_paused = true)]
async fn worker_with_another_object_store_is_refused() {
    let registry = registry();
    for (lease, expected) in [("", "no lease"), ("34cd", "the lease of another")] {
        let mut hello = hello("w");
        lease.clone_into(&mut hello.lease);
        let error = join_with_lease(&registry, hello).err().unwrap();
        assert_eq!(error.kind, LinkErrorKind::Transient);
        let found = format!("the object store of worker w contains {expected}");
        assert!(error.reason.starts_with(&found), "{error}");
    }
    assert!(names(&registry).is_empty());
}

#[tokio::test(start_paused = true)]
async fn quarantined_worker_is_unavailable_until_the_quarantine_ends() {
    let registry = registry();
    let _first = join(&registry, hello("a")).unwrap();
    let second = join(&registry, hello("b")).unwrap();
    registry.quarantine("b", Duration::from_secs(30), "the disk is full");
    assert_eq!(names(&registry), ["a"]);
    let mut changes = registry.changes();
    let beats = async {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            second.beat(Heartbeat::default()).await;
        }
    };
    tokio::select! {
        biased;
        () = beats => {}
        _ = async {
            while !names(&registry).contains(&"b".to_owned()) {
                changes.changed().await.unwrap();
            }
        } => {}
    }
    let status = &registry.statuses(1)[0];
    assert_eq!(
        (status.state, status.note.as_str()),
        (WorkerState::Idle, "")
    );
}

#[tokio::test(start_paused = true)]
async fn leaving_worker_is_released_once_it_is_not_busy() {
    let registry = registry();
    let mut worker = join(&registry, hello("w")).unwrap();
    let members = registry.members();
    let leaving = Leaving {
        reason: "a signal".to_owned(),
    };
    worker.tx.send(FromWorker::Leaving(leaving)).await.unwrap();
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    assert!(names(&registry).is_empty());
    registry.release(&members);
    assert_eq!(registry.statuses(1)[0].state, WorkerState::Draining);
    registry.release(&[]);
    assert!(registry.statuses(1).is_empty());
    let mut messages = Vec::new();
    while let Some(message) = worker.rx.recv().await {
        messages.push(message);
    }
    assert_eq!(messages.last(), Some(&ToWorker::Released));
}

#[tokio::test(start_paused = true)]
async fn drained_worker_stays_unavailable_until_it_is_undrained() {
    let registry = registry();
    let first = join(&registry, hello("w")).unwrap();
    let members = registry.members();
    registry.set_shards(&members, &[0, 0]);
    assert!(registry.drain("w"));
    assert!(!registry.drain("other"));
    assert!(names(&registry).is_empty());
    let state = || registry.statuses(1)[0].state;
    assert_eq!(state(), WorkerState::Draining);
    registry.set_shards(&[], &[]);
    registry.release(&[]);
    assert_eq!(state(), WorkerState::Drained);
    // A restart does not end the drained state.
    drop(first);
    tokio::time::sleep(LOST_AFTER * 2).await;
    let _again = join(&registry, hello("w")).unwrap();
    assert!(names(&registry).is_empty());
    assert!(registry.undrain("w"));
    assert!(!registry.undrain("w"));
    assert_eq!(names(&registry), ["w"]);
    assert_eq!(state(), WorkerState::Idle);
}

#[tokio::test(start_paused = true)]
async fn worker_far_behind_the_median_is_slow() {
    let registry = registry();
    let watching = Arc::clone(&registry).watch_slow();
    let names = ["a", "b", "c"];
    let workers = names.map(|name| join(&registry, hello(name)).unwrap());
    let beats = async {
        for _ in 0..5 {
            for (worker, expanded) in workers.iter().zip([90, 80, 10]) {
                let heartbeat = Heartbeat {
                    epoch: 1,
                    expanded,
                    parents: 100,
                    ..Heartbeat::default()
                };
                worker.beat(heartbeat).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        biased;
        never = watching => match never {},
        () = beats => {}
    }
    let slow: Vec<bool> = registry.statuses(1).iter().map(|w| w.slow).collect();
    assert_eq!(slow, [false, false, true]);
    let expansion = registry.expansion(1);
    assert_eq!((expansion.expanded, expansion.parents), (180, 300));
}

#[tokio::test(start_paused = true)]
async fn wrong_progress_does_not_overflow_the_sum_over_the_workers() {
    let registry = registry();
    let workers = ["a", "b"].map(|name| join(&registry, hello(name)).unwrap());
    for worker in &workers {
        let heartbeat = Heartbeat {
            epoch: 1,
            expanded: u64::MAX,
            parents: u64::MAX,
            ..Heartbeat::default()
        };
        worker.beat(heartbeat).await;
    }
    let greatest = Expansion {
        expanded: u64::MAX,
        parents: u64::MAX,
    };
    assert_eq!(registry.expansion(1), greatest);
}

/// Sends a heartbeat for each worker every second. The function beside each worker computes its heartbeat from the
/// number of elapsed seconds.
async fn beat_for(minutes: u64, workers: &[(&Connection, &dyn Fn(u64) -> Heartbeat)]) {
    for second in 0..minutes * 60 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (worker, beat) in workers {
            worker.beat(beat(second)).await;
        }
    }
}

fn expanding(expanded: u64) -> Heartbeat {
    Heartbeat {
        epoch: 1,
        depth: 5,
        expanded,
        parents: 10_000,
        ..Heartbeat::default()
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_worker_fails_but_a_worker_that_waits_for_it_does_not() {
    let registry = registry();
    let (hanging, waiting) = (
        join(&registry, hello("hanging")).unwrap(),
        join(&registry, hello("waiting")).unwrap(),
    );
    let ask = |member: Member, kind: OrderKind| {
        let registry = Arc::clone(&registry);
        tokio::spawn(async move { registry.ask(&member, 1, kind).await })
    };
    let expand = |member: Member| {
        let order = Expand {
            depth: 5,
            attempt: 1,
            sigmas: DEFAULT_SIGMAS,
            floor: 0,
            wells: 10_000,
        };
        ask(member, OrderKind::Expand(order))
    };
    let asked: Vec<_> = registry.members().into_iter().map(expand).collect();
    // The other worker need not upload a table for this one to finish an upload.
    let commit = OrderKind::WaitCommit(WaitCommit { depth: 4 });
    let committing = ask(registry.members().remove(1), commit);
    let done = |_| expanding(10_000);
    beat_for(29, &[(&hanging, &expanding), (&waiting, &done)]).await;
    assert!(asked.iter().all(|asked| !asked.is_finished()));
    let stalled = "made no progress in 10 minutes";
    assert!(committing.is_finished());
    assert_eq!(committing.await.unwrap().unwrap_err().reason, stalled);
    let stuck = |_| expanding(2_000);
    beat_for(21, &[(&hanging, &stuck), (&waiting, &done)]).await;
    assert!(asked[0].is_finished() && !asked[1].is_finished());
    let error = asked
        .into_iter()
        .next()
        .unwrap()
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.reason, stalled);
}

#[tokio::test(start_paused = true)]
async fn object_store_requests_count_as_progress() {
    let registry = registry();
    let worker = join(&registry, hello("w")).unwrap();
    let member = registry.members().remove(0);
    let asked = {
        let registry = Arc::clone(&registry);
        tokio::spawn(async move { registry.ask(&member, 1, OrderKind::Halt).await })
    };
    let uploading = |second| Heartbeat {
        store_writes: second / 300,
        ..expanding(10_000)
    };
    beat_for(60, &[(&worker, &uploading)]).await;
    assert!(!asked.is_finished());
}

#[tokio::test(start_paused = true)]
async fn wrong_request_counters_are_charged_only_up_to_a_maximum() {
    let registry = registry();
    let worker = join(&registry, hello("w")).unwrap();
    let beat = async |store_writes, store_reads| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        worker
            .beat(Heartbeat {
                store_writes,
                store_reads,
                ..Heartbeat::default()
            })
            .await;
        let requests = registry.requests();
        (requests.writes, requests.reads)
    };
    // Requests before the first heartbeat are not charged.
    assert_eq!(beat(7, 7).await, (0, 0));
    assert_eq!(beat(107, 9).await, (100, 2));
    assert_eq!(beat(u64::MAX, 10).await, (10_100, 3));
    // A restarted worker reports lower counters. They must not reduce the sum.
    assert_eq!(beat(1, 1).await, (10_100, 3));
}
