//! The plan of a simulation: the cluster, the runs and all events. The seed and the selected
//! classes determine the plan.

use crate::faults::{Effect, StoreMode, Trigger};
use crate::learned;
use crate::rng::Rng;
use hatebeam_objects::faults::Operation;
use hatebeam_runs::{LEASE, LoopRule, Retention, RunSpec, WellSpec};
use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Quiescence};
use std::str::FromStr;
use std::time::Duration;

/// A class of events. By default, each seed uses a random subset of the classes, so that some seeds have few classes,
/// which other classes do not mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Workers crash and restart.
    WorkerCrash,
    /// Workers join, are drained, and leave.
    WorkerChurn,
    /// Workers stall: their tasks are not polled for some time.
    WorkerStall,
    /// A second process starts with the name of an existing worker.
    TwinWorker,
    /// Coordinators crash and restart.
    CoordinatorCrash,
    /// Coordinators shut down gracefully and restart.
    CoordinatorStop,
    /// Coordinators stall.
    CoordinatorStall,
    /// A task of a coordinator panics.
    CoordinatorPanic,
    /// The network between machines is cut, in one direction or both.
    Partition,
    /// Connections are reset.
    Reset,
    /// The object store is slow or unavailable, loses responses, applies writes late, or returns stale lists.
    Store,
    /// A coordinator stalls or crashes at a specific request to the object store.
    Request,
    /// Wall clocks jump.
    Clock,
    /// Clients change limits, stop runs and submit them again.
    Client,
    /// The manifest of a queued run is deleted or damaged.
    DamagedManifest,
    /// The object store contains many ended runs, and a second coordinator waits for the lease.
    ManyRuns,
    /// The workers' tables of candidates (wells for the next depth) are sometimes too small at the first attempt, so
    /// that the depth is repeated.
    SmallTables,
    /// A worker crashes at every depth from a fixed depth on, as if it ran out of memory.
    OutOfMemory,
    /// A worker runs a program whose search differs from the coordinator's search, until the faults end.
    VersionSkew,
    /// A table (a file of wells) of a committed depth is deleted.
    DamagedTable,
    /// Clients also send requests to coordinators that do not hold the lease.
    StaleSubmission,
    /// Workers answer with wrong nodes when they have read a game back.
    WrongGame,
    /// A worker sends false messages that are noticed, until the faults end.
    LyingWorker,
    /// A worker sends false results that no check notices at once, until the faults end.
    WrongResults,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 24] = [
        Class::WorkerCrash,
        Class::WorkerChurn,
        Class::WorkerStall,
        Class::TwinWorker,
        Class::CoordinatorCrash,
        Class::CoordinatorStop,
        Class::CoordinatorStall,
        Class::CoordinatorPanic,
        Class::Partition,
        Class::Reset,
        Class::Store,
        Class::Request,
        Class::Clock,
        Class::Client,
        Class::DamagedManifest,
        Class::ManyRuns,
        Class::SmallTables,
        Class::OutOfMemory,
        Class::VersionSkew,
        Class::DamagedTable,
        Class::StaleSubmission,
        Class::WrongGame,
        Class::LyingWorker,
        Class::WrongResults,
    ];

    /// Returns the name of the class on the command line.
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Class, String> {
        let mut all = Class::ALL.into_iter();
        let found = all.find(|class| class.name() == text);
        found.ok_or_else(|| {
            let names: Vec<String> = Class::ALL.map(Class::name).into();
            format!("unknown class '{text}': use one of {}", names.join(", "))
        })
    }
}

/// Selection of the classes that a seed may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// Random classes.
    #[default]
    Default,
    /// These classes in every seed, in addition to random ones.
    With(Vec<Class>),
    /// Exactly these classes in every seed.
    Only(Vec<Class>),
}

/// Returns the probability that a seed uses a class, per mille.
fn probability(class: Class) -> u64 {
    match class {
        Class::CoordinatorPanic | Class::TwinWorker | Class::DamagedManifest => 60,
        Class::OutOfMemory | Class::WrongResults => 60,
        Class::DamagedTable | Class::VersionSkew => 100,
        Class::StaleSubmission | Class::WrongGame | Class::LyingWorker => 100,
        Class::ManyRuns => 10,
        Class::SmallTables => 250,
        Class::Request => 250,
        _ => 350,
    }
}

/// A machine that is affected by an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Coordinator(usize),
    Worker(usize),
}

