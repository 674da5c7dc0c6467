//! Runs: list, submit, follow, stop.

use super::super::app::{App, run_view};
use super::super::confine::ClientText;
use super::super::problem::{Body, Path, Problem, Query};
use super::super::view::{NoteView, RunList, RunView, Stopping, Submitted};
use super::super::{confine, stream};
use super::within;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use std::sync::Arc;
use tuner_engine::job::Request;
use tuner_engine::threads::run_blocking;
use tuner_store::{Deletion, NewJob, RunFilter, RunId, RunTrial};

/// Default and maximum number of runs per page.
const PAGE: u32 = 100;

/// Maximum number of results of a run in a response.
const MAX_TRIALS: u32 = 20_000;

/// Maximum length of a note, characters.
const MAX_NOTE: usize = 10_000;

/// Filter of a list of runs.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// Only runs in this state: queued, running, finished, stopped, failed, interrupted.
    state: Option<String>,
    /// Only those submitted before this one.
    before: Option<String>,
    /// Number of runs, 1 to 100.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
}

/// Runs, latest first.
#[utoipa::path(get, path = "/api/v1/runs", params(ListQuery), tag = "runs",
    responses((status = 200, body = RunList), (status = 400, body = Problem)))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(query): Query<ListQuery>,
) -> Result<Response, Problem> {
    let states = [
        "queued",
        "running",
        "finished",
        "stopped",
        "failed",
        "interrupted",
    ];
    if let Some(state) = &query.state
        && !states.contains(&state.as_str())
    {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!(
                "no run is ever `{state}`; choose from: {}",
                states.join(", ")
            ),
        ));
    }
    let limit = within("limit", query.limit, PAGE, PAGE)?;
    let name = format!("runs {:?} {:?} {limit}", query.state, query.before);
    app.cached(name, async {
        let filter = RunFilter {
            id: None,
            state: query.state.clone(),
            before: query.before.clone(),
            limit,
        };
        let rows = app
            .read(async move |store| store.runs(&filter).await)
            .await?;
        let next = (rows.len() == limit as usize)
            .then(|| rows.last().map(|row| row.id.clone()))
            .flatten();
        let runs = rows
            .into_iter()
            .map(|row| match app.live.get(&row.id) {
                Some(live) => without_curves(live.view()),
                None => run_view(row),
            })
            .collect();
        Ok(RunList { runs, next })
    })
    .await
}

fn without_curves(mut view: RunView) -> RunView {
    for task in &mut view.tasks {
        task.curve = Vec::new();
    }
    view
}

/// Submits a run. It may name kernels and recordings of the daemon's kernel folders only.
#[utoipa::path(post, path = "/api/v1/runs", request_body = Request, tag = "runs",
    responses((status = 201, body = Submitted, description = "Queued; the queue survives a restart",
               headers(("location" = String))),
              (status = 413, body = Problem, description = "The body is too long"),
              (status = 415, body = Problem, description = "The body is not declared as JSON"),
              (status = 422, body = Problem, description = "The request cannot be executed"),
              (status = 429, body = Problem, description = "The queue is full")))]
pub(super) async fn submit(
    State(app): State<Arc<App>>,
    Body(request): Body<Request<ClientText>>,
) -> Result<Response, Problem> {
    let folders = app.settings.folders.clone();
    let confined = run_blocking("confine", move || confine::confine(request, &folders)).await??;
    let job = NewJob {
        device: tuner_engine::job::device_key(&confined).map_err(|error| {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.without_excerpts())
        })?,
        request: serde_json::to_string(&confined).unwrap_or_default(),
        folder: None,
    };
    let id = app.store.enqueue(job).await?;
    app.live.changed();
    app.wake.notify_one();
    let submitted = Submitted {
        id: id.to_string(),
        state: "queued".to_owned(),
    };
    let location = [(header::LOCATION, format!("/api/v1/runs/{id}"))];
    Ok((StatusCode::CREATED, location, Json(submitted)).into_response())
}

/// Returns a run, or the problem 404.
async fn existing(app: &App, id: &str) -> Result<RunView, Problem> {
    let found = app.run(id).await?;
    found.ok_or_else(|| Problem::no_run(id))
}

/// One run with its best-so-far curves.
#[utoipa::path(get, path = "/api/v1/runs/{id}", operation_id = "one", tag = "runs",
    params(("id" = String, Path)),
    responses((status = 200, body = RunView), (status = 404, body = Problem)))]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Json<RunView>, Problem> {
    existing(&app, &id).await.map(Json)
}

/// Filter of a run's results.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct TrialQuery {
    /// Leave out those that passed.
    failed: Option<bool>,
    /// Number of results, 1 to 20000 (default 50).
    #[param(minimum = 1, maximum = 20000)]
    limit: Option<u32>,
}

/// The latest results of a run, including failed ones.
#[utoipa::path(get, path = "/api/v1/runs/{id}/trials", tag = "runs",
    params(("id" = String, Path), TrialQuery),
    responses((status = 200, body = Vec<RunTrial>), (status = 404, body = Problem)))]
