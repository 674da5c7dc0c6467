//! Client errors as RFC 9457 problems, and extractors that return them.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tuner_engine::threads::BlockingError;

/// A response with the error and its fix (`application/problem+json`).
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Problem {
    /// Always `about:blank`: the status is the kind.
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    /// Reason phrase of the status.
    pub(super) title: String,
    /// The HTTP status.
    pub(super) status: u16,
    /// Error and fix.
    pub(super) detail: String,
}

impl Problem {
    /// Creates a problem with this status.
    #[must_use]
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
        }
    }

    /// Creates the problem 404 for a run.
    #[must_use]
    pub(super) fn no_run(id: &str) -> Self {
        let id: String = id.chars().take(80).collect();
        Self::new(
            StatusCode::NOT_FOUND,
            format!("there is no run `{id}`; GET /api/v1/runs lists them"),
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let mut response = (status, Json(self)).into_response();
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        response
    }
}

impl From<tuner_store::StoreError> for Problem {
    fn from(error: tuner_store::StoreError) -> Self {
        if matches!(error.failure, tuner_store::Failure::QueueFull(_)) {
            return Self::new(StatusCode::TOO_MANY_REQUESTS, error.to_string());
        }
        tracing::error!(%error, "the database does not answer");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the database does not answer: {error}"),
        )
    }
}

impl From<BlockingError> for Problem {
    fn from(error: BlockingError) -> Self {
        let status = match error {
            BlockingError::NoThread(_) => StatusCode::SERVICE_UNAVAILABLE,
            BlockingError::Panicked(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let detail = match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => format!(
                "the body is longer than {} bytes; a request for a run has a few hundred",
                super::http::MAX_BODY
            ),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                "send the header `Content-Type: application/json`".to_owned()
            }
            _ => rejection.body_text(),
        };
        Self::new(rejection.status(), detail)
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

/// A JSON body.
#[derive(Debug, FromRequest)]
#[from_request(via(Json), rejection(Problem))]
pub(super) struct Body<T>(pub(super) T);

/// Query parameters.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Problem))]
pub(super) struct Query<T>(pub(super) T);

/// Path parameters.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Problem))]
pub(super) struct Path<T>(pub(super) T);