/// The effect of an event.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// The process crashes and restarts after `down`. If `is_silent`, its machine has no power until then.
    Crash {
        target: Target,
        is_silent: bool,
        down: Duration,
    },
    /// The process stalls for `time`.
    Stall { target: Target, time: Duration },
    /// The process shuts down gracefully and restarts after `down`.
    Stop { target: Target, down: Duration },
    /// The machine starts its process if the process is not running.
    Start(Target),
    /// A client drains the worker with this index.
    Drain(usize),
    /// Messages from one machine to another are held back for `time`. If `is_mutual`, messages in the other direction
    /// are held back too.
    Cut {
        from: Target,
        to: Target,
        is_mutual: bool,
        time: Duration,
    },
    /// A random connection is reset.
    Reset,
    /// The object store is in this mode for `time`. If `target` is `None`, the mode applies to all machines.
    StoreMode {
        target: Option<Target>,
        mode: StoreMode,
        time: Duration,
    },
    /// The wall clock of a machine jumps by `millis`.
    Jump { target: Target, millis: i64 },
    /// A fault is prepared for a specific request to the object store.
    Trigger(Trigger),
    /// A client submits a run.
    Submit { run: usize, max_depth: Option<u32> },
    /// A client changes the depth limit of a run.
    Limit { run: usize, max_depth: Option<u32> },
    /// A client stops a run.
    StopRun(usize),
    /// The manifest of a queued run is deleted if `is_gone`, and damaged otherwise.
    DamageManifest { run: usize, is_gone: bool },
    /// A table of the last committed depth of the run is deleted.
    DamageTable(usize),
}

/// An event and its time, measured from the start of the simulation.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: Duration,
    pub(crate) action: Action,
}

/// A run that clients submit.
#[derive(Clone, Debug)]
pub(crate) struct RunPlan {
    pub(crate) spec: RunSpec,
    pub(crate) keep: Retention,
    pub(crate) shards: u32,
}

/// A worker that sends false messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Liar {
    /// Index of the worker.
    pub(crate) worker: usize,
    /// Probability that one of its messages is false, per mille.
    pub(crate) chance: u64,
}

/// Everything that a seed determines before the simulation starts.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) classes: Vec<Class>,
    pub(crate) coordinators: usize,
    /// Number of workers that run from the start.
    pub(crate) workers: usize,
    /// Total number of workers, excluding the twin.
    pub(crate) all_workers: usize,
    /// Index of the worker whose name a second process (the twin) also uses.
    pub(crate) twin_of: Option<usize>,
    pub(crate) min_workers: usize,
    /// The worker that lies.
    pub(crate) liar: Option<Liar>,
    pub(crate) runs: Vec<RunPlan>,
    /// Number of ended runs that are in the store at the start.
    pub(crate) old_runs: usize,
    /// Range of the duration of blocking work, in milliseconds.
    pub(crate) blocking_ms: (u64, u64),
    /// Time at which all faults end.
    pub(crate) horizon: Duration,
    pub(crate) events: Vec<Event>,
}

impl Plan {
    pub(crate) fn new(rng: &Rng, mix: &Mix) -> Plan {
        let classes = classes(rng, mix);
        let has = |class| classes.contains(&class);
        let coordinators = match has(Class::ManyRuns) {
            true => 2,
            false => rng.one_of([1, 1, 2, 2, 3]),
        };
        let workers = rng.one_of([1, 2, 2, 3, 3, 4, 5, 6]);
        let all_workers = (workers + rng.range(0..=2) as usize).min(8);
        let runs = distinct_runs(rng, has(Class::DamagedManifest));
        let horizon = rng.millis(3_000..=40_000);
        let mut plan = Plan {
            coordinators,
            workers,
            all_workers,
            twin_of: has(Class::TwinWorker).then(|| rng.index(workers)),
            min_workers: rng.range(1..=workers.min(2) as u64) as usize,
            liar: (has(Class::LyingWorker) || has(Class::WrongResults)).then(|| Liar {
                worker: rng.index(workers),
                chance: rng.one_of([20, 100, 400]),
            }),
            runs,
            old_runs: if has(Class::ManyRuns) { 120 } else { 0 },
            blocking_ms: rng.one_of([(1, 3), (2, 40), (20, 200)]),
            horizon,
            events: Vec::new(),
            classes: Vec::new(),
        };
        for class in &classes {
            plan.add_class(rng, *class);
        }
        plan.add_submissions(rng);
        plan.classes = classes;
        plan.events.sort_by_key(|event| event.at);
        plan
    }

