//! A simulated process, which has tasks, a wall clock and a random number generator.

use crate::logging::set_current;
use crate::rng::Rng;
use hatebeam_env::{Admission, Host, watch};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;

/// Wall clock time at the start of every simulation, in milliseconds since the Unix epoch: 1 January 2025.
const EPOCH_MS: i64 = 1_735_689_600_000;

/// The wall clock of a machine. All successive processes of the machine use it.
#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    /// Difference from the virtual time, in milliseconds.
    ahead: AtomicI64,
}

impl Clock {
    pub(crate) fn new(began: Instant) -> Clock {
        Clock {
            began,
            ahead: AtomicI64::new(0),
        }
    }

    pub(crate) fn jump(&self, millis: i64) {
        self.ahead.fetch_add(millis, Relaxed);
    }

    pub(crate) fn read_ms(&self) -> u64 {
        let elapsed = self.began.elapsed().as_millis() as i64;
        let now = EPOCH_MS + elapsed + self.ahead.load(Relaxed);
        u64::try_from(now).unwrap_or(0)
    }
}

#[derive(Debug)]
struct Tasks {
    admission: Admission,
    next: u64,
    wakers: BTreeMap<u64, Option<Waker>>,
}

/// A process, from its start to its end. A restart creates a new process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) name: String,
    clock: Arc<Clock>,
    rng: Rng,
    /// Range of the duration of blocking work, in milliseconds.
    blocking: RangeInclusive<u64>,
    tasks: Mutex<Tasks>,
    state: watch::Sender<Admission>,
}

impl Process {
    pub(crate) fn new(
        name: &str,
        clock: &Arc<Clock>,
        rng: Rng,
        blocking: RangeInclusive<u64>,
    ) -> Arc<Process> {
        Arc::new(Process {
            name: name.to_owned(),
            clock: Arc::clone(clock),
            rng,
            blocking,
            tasks: Mutex::new(Tasks {
                admission: Admission::Run,
                next: 0,
                wakers: BTreeMap::new(),
            }),
            state: watch::Sender::new(Admission::Run),
        })
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state of all tasks. Does nothing after a crash.
    fn set(&self, admission: Admission) {
        let mut tasks = self.tasks();
        if tasks.admission == Admission::Drop || tasks.admission == admission {
            return;
        }
        tasks.admission = admission;
        let wakers = tasks.wakers.values_mut().filter_map(Option::take);
        let wakers: Vec<Waker> = wakers.collect();
        drop(tasks);
        wakers.into_iter().for_each(Waker::wake);
        self.state.send_replace(admission);
    }

    /// Stops polling the process's tasks.
    pub(crate) fn stall(&self) {
        self.set(Admission::Wait);
    }

    pub(crate) fn resume(&self) {
        self.set(Admission::Run);
    }

    /// Drops all tasks of the process.
    pub(crate) fn crash(&self) {
        self.set(Admission::Drop);
    }

    pub(crate) fn is_stalled(&self) -> bool {
        self.tasks().admission == Admission::Wait
    }

    pub(crate) fn has_crashed(&self) -> bool {
        self.tasks().admission == Admission::Drop
    }

    pub(crate) async fn crashed(&self) {
        let mut state = self.state.subscribe();
        let crashed = state.wait_for(|state| *state == Admission::Drop);
        if crashed.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn rng(&self) -> &Rng {
        &self.rng
    }
}

impl Host for Process {
    fn wall_ms(&self) -> u64 {
        self.clock.read_ms()
    }

    fn random(&self) -> u64 {
        self.rng.next()
    }

    fn blocking_delay(&self) -> Duration {
        self.rng.millis(self.blocking.clone())
    }

    fn add_task(&self) -> u64 {
        let mut tasks = self.tasks();
        tasks.next += 1;
        let task = tasks.next;
        tasks.wakers.insert(task, None);
        task
    }

    fn admit(&self, task: u64, waker: &Waker) -> Admission {
        let mut tasks = self.tasks();
        let admission = tasks.admission;
        if let Some(known) = tasks.wakers.get_mut(&task)
            && !known.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            *known = Some(waker.clone());
        }
        drop(tasks);
        if admission == Admission::Run {
            set_current(&self.name);
        }
        admission
    }

    fn remove_task(&self, task: u64) {
        self.tasks().wakers.remove(&task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_env::Env;
    use tokio::time::{sleep, timeout};

    const SECOND: Duration = Duration::from_secs(1);

    fn process() -> (Arc<Process>, Env) {
        let clock = Arc::new(Clock::new(Instant::now()));
        let process = Process::new("p", &clock, Rng::seeded(1), 5..=5);
        let env = Env::with_host(process.clone());
        (process, env)
    }

    #[tokio::test(start_paused = true)]
    async fn process_can_resume_after_a_stall_but_not_after_a_crash() {
        let (process, env) = process();
        let mut task = env.spawn(sleep(SECOND));
        process.stall();
        assert!(timeout(SECOND * 9, &mut task).await.is_err());
        process.resume();
        task.await.unwrap();
        let mut task = env.spawn(sleep(SECOND));
        process.crash();
        process.resume();
        assert!(timeout(SECOND * 9, &mut task).await.is_err());
        process.crashed().await;
    }

    #[tokio::test(start_paused = true)]
    async fn blocking_work_takes_virtual_time() {
        let (_, env) = process();
        let began = Instant::now();
        assert_eq!(env.run_blocking(|| 3).await.unwrap(), 3);
        assert!(began.elapsed() >= Duration::from_millis(5));
    }

    #[tokio::test(start_paused = true)]
    async fn wall_clock_follows_virtual_time_and_jumps() {
        let clock = Clock::new(Instant::now());
        let before = clock.read_ms();
        sleep(SECOND).await;
        assert_eq!(clock.read_ms(), before + 1000);
        clock.jump(-5000);
        assert_eq!(clock.read_ms() + 4000, before);
    }
}
