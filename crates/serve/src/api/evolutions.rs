//! Evolutions: family trees of changed code.

use super::super::app::App;
use super::super::problem::{Problem, Query};
use super::super::view::EvolutionView;
use super::within;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;
use tuner_evolve::lineage;
use tuner_store::{Store, StoreError};

/// Maximum number of evolutions in a response.
const MAX_EVOLUTIONS: u32 = 200;

/// Filter of the evolutions.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EvolutionQuery {
    /// Only this kernel.
    kernel: Option<String>,
    /// Only this device, by its name in the leaderboard.
    device: Option<String>,
    /// Latest evolutions: 1 to 200 (default 20).
    #[param(minimum = 1, maximum = 200)]
    top: Option<u32>,
}

/// Evolutions of changed code as family trees with their figures, the latest first.
#[utoipa::path(get, path = "/api/v1/evolutions", params(EvolutionQuery), tag = "results",
    responses((status = 200, body = Vec<EvolutionView>), (status = 400, body = Problem)))]
pub(super) async fn evolutions(
    State(app): State<Arc<App>>,
    Query(query): Query<EvolutionQuery>,
) -> Result<Response, Problem> {
    let top = within("top", query.top, 20, MAX_EVOLUTIONS)? as usize;
    app.cached(format!("evolutions {query:?}"), async {
        let read = app.read(async move |store| read(&store, &query, top).await);
        Ok(read.await?)
    })
    .await
}

async fn read(
    store: &Store,
    query: &EvolutionQuery,
    top: usize,
) -> Result<Vec<EvolutionView>, StoreError> {
    let all = store
        .lineages(query.kernel.as_deref(), query.device.as_deref())
        .await?;
    let mut views = Vec::new();
    for one in all.iter().rev().take(top) {
        let boards = store.boards(&lineage::boards_query(one)).await?;
        let speedups = lineage::speedups(one, &boards);
        views.push(EvolutionView::new(one, speedups.as_deref()));
    }
    Ok(views)
}
