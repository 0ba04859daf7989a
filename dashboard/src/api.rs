//! The interface, under `/api/v1`. Every call is one of the service that clients call by gRPC.

use crate::access::Access;
use crate::error::ApiError;
use crate::events;
use crate::form::{Estimate, EstimateRequest, Estimator, LimitsForm, RunForm};
use crate::game;
use crate::view::{DepthView, RunLine, RunView, WorkerView, is_open};
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use hatebeam_proto::v1;
use hatebeam_proto::v1::runs_server::Runs;
use hatebeam_report::Film;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_stream::StreamExt;
use tonic::{Code, Status};

/// The most bytes of a request's body: a specification has 64 KiB at most.
const BODY: usize = 128 << 10;
/// How long a call may take, its body included.
const CALL: Duration = Duration::from_secs(30);
/// How long it may take to read a game back: from a great run that is kept in part, a while.
const GAME: Duration = Duration::from_secs(300);
/// Games that are read back at once.
const GAMES: usize = 2;
/// Browsers that are told of changes at once. It leaves connections for other calls.
pub(crate) const STREAMS: usize = 64;
/// Records of depths in an answer at most, which is also what the service gives at once.
const RECORDS: usize = 1000;
/// After a wrong token.
const PAUSE: Duration = Duration::from_millis(500);

/// What calls need.
pub(crate) struct App<R> {
    pub(crate) runs: R,
    pub(crate) access: Access,
    estimator: Estimator,
    games: Semaphore,
    pub(crate) streams: Arc<Semaphore>,
}

impl<R> App<R> {
    pub(crate) fn new(runs: R, estimator: Estimator, access: Access) -> App<R> {
        App {
            runs,
            access,
            estimator,
            games: Semaphore::new(GAMES),
            streams: Arc::new(Semaphore::new(STREAMS)),
        }
    }
}

type Shared<R> = State<Arc<App<R>>>;

/// What anybody may call.
pub(crate) fn open<R: Runs>(app: &Arc<App<R>>) -> Router {
    Router::new()
        .route("/api/v1/session", get(session::<R>))
        .route("/api/v1/login", post(login::<R>))
        .route("/api/v1/logout", post(logout::<R>))
        .layer(DefaultBodyLimit::max(BODY))
        .layer(from_fn(|request, next| within(CALL, request, next)))
        .with_state(Arc::clone(app))
}

/// What takes the token.
pub(crate) fn guarded<R: Runs>(app: &Arc<App<R>>) -> Router {
    let games = Router::new()
        .route("/api/v1/runs/{run}/game", get(game::<R>))
        .layer(from_fn(|request, next| within(GAME, request, next)));
    Router::new()
        .route("/api/v1/runs", get(list::<R>).post(submit::<R>))
        .route("/api/v1/runs/{run}", get(run::<R>))
        .route("/api/v1/runs/{run}/depths", get(depths::<R>))
        .route("/api/v1/runs/{run}/cancel", post(cancel::<R>))
        .route("/api/v1/runs/{run}/limits", post(limit::<R>))
        .route("/api/v1/runs/{run}/events", get(events::of_run::<R>))
        .route("/api/v1/workers", get(workers::<R>))
        .route("/api/v1/workers/{worker}/drain", post(drain::<R>))
        .route("/api/v1/estimate", post(estimate::<R>))
        .route("/api/v1/events", get(events::of_all::<R>))
        .layer(DefaultBodyLimit::max(BODY))
        .layer(from_fn(|request, next| within(CALL, request, next)))
        .merge(games)
        .with_state(Arc::clone(app))
}

/// Gives a call up that takes too long.
async fn within(limit: Duration, request: Request, next: Next) -> Response {
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let text = format!("no answer within {} seconds", limit.as_secs());
            ApiError::new(StatusCode::GATEWAY_TIMEOUT, text).into_response()
        }
    }
}

/// The answer where there is nothing.
pub(crate) async fn nothing() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "there is nothing here")
}

/// A body of JSON, what is wrong with it being told as JSON too.
pub(crate) struct Body<T>(T);

impl<S: Send + Sync, T: serde::de::DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match Json::from_request(request, state).await {
            Ok(Json(value)) => Ok(Body(value)),
            Err(error) => Err(refused_body(&error)),
        }
    }
}

fn refused_body(error: &JsonRejection) -> ApiError {
    ApiError::new(error.status(), error.body_text())
}

