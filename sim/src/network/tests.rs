//! Tests of connections with delays, cuts, stalls and crashes.

use super::{Broken, Connection, End, Network, NodeId, Side};
use crate::process::{Clock, Process};
use crate::rng::Rng;
use crate::trace::{Detail, Trace};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const CLIENT: NodeId = NodeId(0);
const SERVER: NodeId = NodeId(1);

type Received = mpsc::Receiver<Result<u32, Broken>>;

struct Pair {
    network: Arc<Network>,
    client: Arc<Process>,
    server: Arc<Process>,
    connection: Arc<Connection>,
    up: (mpsc::Sender<u32>, Received),
    down: (mpsc::Sender<u32>, Received),
}

fn end(node: NodeId, process: &Arc<Process>, keepalive: Duration) -> End {
    End {
        node,
        process: Arc::clone(process),
        keepalive,
    }
}

fn pair() -> Pair {
    let network = Network::new(Rng::seeded(1), Arc::new(Trace::new(Detail::Events)));
    let clock = Arc::new(Clock::new(Instant::now()));
    let process = |name| Process::new(name, &clock, Rng::seeded(2), 0..=0);
    let (client, server) = (process("client"), process("server"));
    let connection = network.connect(
        end(CLIENT, &client, SECOND * 10),
        end(SERVER, &server, SECOND * 30),
    );
    Pair {
        up: connection.pipe(Side::Client),
        down: connection.pipe(Side::Server),
        network,
        client,
        server,
        connection,
    }
}

async fn next(received: &mut Received, within: u64) -> Option<Option<Result<u32, Broken>>> {
    timeout(SECOND * within as u32, received.recv()).await.ok()
}

#[tokio::test(start_paused = true)]
async fn messages_arrive_in_order_before_the_end_of_the_stream() {
    let mut pair = pair();
    for number in 0..20 {
        pair.up.0.send(number).await.unwrap();
    }
    drop(pair.up.0);
    for number in 0..20 {
        assert_eq!(next(&mut pair.up.1, 9).await, Some(Some(Ok(number))));
    }
    assert_eq!(next(&mut pair.up.1, 9).await, Some(None));
}

#[tokio::test(start_paused = true)]
async fn brief_cut_delays_messages_in_its_direction() {
    let mut pair = pair();
    pair.network.cut(CLIENT, SERVER);
    pair.up.0.send(1).await.unwrap();
    pair.down.0.send(2).await.unwrap();
    assert_eq!(next(&mut pair.down.1, 5).await, Some(Some(Ok(2))));
    assert_eq!(next(&mut pair.up.1, 5).await, None);
    pair.network.heal(CLIENT, SERVER);
    assert_eq!(next(&mut pair.up.1, 1).await, Some(Some(Ok(1))));
}

#[tokio::test(start_paused = true)]
async fn each_end_closes_a_cut_connection_after_its_keepalive_time() {
    let mut pair = pair();
    pair.network.cut(CLIENT, SERVER);
    let began = Instant::now();
    assert_eq!(
        next(&mut pair.down.1, 60).await,
        Some(Some(Err(Broken::Timeout)))
    );
    assert!((10..12).contains(&began.elapsed().as_secs()));
    assert_eq!(
        next(&mut pair.up.1, 60).await,
        Some(Some(Err(Broken::Timeout)))
    );
    assert!((30..32).contains(&began.elapsed().as_secs()));
    sleep(SECOND).await;
    assert!(pair.up.0.send(1).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn timed_out_end_resets_the_other_end_if_the_direction_to_it_is_open() {
    let mut pair = pair();
    // Messages from the server do not arrive, but the client's reset does.
    pair.network.cut(SERVER, CLIENT);
    let began = Instant::now();
    assert_eq!(
        next(&mut pair.up.1, 60).await,
        Some(Some(Err(Broken::Reset)))
    );
    assert!((10..12).contains(&began.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn crash_resets_connections_and_power_loss_does_not() {
    let mut crashed = pair();
    // The crash drops the tasks that own the client's channels.
    drop((crashed.up.0, crashed.down.1));
    crashed.client.crash();
    assert_eq!(
        next(&mut crashed.up.1, 1).await,
        Some(Some(Err(Broken::Reset)))
    );

    let mut silent = pair();
    drop((silent.up.0, silent.down.1));
    silent.network.set_silent(CLIENT, true);
    silent.client.crash();
    assert_eq!(next(&mut silent.up.1, 20).await, None);
    silent.network.set_silent(CLIENT, false);
    assert_eq!(
        next(&mut silent.up.1, 1).await,
        Some(Some(Err(Broken::Reset)))
    );
    assert!(silent.connection.end(Side::Client).process.has_crashed());
}

#[tokio::test(start_paused = true)]
async fn client_closes_the_connection_to_a_stalled_server() {
    let mut pair = pair();
    pair.server.stall();
    pair.network.changed();
    assert_eq!(next(&mut pair.down.1, 9).await, None);
    assert_eq!(
        next(&mut pair.down.1, 3).await,
        Some(Some(Err(Broken::Timeout)))
    );
}

#[tokio::test(start_paused = true)]
async fn partitioned_machine_cannot_be_reached() {
    let pair = pair();
    assert_eq!(pair.network.reach(CLIENT, SERVER, SECOND).await, Ok(()));
    pair.network.cut(SERVER, CLIENT);
    assert_eq!(
        pair.network.reach(CLIENT, SERVER, SECOND).await,
        Err(Broken::Timeout)
    );
}
