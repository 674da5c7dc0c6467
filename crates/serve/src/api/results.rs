//! Results: leaderboard, candidates, parameter effects.

use super::super::app::App;
use super::super::problem::{Path, Problem, Query};
use super::super::sources::Sources;
use super::super::view::LeaderboardEntry;
use super::within;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;
use tuner_core::record::{LeaderboardRow, TimingKind};
use tuner_core::units::ContentHash;
use tuner_core::value::Value;
use tuner_engine::threads::run_blocking;
use tuner_store::{Board, BoardEffects, CandidatePage, DeviceFilter, LeaderboardQuery};

/// Maximum number of rows of a group.
const MAX_ROWS: u32 = 100_000;

/// Filter of the leaderboard.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct BoardQuery {
    /// Only this kernel.
    kernel: Option<String>,
    /// Only this problem.
    problem: Option<String>,
    /// Only this device, by its name in the leaderboard.
    device: Option<String>,
    /// Only this kind of time.
    timing: Option<TimingKind>,
    /// Rows for each kernel, problem and device: 1 to 100000 (default 20).
    #[param(minimum = 1, maximum = 100_000)]
    top: Option<u32>,
}

impl BoardQuery {
    fn query(&self) -> Result<LeaderboardQuery, Problem> {
        Ok(LeaderboardQuery {
            kernel: self.kernel.clone(),
            device: self.device.clone().map(DeviceFilter::Name),
            problem: self.problem.clone(),
            top: Some(within("top", self.top, 20, MAX_ROWS)? as usize),
            timings: self.timing.into_iter().collect(),
            admitted: Some(tuner_report::admitted),
            ..LeaderboardQuery::default()
        })
    }
}

/// Ranked verified results, best first within kernel, problem and device.
#[utoipa::path(get, path = "/api/v1/leaderboard", params(BoardQuery), tag = "results",
    responses((status = 200, body = Vec<LeaderboardEntry>), (status = 400, body = Problem)))]
pub(super) async fn leaderboard(
    State(app): State<Arc<App>>,
    Query(query): Query<BoardQuery>,
) -> Result<Response, Problem> {
    let query = query.query()?;
    app.cached(format!("leaderboard {query:?}"), async {
        let boards = app
            .read(async move |store| store.boards(&query).await)
            .await?;
        let entries: Vec<LeaderboardEntry> = boards
            .into_iter()
            .flat_map(|board| board.rows.into_iter().zip(board.candidates))
            .map(|(row, candidate)| LeaderboardEntry {
                row,
                candidate: candidate.to_string(),
            })
            .collect();
        Ok(entries)
    })
    .await
}

/// All data of a candidate: configuration, verdicts, hazards, resources, raw samples.
#[utoipa::path(get, path = "/api/v1/candidates/{candidate}", tag = "results",
    params(("candidate" = String, Path, description = "64 hexadecimal digits")),
    responses((status = 200, body = CandidatePage), (status = 404, body = Problem)))]
pub(super) async fn candidate(
    State(app): State<Arc<App>>,
    Path(candidate): Path<String>,
) -> Result<Json<CandidatePage>, Problem> {
    let hex = candidate.len() == 64 && candidate.bytes().all(|b| b.is_ascii_hexdigit());
    let hash = ContentHash::from_stored(candidate.to_ascii_lowercase());
    let page = if hex {
        app.read(async move |store| store.candidate(&hash).await)
            .await?
    } else {
        None
    };
    let mut page = page.ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "there is no such candidate; /api/v1/leaderboard names some",
        )
    })?;
    let folders = app.settings.folders.clone();
    let with_sources = move || {
        let attempts = page.attempts.iter_mut();
        let hazards = attempts.flat_map(|attempt| &mut attempt.hazards);
        let mut placed = hazards
            .filter(|found| found.hazard.line.is_some())
            .peekable();
        if placed.peek().is_some() {
            let sources = Sources::of_kernel(&page.kernel, &folders);
            placed.for_each(|found| found.source = sources.line(&found.hazard));
        }
        page
    };
    Ok(Json(run_blocking("sources", with_sources).await?))
}

/// Effect of each value of each parameter on one board: best and median time, candidates.
#[utoipa::path(get, path = "/api/v1/effects", params(BoardQuery), tag = "results",
    responses((status = 200, body = BoardEffects), (status = 404, body = Problem)))]
