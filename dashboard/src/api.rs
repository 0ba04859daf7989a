//! The JSON API under `/api/v1`. It forwards calls to the same service that gRPC clients use.

use crate::access::{AccessControl, ESTIMATE, WRONG_TOKEN_DELAY};
use crate::error::ApiError;
use crate::events;
use crate::form::{EstimateRequest, Estimator, LimitsForm, RunForm};
use crate::game;
use crate::view::{DepthView, RunLine, RunView, WorkerView};
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use hatebeam_cost::Estimate;
use hatebeam_net::Access;
use hatebeam_proto::v1;
use hatebeam_proto::v1::runs_server::Runs;
use hatebeam_report::Film;
use hatebeam_search::Network;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_stream::StreamExt;
use tonic::{Code, Status};

/// Maximum size of a request body. A specification has at most 64 KiB.
const MAX_BODY: usize = 128 << 10;
/// Timeout of a call, including the time to read the request body.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for reading back a game, that is, finding its wells in the stored depths from the last to the first. This is
/// slow for a wide run that keeps only some of its depths.
pub(crate) const GAME_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum number of games that are read back concurrently.
const MAX_GAMES: usize = 2;
/// Maximum number of event streams. It is less than the maximum number of connections, so that the server can still
/// answer other calls.
pub(crate) const MAX_STREAMS: usize = 64;
/// Maximum number of depth records in a response. A response contains the records of one message from the service, which
/// has the same limit.
const MAX_RECORDS: usize = 1000;

/// State shared by all calls.
pub(crate) struct App<R> {
    pub(crate) runs: R,
    pub(crate) access: AccessControl,
    estimator: Estimator,
    games: Semaphore,
    pub(crate) streams: Arc<Semaphore>,
}

impl<R> App<R> {
    pub(crate) fn new(runs: R, estimator: Estimator, access: AccessControl) -> App<R> {
        App {
            runs,
            access,
            estimator,
            games: Semaphore::new(MAX_GAMES),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }
    }
}

type Shared<R> = State<Arc<App<R>>>;

/// Returns the routes that do not require the token.
pub(crate) fn public<R: Runs>(app: &Arc<App<R>>) -> Router {
    Router::new()
        .route("/api/v1/session", get(session::<R>))
        .route("/api/v1/login", post(login::<R>))
        .route("/api/v1/logout", post(logout::<R>))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn(|request, next| {
            with_timeout(CALL_TIMEOUT, request, next)
        }))
        .with_state(Arc::clone(app))
}

/// Returns the routes that require the token, if the server has one.
pub(crate) fn private<R: Runs>(app: &Arc<App<R>>) -> Router {
    let games = Router::new()
        .route("/api/v1/runs/{run}/game", get(game::<R>))
        .layer(from_fn(|request, next| {
            with_timeout(GAME_TIMEOUT, request, next)
        }));
    Router::new()
        .route("/api/v1/runs", get(list::<R>).post(submit::<R>))
        .route("/api/v1/runs/{run}", get(run::<R>))
        .route("/api/v1/runs/{run}/depths", get(depths::<R>))
        .route("/api/v1/runs/{run}/cancel", post(cancel::<R>))
        .route("/api/v1/runs/{run}/limits", post(limit::<R>))
        .route("/api/v1/runs/{run}/events", get(events::of_run::<R>))
        .route("/api/v1/workers", get(workers::<R>))
        .route("/api/v1/workers/{worker}/drain", post(drain::<R>))
        .route(ESTIMATE, post(estimate::<R>))
        .route("/api/v1/events", get(events::of_all::<R>))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn(|request, next| {
            with_timeout(CALL_TIMEOUT, request, next)
        }))
        .merge(games)
        .with_state(Arc::clone(app))
}

/// Middleware that cancels a call after a timeout.
async fn with_timeout(limit: Duration, request: Request, next: Next) -> Response {
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let text = format!("timed out after {} seconds", limit.as_secs());
            ApiError::new(StatusCode::GATEWAY_TIMEOUT, text).into_response()
        }
    }
}

/// Returns the response for an unknown path.
pub(crate) async fn not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "unknown path")
}

/// Extractor for a JSON body. Its errors are also JSON.
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

/// Extractor for the only parameter in the path.
pub(crate) struct PathParam(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathParam {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &S,
    ) -> Result<Self, ApiError> {
        let part: Result<_, PathRejection> =
            axum::extract::Path::<String>::from_request_parts(parts, state).await;
        match part {
            Ok(axum::extract::Path(part)) => Ok(PathParam(part)),
            Err(error) => Err(ApiError::new(error.status(), error.body_text())),
        }
    }
}

/// Extractor for the query string.
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
    let access = app.access.check_token(&headers).ok();
    let mut session = json!({
        "token_required": app.access.requires_token(),
        "signed_in": access.is_some(),
        "may_change": access == Some(Access::Full),
    });
    if access.is_some() {
        session["version"] = json!(env!("CARGO_PKG_VERSION"));
        session["networks"] = Network::SHIPPED
            .iter()
            .filter_map(|name| Some((name.to_string(), json!(Network::shipped(name)?.digest()))))
            .collect();
    }
    Json(session)
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
            tracing::warn!("rejected dashboard sign-in: wrong token");
            tokio::time::sleep(WRONG_TOKEN_DELAY).await;
            let text = "wrong token";
            Err(ApiError::new(StatusCode::UNAUTHORIZED, text))
        }
    }
}

