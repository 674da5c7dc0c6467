//! One POST over HTTP/1.1, with or without TLS, and its body within limits.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response, Uri, header};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// Maximum wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Largest body of a response.
pub(super) const MAX_BODY_BYTES: usize = 16 << 20;
/// Maximum number of followed redirects within the same host.
const MAX_REDIRECTS: u32 = 3;

/// Response of an endpoint.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    /// The body is a stream of events.
    pub(super) is_stream: bool,
    /// Content type and encoding, as received.
    pub(super) content_type: String,
    pub(super) body: String,
}

/// Reason why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    /// The connection failed; a retry may succeed.
    #[error("{host}: {why}")]
    Connection {
        /// Host of the endpoint.
        host: String,
        /// The reason.
        why: String,
    },
    /// A redirect that is not followed.
    #[error(
        "the endpoint redirects from {from} to {to}; the key and the source are not sent to another host. \
         Set TUNER_LLM_URL to the new address if it is yours"
    )]
    Redirect {
        /// Host of the endpoint.
        from: String,
        /// Host of the redirect.
        to: String,
    },
    /// A redirect to another scheme or port of the same host.
    #[error("the endpoint has moved: set TUNER_LLM_URL to an address at {to}")]
    Moved {
        /// Scheme, host and port of the redirect.
        to: String,
    },
    /// Redirects without an end.
    #[error("the endpoint redirects more than {MAX_REDIRECTS} times; check TUNER_LLM_URL")]
    RedirectLoop,
    /// The body is too large.
    #[error("the response has more than {MAX_BODY_BYTES} bytes")]
    TooLarge,
}

/// Sends a JSON document, and follows redirects within the host.
pub(super) async fn post(
    url: &Uri,
    authorization: Option<&str>,
    body: &[u8],
) -> Result<Reply, ClientError> {
    let mut url = url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let response = exchange(&url, authorization, body).await?;
        if !response.status().is_redirection() {
            return read(&url, response).await;
        }
        url = redirected(&url, &response)?;
    }
    Err(ClientError::RedirectLoop)
}

/// Returns the target of a redirect within the same scheme, host and port.
fn redirected(from: &Uri, response: &Response<Incoming>) -> Result<Uri, ClientError> {
    let target = response.headers().get(header::LOCATION);
    let target = target
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    // `//HOST/PATH` names another host (RFC 3986, Relative Reference).
    let parsed: Option<Uri> = match target.starts_with('/') && !target.starts_with("//") {
        true => Uri::builder()
            .scheme(from.scheme_str().unwrap_or("https"))
            .authority(from.authority().map_or("", |authority| authority.as_str()))
            .path_and_query(target)
            .build()
            .ok(),
        false => target.parse().ok(),
    };
    match parsed {
        Some(to) if (to.scheme(), to.authority()) == (from.scheme(), from.authority()) => Ok(to),
        Some(to) if to.host().is_some() && to.host() == from.host() => Err(ClientError::Moved {
            to: format!("{}://{}", to.scheme_str().unwrap_or("https"), host(&to)),
        }),
        other => Err(ClientError::Redirect {
            from: host(from),
            to: other.as_ref().map_or_else(|| "nowhere".to_owned(), host),
        }),
    }
}

fn host(url: &Uri) -> String {
    url.authority()
        .map_or("nowhere".to_owned(), ToString::to_string)
}

fn connection(url: &Uri, why: impl ToString) -> ClientError {
    ClientError::Connection {
        host: host(url),
        why: why.to_string(),
    }
}

async fn exchange(
    url: &Uri,
    authorization: Option<&str>,
    body: &[u8],
) -> Result<Response<Incoming>, ClientError> {
    // Neither the resolver nor rustls accepts an IPv6 address in the brackets of a URL.
    let name = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_tls = url.scheme_str() == Some("https");
    let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect((name, port)));
    let stream = match connecting.await {
        Ok(stream) => stream.map_err(|error| connection(url, error))?,
        Err(_) => return Err(connection(url, "no connection in time")),
    };
    if !is_tls {
        return send(url, stream, authorization, body).await;
    }
    let server = ServerName::try_from(name.to_owned()).map_err(|error| connection(url, error))?;
    let connector = TlsConnector::from(Arc::new(tls_settings(url)?));
    let stream = connector.connect(server, stream).await;
    send(
        url,
        stream.map_err(|error| connection(url, error))?,
        authorization,
        body,
    )
    .await
}

/// Returns TLS settings with the system's certificates.
fn tls_settings(url: &Uri) -> Result<ClientConfig, ClientError> {
    let mut roots = RootCertStore::empty();
    // One unreadable system certificate must not prevent all connections.
    let (_, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(crypto::ring::default_provider());
    let settings =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let settings = settings.map_err(|error| connection(url, error))?;
    Ok(settings.with_root_certificates(roots).with_no_client_auth())
}

async fn send(
    url: &Uri,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    authorization: Option<&str>,
    body: &[u8],
) -> Result<Response<Incoming>, ClientError> {
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, driver) = handshake.map_err(|error| connection(url, error))?;
    tokio::spawn(async move {
        // A lost connection is reported by the response.
        let _ = driver.await;
    });
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::post(path)
        // HTTP/1.1 requires it, and hyper's connection adds no headers.
        .header(header::HOST, host(url))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "text/event-stream, application/json")
        .header(
            header::USER_AGENT,
            concat!("tuner/", env!("CARGO_PKG_VERSION")),
        );
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body)));
    let request = request.map_err(|_| connection(url, "the key is not a valid header"))?;
    sender
        .send_request(request)
        .await
        .map_err(|error| connection(url, error))
}

async fn read(url: &Uri, response: Response<Incoming>) -> Result<Reply, ClientError> {
    let text = |name: header::HeaderName| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let retry_after = text(header::RETRY_AFTER).and_then(|text| wait_of(&text, SystemTime::now()));
    let content_type = text(header::CONTENT_TYPE).unwrap_or_default();
    let encoding = text(header::CONTENT_ENCODING).filter(|encoding| encoding != "identity");
    let status = response.status().as_u16();
    let mut body = Vec::new();
    let mut incoming = response.into_body();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| connection(url, error))?;
        if let Some(data) = frame.data_ref() {
            if body.len() + data.len() > MAX_BODY_BYTES {
                return Err(ClientError::TooLarge);
            }
            body.extend_from_slice(data);
        }
    }
    Ok(Reply {
        status,
        retry_after,
        is_stream: content_type.starts_with("text/event-stream"),
        content_type: [Some(content_type), encoding]
            .into_iter()
            .flatten()
            .collect::<Vec<String>>()
            .join(", "),
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// Reads `retry-after`: seconds, or a date.
pub(super) fn wait_of(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}
