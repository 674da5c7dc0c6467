//! The daemon: pages, devices, health, metrics.

use super::super::app::App;
use super::super::problem::Problem;
use super::super::view::{Choices, DeviceView, Health, VerdictView};
use super::super::{clocks, confine, health, metrics};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tuner_core::record::Verdict;
use tuner_engine::fleet::FleetView;
use tuner_engine::threads::run_blocking;

/// Devices with results, and their clocks.
#[utoipa::path(get, path = "/api/v1/devices", tag = "results",
    responses((status = 200, body = Vec<DeviceView>)))]
pub(super) async fn devices(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    app.cached("devices".to_owned(), async {
        let running: Vec<(String, String)> = app
            .live
            .runs()
            .iter()
            .map(|run| run.view())
            .map(|view| (view.device, view.id))
            .collect();
        let rows = app.read(async |store| store.devices().await).await?;
        let describe = move || -> Vec<DeviceView> {
            rows.into_iter()
                .map(|row| {
                    let run = running.iter().find(|(device, _)| *device == row.name);
                    clocks::describe(row, run.map(|(_, id)| id.clone()))
                })
                .collect()
        };
        Ok(run_blocking("devices", describe).await?)
    })
    .await
}

/// Kernels, problems and devices that a request for a run may name.
#[utoipa::path(get, path = "/api/v1/choices", tag = "runs",
    responses((status = 200, body = Choices)))]
pub(super) async fn choices(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let folders = app.settings.folders.clone();
    app.cached("choices".to_owned(), async {
        Ok(run_blocking("choices", move || confine::choices(&folders)).await?)
    })
    .await
}

/// All verdicts in order of precedence, with their consequences.
#[utoipa::path(get, path = "/api/v1/verdicts", tag = "results",
    responses((status = 200, body = Vec<VerdictView>)))]
pub(super) async fn verdicts() -> Json<Vec<VerdictView>> {
    let view = |verdict: &Verdict| VerdictView {
        verdict: *verdict,
        facts: verdict.facts(),
    };
    Json(Verdict::ALL.iter().map(view).collect())
}

/// The fleet that judges this daemon's candidates: workers, runs, queues.
#[utoipa::path(get, path = "/api/v1/fleet", tag = "system",
    responses((status = 200, body = FleetView), (status = 404, body = Problem)))]
pub(super) async fn fleet(State(app): State<Arc<App>>) -> Result<Json<FleetView>, Problem> {
    let fleet = app.settings.fleet.as_ref().map(|fleet| fleet.view());
    fleet.map(Json).ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "this daemon has no fleet; start it with --fleet nats://HOST:4222",
        )
    })
}

/// Health of the daemon. Needs no token, and answers 200 as long as the daemon lives: a restart does not
/// empty a disk.
#[utoipa::path(get, path = "/healthz", tag = "system", responses((status = 200, body = Health)))]
pub(super) async fn healthz(State(app): State<Arc<App>>) -> Json<Health> {
    Json(health::examine(&app).await)
}

/// Readiness for new runs: as `/healthz`, with 503 unless the status is `ok`.
#[utoipa::path(get, path = "/readyz", tag = "system",
    responses((status = 200, body = Health),
              (status = 503, body = Health, description = "The conditions name the failure")))]
pub(super) async fn readyz(State(app): State<Arc<App>>) -> impl IntoResponse {
    let health = health::examine(&app).await;
    let status = if health.status == "ok" {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(health))
}

/// Counters and gauges in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", tag = "system",
    responses((status = 200, content_type = "text/plain", body = String)))]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Result<impl IntoResponse, Problem> {
    let page = metrics::page(&app).await?;
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], page))
}

/// Static files: path, media type and content.
pub(super) const PAGES: [(&str, &str, &str); 4] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("../dashboard/index.html"),
    ),
    (
        "/dashboard.js",
        "text/javascript; charset=utf-8",
        concat!(
            include_str!("../dashboard/core.js"),
            include_str!("../dashboard/charts.js"),
            include_str!("../dashboard/plots.js"),
            include_str!("../dashboard/explore.js"),
            include_str!("../dashboard/views.js"),
        ),
    ),
    // Plot library: Apache ECharts.
    (
        "/echarts.js",
        "text/javascript; charset=utf-8",
        include_str!("../dashboard/vendor/echarts.min.js"),
    ),
    (
        "/dashboard.css",
        "text/css; charset=utf-8",
        include_str!("../dashboard/style.css"),
    ),
];