/// A part of the path.
pub(crate) struct Part(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Part {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &S,
    ) -> Result<Self, ApiError> {
        let part: Result<_, PathRejection> =
            axum::extract::Path::<String>::from_request_parts(parts, state).await;
        match part {
            Ok(axum::extract::Path(part)) => Ok(Part(part)),
            Err(error) => Err(ApiError::new(error.status(), error.body_text())),
        }
    }
}

/// What comes after the question mark.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: serde::de::DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &S,
    ) -> Result<Self, ApiError> {
        let query: Result<_, QueryRejection> =
            axum::extract::Query::<T>::from_request_parts(parts, state).await;
        match query {
            Ok(axum::extract::Query(query)) => Ok(Query(query)),
            Err(error) => Err(ApiError::new(error.status(), error.body_text())),
        }
    }
}

type Answer = Result<Json<Value>, ApiError>;

async fn session<R: Runs>(State(app): Shared<R>, headers: HeaderMap) -> Json<Value> {
    Json(json!({
        "token_wanted": app.access.wants_token(),
        "signed_in": app.access.admits(&headers).is_ok(),
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    token: String,
}

async fn login<R: Runs>(
    State(app): Shared<R>,
    Body(login): Body<Login>,
) -> Result<Response, ApiError> {
    match app.access.sign_in(&login.token) {
        Some(cookie) => Ok(with_cookie(Some(cookie))),
        None => {
            tracing::warn!("somebody tried to sign in to the dashboard with a wrong token");
            // Who guesses waits; a person hardly notices.
            tokio::time::sleep(PAUSE).await;
            let text = "this is not the server's token";
            Err(ApiError::new(StatusCode::UNAUTHORIZED, text))
        }
    }
}

/// It must be JSON like all that changes something, so that no other page can sign anybody out.
async fn logout<R: Runs>(
    State(app): Shared<R>,
    headers: HeaderMap,
    Body(_): Body<Nothing>,
) -> Response {
    with_cookie(app.access.sign_out(&headers))
}

fn with_cookie(cookie: Option<HeaderValue>) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// The body `{}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// All runs, the last submitted first.
pub(crate) async fn all_runs<R: Runs>(app: &App<R>) -> Result<Vec<v1::RunStatus>, Status> {
    let listed = app.runs.list(tonic::Request::new(v1::ListRequest {}));
    Ok(listed.await?.into_inner().runs)
}

/// All workers.
pub(crate) async fn all_workers<R: Runs>(app: &App<R>) -> Result<Vec<v1::WorkerStatus>, Status> {
    let listed = app.runs.workers(tonic::Request::new(v1::WorkersRequest {}));
    Ok(listed.await?.into_inner().workers)
}

async fn list<R: Runs>(State(app): Shared<R>) -> Answer {
    let runs = all_runs(&app).await?;
    let lines: Vec<RunLine<'_>> = runs.iter().map(RunLine::of).collect();
    Ok(Json(json!({ "runs": lines })))
}

async fn workers<R: Runs>(State(app): Shared<R>) -> Answer {
    let workers = all_workers(&app).await?;
    let views: Vec<WorkerView<'_>> = workers.iter().map(WorkerView::of).collect();
    Ok(Json(json!({ "workers": views })))
}

/// How a run stands now, and its records from a depth on.
async fn look<R: Runs>(app: &App<R>, run: &str, from: u32) -> Result<v1::WatchResponse, ApiError> {
    let request = v1::WatchRequest {
        run: run.to_owned(),
        from_depth: from,
    };
    let mut stream = Box::pin(
        app.runs
            .watch(tonic::Request::new(request))
            .await?
            .into_inner(),
    );
    match stream.next().await {
        Some(first) => Ok(first?),
        None => Err(gone(run)),
    }
}

/// The run of what was said of it.
fn run_of<'a>(said: &'a v1::WatchResponse, name: &str) -> Result<&'a v1::RunStatus, ApiError> {
    said.run.as_ref().ok_or_else(|| gone(name))
}

fn gone(run: &str) -> ApiError {
    let text = format!("there is no word of run {run:?}");
    ApiError::new(StatusCode::NOT_FOUND, text)
}

async fn run<R: Runs>(State(app): Shared<R>, Part(name): Part) -> Answer {
    let said = look(&app, &name, u32::MAX).await?;
    Ok(Json(json!(RunView::of(run_of(&said, &name)?))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    #[serde(default)]
    from: u32,
    limit: Option<usize>,
}

/// A page of a run's depths; `next` is where the next one begins, null if this is the last so far.
async fn depths<R: Runs>(
    State(app): Shared<R>,
    Part(name): Part,
    Query(page): Query<Page>,
) -> Answer {
    let limit = page.limit.unwrap_or(RECORDS);
    if !(1..=RECORDS).contains(&limit) {
        return Err(ApiError::bad(format!(
            "limit {limit} is out of range: 1 to {RECORDS} records are given at once"
        )));
    }
    let said = look(&app, &name, page.from).await?;
    let depths = &said.depths[..limit.min(said.depths.len())];
    let views: Vec<DepthView<'_>> = depths.iter().map(DepthView::of).collect();
    let next = depths
        .last()
        .filter(|_| depths.len() == limit)
        .map(|last| last.depth.saturating_add(1));
    Ok(Json(json!({ "depths": views, "next": next })))
}

async fn submit<R: Runs>(State(app): Shared<R>, Body(form): Body<RunForm>) -> Answer {
    let submitted = app
        .runs
        .submit(tonic::Request::new(form.request()?))
        .await?;
    changed(submitted.into_inner().run)
}

async fn cancel<R: Runs>(State(app): Shared<R>, Part(run): Part, Body(_): Body<Nothing>) -> Answer {
    let request = v1::CancelRequest { run };
    let cancelled = app.runs.cancel(tonic::Request::new(request)).await?;
    changed(cancelled.into_inner().run)
}

async fn limit<R: Runs>(
    State(app): Shared<R>,
    Part(run): Part,
    Body(form): Body<LimitsForm>,
) -> Answer {
    let request = tonic::Request::new(form.request(run)?);
    changed(app.runs.limit(request).await?.into_inner().run)
}

fn changed(run: Option<v1::RunStatus>) -> Answer {
    let run = run.unwrap_or_default();
    Ok(Json(json!(RunView::of(&run))))
}

async fn drain<R: Runs>(
    State(app): Shared<R>,
    Part(worker): Part,
    Body(_): Body<Nothing>,
) -> Answer {
    let request = v1::DrainRequest { worker };
    app.runs.drain(tonic::Request::new(request)).await?;
    Ok(Json(json!({})))
}

async fn estimate<R: Runs>(
    State(app): Shared<R>,
    Body(form): Body<RunForm>,
) -> Result<Json<Estimate>, ApiError> {
    // What could not be submitted is not estimated.
    form.request()?;
    let request = EstimateRequest {
        form,
        workers: all_workers(&app).await?,
        runs: all_runs(&app).await?,
    };
    let estimated = (app.estimator)(&request);
    estimated.map(Json).map_err(ApiError::bad)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    /// 0 means the best game of all depths.
    #[serde(default)]
    depth: u32,
}

/// A film of a run's best game, or of the one to a depth's best well. The game of a run that has ended is there
/// already; any other is read back.
async fn game<R: Runs>(
    State(app): Shared<R>,
    Part(name): Part,
    Query(Which { depth }): Query<Which>,
) -> Result<Json<Film>, ApiError> {
    let said = look(&app, &name, u32::MAX).await?;
    let run = run_of(&said, &name)?;
    let result = run.result.as_ref().filter(|_| depth == 0 && !is_open(run));
    let replay = match result {
        Some(result) => result.replay.clone(),
        None => read_back(&app, &name, depth).await?,
    };
    game::film(&run.spec, &replay).map(Json)
}

async fn read_back<R: Runs>(app: &App<R>, run: &str, depth: u32) -> Result<String, ApiError> {
    let Ok(_permit) = app.games.try_acquire() else {
        let text = format!("{GAMES} games are being read back already: try again in a moment");
        return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, text));
    };
    let request = v1::GameRequest {
        run: run.to_owned(),
        depth,
    };
    match app.runs.game(tonic::Request::new(request)).await {
        Ok(game) => Ok(game.into_inner().replay),
        Err(status) if status.code() == Code::Unimplemented => Err(ApiError::new(
            StatusCode::NOT_IMPLEMENTED,
            "this coordinator reads games back only when a run has ended",
        )),
        Err(status) => Err(status.into()),
    }
}