/// Ends a browser's session. Requires a JSON body, as every call that changes something does, so that other sites
/// cannot sign users out.
async fn logout<R: Runs>(
    State(app): Shared<R>,
    headers: HeaderMap,
    Body(_): Body<EmptyBody>,
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

/// An empty JSON object as the body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptyBody {}

/// Returns all runs, most recently submitted first.
pub(crate) async fn all_runs<R: Runs>(app: &App<R>) -> Result<Vec<v1::RunStatus>, Status> {
    let mut request = v1::ListRequest::default();
    let mut runs = Vec::new();
    loop {
        let listed = app.runs.list(tonic::Request::new(request.clone())).await?;
        let page = listed.into_inner();
        runs.extend(page.runs);
        if page.next.is_empty() {
            return Ok(runs);
        }
        request.page = page.next;
    }
}

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

/// Returns the current state of a run, with its depth records from depth `from` onwards.
async fn watch_once<R: Runs>(
    app: &App<R>,
    run: &str,
    from: u32,
) -> Result<v1::WatchResponse, ApiError> {
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
        None => Err(run_not_found(run)),
    }
}

fn run_of<'a>(snapshot: &'a v1::WatchResponse, name: &str) -> Result<&'a v1::RunStatus, ApiError> {
    snapshot.run.as_ref().ok_or_else(|| run_not_found(name))
}

fn run_not_found(run: &str) -> ApiError {
    let text = format!("there is no run {run:?}");
    ApiError::new(StatusCode::NOT_FOUND, text)
}

async fn run<R: Runs>(State(app): Shared<R>, PathParam(name): PathParam) -> Answer {
    let snapshot = watch_once(&app, &name, u32::MAX).await?;
    Ok(Json(json!(RunView::of(run_of(&snapshot, &name)?))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DepthsQuery {
    #[serde(default)]
    from: u32,
    limit: Option<usize>,
}

/// Returns a page of a run's depths. `next` is the first depth of the next page, or null if no depth
/// follows this page.
async fn depths<R: Runs>(
    State(app): Shared<R>,
    PathParam(name): PathParam,
    Query(page): Query<DepthsQuery>,
) -> Answer {
    let limit = page.limit.unwrap_or(MAX_RECORDS);
    if !(1..=MAX_RECORDS).contains(&limit) {
        return Err(ApiError::bad(format!(
            "limit {limit} is out of range: give a number from 1 to {MAX_RECORDS}"
        )));
    }
    let snapshot = watch_once(&app, &name, page.from).await?;
    let depths = &snapshot.depths[..limit.min(snapshot.depths.len())];
    let views: Vec<DepthView<'_>> = depths.iter().map(DepthView::of).collect();
    let deepest = run_of(&snapshot, &name)?.depth;
    let next = depths
        .last()
        .filter(|last| last.depth < deepest)
        .map(|last| last.depth.saturating_add(1));
    Ok(Json(json!({ "depths": views, "next": next })))
}

async fn submit<R: Runs>(State(app): Shared<R>, Body(form): Body<RunForm>) -> Answer {
    let submitted = app
        .runs
        .submit(tonic::Request::new(form.request()?))
        .await?;
    run_response(submitted.into_inner().run)
}

async fn cancel<R: Runs>(
    State(app): Shared<R>,
    PathParam(run): PathParam,
    Body(_): Body<EmptyBody>,
) -> Answer {
    let request = v1::CancelRequest { run };
    let cancelled = app.runs.cancel(tonic::Request::new(request)).await?;
    run_response(cancelled.into_inner().run)
}

async fn limit<R: Runs>(
    State(app): Shared<R>,
    PathParam(run): PathParam,
    Body(form): Body<LimitsForm>,
) -> Answer {
    let request = tonic::Request::new(form.request(run)?);
    run_response(app.runs.limit(request).await?.into_inner().run)
}

fn run_response(run: Option<v1::RunStatus>) -> Answer {
    let run = run.unwrap_or_default();
    Ok(Json(json!(RunView::of(&run))))
}

/// A request body such as `{}` or `{"undo": true}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DrainBody {
    #[serde(default)]
    undo: bool,
}

async fn drain<R: Runs>(
    State(app): Shared<R>,
    PathParam(worker): PathParam,
    Body(DrainBody { undo }): Body<DrainBody>,
) -> Answer {
    let request = v1::DrainRequest { worker, undo };
    app.runs.drain(tonic::Request::new(request)).await?;
    Ok(Json(json!({})))
}

async fn estimate<R: Runs>(
    State(app): Shared<R>,
    Body(form): Body<RunForm>,
) -> Result<Json<Estimate>, ApiError> {
    // Reject invalid limits. The returned request is not needed.
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
struct GameQuery {
    /// Depth of the last well. The game leads to the best well at this depth; 0 selects the run's best game.
    #[serde(default)]
    depth: u32,
}

/// Returns the film (all keys and wells) of a run's best game, or of the game that leads to the best well at a depth. The
/// result of an ended run contains the best game; any other game is read back.
async fn game<R: Runs>(
    State(app): Shared<R>,
    PathParam(name): PathParam,
    Query(GameQuery { depth }): Query<GameQuery>,
) -> Result<Json<Film>, ApiError> {
    let snapshot = watch_once(&app, &name, u32::MAX).await?;
    let run = run_of(&snapshot, &name)?;
    let result = run.result.as_ref().filter(|_| depth == 0 && !run.is_open());
    let replay = match result {
        Some(result) => result.replay.clone(),
        None => read_back(&app, &name, depth).await?,
    };
    game::film(&run.spec, &replay).map(Json)
}

async fn read_back<R: Runs>(app: &App<R>, run: &str, depth: u32) -> Result<String, ApiError> {
    let Ok(_permit) = app.games.try_acquire() else {
        let text = format!("{MAX_GAMES} games are already being read back: try again later");
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
            "this coordinator cannot read a game back before the run has ended",
        )),
        Err(status) => Err(status.into()),
    }
}
