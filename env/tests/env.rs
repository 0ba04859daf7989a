//! Tests of [`Env`] with the operating system and with a simulated process.

#![allow(clippy::unwrap_used)] // test helpers

use hatebeam_env::{Admission, Env, Host};
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

/// A simulated process that a test can stall and crash.
struct Process {
    admission: Mutex<Admission>,
    tasks: Mutex<BTreeMap<u64, Option<Waker>>>,
    added: AtomicU64,
}

impl Process {
    fn new() -> Arc<Process> {
        Arc::new(Process {
            admission: Mutex::new(Admission::Run),
            tasks: Mutex::default(),
            added: AtomicU64::new(0),
        })
    }

    fn set(&self, admission: Admission) {
        *self.admission.lock().unwrap() = admission;
        let tasks = self.tasks.lock().unwrap();
        let wakers: Vec<Waker> = tasks.values().flatten().cloned().collect();
        drop(tasks);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Host for Process {
    fn wall_ms(&self) -> u64 {
        17
    }

    fn random(&self) -> u64 {
        4
    }

    fn blocking_delay(&self) -> Duration {
        Duration::from_secs(3)
    }

    fn add_task(&self) -> u64 {
        let task = self.added.fetch_add(1, Relaxed);
        self.tasks.lock().unwrap().insert(task, None);
        task
    }

    fn admit(&self, task: u64, waker: &Waker) -> Admission {
        self.tasks.lock().unwrap().insert(task, Some(waker.clone()));
        *self.admission.lock().unwrap()
    }

    fn remove_task(&self, task: u64) {
        self.tasks.lock().unwrap().remove(&task);
    }
}

#[tokio::test]
async fn system_environment_uses_real_clock_and_randomness() {
    let env = Env::system();
    assert!(env.wall_ms() > 1_700_000_000_000);
    assert_ne!(env.random(), env.random());
    assert_eq!(env.spawn(async { 5 }).await.unwrap(), 5);
}

#[tokio::test(start_paused = true)]
async fn panic_in_blocking_work_is_returned_as_error() {
    let hosts: [Env; 2] = [Env::system(), Env::with_host(Process::new())];
    for env in hosts {
        let panicked = env
            .run_blocking(|| -> u32 { resume_unwind(Box::new("no table 3")) })
            .await;
        let error = panicked.unwrap_err().to_string();
        assert_eq!(error, "blocking work panicked: no table 3");
        assert_eq!(env.run_blocking(|| 6).await.unwrap(), 6);
    }
}

#[test]
fn cancelled_blocking_work_is_not_reported_as_a_panic() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let handle = runtime.handle().clone();
    runtime.shutdown_background();
    let _entered = handle.enter();
    let env = Env::system();
    let mut work = std::pin::pin!(env.run_blocking(|| 6));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = work.as_mut().poll(&mut context) else {
        panic!("work was not cancelled");
    };
    let text = error.to_string();
    assert!(text.starts_with("blocking work was cancelled"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn task_of_stalled_process_is_not_polled() {
    let process = Process::new();
    let env = Env::with_host(process.clone());
    let began = Instant::now();
    let task = env.spawn(async move {
        sleep(Duration::from_secs(1)).await;
        began.elapsed()
    });
    process.set(Admission::Wait);
    sleep(Duration::from_secs(60)).await;
    process.set(Admission::Run);
    assert!(task.await.unwrap() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn crashed_process_drops_its_tasks_without_completing_them() {
    let process = Process::new();
    let env = Env::with_host(process.clone());
    let (held, mut dropped) = oneshot::channel::<()>();
    let mut task = env.spawn(async move {
        sleep(Duration::from_secs(1)).await;
        drop(held);
    });
    sleep(Duration::from_millis(1)).await;
    process.set(Admission::Drop);
    assert!(
        timeout(Duration::from_millis(1), &mut dropped)
            .await
            .is_ok()
    );
    assert!(timeout(Duration::from_secs(60), &mut task).await.is_err());
    task.abort();
    assert!(task.await.is_err());
    assert!(process.tasks.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn blocking_work_continues_after_its_future_is_dropped() {
    let env = Env::with_host(Process::new());
    let (done, is_done) = oneshot::channel();
    let work = env.run_blocking(move || done.send(Instant::now()));
    let began = Instant::now();
    assert!(timeout(Duration::from_secs(1), work).await.is_err());
    assert!(is_done.await.unwrap() - began >= Duration::from_secs(3));
}