    fn add(&mut self, rng: &Rng, action: Action) {
        let at = rng.millis(0..=self.horizon.as_millis() as u64);
        self.events.push(Event { at, action });
    }

    fn coordinator(&self, rng: &Rng) -> Target {
        Target::Coordinator(rng.index(self.coordinators))
    }

    fn worker(&self, rng: &Rng) -> usize {
        rng.index(self.all_workers)
    }

    fn any_machine(&self, rng: &Rng) -> Target {
        match rng.chance(400) {
            true => self.coordinator(rng),
            false => Target::Worker(self.worker(rng)),
        }
    }

    fn run(&self, rng: &Rng) -> usize {
        rng.index(self.runs.len())
    }

    fn add_submissions(&mut self, rng: &Rng) {
        for run in 0..self.runs.len() {
            let max_depth = rng.chance(200).then(|| rng.range(2..=8) as u32);
            let at = match run {
                0 => Duration::ZERO,
                _ => rng.millis(0..=self.horizon.as_millis() as u64 / 2),
            };
            let action = Action::Submit { run, max_depth };
            self.events.push(Event { at, action });
        }
    }

    fn add_class(&mut self, rng: &Rng, class: Class) {
        let times = match class {
            Class::TwinWorker | Class::CoordinatorPanic | Class::DamagedManifest => 1,
            Class::ManyRuns | Class::SmallTables | Class::OutOfMemory => 0,
            Class::VersionSkew | Class::StaleSubmission | Class::WrongGame => 0,
            Class::LyingWorker | Class::WrongResults => 0,
            Class::DamagedTable => 1,
            _ => rng.range(1..=6),
        };
        for _ in 0..times {
            let action = self.action(rng, class);
            self.add(rng, action);
        }
    }

    fn action(&self, rng: &Rng, class: Class) -> Action {
        match class {
            Class::WorkerCrash => crash(rng, Target::Worker(self.worker(rng))),
            Class::CoordinatorCrash => crash(rng, self.coordinator(rng)),
            Class::WorkerStall => stall(rng, Target::Worker(self.worker(rng))),
            Class::CoordinatorStall => stall(rng, self.coordinator(rng)),
            Class::CoordinatorStop => stop(rng, self.coordinator(rng)),
            Class::WorkerChurn => match rng.range(0..=2) {
                0 => Action::Drain(self.worker(rng)),
                1 => Action::Start(Target::Worker(self.worker(rng))),
                _ => stop(rng, Target::Worker(self.worker(rng))),
            },
            Class::TwinWorker => Action::Start(Target::Worker(self.all_workers)),
            Class::Partition => self.cut(rng),
            Class::Reset => Action::Reset,
            Class::Store => Action::StoreMode {
                target: rng.chance(500).then(|| self.any_machine(rng)),
                mode: rng.one_of(FAULTS),
                time: long_or_short(rng),
            },
            Class::Clock => jump(rng, self.any_machine(rng)),
            Class::Request | Class::CoordinatorPanic => Action::Trigger(trigger(rng, class)),
            Class::DamagedManifest => Action::DamageManifest {
                run: self.runs.len() - 1,
                is_gone: rng.chance(500),
            },
            Class::DamagedTable => Action::DamageTable(self.run(rng)),
            _ => self.request(rng),
        }
    }

    fn cut(&self, rng: &Rng) -> Action {
        let from = self.any_machine(rng);
        let to = match from {
            // Coordinators do not communicate with each other.
            Target::Coordinator(_) => Target::Worker(self.worker(rng)),
            Target::Worker(at) => match self.any_machine(rng) {
                to if to == Target::Worker(at) => self.coordinator(rng),
                to => to,
            },
        };
        Action::Cut {
            from,
            to,
            is_mutual: rng.chance(500),
            time: long_or_short(rng),
        }
    }

    fn request(&self, rng: &Rng) -> Action {
        let run = self.run(rng);
        let max_depth = rng.chance(700).then(|| rng.range(2..=14) as u32);
        match rng.range(0..=3) {
            0 => Action::StopRun(run),
            1 | 2 => Action::Limit { run, max_depth },
            _ => Action::Submit { run, max_depth },
        }
    }
}

const FAULTS: [StoreMode; 7] = [
    StoreMode::Slow,
    StoreMode::Down,
    StoreMode::Failing,
    StoreMode::LosingAnswers,
    StoreMode::Late,
    StoreMode::Hanging,
    StoreMode::StaleLists,
];

