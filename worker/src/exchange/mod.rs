//! The exchange of children between workers.
//!
//! While a depth is expanded, a worker has a stream to every other worker. A stream holds a bounded amount: a buffer
//! of one batch, a queue of [`QUEUED_BATCHES`](hatebeam_proto::batch::QUEUED_BATCHES) batches, and the windows of HTTP/2. A thread
//! that has more waits, so a slow worker slows the others down and does not fill their memory. Receiving children
//! never waits for sending any, so no cycle of workers can wait for one another.

mod inbound;
mod outbound;

pub use inbound::InboundExchange;
pub(crate) use inbound::{EpochExchange, InboundControl};
pub(crate) use outbound::{Outbound, PeerStreams};

use crate::lock;
use hatebeam_metrics::WorkerMetrics;
use hatebeam_proto::messages::PeerRequest;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// The metrics of a worker, and the queues whose lengths they show.
pub(crate) struct Traffic {
    pub(crate) metrics: WorkerMetrics,
    /// Queues of the last attempt's streams.
    queues: Mutex<Vec<mpsc::WeakSender<PeerRequest>>>,
}

impl Traffic {
    pub(crate) fn new(metrics: WorkerMetrics) -> Arc<Traffic> {
        Arc::new(Traffic {
            metrics,
            queues: Mutex::default(),
        })
    }

    /// Number of batches that wait to be sent.
    pub(crate) fn waiting(&self) -> usize {
        let queues = lock(&self.queues);
        let open = queues.iter().filter_map(mpsc::WeakSender::upgrade);
        open.map(|queue| queue.max_capacity() - queue.capacity())
            .sum()
    }
}
