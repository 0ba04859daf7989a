//! One direction of a connection.

use super::{Broken, Connection, Side, spawn};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Maximum number of messages in the send window of one direction, and in its receive window.
const WINDOW: usize = 64;

/// Reason why a direction of a connection ended.
enum Ended {
    /// The sender was dropped.
    Sender,
    /// The receiver was dropped.
    Receiver,
    /// The receiving end has lost the connection.
    Lost(Broken),
    /// The sending end has lost the connection.
    Cut,
}

impl Connection {
    /// Opens the direction from `from` to the other end. If the connection is lost, the last received item is an error.
    pub(crate) fn pipe<T: Send + 'static>(
        self: &Arc<Self>,
        from: Side,
    ) -> (mpsc::Sender<T>, mpsc::Receiver<Result<T, Broken>>) {
        let (sender, sent) = mpsc::channel(WINDOW);
        let (deliver, receiver) = mpsc::channel(WINDOW);
        spawn(Arc::clone(self).carry(from, sent, deliver));
        (sender, receiver)
    }

    async fn carry<T: Send + 'static>(
        self: Arc<Self>,
        from: Side,
        mut sent: mpsc::Receiver<T>,
        deliver: mpsc::Sender<Result<T, Broken>>,
    ) {
        let to = from.other();
        let (here, there) = (self.end(from).node, self.end(to).node);
        let ended = tokio::select! {
            biased;
            why = self.lost_at(to) => Ended::Lost(why),
            _ = self.lost_at(from) => Ended::Cut,
            () = deliver.closed() => Ended::Receiver,
            ended = self.carry_all(from, &mut sent, &deliver) => ended,
        };
        match ended {
            Ended::Sender => {
                let end = tokio::select! {
                    biased;
                    why = self.lost_at(to) => Some(why),
                    () = self.network.travel(here, there) => {
                        self.end(from).process.has_crashed().then_some(Broken::Reset)
                    }
                };
                if let Some(why) = end {
                    let _ = deliver.send(Err(why)).await;
                }
            }
            // After this delay the channel closes, so that the sender's next message fails.
            Ended::Receiver => self.network.travel(there, here).await,
            Ended::Lost(why) => {
                let _ = deliver.send(Err(why)).await;
                self.network.travel(there, here).await;
            }
            Ended::Cut => {
                sent.close();
                let why = tokio::select! {
                    biased;
                    why = self.lost_at(to) => why,
                    () = self.network.travel(here, there) => Broken::Reset,
                };
                let _ = deliver.send(Err(why)).await;
            }
        }
    }

    async fn carry_all<T: Send>(
        &self,
        from: Side,
        sent: &mut mpsc::Receiver<T>,
        deliver: &mpsc::Sender<Result<T, Broken>>,
    ) -> Ended {
        let (here, there) = (self.end(from).node, self.end(from.other()).node);
        while let Some(message) = sent.recv().await {
            self.network.travel(here, there).await;
            if deliver.send(Ok(message)).await.is_err() {
                return Ended::Receiver;
            }
        }
        Ended::Sender
    }
}