fn classes(rng: &Rng, mix: &Mix) -> Vec<Class> {
    let mut drawn = Vec::new();
    for class in Class::ALL {
        let is_drawn = rng.chance(probability(class));
        let is_in = match mix {
            Mix::Default => is_drawn,
            Mix::With(classes) => is_drawn || classes.contains(&class),
            Mix::Only(classes) => classes.contains(&class),
        };
        if is_in {
            drawn.push(class);
        }
    }
    drawn
}

fn distinct_runs(rng: &Rng, at_least_two: bool) -> Vec<RunPlan> {
    let count = match at_least_two {
        true => 2,
        false => rng.one_of([1, 1, 1, 2]),
    };
    let mut runs: Vec<RunPlan> = Vec::new();
    while runs.len() < count {
        let run = run_plan(rng);
        if runs.iter().all(|other| other.spec != run.spec) {
            runs.push(run);
        }
    }
    runs
}

/// Columns and rows of wells in which every game is short: the search is complete after 10 to 15 depths.
const WELLS: [(usize, usize); 3] = [(5, 6), (5, 8), (6, 6)];

fn run_plan(rng: &Rng) -> RunPlan {
    let (columns, rows) = rng.one_of(WELLS);
    let mut kind = rng.one_of([
        EvaluatorKind::Plain,
        EvaluatorKind::Knewjade,
        EvaluatorKind::Patterns,
    ]);
    let keep = match rng.range(0..=9) {
        0 => Retention::Last,
        1 => Retention::Every(2),
        2 => Retention::Every(3),
        _ => Retention::All,
    };
    let width = rng.one_of([15, 40, 120]);
    if (kind, width) == (EvaluatorKind::Plain, 120) {
        kind = learned::kind();
    }
    // These runs have two cuts at each depth.
    let quiescence = match (kind, width) {
        (EvaluatorKind::Knewjade, 40) => Quiescence::FirstOfBest,
        _ => Quiescence::Off,
    };
    // In four columns, wells repeat within a few pieces. The loop rule needs all tables.
    let (columns, loops) = match (columns, rows, keep) {
        (5, 8, Retention::All) => (4, LoopRule::Exact),
        _ => (columns, LoopRule::Ignore),
    };
    RunPlan {
        spec: RunSpec {
            well: WellSpec {
                columns,
                rows,
                clear_above_bar: false,
            },
            loops,
            ..RunSpec::new(width, EvaluatorSpec::new(kind, quiescence))
        },
        keep,
        shards: rng.one_of([1, 3, 4, 8]),
    }
}

fn long_or_short(rng: &Rng) -> Duration {
    match rng.chance(300) {
        true => rng.millis(5_000..=60_000),
        false => rng.millis(50..=5_000),
    }
}

fn crash(rng: &Rng, target: Target) -> Action {
    Action::Crash {
        target,
        is_silent: rng.chance(300),
        down: rng.millis(100..=8_000),
    }
}

fn stall(rng: &Rng, target: Target) -> Action {
    let time = long_or_short(rng);
    Action::Stall { target, time }
}

fn stop(rng: &Rng, target: Target) -> Action {
    let down = rng.millis(100..=8_000);
    Action::Stop { target, down }
}

fn jump(rng: &Rng, target: Target) -> Action {
    let size = match rng.chance(500) {
        true => rng.range(1..=5_000),
        false => rng.range(60_000..=86_400_000),
    };
    let millis = match rng.chance(500) {
        true => size as i64,
        false => -(size as i64),
    };
    Action::Jump { target, millis }
}

/// Operations and key substrings of the requests at which a trigger fires. Around these requests, the store is in an
/// intermediate state.
const REQUESTS: [(Operation, &str); 7] = [
    (Operation::PutIf, "manifest.json"),
    (Operation::PutIf, LEASE),
    (Operation::Put, "tables/"),
    (Operation::Put, "replays/"),
    (Operation::List, "frontier"),
    (Operation::List, "tables"),
    (Operation::Delete, "runs/"),
];

fn trigger(rng: &Rng, class: Class) -> Trigger {
    let (operation, key) = rng.one_of(REQUESTS);
    let effect = match class {
        Class::CoordinatorPanic => Effect::Panic,
        _ => match rng.chance(600) {
            true => Effect::Stall(long_or_short(rng)),
            false => Effect::Crash,
        },
    };
    Trigger {
        process: "c",
        operation,
        key,
        skip: rng.one_of([0, 0, 1, 3, 8]),
        is_after: rng.chance(400),
        effect,
    }
}
