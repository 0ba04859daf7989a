//! The simulated coordinator process.

use crate::inbox::Sink;
use crate::machine::{Exit, Machine, Program};
use crate::process::Process;
use crate::serving::Serving;
use crate::world::World;
use hatebeam_coordinator::{
    Coordinator, CoordinatorError, CoreSettings, LeaseError, NotifierSettings, ObjectStorePrices,
    TableSource,
};
use hatebeam_cost::{Machine as Rented, Micros};
use hatebeam_env::{Env, watch};
use hatebeam_metrics::Registry;
use hatebeam_objects::Objects;
use hatebeam_runs::MemoryArchive;
use hatebeam_search::Fingerprint;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Interval between two heartbeats of a worker.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Time without a message after which a worker counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(3);

/// The program that a coordinator's machine runs.
pub(crate) struct CoordinatorProgram(pub(crate) Arc<World>);

/// Minimum number of wells per shard. It is small, so that the narrow runs of the simulation split shards.
const MIN_SHARD_WELLS: usize = 1;

fn settings(machine: &Machine, objects: Objects, world: &World, sink: Sink) -> CoreSettings {
    CoreSettings {
        name: machine.name.clone(),
        address: format!("sim://{}", machine.node.0),
        objects,
        prices: ObjectStorePrices::default(),
        machine: Rented {
            kind: "t4g.small".to_owned(),
            price_per_hour: Some(Micros(16_800)),
            ..Rented::default()
        },
        single: false,
        search: Fingerprint::current(),
        deadline: None,
        idle_stop: None,
        min_workers: world.plan.min_workers,
        min_shard_wells: MIN_SHARD_WELLS,
        heartbeat: HEARTBEAT,
        lost_after: LOST_AFTER,
        tables: TableSource::new(|_| Ok(Box::new(MemoryArchive::default()))),
        notifications: NotifierSettings {
            events: Some(Arc::new(sink)),
            every: 5,
        },
    }
}

impl Program for CoordinatorProgram {
    async fn run(
        &self,
        machine: &Arc<Machine>,
        process: &Arc<Process>,
        mut stop: watch::Receiver<bool>,
    ) -> Exit {
        let world = &self.0;
        let env = Env::with_host(process.clone());
        let objects = match world.store.open(machine, process) {
            Ok(objects) => objects,
            Err(error) => return Exit::Failure(error.to_string()),
        };
        let sink = Sink {
            inbox: Arc::clone(&world.inbox),
            process: Arc::clone(process),
            env: env.clone(),
            is_closed: AtomicBool::new(false),
        };
        let settings = settings(machine, objects, world, sink);
        let (node, listing) = (machine.node, Arc::clone(&world.serving));
        let stopped = stop.clone();
        let (of, of_machine, of_process) = (env.clone(), Arc::clone(machine), Arc::clone(process));
        let running = env.spawn(async move {
            let registry = Registry::default();
            let (coordinator, task) = Coordinator::start(&of, settings, &registry).await?;
            let serving = Serving {
                machine: of_machine,
                process: of_process,
                env: of,
                coordinator,
            };
            let listed = listing.add(node, serving);
            let stopped = Box::pin(async move {
                let _ = stop.wait_for(|stop| *stop).await;
            });
            let ended = task.run(stopped).await;
            drop(listed);
            ended
        });
        let ended = running.await;
        self.judge(process, *stopped.borrow(), ended)
    }
}

impl CoordinatorProgram {
    /// Classifies the exit of a coordinator. Records a violation if the coordinator exited with success without being
    /// stopped, or exited as superseded although it holds the lease.
    fn judge(
        &self,
        process: &Process,
        was_stopped: bool,
        ended: Result<Result<(), CoordinatorError>, tokio::task::JoinError>,
    ) -> Exit {
        let checker = &self.0.checker;
        let error = match ended {
            Ok(Ok(())) if was_stopped => return Exit::Stopped,
            Ok(Ok(())) => {
                checker.violate(format!(
                    "{} exited with success without being stopped",
                    process.name
                ));
                return Exit::Success;
            }
            Ok(Err(error)) => error,
            Err(error) => return Exit::Failure(error.to_string()),
        };
        let is_superseded = matches!(
            error,
            CoordinatorError::Lease(LeaseError::Superseded) | CoordinatorError::Superseded { .. }
        );
        if is_superseded && checker.holder().as_ref() == Some(&process.name) {
            checker.violate(format!(
                "{} exited although it holds the lease: {error}",
                process.name
            ));
        }
        Exit::Failure(error.to_string())
    }
}
