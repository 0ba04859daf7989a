//! The simulation of one seed: builds the world, and executes the events of the plan.

use crate::checks::{Checker, Totals};
use crate::client::{Client, Request};
use crate::coordinator::CoordinatorProgram;
use crate::faults::{StoreMode, set_mode};
use crate::machine::{Machine, Site};
use crate::network::{Network, NodeId, spawn};
use crate::options::{Options, Sabotage};
use crate::plan::{Action, Class, Plan, Target};
use crate::process::Process;
use crate::rng::Rng;
use crate::serving::Listing;
use crate::store::{Store, StoreFaults};
use crate::trace::Trace;
use crate::worker::WorkerProgram;
use crate::world::World;
use hatebeam_objects::Memory;
use hatebeam_runs::{Manifest, RUNS, RunState};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// Virtual time within which every run must finish after all faults have ended. A worker may be quarantined for ten
/// minutes, and an object store request may hang for six.
const SETTLE: Duration = Duration::from_secs(3600);

/// Result of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Descriptions of all violated invariants; empty if the seed passed.
    pub violations: Vec<String>,
    /// The classes of events that the seed used.
    pub classes: Vec<Class>,
    /// Virtual time of the simulation.
    pub elapsed: Duration,
    /// Totals over all runs.
    pub totals: Totals,
    /// The log.
    pub trace: String,
}

/// Simulates one seed.
pub(crate) async fn simulate(seed: u64, options: &Options) -> Report {
    let began = Instant::now();
    let trace = Arc::new(Trace::new(options.detail));
    let _logging = crate::logging::install(&trace);
    let (stalled, stalls) = mpsc::unbounded_channel();
    let world = match build(seed, options, &trace, stalled) {
        Ok(world) => Arc::new(world),
        Err(error) => panic!("cannot set up the simulation: {error}"),
    };
    trace.event("plan", format_args!("{:?}", world.plan));
    add_old_runs(&world).await;
    boot(&world);
    spawn(resume(Arc::clone(&world), stalls));
    let client = Arc::new(Client::new(&world));
    let lived = async {
        play(&world, &client).await;
        quiet(&world);
        client.settle(SETTLE).await;
        client.check().await;
    };
    tokio::select! {
        biased;
        () = world.checker.violated() => {}
        () = lived => {}
    }
    Report {
        seed,
        violations: world.checker.violations(),
        classes: world.plan.classes.clone(),
        elapsed: began.elapsed(),
        totals: world.checker.totals(),
        trace: trace.take(),
    }
}

fn build(
    seed: u64,
    options: &Options,
    trace: &Arc<Trace>,
    stalled: mpsc::UnboundedSender<(Arc<Process>, Duration)>,
) -> Result<World, hatebeam_objects::ObjectError> {
    let rng = Rng::seeded(seed);
    let plan = Plan::new(&rng.fork(), &options.mix);
    let network = Network::new(rng.fork(), Arc::clone(trace));
    let memory = Memory::new();
    let checker = Checker::new(&memory, trace)?;
    if plan.classes.contains(&Class::WrongResults) {
        checker.allow_other_results();
    }
    let site = Site {
        trace: Arc::clone(trace),
        network: Arc::clone(&network),
        checker: Arc::clone(&checker),
        began: Instant::now(),
        blocking_ms: plan.blocking_ms,
    };
    let machine =
        |at, name: String, target| Machine::new(&site, NodeId(at), name, target, rng.fork());
    let coordinators: Vec<Arc<Machine>> = (0..plan.coordinators)
        .map(|at| machine(at, format!("c{at}"), Target::Coordinator(at)))
        .collect();
    let names = (0..plan.all_workers).chain(plan.twin_of).enumerate();
    let workers = names
        .map(|(at, of)| machine(plan.coordinators + at, format!("w{of}"), Target::Worker(at)))
        .collect();
    let clocks = coordinators
        .iter()
        .map(|machine| Arc::clone(&machine.clock));
    let presence = checker.presence(clocks.collect());
    let ignores_conditions = options.sabotage == Some(Sabotage::UnconditionalStore);
    let store = Store {
        memory,
        faults: StoreFaults::new(Arc::clone(trace), ignores_conditions, stalled),
        checker: Arc::clone(&checker),
    };
    Ok(World {
        trace: Arc::clone(trace),
        network,
        store,
        checker,
        presence,
        inbox: Arc::default(),
        coordinators,
        workers,
        serving: Listing::new(),
        joined: Listing::new(),
        plan,
        options: options.clone(),
        rng,
    })
}

/// Adds the manifests of ended runs to the store.
async fn add_old_runs(world: &World) {
    let like = &world.plan.runs[0];
    for number in 0..world.plan.old_runs {
        let mut spec = like.spec.clone();
        spec.width = 1_000 + number as u64;
        let name = spec.name();
        let key = format!("{RUNS}/{name}/manifest.json");
        let mut manifest = Manifest::new(name, spec, like.keep, like.shards, number as u64);
        manifest.state = RunState::Cancelled;
        let text = serde_json::to_vec(&manifest).unwrap_or_default();
        if let Err(error) = world.checker.direct().put(&key, text.into()).await {
            world.checker.violate(error.to_string());
        }
    }
}

