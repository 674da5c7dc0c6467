//! HTTP client of the API, used by `tuner run`, `submit`, `status` and `stop`.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::net::TcpStream;

/// Timeout of connecting and of the response head.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Reason for a failed request.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No program listens at the address.
    #[error("no daemon answers at http://{address} ({why}); start one with `tuner serve`")]
    Unreachable {
        /// Address.
        address: String,
        /// System error.
        why: String,
    },
    /// The daemon requires a token.
    #[error(
        "the daemon at http://{address} wants its token: put it into the environment variable \
         TUNER_TOKEN, or its file into --token-file"
    )]
    Token {
        /// Address.
        address: String,
    },
    /// The daemon refused the request.
    #[error("{detail}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Reason.
        detail: String,
    },
    /// Another program listens at the address.
    #[error("the program at http://{address} is not a daemon of this tuner ({why})")]
    Stranger {
        /// Address.
        address: String,
        /// Unexpected part of the response.
        why: String,
    },
}

/// Address and token of a daemon.
#[derive(Debug, Clone)]
pub struct Client {
    address: String,
    token: Option<String>,
}

impl Client {
    /// Creates a client of the daemon at `HOST:PORT` or `http://HOST:PORT`.
    #[must_use]
    pub fn new(address: &str, token: Option<String>) -> Self {
        let address = address.strip_prefix("http://").unwrap_or(address);
        Self {
            address: address.trim_end_matches('/').to_owned(),
            token,
        }
    }

    /// Returns `HOST:PORT`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let response = self.send(Method::GET, path, Bytes::new()).await?;
        self.read(response).await
    }

    /// Sends a POST request.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).unwrap_or_default();
        let response = self.send(Method::POST, path, body.into()).await?;
        self.read(response).await
    }

    /// Opens a stream of events.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn events(&self, path: &str) -> Result<Events, ClientError> {
        let response = self.send(Method::GET, path, Bytes::new()).await?;
        if !response.status().is_success() {
            let nothing: Result<serde_json::Value, _> = self.read(response).await;
            return Err(nothing
                .err()
                .unwrap_or_else(|| self.unexpected("no events")));
        }
        Ok(Events {
            body: response.into_body(),
            buffer: Vec::new(),
        })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let sending = self.exchange(method, path, body);
        match tokio::time::timeout(REQUEST_TIMEOUT, sending).await {
            Ok(response) => response,
            Err(_) => Err(self.unreachable("no answer in time")),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let stream = TcpStream::connect(&self.address)
            .await
            .map_err(|error| self.unreachable(error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.unreachable(error))?;
        tokio::spawn(async move {
            // A lost connection is detected in the response body.
            let _ = connection.await;
        });
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            // hyper's connection does not add it, and the daemon compares it with its own address.
            .header(header::HOST, &self.address)
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| self.unexpected(error))?;
        sender
            .send_request(request)
            .await
            .map_err(|error| self.unexpected(error))
    }

    async fn read<T: DeserializeOwned>(
        &self,
        response: Response<Incoming>,
    ) -> Result<T, ClientError> {
        let status = response.status();
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| self.unexpected(error))?.to_bytes();
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| self.unexpected(error));
        }
        if status == hyper::StatusCode::UNAUTHORIZED {
            return Err(ClientError::Token {
                address: self.address.clone(),
            });
        }
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        match problem.get("detail").and_then(serde_json::Value::as_str) {
            Some(detail) => Err(ClientError::Refused {
                status: status.as_u16(),
                detail: detail.to_owned(),
            }),
            None => Err(self.unexpected(format!("HTTP status {status}"))),
        }
    }

    fn unreachable(&self, why: impl ToString) -> ClientError {
        ClientError::Unreachable {
            address: self.address.clone(),
            why: why.to_string(),
        }
    }

    fn unexpected(&self, why: impl ToString) -> ClientError {
        ClientError::Stranger {
            address: self.address.clone(),
            why: why.to_string(),
        }
    }
}

/// A stream of server-sent events.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Events {
    /// Returns the next event as its name and data; `None` if the stream ends or breaks.
    pub async fn next(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
                if let Some(event) = parse(&String::from_utf8_lossy(&block)) {
                    return Some(event);
                }
                continue;
            }
            let frame = self.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.buffer.extend_from_slice(data);
            }
        }
    }
}

/// Parses one block of a stream; comments are skipped.
fn parse(block: &str) -> Option<(String, String)> {
    let field = |name: &str| {
        block
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    Some((field("event")?.to_owned(), field("data")?.to_owned()))
}

#[cfg(test)]
mod tests;
