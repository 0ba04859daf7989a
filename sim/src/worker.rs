//! The simulated worker process.

use crate::links::{Here, ToCoordinator, ToPeers, address};
use crate::machine::{Exit, Machine, Program};
use crate::options::Sabotage;
use crate::plan::{Class, Target};
use crate::process::Process;
use crate::serving::{LastOrders, Listening};
use crate::world::World;
use hatebeam_cost::{Machine as Rented, Micros};
use hatebeam_env::{Env, Host, watch};
use hatebeam_metrics::Registry;
use hatebeam_search::Fingerprint;
use hatebeam_worker::{MemoryStorage, Parts, Settings, Worker};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The program that a worker's machine runs.
pub(crate) struct WorkerProgram(pub(crate) Arc<World>);

fn settings(machine: &Machine, started_ms: u64, search: Fingerprint) -> Settings {
    Settings {
        name: machine.name.clone(),
        address: address(machine.node),
        // With more threads, the order of children would depend on the operating system.
        threads: 1,
        memory_bytes: 1 << 30,
        compress: true,
        // No depth of the simulated runs fills this queue. A full queue would block the only thread.
        queued_batches: 1024,
        machine: Rented {
            kind: "c6id.large".to_owned(),
            price_per_hour: Some(Micros(100_800)),
            ..Rented::default()
        },
        started_ms,
        search,
        rss: || 0,
    }
}

impl Program for WorkerProgram {
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
        let started_ms = process.wall_ms();
        world.presence.started(&machine.name, started_ms);
        let is_skewed = machine.target == Target::Worker(0)
            && world.plan.classes.contains(&Class::VersionSkew)
            && !world.checker.is_quiet();
        let is_forged = world.options.sabotage == Some(Sabotage::ForgedFingerprints);
        let search = match is_skewed && !is_forged {
            true => Fingerprint::from_text("2-skewed"),
            false => Fingerprint::current(),
        };
        let here = Here {
            world: Arc::clone(world),
            machine: Arc::clone(machine),
            process: Arc::clone(process),
            env: env.clone(),
            orders: LastOrders::default(),
            is_skewed,
        };
        let parts = Parts {
            env: env.clone(),
            objects: objects.clone(),
            storage: Arc::new(MemoryStorage),
            coordinator: Arc::new(ToCoordinator {
                here: here.clone(),
                objects,
            }),
            peers: Arc::new(ToPeers {
                here: here.clone(),
                lost_after: Mutex::new(Duration::from_secs(5)),
            }),
        };
        let (node, listing) = (machine.node, Arc::clone(&world.joined));
        let settings = settings(machine, started_ms, search);
        let running = env.spawn(async move {
            let worker = Worker::new(settings, parts, &Registry::default());
            let listening = Listening {
                target: here.machine.target,
                process: here.process,
                env: here.env.clone(),
                inbound: worker.inbound(),
                orders: here.orders,
            };
            let listed = listing.add(node, listening);
            let (leave, leaving) = tokio::sync::watch::channel(None);
            here.env.spawn(async move {
                if stop.wait_for(|stop| *stop).await.is_ok() {
                    let _ = leave.send(Some("SIGTERM".to_owned()));
                    leave.closed().await;
                }
            });
            let ended = worker.run(leaving).await;
            drop(listed);
            ended
        });
        match running.await {
            Ok(Ok(())) => Exit::Stopped,
            Ok(Err(refused)) => Exit::Failure(refused.to_string()),
            Err(error) => Exit::Failure(error.to_string()),
        }
    }
}