/// Starts the supervisors of all machines, and switches on the coordinators and the initial workers.
fn boot(world: &Arc<World>) {
    for machine in &world.coordinators {
        let program = CoordinatorProgram(Arc::clone(world));
        spawn(Arc::clone(machine).supervise(program));
        machine.start();
    }
    for machine in &world.workers {
        let program = WorkerProgram(Arc::clone(world));
        spawn(Arc::clone(machine).supervise(program));
    }
    let from_the_start = world.workers.iter().take(world.plan.workers);
    from_the_start.for_each(|machine| machine.start());
}

/// Receives the processes that a trigger has stalled, and resumes each process after its stall time.
async fn resume(world: Arc<World>, mut stalls: mpsc::UnboundedReceiver<(Arc<Process>, Duration)>) {
    while let Some((process, time)) = stalls.recv().await {
        world.network.changed();
        let mut machines = world.machines();
        let of = machines.find(|machine| {
            let current = machine.process();
            current.is_some_and(|current| Arc::ptr_eq(&current, &process))
        });
        if let Some(machine) = of {
            world.checker.disturb(&machine.name);
            machine.resume_after(process, time);
        }
    }
}

/// Executes the events of the plan at their times, and waits until the plan's horizon.
async fn play(world: &Arc<World>, client: &Arc<Client>) {
    let began = Instant::now();
    for event in &world.plan.events {
        sleep_until(began + event.at).await;
        world
            .trace
            .event("plan", format_args!("{:?}", event.action));
        act(world, client, event.action.clone());
    }
    sleep_until(began + world.plan.horizon).await;
}

fn act(world: &Arc<World>, client: &Arc<Client>, action: Action) {
    match action {
        Action::Crash {
            target,
            is_silent,
            down,
        } => world.machine(target).crash(is_silent, down),
        Action::Stall { target, time } => world.machine(target).stall(time),
        Action::Stop { target, down } => world.machine(target).stop(down),
        Action::Start(target) => world.machine(target).start(),
        Action::Cut {
            from,
            to,
            is_mutual,
            time,
        } => cut(world, from, to, is_mutual, time),
        Action::Reset => world.network.reset_one(&world.rng),
        Action::StoreMode { target, mode, time } => change_store_mode(world, target, mode, time),
        Action::Jump { target, millis } => {
            world.presence.read();
            world.machine(target).clock.jump(millis);
            world.presence.read();
        }
        Action::Trigger(trigger) => world.store.faults.set_trigger(trigger),
        Action::Drain(worker) => client.start(Request::Drain(worker)),
        Action::Submit { run, max_depth } => client.start(Request::Submit { run, max_depth }),
        Action::Limit { run, max_depth } => client.start(Request::Limit { run, max_depth }),
        Action::StopRun(run) => client.start(Request::Stop(run)),
        Action::DamageManifest { run, is_gone } => client.damage_manifest(run, is_gone),
        Action::DamageTable(run) => client.damage_table(run),
    }
}

fn cut(world: &Arc<World>, from: Target, to: Target, is_mutual: bool, time: Duration) {
    let (from, to) = (world.machine(from).node, world.machine(to).node);
    if from == to {
        return;
    }
    let network = Arc::clone(&world.network);
    network.cut(from, to);
    if is_mutual {
        network.cut(to, from);
    }
    spawn(async move {
        sleep(time).await;
        network.heal(from, to);
        if is_mutual {
            network.heal(to, from);
        }
    });
}

fn change_store_mode(world: &Arc<World>, target: Option<Target>, mode: StoreMode, time: Duration) {
    let targets: Vec<Arc<Machine>> = match target {
        Some(target) => vec![Arc::clone(world.machine(target))],
        None => world.machines().cloned().collect(),
    };
    for machine in &targets {
        set_mode(&machine.store_mode, mode);
    }
    spawn(async move {
        sleep(time).await;
        for machine in targets {
            set_mode(&machine.store_mode, StoreMode::Normal);
        }
    });
}

/// Ends all faults and switches on the machines, so that every run can finish.
fn quiet(world: &World) {
    world.trace.event("plan", "all faults end");
    world.checker.set_quiet();
    if world.lacks_memory() {
        world.checker.allow_failures();
    }
    if let Some(liar) = world.plan.liar {
        // Another machine replaces the liar. Its last lies may still be under way.
        world.workers[liar.worker].crash(false, Duration::from_secs(1));
    }
    world.store.faults.clear();
    world.network.heal_all();
    for machine in world.machines() {
        machine.end_faults();
        // The twin is a second process with the same name as another worker. It starts only if the plan has started it
        // before.
        let is_twin = machine.target == Target::Worker(world.plan.all_workers);
        if !is_twin || machine.is_wanted() {
            machine.start();
        }
    }
    world.network.changed();
}
