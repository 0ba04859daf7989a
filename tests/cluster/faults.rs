//! An object store that fails for a while: the run waits, and goes on.

use crate::proxy::{Fault, Proxy};
use crate::rig::{Place, Rig};
use crate::servers::Server;
use crate::{WIDTH, alone, place_of, wait_for_depth};
use std::time::Duration;
use tokio::runtime::Runtime;

/// What goes wrong on the way to an object store.
pub(crate) const FAULTS: [Fault; 6] = [
    Fault::Close,
    Fault::Answer(503, "SlowDown"),
    Fault::Answer(500, "InternalError"),
    Fault::Delay(Duration::from_millis(400)),
    Fault::CutAnswer(60),
    Fault::CutRequest(900),
];

/// A way to a server that can be made a bad one.
pub(crate) struct Way {
    proxy: Proxy,
    server: Server,
    /// Drives the proxy, and goes after it.
    _runtime: Runtime,
}

impl Way {
    /// To a moto that goes with this value.
    pub(crate) fn to_moto() -> Option<Way> {
        let server = Server::moto()?;
        let runtime = Runtime::new().unwrap();
        let proxy = runtime.block_on(Proxy::start(server.address()));
        Some(Way {
            proxy,
            server,
            _runtime: runtime,
        })
    }

    pub(crate) fn place(&self) -> Place {
        place_of(&self.server, &self.proxy.endpoint())
    }

    /// Lets this happen on all connections.
    pub(crate) fn fail(&self, fault: Fault) {
        self.proxy.set(fault, usize::MAX);
    }

    /// Ends it; how often it has happened.
    pub(crate) fn mend(&self) -> usize {
        self.proxy.clear()
    }
}

/// A cluster with a run, on a way to an object store that can be made a bad one.
fn started(args: &[&str]) -> Option<(Way, Rig)> {
    let way = Way::to_moto()?;
    let mut rig = Rig::new();
    rig.place = way.place();
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    rig.start_worker("w1", &["--threads", "1"]);
    rig.submit(args);
    Some((way, rig))
}

#[test]
fn an_object_store_that_fails_for_a_while_holds_a_run_up_and_no_more() {
    let args = [&WIDTH[..], &["--max-depth", "80"]].concat();
    let Some((way, rig)) = started(&args) else {
        return;
    };
    for (at, fault) in FAULTS.into_iter().enumerate() {
        wait_for_depth(&rig, 5 + 5 * at as u64);
        way.fail(fault);
        std::thread::sleep(Duration::from_secs(2));
        println!("{fault:?} happened {} times", way.mend());
    }
    rig.watch().assert_same(&alone(&args));
}

/// Longer than any single request is tried again.
#[test]
fn an_object_store_that_is_away_for_long_holds_a_run_up_and_no_more() {
    let args = [&WIDTH[..], &["--max-depth", "30"]].concat();
    let Some((way, rig)) = started(&args) else {
        return;
    };
    wait_for_depth(&rig, 5);
    way.fail(Fault::Close);
    std::thread::sleep(Duration::from_secs(30));
    assert!(way.mend() > 10, "nobody asked for it");
    rig.watch().assert_same(&alone(&args));
}
