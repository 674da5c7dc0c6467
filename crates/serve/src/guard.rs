//! Access control: the token, and for a listener without one the check that no foreign web page sent the
//! request. Also the common response headers and the request timeout.

use super::app::App;
use super::problem::Problem;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use subtle::ConstantTimeEq as _;

/// Time to receive a request body and send the response head. Streams continue after their head.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Paths served without a token: static pages and liveness.
const PUBLIC_PATHS: [&str; 7] = [
    "/",
    "/dashboard.js",
    "/echarts.js",
    "/dashboard.css",
    "/healthz",
    "/readyz",
    "/openapi.json",
];

/// Allows only the daemon's script and style, and no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Wraps all requests.
pub(super) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let refused = foreign_origin(&app, request.headers())
        .or_else(|| unauthorized(&app, request.headers(), &path));
    let mut response = match refused {
        Some(problem) => problem.into_response(),
        None => match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
            Ok(response) => response,
            Err(_) => Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                format!("no answer within {} s", REQUEST_TIMEOUT.as_secs()),
            )
            .into_response(),
        },
    };
    let class = match response.status().as_u16() {
        200..300 => 0,
        400..500 => 1,
        500..600 => 2,
        _ => 3,
    };
    if let Some(count) = app.answers.get(class) {
        count.fetch_add(1, Ordering::Relaxed);
    }
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Rejects requests of foreign origins. A web page may send requests to this machine's ports from its
/// reader's browser, but cannot forge `Origin` or, when it resolves its own name to 127.0.0.1, `Host`.
fn foreign_origin(app: &App, headers: &HeaderMap) -> Option<Problem> {
    let (Ok(host), Ok(origin)) = (
        single(headers, header::HOST),
        single(headers, header::ORIGIN),
    ) else {
        return Some(Problem::new(
            StatusCode::BAD_REQUEST,
            "`Host` and `Origin` are sent once at most, in ASCII",
        ));
    };
    let host = host.unwrap_or_default();
    let loopback = app.settings.listen.ip().is_loopback();
    if loopback && app.settings.token.is_none() && !is_local(host) {
        return Some(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "this daemon listens on the loopback address only: ask for http://127.0.0.1 or \
             http://localhost",
        ));
    }
    let same = origin?
        .split_once("://")
        .is_some_and(|(_, rest)| rest == host);
    (!same).then(|| {
        Problem::new(
            StatusCode::FORBIDDEN,
            "pages of another origin may not ask this daemon",
        )
    })
}

/// Returns a header that may occur only once, as ASCII text.
fn single(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(HeaderValue::to_str);
    match (first, values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(text)), None) => Ok(Some(text)),
        _ => Err(()),
    }
}

fn is_local(host: &str) -> bool {
    // A URL parser that reads `localhost:80@evil.example` connects to evil.example.
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    if authority.as_str().contains('@') {
        return false;
    }
    let name = authority.host();
    let name = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(name);
    let port_is_number = match authority.as_str().strip_prefix(authority.host()) {
        Some("") => true,
        Some(_) => authority.port_u16().is_some(),
        None => false,
    };
    let loopback = |ip: std::net::IpAddr| ip.is_loopback();
    port_is_number && (name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(loopback))
}

fn unauthorized(app: &App, headers: &HeaderMap, path: &str) -> Option<Problem> {
    let token = app.settings.token.as_ref()?;
    if PUBLIC_PATHS.contains(&path) {
        return None;
    }
    let shown = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| bearer_token(value.as_bytes()));
    // Constant-time comparison.
    let right = shown.is_some_and(|shown| bool::from(shown.ct_eq(token.as_bytes())));
    (!right).then(|| {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "send the header `Authorization: Bearer TOKEN` with the daemon's token",
        )
    })
}

/// Parses the token of a header; the scheme is case-insensitive (RFC 9110, section 11.1).
fn bearer_token(value: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"Bearer ";
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    let token = token.trim_ascii_start();
    scheme.eq_ignore_ascii_case(SCHEME).then_some(token)
}

#[cfg(test)]
mod tests;
