//! The API's paths. Each handler's types generate the OpenAPI document, so that it matches the
//! implementation.

mod document;
mod evolutions;
mod results;
mod runs;
mod system;

use super::app::App;
use super::problem::Problem;
use axum::http::{StatusCode, header};
use axum::routing::get;
use axum::{Json, Router};
use std::sync::Arc;
use utoipa::openapi::{InfoBuilder, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Builds the router of all paths.
pub(super) fn router(app: Arc<App>) -> Router {
    let document = OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("tuner")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(
                    "The daemon of the GPU-kernel auto-tuner: submit runs, follow them, read their \
                     results. Errors are application/problem+json (RFC 9457). If the daemon \
                     has a token, send `Authorization: Bearer TOKEN`.",
                ))
                .build(),
        )
        .build();
    let (mut router, document) = OpenApiRouter::with_openapi(document)
        .routes(routes!(runs::list, runs::submit))
        .routes(routes!(runs::show, runs::delete))
        .routes(routes!(runs::trials))
        .routes(routes!(runs::stop))
        .routes(routes!(runs::note, runs::write_note))
        .routes(routes!(runs::events))
        .routes(routes!(runs::all_events))
        .routes(routes!(results::leaderboard))
        .routes(routes!(results::candidate))
        .routes(routes!(results::effects))
        .routes(routes!(results::header))
        .routes(routes!(evolutions::evolutions))
        .routes(routes!(system::choices))
        .routes(routes!(system::devices))
        .routes(routes!(system::verdicts))
        .routes(routes!(system::fleet))
        .routes(routes!(system::healthz))
        .routes(routes!(system::readyz))
        .routes(routes!(system::metrics))
        .split_for_parts();
    let document = Arc::new(document::complete(document));
    for (path, kind, content) in system::PAGES {
        let page = move || async move { ([(header::CONTENT_TYPE, kind)], content) };
        router = router.route(path, get(page));
    }
    router
        .route(
            "/openapi.json",
            get(move || {
                let document = Arc::clone(&document);
                async move { Json((*document).clone()) }
            }),
        )
        .fallback(|| async {
            Problem::new(
                StatusCode::NOT_FOUND,
                "no such path; /openapi.json lists them",
            )
        })
        .method_not_allowed_fallback(|| async {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this path does not take that method; /openapi.json says which it takes",
            )
        })
        .with_state(app)
}

/// Validates a requested row count and applies the default.
fn within(name: &str, asked: Option<u32>, default: u32, max: u32) -> Result<u32, Problem> {
    let asked = asked.unwrap_or(default);
    if (1..=max).contains(&asked) {
        return Ok(asked);
    }
    Err(Problem::new(
        StatusCode::BAD_REQUEST,
        format!("`{name}={asked}` is out of range: give 1 to {max}"),
    ))
}