pub(super) async fn trials(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(query): Query<TrialQuery>,
) -> Result<Response, Problem> {
    existing(&app, &id).await?;
    let limit = within("limit", query.limit, 50, MAX_TRIALS)?;
    let failed = query.failed.unwrap_or(false);
    app.cached(format!("trials {id} {failed} {limit}"), async {
        let run = RunId::from_text(&id);
        let found = app.read(async move |store| store.run_trials(&run, failed, limit).await);
        Ok(found.await?)
    })
    .await
}

/// Stops a run: a queued one leaves the queue, a running one ends after the candidate on the
/// device. Its results are kept.
#[utoipa::path(post, path = "/api/v1/runs/{id}/stop", tag = "runs", params(("id" = String, Path)),
    responses((status = 202, body = Stopping), (status = 404, body = Problem),
              (status = 409, body = Problem, description = "The run has ended")))]
pub(super) async fn stop(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    // Between queue and engine a run is briefly in neither, so the stop is retried.
    for _ in 0..20 {
        if let Some(live) = app.live.get(&id) {
            live.stop(true);
            return Ok(stopping(id, "running"));
        }
        if app.store.cancel_job(&RunId::from_text(&id), false).await? {
            app.live.changed();
            return Ok(stopping(id, "stopped"));
        }
        let view = existing(&app, &id).await?;
        if view.state != "running" || view.request.is_none() {
            let hint = if view.state == "running" {
                "a separate `tuner run` drives it: press Ctrl-C there"
            } else {
                "it is over"
            };
            return Err(Problem::new(
                StatusCode::CONFLICT,
                format!("run {id} is {}: {hint}", view.state),
            ));
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Err(Problem::new(
        StatusCode::CONFLICT,
        format!("run {id} is just being taken up; try again"),
    ))
}

fn stopping(id: String, state: &str) -> Response {
    let body = Stopping {
        id,
        state: state.to_owned(),
    };
    (StatusCode::ACCEPTED, Json(body)).into_response()
}

/// Deletes an ended run with its results.
#[utoipa::path(delete, path = "/api/v1/runs/{id}", tag = "runs", params(("id" = String, Path)),
    responses((status = 204, description = "The run was deleted"), (status = 404, body = Problem),
              (status = 409, body = Problem, description = "The run has not ended, or found candidates \
                                                            wrong that another run had timed")))]
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let outcome = app.store.delete_run(&RunId::from_text(&id)).await?;
    app.live.changed();
    match outcome {
        Deletion::Deleted => Ok(StatusCode::NO_CONTENT),
        Deletion::Missing => Err(Problem::no_run(&id)),
        Deletion::Refused(why) => Err(Problem::new(
            StatusCode::CONFLICT,
            format!("run {id} is kept: {why}"),
        )),
    }
}

/// The users' note on a run.
#[utoipa::path(get, path = "/api/v1/runs/{id}/note", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = NoteView), (status = 404, body = Problem)))]
pub(super) async fn note(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Json<NoteView>, Problem> {
    existing(&app, &id).await?;
    let run = RunId::from_text(&id);
    let found = app.read(async move |store| store.note(&run).await).await?;
    let (text, changed_at) = found.map_or_else(Default::default, |(text, at)| (text, Some(at)));
    Ok(Json(NoteView { text, changed_at }))
}

/// Writes the note of a run; an empty text removes it.
#[utoipa::path(put, path = "/api/v1/runs/{id}/note", request_body = NoteView, tag = "runs",
    params(("id" = String, Path)),
    responses((status = 200, body = NoteView), (status = 404, body = Problem),
              (status = 413, body = Problem, description = "The body is too long"),
              (status = 415, body = Problem, description = "The body is not declared as JSON"),
              (status = 422, body = Problem, description = "The text is too long")))]
pub(super) async fn write_note(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Body(written): Body<NoteView>,
) -> Result<Json<NoteView>, Problem> {
    existing(&app, &id).await?;
    if written.text.chars().count() > MAX_NOTE {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("a note has at most {MAX_NOTE} characters"),
        ));
    }
    let run = RunId::from_text(&id);
    app.store.write_note(&run, written.text.trim_end()).await?;
    note(State(app), Path(id)).await
}

/// Events of a run as server-sent events: `run_started`, `snapshot` (a RunView), `trial` after each
/// stored result, `note` (a line for people), `run_finished`, `lag` with the number of events that a
/// slow reader missed, `end` (a RunView), `shutdown` when the daemon ends first.
#[utoipa::path(get, path = "/api/v1/runs/{id}/events", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, content_type = "text/event-stream", body = String),
              (status = 404, body = Problem)))]
pub(super) async fn events(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    // `tuner run` writes to the queue itself and then requests events, so its run starts now.
    app.wake.notify_one();
    existing(&app, &id).await?;
    stream::open_run(&app, id)
}

/// All running runs as server-sent events: `runs` with an array of RunView, a few times a second
/// after changes.
#[utoipa::path(get, path = "/api/v1/events", tag = "runs",
    responses((status = 200, content_type = "text/event-stream", body = String)))]
pub(super) async fn all_events(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    stream::open_all(&app)
}
