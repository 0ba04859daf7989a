//! Tests with an object store that fails temporarily. The run must wait until the store works again, and then continue.

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

/// A moto server (a mock of S3) behind a proxy that can make requests fail.
pub(crate) struct FaultyStore {
    proxy: Proxy,
    server: Server,
    /// Runtime of the proxy. It must be dropped after the proxy, so this field is last.
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

    /// Injects the fault into all connections until [`restore`](FaultyStore::restore) is called.
    pub(crate) fn fail(&self, fault: Fault) {
        self.proxy.set(fault, usize::MAX);
    }

    /// Stops injecting faults and returns the number of injected faults.
    pub(crate) fn restore(&self) -> usize {
        self.proxy.clear()
    }
}

/// Starts a cluster with two workers and a store that can fail, and submits a run. Returns `None` if moto is not
/// installed.
fn start(args: &[&str]) -> Option<(FaultyStore, Cluster)> {
    let store = FaultyStore::start()?;
    let mut cluster = Cluster::new();
    cluster.store = store.store();
    cluster.start_all(&["w0", "w1"]);
    cluster.submit(args);
    Some((store, cluster))
}

#[test]
fn transient_faults_of_store_only_delay_run() {
    let args = [&WIDTH[..], &["--max-depth", "50"]].concat();
    let Some((store, cluster)) = start(&args) else {
        return;
    };
    for (at, fault) in FAULTS.into_iter().enumerate() {
        cluster.wait_for_depth(5 + 5 * at as u64);
        store.fail(fault);
        std::thread::sleep(Duration::from_secs(1));
        println!("{fault:?} was injected {} times", store.restore());
    }
    cluster.watch().assert_same(&one_process(&args));
}

/// Makes the store unavailable for longer than requests are retried, which is at most 15.5 seconds.
#[test]
fn long_outage_of_store_only_delays_run() {
    let args = [&WIDTH[..], &["--max-depth", "30"]].concat();
    let Some((store, cluster)) = start(&args) else {
        return;
    };
    cluster.wait_for_depth(5);
    store.fail(Fault::Close);
    std::thread::sleep(Duration::from_secs(20));
    assert!(store.restore() > 10, "the cluster made too few requests");
    cluster.watch().assert_same(&one_process(&args));
}
