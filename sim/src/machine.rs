//! A simulated machine, which supervises one process and has a wall clock.

use crate::checks::Checker;
use crate::faults::{SharedMode, StoreMode, set_mode};
use crate::network::{Network, NodeId};
use crate::plan::Target;
use crate::process::{Clock, Process};
use crate::rng::Rng;
use crate::trace::Trace;
use hatebeam_env::watch;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Reason why a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The process exited on request.
    Stopped,
    /// The process exited with code 0, although no exit was requested.
    Success,
    /// The process exited with an error.
    Failure(String),
    /// The process crashed.
    Crashed,
}

/// The program that a machine runs.
pub(crate) trait Program: Send + Sync {
    /// Runs the program until it exits. If `stop` becomes true, the program must exit gracefully. Dropping the future
    /// does not end the tasks of `process`; [`Process::crash`] ends them.
    fn run(
        &self,
        machine: &Arc<Machine>,
        process: &Arc<Process>,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = Exit> + Send;
}

struct State {
    process: Option<Arc<Process>>,
    stop: watch::Sender<bool>,
    starts: u32,
    /// Earliest time of the next start of the process.
    down_until: Instant,
    /// Whether the machine has lost power.
    is_silent: bool,
}

/// A machine, which runs at most one process at a time.
pub(crate) struct Machine {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) clock: Arc<Clock>,
    pub(crate) store_mode: SharedMode,
    rng: Rng,
    trace: Arc<Trace>,
    network: Arc<Network>,
    checker: Arc<Checker>,
    blocking: RangeInclusive<u64>,
    state: Mutex<State>,
    wanted: watch::Sender<bool>,
}

/// Parameters that all machines share.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) trace: Arc<Trace>,
    pub(crate) network: Arc<Network>,
    pub(crate) checker: Arc<Checker>,
    pub(crate) began: Instant,
    /// Range of the duration of blocking work, in milliseconds.
    pub(crate) blocking_ms: (u64, u64),
}

/// Range of the delay, in milliseconds, before a process that exited with an error is restarted.
const RESTART: RangeInclusive<u64> = 200..=5_000;

impl Machine {
    pub(crate) fn new(
        site: &Site,
        node: NodeId,
        name: String,
        target: Target,
        rng: Rng,
    ) -> Arc<Machine> {
        Arc::new(Machine {
            node,
            name,
            target,
            clock: Arc::new(Clock::new(site.began)),
            store_mode: Arc::new(Mutex::new(StoreMode::Normal)),
            rng,
            trace: Arc::clone(&site.trace),
            network: Arc::clone(&site.network),
            checker: Arc::clone(&site.checker),
            blocking: site.blocking_ms.0..=site.blocking_ms.1,
            state: Mutex::new(State {
                process: None,
                stop: watch::Sender::new(false),
                starts: 0,
                down_until: site.began,
                is_silent: false,
            }),
            wanted: watch::Sender::new(false),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the running process.
    pub(crate) fn process(&self) -> Option<Arc<Process>> {
        self.state().process.clone()
    }

    /// Whether the machine is switched on.
    pub(crate) fn is_wanted(&self) -> bool {
        *self.wanted.borrow()
    }

    /// Switches the machine on.
    pub(crate) fn start(&self) {
        self.wanted.send_replace(true);
    }

    /// Requests a graceful exit of the process, which restarts after `down`.
    pub(crate) fn stop(&self, down: Duration) {
        let mut state = self.state();
        state.down_until = Instant::now() + down;
        let stop = state.stop.clone();
        drop(state);
        stop.send_replace(true);
    }

    /// Crashes the process, which restarts after `down`. If `is_silent`, the machine has no power until then, so it
    /// does not reset its connections.
    pub(crate) fn crash(&self, is_silent: bool, down: Duration) {
        let mut state = self.state();
        let Some(process) = state.process.clone() else {
            return;
        };
        state.down_until = Instant::now() + down;
        state.is_silent = is_silent;
        drop(state);
        if is_silent {
            self.network.set_silent(self.node, true);
        }
        process.crash();
        self.network.changed();
    }

    pub(crate) fn stall(self: &Arc<Self>, time: Duration) {
        if let Some(process) = self.process() {
            self.checker.disturb(&self.name);
            process.stall();
            self.network.changed();
            self.resume_after(process, time);
        }
    }

    /// Starts a task that resumes a stalled process after `time`.
    pub(crate) fn resume_after(self: &Arc<Self>, process: Arc<Process>, time: Duration) {
        let machine = Arc::clone(self);
        crate::network::spawn(async move {
            sleep(time).await;
            if process.is_stalled() {
                machine.checker.disturb(&machine.name);
                machine.trace.event(&process.name, "resumes");
                process.resume();
                machine.network.changed();
            }
        });
    }

    /// Ends the faults of the machine: resets the store mode, resumes a stalled process, and lets a process that is
    /// down restart immediately.
    pub(crate) fn end_faults(&self) {
        set_mode(&self.store_mode, StoreMode::Normal);
        if let Some(process) = self.process() {
            self.checker.disturb(&self.name);
            process.resume();
        }
        self.state().down_until = Instant::now();
    }

    /// Runs the machine's process once the machine is switched on, and restarts it whenever it ends.
    pub(crate) async fn supervise(self: Arc<Self>, program: impl Program) {
        let mut wanted = self.wanted.subscribe();
        loop {
            if wanted.wait_for(|wanted| *wanted).await.is_err() {
                return;
            }
            let until = self.state().down_until;
            if until > Instant::now() {
                sleep_until(until).await;
                // `down_until` may have changed in the meantime.
                continue;
            }
            let (process, stop) = self.boot();
            self.trace.event(&process.name, "starts");
            let exit = tokio::select! {
                biased;
                () = process.crashed() => Exit::Crashed,
                exit = program.run(&self, &process, stop) => exit,
            };
            self.trace
                .event(&process.name, format_args!("exits: {exit:?}"));
            // End all remaining tasks of the process.
            self.checker.disturb(&self.name);
            process.crash();
            self.network.changed();
            self.state().process = None;
            if matches!(exit, Exit::Failure(_)) {
                sleep(self.rng.millis(RESTART)).await;
            }
        }
    }

    fn boot(&self) -> (Arc<Process>, watch::Receiver<bool>) {
        let mut state = self.state();
        state.starts += 1;
        let name = match self.target {
            Target::Coordinator(_) => format!("{}.{}", self.name, state.starts),
            Target::Worker(_) => self.name.clone(),
        };
        let process = Process::new(&name, &self.clock, self.rng.fork(), self.blocking.clone());
        state.process = Some(Arc::clone(&process));
        let (sender, stop) = watch::channel(false);
        state.stop = sender;
        let was_silent = std::mem::take(&mut state.is_silent);
        drop(state);
        if was_silent {
            self.network.set_silent(self.node, false);
        }
        (process, stop)
    }
}
