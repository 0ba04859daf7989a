//! Server-sent events: the state of one run, or of all runs and workers, followed by the changes of this state.
//!
//! Each browser has a short event queue. While the queue of a slow browser is full, its stream reads no further changes
//! from the service, so changes do not accumulate.

use crate::api::{App, MAX_STREAMS, PathParam, Query, all_runs, all_workers};
use crate::error::ApiError;
use crate::view::{AlertView, DepthView, RunLine, RunView, WorkerView};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use hatebeam_proto::v1;
use hatebeam_proto::v1::runs_server::Runs;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Maximum number of events in the queue of a browser.
const QUEUE: usize = 8;
/// Delay between two reads of the lists of all runs and workers.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time between two messages to a browser. The server notices a lost connection only when it sends a message.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The sender of events to one browser.
struct EventSender {
    events: mpsc::Sender<Result<Event, axum::Error>>,
    /// Permit that counts this stream towards [`MAX_STREAMS`].
    _permit: OwnedSemaphorePermit,
}

impl EventSender {
    /// Creates a sender and the response that streams its events.
    fn new<R>(app: &App<R>) -> Result<(EventSender, Response), ApiError> {
        let Ok(permit) = Arc::clone(&app.streams).try_acquire_owned() else {
            let text =
                format!("{MAX_STREAMS} browser tabs are already connected: close some of them");
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text));
        };
        let (events, stream) = mpsc::channel(QUEUE);
        let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
        let response = Sse::new(ReceiverStream::new(stream)).keep_alive(keep_alive);
        let sender = EventSender {
            events,
            _permit: permit,
        };
        Ok((sender, response.into_response()))
    }

    /// Sends an event. Returns `false` if the browser has disconnected.
    async fn send(&self, name: &str, data: &(impl Serialize + ?Sized)) -> bool {
        let event = Event::default().event(name).json_data(data);
        self.events.send(event).await.is_ok()
    }

    /// Sends an event unless its data equals `last`, and updates `last`. Returns `false` if the browser has
    /// disconnected.
    async fn send_if_changed(&self, name: &str, data: &impl Serialize, last: &mut String) -> bool {
        let Ok(text) = serde_json::to_string(data) else {
            return false;
        };
        if text == *last {
            return !self.events.is_closed();
        }
        let event = Event::default().event(name).data(&text);
        *last = text;
        self.events.send(Ok(event)).await.is_ok()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// First depth whose record is sent.
    #[serde(default)]
    from: u32,
}

/// Streams the events of a run: `run`, `depths`, `workers` and `alerts`. The last event is `end` when the run has
/// ended, or `failed` with a message after an error.
pub(crate) async fn of_run<R: Runs>(
    State(app): State<Arc<App<R>>>,
    PathParam(run): PathParam,
    Query(EventsQuery { from }): Query<EventsQuery>,
) -> Result<Response, ApiError> {
    let (sender, response) = EventSender::new(&app)?;
    let request = v1::WatchRequest {
        run,
        from_depth: from,
    };
    let stream = app.runs.watch(tonic::Request::new(request)).await?;
    let mut stream = Box::pin(stream.into_inner());
    tokio::spawn(async move {
        let mut last = LastSent::default();
        loop {
            let update = tokio::select! {
                update = stream.next() => update,
                () = sender.events.closed() => return,
            };
            let is_connected = match update {
                Some(Ok(update)) => last.send_changes(&sender, &update).await,
                Some(Err(status)) => {
                    let error = ApiError::from(status).text;
                    sender.send("failed", &error).await;
                    return;
                }
                None => {
                    sender.send("end", &()).await;
                    return;
                }
            };
            if !is_connected {
                return;
            }
        }
    });
    Ok(response)
}

/// JSON data of the last event of each kind that was sent for a run.
#[derive(Default)]
struct LastSent {
    run: String,
    workers: String,
    alerts: String,
}

impl LastSent {
    /// Sends the parts of an update that have changed. Returns `false` if the browser has disconnected.
    async fn send_changes(&mut self, sender: &EventSender, update: &v1::WatchResponse) -> bool {
        let run = update.run.as_ref().map(RunView::of);
        let depths: Vec<DepthView<'_>> = update.depths.iter().map(DepthView::of).collect();
        let workers: Vec<WorkerView<'_>> = update.workers.iter().map(WorkerView::of).collect();
        let alerts: Vec<AlertView<'_>> = update.alerts.iter().map(AlertView::of).collect();
        sender.send_if_changed("run", &run, &mut self.run).await
            && (depths.is_empty() || sender.send("depths", &depths).await)
            && sender
                .send_if_changed("workers", &workers, &mut self.workers)
                .await
            && sender
                .send_if_changed("alerts", &alerts, &mut self.alerts)
                .await
    }
}

/// Streams the lists of all runs and workers as the events `runs` and `workers`. After an error, the last event is
/// `failed` with a message.
pub(crate) async fn of_all<R: Runs>(State(app): State<Arc<App<R>>>) -> Result<Response, ApiError> {
    let (sender, response) = EventSender::new(&app)?;
    tokio::spawn(async move {
        let (mut last_runs, mut last_workers) = (String::new(), String::new());
        loop {
            let (runs, workers) = match (all_runs(&app).await, all_workers(&app).await) {
                (Ok(runs), Ok(workers)) => (runs, workers),
                (Err(status), _) | (_, Err(status)) => {
                    let error = ApiError::from(status).text;
                    sender.send("failed", &error).await;
                    return;
                }
            };
            let lines: Vec<RunLine<'_>> = runs.iter().map(RunLine::of).collect();
            let views: Vec<WorkerView<'_>> = workers.iter().map(WorkerView::of).collect();
            let is_connected = sender.send_if_changed("runs", &lines, &mut last_runs).await
                && sender
                    .send_if_changed("workers", &views, &mut last_workers)
                    .await;
            if !is_connected {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = sender.events.closed() => return,
            }
        }
    });
    Ok(response)
}
