//! The exchange of children (candidate wells for the next depth) between workers.
//!
//! While a depth is expanded, each worker has a stream to every other worker, on which it sends the children whose
//! shards the other worker owns. The data buffered for a stream is bounded: a buffer of one batch, a queue of
//! [`QUEUED_BATCHES`](hatebeam_proto::batch::QUEUED_BATCHES) batches, and the HTTP/2 flow control windows. If the
//! queue is full, the search thread waits. A slow worker therefore slows the others down, but does not fill their
//! memory. Receiving never waits for sending, so workers cannot deadlock.

mod frontier;
mod inbound;
mod outbound;
mod quota;
mod spot_check;

pub(crate) use frontier::{Expected, FrontierGather, ShardWells};
pub use inbound::InboundExchange;
pub(crate) use inbound::{EpochExchange, InboundControl, InboundLoops, Position};
pub(crate) use outbound::{Outbound, PeerStreams};
pub(crate) use quota::ChildQuota;
pub(crate) use spot_check::SpotCheck;

use crate::lock;
use hatebeam_metrics::WorkerMetrics;
use hatebeam_proto::messages::PeerRequest;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// The metrics of a worker, and the queues whose lengths they report.
pub(crate) struct Traffic {
    pub(crate) metrics: WorkerMetrics,
    /// Queues of the streams of the most recent attempt.
    queues: Mutex<Vec<mpsc::WeakSender<PeerRequest>>>,
}

impl Traffic {
    pub(crate) fn new(metrics: WorkerMetrics) -> Arc<Traffic> {
        Arc::new(Traffic {
            metrics,
            queues: Mutex::default(),
        })
    }

    /// Returns the number of batches that are waiting to be sent.
    pub(crate) fn waiting(&self) -> usize {
        let queues = lock(&self.queues);
        let open = queues.iter().filter_map(mpsc::WeakSender::upgrade);
        open.map(|queue| queue.max_capacity() - queue.capacity())
            .sum()
    }
}
