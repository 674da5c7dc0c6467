//! The daemon itself: the page, devices, health, metrics.

use super::super::app::App;
use super::super::problem::Problem;
use super::super::view::{DeviceView, Health};
use super::super::{clocks, health, metrics};
use super::{bytes_of, json_bytes};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use std::sync::Arc;
use tuner_engine::fleet::FleetView;

/// Devices with results, and their clocks.
#[utoipa::path(get, path = "/api/v1/devices", tag = "results",
    responses((status = 200, body = Vec<DeviceView>)))]
pub(super) async fn devices(State(app): State<Arc<App>>) -> Result<impl IntoResponse, Problem> {
    let answer = app.cached("devices".to_owned(), async {
        let running: Vec<(String, String)> = app
            .live
            .all()
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
        let views = tokio::task::spawn_blocking(describe)
            .await
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        bytes_of(&views)
    });
    Ok(json_bytes(answer.await?))
}

/// The fleet that judges this daemon's candidates: workers, runs, queues.
#[utoipa::path(get, path = "/api/v1/fleet", tag = "system",
    responses((status = 200, body = FleetView), (status = 404, body = Problem)))]
pub(super) async fn fleet(State(app): State<Arc<App>>) -> Result<Json<FleetView>, Problem> {
    let fleet = app.fleet.as_ref().map(|fleet| fleet.view());
    fleet.map(Json).ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "this daemon has no fleet; start it with --fleet nats://HOST:4222",
        )
    })
}

/// Whether the daemon is well. Answers without a token, and with 200 as long as the daemon lives:
/// restarting it does not empty a disk.
#[utoipa::path(get, path = "/healthz", tag = "system", responses((status = 200, body = Health)))]
pub(super) async fn healthz(State(app): State<Arc<App>>) -> Json<Health> {
    Json(health::examine(&app).await)
}

/// Whether runs can be sent here: as `/healthz`, with 503 where the status is not `ok`.
#[utoipa::path(get, path = "/readyz", tag = "system",
    responses((status = 200, body = Health),
              (status = 503, body = Health, description = "The conditions say what is wrong")))]
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

/// The dashboard.
pub(super) async fn page() -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (kind, include_str!("../dashboard/index.html"))
}

/// Its script.
pub(super) async fn script() -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")];
    let parts = concat!(
        include_str!("../dashboard/core.js"),
        include_str!("../dashboard/charts.js"),
        include_str!("../dashboard/plots.js"),
        include_str!("../dashboard/explore.js"),
        include_str!("../dashboard/views.js"),
    );
    (kind, parts)
}

/// The library that draws its larger plots (Apache ECharts, `dashboard/vendor`).
pub(super) async fn plots() -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")];
    (kind, include_str!("../dashboard/vendor/echarts.min.js"))
}

/// Its style.
pub(super) async fn style() -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "text/css; charset=utf-8")];
    (kind, include_str!("../dashboard/style.css"))
}
