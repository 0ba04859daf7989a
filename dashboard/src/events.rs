//! Server-sent events: how a run, or all of them, stand, and then every change.
//!
//! A browser that takes no events in has few wait for it; then the service waits too, and nothing piles up.

use crate::api::{App, Part, Query, STREAMS, all_runs, all_workers};
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

/// Events that wait for a slow browser.
const QUEUE: usize = 8;
/// Between two looks at all runs.
const LOOK: Duration = Duration::from_secs(1);
/// A browser hears at least so often, so that it notices when the connection is gone.
const ALIVE: Duration = Duration::from_secs(10);

type Said = Result<Event, axum::Error>;

/// Where events are said, for as long as somebody listens.
struct Teller {
    say: mpsc::Sender<Said>,
    /// One of those who may listen at once.
    _permit: OwnedSemaphorePermit,
}

impl Teller {
    /// Says something; false if nobody listens any more.
    async fn tell(&self, name: &str, what: &(impl Serialize + ?Sized)) -> bool {
        let event = Event::default().event(name).json_data(what);
        self.say.send(event).await.is_ok()
    }

    /// Says something unless it is what was said the last time.
    async fn tell_news(&self, name: &str, what: &impl Serialize, last: &mut String) -> bool {
        let Ok(text) = serde_json::to_string(what) else {
            return false;
        };
        if text == *last {
            return !self.say.is_closed();
        }
        let event = Event::default().event(name).data(&text);
        *last = text;
        self.say.send(Ok(event)).await.is_ok()
    }
}

/// Somebody to tell, and the answer that he listens to.
fn teller<R>(app: &App<R>) -> Result<(Teller, Response), ApiError> {
    let Ok(permit) = Arc::clone(&app.streams).try_acquire_owned() else {
        let text = format!("{STREAMS} browsers are being told of changes already: close some");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text));
    };
    let (say, stream) = mpsc::channel(QUEUE);
    let alive = KeepAlive::new().interval(ALIVE);
    let answer = Sse::new(ReceiverStream::new(stream)).keep_alive(alive);
    let teller = Teller {
        say,
        _permit: permit,
    };
    Ok((teller, answer.into_response()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Since {
    /// The first depth whose record is wanted.
    #[serde(default)]
    from: u32,
}

/// A run: `run`, `depths`, `workers`, `alerts`, and `end` when it has ended.
pub(crate) async fn of_run<R: Runs>(
    State(app): State<Arc<App<R>>>,
    Part(run): Part,
    Query(Since { from }): Query<Since>,
) -> Result<Response, ApiError> {
    let (teller, answer) = teller(&app)?;
    let request = v1::WatchRequest {
        run,
        from_depth: from,
    };
    let stream = app.runs.watch(tonic::Request::new(request)).await?;
    let mut stream = Box::pin(stream.into_inner());
    tokio::spawn(async move {
        let mut last = Last::default();
        loop {
            let said = tokio::select! {
                said = stream.next() => said,
                () = teller.say.closed() => return,
            };
            let goes_on = match said {
                Some(Ok(said)) => last.tell(&teller, &said).await,
                Some(Err(status)) => {
                    let error = ApiError::from(status).text;
                    teller.tell("gone", &error).await;
                    return;
                }
                None => {
                    teller.tell("end", &()).await;
                    return;
                }
            };
            if !goes_on {
                return;
            }
        }
    });
    Ok(answer)
}

/// What was said of a run the last time.
#[derive(Default)]
struct Last {
    run: String,
    workers: String,
    alerts: String,
}

impl Last {
    async fn tell(&mut self, teller: &Teller, said: &v1::WatchResponse) -> bool {
        let run = said.run.as_ref().map(RunView::of);
        let depths: Vec<DepthView<'_>> = said.depths.iter().map(DepthView::of).collect();
        let workers: Vec<WorkerView<'_>> = said.workers.iter().map(WorkerView::of).collect();
        let alerts: Vec<AlertView<'_>> = said.alerts.iter().map(AlertView::of).collect();
        teller.tell_news("run", &run, &mut self.run).await
            && (depths.is_empty() || teller.tell("depths", &depths).await)
            && teller
                .tell_news("workers", &workers, &mut self.workers)
                .await
            && teller.tell_news("alerts", &alerts, &mut self.alerts).await
    }
}

/// All runs and workers: `runs` and `workers`.
pub(crate) async fn of_all<R: Runs>(State(app): State<Arc<App<R>>>) -> Result<Response, ApiError> {
    let (teller, answer) = teller(&app)?;
    tokio::spawn(async move {
        let (mut last_runs, mut last_workers) = (String::new(), String::new());
        loop {
            let (runs, workers) = match (all_runs(&app).await, all_workers(&app).await) {
                (Ok(runs), Ok(workers)) => (runs, workers),
                (Err(status), _) | (_, Err(status)) => {
                    let error = ApiError::from(status).text;
                    teller.tell("gone", &error).await;
                    return;
                }
            };
            let lines: Vec<RunLine<'_>> = runs.iter().map(RunLine::of).collect();
            let views: Vec<WorkerView<'_>> = workers.iter().map(WorkerView::of).collect();
            let goes_on = teller.tell_news("runs", &lines, &mut last_runs).await
                && teller.tell_news("workers", &views, &mut last_workers).await;
            if !goes_on {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = teller.say.closed() => return,
            }
        }
    });
    Ok(answer)
}
