//! An object store that fails for a while: the run waits, and then continues.

use crate::harness::{Cluster, Store};
use crate::proxy::{Fault, Proxy};
use crate::servers::Server;
use crate::{WIDTH, one_process};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Faults between the cluster and its object store.
pub(crate) const FAULTS: [Fault; 6] = [
    Fault::Close,
    Fault::Answer(503, "SlowDown"),
    Fault::Answer(500, "InternalError"),
    Fault::Delay(Duration::from_millis(400)),
    Fault::CutAnswer(60),
    Fault::CutRequest(900),
];

/// A moto server behind a proxy that can make requests fail.
pub(crate) struct FaultyStore {
    proxy: Proxy,
    server: Server,
    /// Runs the proxy. Dropped after it.
    _runtime: Runtime,
}

impl FaultyStore {
    /// Starts the server and the proxy. Returns `None` if moto is not installed.
    pub(crate) fn start() -> Option<FaultyStore> {
        let server = Server::moto()?;
        let runtime = Runtime::new().unwrap();
        let proxy = runtime.block_on(Proxy::start(server.address()));
        Some(FaultyStore {
            proxy,
            server,
            _runtime: runtime,
        })
    }

    pub(crate) fn store(&self) -> Store {
        Store::s3(&self.server, &self.proxy.endpoint())
    }

    /// Makes the fault happen on all connections.
    pub(crate) fn fail(&self, fault: Fault) {
        self.proxy.set(fault, usize::MAX);
    }

    /// Ends the fault and returns how often it has happened.
    pub(crate) fn restore(&self) -> usize {
        self.proxy.clear()
    }
}

/// Starts a cluster of two workers with a run, on a store that can fail.
fn start(args: &[&str]) -> Option<(FaultyStore, Cluster)> {
    let store = FaultyStore::start()?;
    let mut cluster = Cluster::new();
    cluster.store = store.store();
    cluster.start_all(&["w0", "w1"]);
    cluster.submit(args);
    Some((store, cluster))
}

#[test]
fn transient_faults_of_store_only_delay_a_run() {
    let args = [&WIDTH[..], &["--max-depth", "80"]].concat();
    let Some((store, cluster)) = start(&args) else {
        return;
    };
    for (at, fault) in FAULTS.into_iter().enumerate() {
        cluster.wait_for_depth(5 + 5 * at as u64);
        store.fail(fault);
        std::thread::sleep(Duration::from_secs(2));
        println!("{fault:?} happened {} times", store.restore());
    }
    cluster.watch().assert_same(&one_process(&args));
}

/// The outage is longer than the retries of any request.
#[test]
fn long_outage_of_store_only_delays_a_run() {
    let args = [&WIDTH[..], &["--max-depth", "30"]].concat();
    let Some((store, cluster)) = start(&args) else {
        return;
    };
    cluster.wait_for_depth(5);
    store.fail(Fault::Close);
    std::thread::sleep(Duration::from_secs(30));
    assert!(store.restore() > 10, "the cluster made no requests");
    cluster.watch().assert_same(&one_process(&args));
}