pub(super) async fn effects(
    State(app): State<Arc<App>>,
    Query(query): Query<BoardQuery>,
) -> Result<Response, Problem> {
    let query = query.query()?;
    app.cached(format!("effects {query:?}"), async {
        let found = app.read(async move |store| store.effects(&query).await);
        let Some(mut found) = found.await? else {
            return Err(Problem::new(
                StatusCode::NOT_FOUND,
                "no results match; /api/v1/leaderboard names kernels, problems and devices",
            ));
        };
        let weighed = run_blocking("effects", move || {
            weigh(&mut found);
            found
        });
        Ok(weighed.await?)
    })
    .await
}

/// Maximum candidates for computing importance; more are sampled evenly.
const MAX_IMPORTANCE_POINTS: usize = 2000;

/// Adds the share of variance that each parameter explains alone, and that only combinations explain.
fn weigh(found: &mut BoardEffects) {
    let text = |value: &Value| serde_json::to_string(value).unwrap_or_default();
    let places: Vec<(&str, HashMap<String, usize>)> = found
        .parameters
        .iter()
        .map(|effect| {
            let values = effect.values.iter().map(|value| text(&value.value));
            let numbers = values.enumerate().map(|(place, value)| (value, place));
            (effect.parameter.as_str(), numbers.collect())
        })
        .collect();
    let step = found.rows.len().div_ceil(MAX_IMPORTANCE_POINTS).max(1);
    let mut points = Vec::new();
    let mut times = Vec::new();
    for (config, us) in found.rows.iter().step_by(step) {
        let level = |(name, numbers): &(&str, HashMap<String, usize>)| {
            let (_, value) = config.iter().find(|(parameter, _)| parameter == name)?;
            numbers.get(&text(value)).copied()
        };
        // A row of an earlier space may lack a parameter.
        let Some(point) = places.iter().map(level).collect() else {
            continue;
        };
        points.push(point);
        times.push(us.ln());
    }
    let levels: Vec<usize> = places.iter().map(|(_, numbers)| numbers.len()).collect();
    if let Some(importance) = surrogate::importance(&levels, &points, &times) {
        for (effect, alone) in found.parameters.iter_mut().zip(importance.alone) {
            effect.importance = Some(alone);
        }
        found.together = Some(importance.together);
    }
}

/// Filter of a header.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct HeaderQuery {
    /// The kernel.
    kernel: String,
    /// Only this problem.
    problem: Option<String>,
    /// Only this device, by its name in the leaderboard.
    device: Option<String>,
    /// Also predicted times, if no measurement exists.
    #[serde(default)]
    allow_predicted: bool,
}

/// The best configurations of a kernel as the header of `tuner export`.
#[utoipa::path(get, path = "/api/v1/header", params(HeaderQuery), tag = "results",
    responses((status = 200, content_type = "text/plain", body = String),
              (status = 404, body = Problem, description = "There is nothing to export"),
              (status = 422, body = Problem, description = "The results cannot be exported as a header")))]
pub(super) async fn header(
    State(app): State<Arc<App>>,
    Query(query): Query<HeaderQuery>,
) -> Result<impl IntoResponse, Problem> {
    let board = LeaderboardQuery {
        kernel: Some(query.kernel.clone()),
        device: query.device.clone().map(DeviceFilter::Name),
        problem: query.problem.clone(),
        top: Some(1),
        admitted: Some(tuner_report::admitted),
        ..LeaderboardQuery::default()
    };
    let wanted = move |board: &Board| {
        let proven = board.rows.first().is_none_or(LeaderboardRow::is_proven);
        proven && (query.allow_predicted || board.timing != TimingKind::Predicted)
    };
    let found = app.read(async move |store| {
        let mut boards = store.boards(&board).await?;
        let any = !boards.is_empty();
        boards.retain(wanted);
        Ok((any, store.entries(&boards).await?))
    });
    let (any, entries) = found.await?;
    if entries.is_empty() {
        let why = if !any {
            "no result matches; /api/v1/leaderboard names kernels, problems and devices"
        } else {
            "there are only predicted times, or ones that passed only the gate's first look; measure \
             on a GPU, or add allow_predicted=true"
        };
        return Err(Problem::new(StatusCode::NOT_FOUND, why));
    }
    let text = tuner_report::export::header(&query.kernel, &entries)
        .map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text))
}
