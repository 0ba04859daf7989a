//! Tests of stores in memory and of injected faults.

use crate::suite::{CONDITIONAL, conforms};
use bytes::Bytes;
use hatebeam_objects::faults::{After, Before, Call, FaultPlan, Hook, Operation};
use hatebeam_objects::{Condition, Memory, ObjectError, Objects, Options, Random};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

fn options(seed: u64) -> Options {
    Options {
        timeout: Duration::from_secs(2),
        max_attempts: 3,
        first_wait: Duration::from_millis(100),
        random: Random::seeded(seed),
        ..Options::default()
    }
}

/// A plan that takes the fault for each hook call from the hook's queue. If the queue is empty, no fault is injected.
#[derive(Default)]
struct Script {
    before: Mutex<VecDeque<Before>>,
    after: Mutex<VecDeque<After>>,
    calls: Mutex<Vec<(Operation, String, u32)>>,
}

impl Script {
    fn calls(&self) -> Vec<(Operation, u32)> {
        let calls = self.calls.lock().unwrap();
        calls
            .iter()
            .map(|(op, _, attempt)| (*op, *attempt))
            .collect()
    }
}

impl FaultPlan for Script {
    fn before<'a>(&'a self, call: &'a Call<'a>) -> Hook<'a, Before> {
        let of = (call.operation, call.key.to_owned(), call.attempt);
        self.calls.lock().unwrap().push(of);
        let next = self.before.lock().unwrap().pop_front();
        Box::pin(async move { next.unwrap_or(Before::Proceed) })
    }

    fn after<'a>(&'a self, _: &'a Call<'a>, _: Result<(), &'a ObjectError>) -> Hook<'a, After> {
        let next = self.after.lock().unwrap().pop_front();
        Box::pin(async move { next.unwrap_or(After::Deliver) })
    }
}

fn unavailable() -> ObjectError {
    ObjectError::Unavailable {
        store: "memory".to_owned(),
        key: "key".to_owned(),
        reason: "injected".to_owned(),
    }
}

/// Two clients of one store. `script` injects faults into the operations of `faulty` only.
struct Pair {
    script: Arc<Script>,
    faulty: Objects,
    direct: Objects,
}

impl Pair {
    fn new() -> Pair {
        let (memory, script) = (Memory::new(), Arc::new(Script::default()));
        Pair {
            faulty: Objects::with_faults(&memory, &options(1), script.clone()).unwrap(),
            direct: Objects::in_memory(&memory, &options(2)).unwrap(),
            script,
        }
    }

    fn before(&self, faults: impl IntoIterator<Item = Before>) {
        self.script.before.lock().unwrap().extend(faults);
    }

    fn after(&self, faults: impl IntoIterator<Item = After>) {
        self.script.after.lock().unwrap().extend(faults);
    }
}

#[tokio::test]
async fn memory_passes_the_store_suite() {
    let memory = Memory::new();
    let objects = Objects::in_memory(&memory, &options(1)).unwrap();
    conforms(&objects, 1500, CONDITIONAL).await;
    assert_eq!(objects.stats().retries, 0);
}

#[tokio::test]
async fn clients_of_one_memory_share_objects_but_not_counters() {
    let memory = Memory::new();
    let one = Objects::in_memory(&memory, &options(1)).unwrap();
    let other = Objects::in_memory(&memory.clone(), &options(2)).unwrap();
    let version = one
        .put_if("key", Bytes::from("1"), &Condition::Absent)
        .await
        .unwrap();
    other
        .put_if("key", Bytes::from("2"), &Condition::Is(version.clone()))
        .await
        .unwrap();
    let late = one
        .put_if("key", Bytes::from("3"), &Condition::Is(version))
        .await;
    assert!(late.unwrap_err().is_changed());
    assert_eq!(one.get("key").await.unwrap().0, "2");
    assert_eq!((one.stats().gets, other.stats().gets), (1, 0));
    let separate = Objects::in_memory(&Memory::new(), &options(1)).unwrap();
    assert_eq!(separate.list("").await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn sizes_and_failed_reads_are_charged_as_reads() {
    let pair = Pair::new();
    pair.faulty.put("key", Bytes::from("1")).await.unwrap();
    pair.faulty.list("").await.unwrap();
    assert_eq!(pair.faulty.stats().charged(), (2, 0));
    pair.before([Before::Fail(unavailable())]);
    pair.faulty.get("key").await.unwrap();
    pair.faulty.size("key").await.unwrap();
    pair.faulty.get("other").await.unwrap_err();
    pair.faulty.delete("key").await.unwrap();
    assert_eq!(pair.faulty.stats().charged(), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn transient_failures_are_retried_until_attempts_run_out() {
    let pair = Pair::new();
    pair.before([Before::Fail(unavailable()), Before::Fail(unavailable())]);
    let begin = Instant::now();
    pair.faulty.put("key", Bytes::from("1")).await.unwrap();
    // The first wait lasts 50 to 100 ms, and the second one lasts 100 to 200 ms.
    let waited = begin.elapsed().as_millis();
    assert!((150..=302).contains(&waited), "{waited}");
    let attempts = [1, 2, 3].map(|attempt| (Operation::Put, attempt));
    assert_eq!(pair.script.calls(), attempts);
    assert_eq!(pair.faulty.stats().retries, 2);
    assert_eq!(pair.faulty.stats().requests, 3);

    pair.before((0..3).map(|_| Before::Fail(unavailable())));
    let error = pair.faulty.delete("key").await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(pair.direct.get("key").await.unwrap().0, "1");
    assert_eq!(pair.faulty.stats().errors, 1);
}

#[tokio::test(start_paused = true)]
async fn permanent_failure_is_not_retried() {
    let pair = Pair::new();
    pair.before([Before::Fail(ObjectError::Refused {
        store: "memory".to_owned(),
        key: "key".to_owned(),
        reason: "injected".to_owned(),
    })]);
    let error = pair.faulty.get("key").await.unwrap_err();
    assert!(matches!(error, ObjectError::Refused { .. }), "{error}");
    assert_eq!(pair.script.calls(), [(Operation::Get, 1)]);
}

#[tokio::test(start_paused = true)]
async fn conditional_write_succeeds_if_its_response_is_lost() {
    let pair = Pair::new();
    let mut condition = Condition::Absent;
    for text in ["first", "second"] {
        pair.after([After::Fail(unavailable())]);
        let version = pair
            .faulty
            .put_if("key", Bytes::from(text), &condition)
            .await
            .unwrap();
        let expected = (Bytes::from(text), version.clone());
        assert_eq!(pair.direct.get("key").await.unwrap(), expected);
        condition = Condition::Is(version);
    }
    let put = [
        (Operation::PutIf, 1),
        (Operation::PutIf, 2),
        (Operation::Head, 1),
    ];
    assert_eq!(pair.script.calls(), [put, put].concat());
    // If another writer changes the object in the meantime, the write fails.
    let current = pair.direct.get("key").await.unwrap().1;
    pair.before([Before::Fail(unavailable())]);
    let mut other = Box::pin(pair.faulty.put_if("key", Bytes::from("mine"), &condition));
    tokio::select! {
        biased;
        _ = &mut other => panic!("the write did not wait for its second attempt"),
        () = tokio::time::sleep(Duration::from_millis(10)) => {}
    }
    pair.direct
        .put_if("key", Bytes::from("theirs"), &Condition::Is(current))
        .await
        .unwrap();
    assert!(other.await.unwrap_err().is_changed());
    assert_eq!(pair.direct.get("key").await.unwrap().0, "theirs");
}

#[tokio::test(start_paused = true)]
async fn late_write_is_applied_after_its_client_has_given_up() {
    let pair = Pair::new();
    pair.before((0..3).map(|_| Before::Late(Duration::from_secs(10))));
    let begin = Instant::now();
    let error = pair
        .faulty
        .put("key", Bytes::from("late"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no response in time"), "{error}");
    assert!(error.is_transient());
    // Three attempts last 2 s each, and two waits last up to 300 ms in total.
    assert!(begin.elapsed() < Duration::from_secs(7));
    assert!(pair.direct.get("key").await.unwrap_err().is_not_found());
    pair.direct.put("key", Bytes::from("newer")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(pair.direct.get("key").await.unwrap().0, "late");

    // The store checks the condition when the late write arrives.
    pair.before((0..3).map(|_| Before::Late(Duration::from_secs(10))));
    let condition = Condition::Is(pair.direct.get("key").await.unwrap().1);
    let put = pair.faulty.put_if("key", Bytes::from("stale"), &condition);
    assert!(put.await.unwrap_err().is_transient());
    pair.direct.put("key", Bytes::from("newest")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(pair.direct.get("key").await.unwrap().0, "newest");
}

#[tokio::test(start_paused = true)]
async fn stale_reads_and_lists_miss_the_last_changes() {
    let pair = Pair::new();
    for (key, text) in [("a/1", "old"), ("a/2", "x"), ("a/1", "new")] {
        pair.direct.put(key, Bytes::from(text)).await.unwrap();
    }
    pair.direct.delete("a/2").await.unwrap();
    let keys = async |changes: usize| {
        pair.before([Before::Stale(changes)]);
        let entries = pair.faulty.list("a").await.unwrap();
        entries
            .into_iter()
            .map(|entry| entry.key)
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(0).await, ["a/1"]);
    assert_eq!(keys(1).await, ["a/1", "a/2"]);
    assert_eq!(keys(3).await, ["a/1"]);
    assert_eq!(keys(100).await, [""; 0]);
    pair.before([Before::Stale(2)]);
    assert_eq!(pair.faulty.get("a/1").await.unwrap().0, "old");
    assert_eq!(pair.faulty.get("a/1").await.unwrap().0, "new");
    // A write is never stale.
    pair.before([Before::Stale(100)]);
    pair.faulty.put("a/3", Bytes::from("3")).await.unwrap();
    assert_eq!(pair.direct.list("a").await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn unconditional_fault_ignores_the_condition() {
    let pair = Pair::new();
    pair.direct.put("key", Bytes::from("old")).await.unwrap();
    pair.before([Before::Unconditional]);
    let write = pair
        .faulty
        .put_if("key", Bytes::from("new"), &Condition::Absent);
    write.await.unwrap();
    assert_eq!(pair.direct.get("key").await.unwrap().0, "new");
    let write = pair
        .faulty
        .put_if("key", Bytes::from("newer"), &Condition::Absent);
    assert!(write.await.unwrap_err().is_changed());
}

#[tokio::test(start_paused = true)]
async fn delete_prefix_can_fail_after_some_deletions() {
    let pair = Pair::new();
    for n in 0..5 {
        let key = format!("depth/{n}");
        pair.direct.put(&key, Bytes::from("x")).await.unwrap();
    }
    // The list operation and two deletions succeed.
    pair.before((0..3).map(|_| Before::Proceed));
    pair.before((0..3).map(|_| Before::Fail(unavailable())));
    assert!(
        pair.faulty
            .delete_prefix("depth")
            .await
            .unwrap_err()
            .is_transient()
    );
    assert_eq!(pair.direct.list("depth").await.unwrap().len(), 3);
    assert_eq!(pair.faulty.delete_prefix("depth").await.unwrap(), 3);
}

/// A plan that injects random faults. One in eight attempts fails before it reaches the store. One in eight of the
/// others loses its response.
struct Dice {
    state: Mutex<u64>,
    log: Mutex<Vec<String>>,
    begin: Instant,
}

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice {
            state: Mutex::new(seed | 1),
            log: Mutex::default(),
            begin: Instant::now(),
        }
    }

    fn roll(&self, sides: u64) -> u64 {
        let mut state = self.state.lock().unwrap();
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 32) % sides
    }
}

impl FaultPlan for Dice {
    fn before<'a>(&'a self, call: &'a Call<'a>) -> Hook<'a, Before> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(self.roll(50))).await;
            let at = self.begin.elapsed();
            let line = format!("{at:?} {:?} {} {}", call.operation, call.key, call.attempt);
            self.log.lock().unwrap().push(line);
            match self.roll(8) {
                0 => Before::Fail(call.unavailable("throttled")),
                _ => Before::Proceed,
            }
        })
    }

    fn after<'a>(&'a self, call: &'a Call<'a>, _: Result<(), &'a ObjectError>) -> Hook<'a, After> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(self.roll(50))).await;
            match self.roll(8) {
                0 => After::Fail(call.unavailable("the connection was reset")),
                _ => After::Deliver,
            }
        })
    }
}

/// Runs the suite with random faults, and returns the log of calls.
async fn conforms_with_faults(seed: u64) -> Vec<String> {
    let dice = Arc::new(Dice::new(seed));
    // About a quarter of all attempts fail. The probability that all 30 attempts of an operation fail is about 10^-19.
    let options = Options {
        max_attempts: 30,
        ..options(seed)
    };
    let objects = Objects::with_faults(&Memory::new(), &options, dice.clone()).unwrap();
    conforms(&objects, 200, CONDITIONAL).await;
    let stats = objects.stats();
    assert!(stats.retries > stats.requests / 8, "{stats:?}");
    let log = std::mem::take(&mut *dice.log.lock().unwrap());
    assert_eq!(log.len() as u64, stats.requests);
    log
}

#[tokio::test(start_paused = true)]
async fn memory_with_random_faults_passes_the_store_suite_deterministically() {
    let first = conforms_with_faults(3).await;
    assert_eq!(conforms_with_faults(3).await, first);
    assert_ne!(conforms_with_faults(4).await, first);
}
