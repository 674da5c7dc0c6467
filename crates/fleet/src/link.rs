//! Connection to a fleet's server, with its streams and buckets.

use super::access::{Access, AccessError};
use super::names::{NameError, Names};
use super::objects::{ObjectError, Objects};
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, Context, kv};
use async_nats::{Client, ConnectErrorKind, Event};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
pub(crate) use tuner_engine::turned;

/// Timeout of a request to the server.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Retry interval while the server does not answer.
pub(crate) const AGAIN: Duration = Duration::from_secs(1);

/// Retention of unread orders and answers.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// Retention of events.
const EVENTS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// Window in which the server discards duplicate messages.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// Maximum number of unacknowledged orders.
const IN_HAND_MAX: i64 = 65_536;

/// Reason why a fleet cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Invalid credentials or address.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Invalid fleet name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The server refuses the credentials.
    #[error(
        "the NATS server at {server} refuses this connection ({why}); give the right credentials \
         (--fleet-creds, --fleet-nkey, --fleet-token or --fleet-user, see docs/fleet.md)"
    )]
    Refused {
        /// The server.
        server: String,
        /// Server's reason.
        why: String,
    },
    /// The server does not answer.
    #[error("no NATS server answers at {server} ({why}); start one: nats-server -js")]
    Unreachable {
        /// The server.
        server: String,
        /// Connection error.
        why: String,
    },
    /// TLS handshake failed.
    #[error(
        "the NATS server at {server} and this program cannot agree on TLS ({why}); give the authority \
         of the server's certificate with --fleet-ca FILE and, where the server asks for one, your own \
         certificate with --fleet-cert FILE and --fleet-key FILE"
    )]
    Tls {
        /// The server.
        server: String,
        /// TLS error.
        why: String,
    },
    /// The server has no JetStream or denies access to it.
    #[error(
        "the NATS server at {server} does not let a fleet work: {why} (it needs JetStream: \
         nats-server -js, and rights as in docs/fleet.md)"
    )]
    NoJetStream {
        /// The server.
        server: String,
        /// Server's reason.
        why: String,
    },
    /// Hub and worker have different protocol versions.
    #[error(
        "the hub of this fleet speaks protocol {theirs} (tuner {version}), this worker speaks \
         protocol {}; install the same version of the tuner on both",
        tuner_engine::fleet::PROTOCOL
    )]
    Protocol {
        /// The hub's protocol.
        theirs: u32,
        /// The hub's version.
        version: String,
    },
    /// Another hub owns the run.
    #[error(
        "run {run} is carried out by another hub (process {pid} on {host}); end that one first"
    )]
    RunClaimed {
        /// The run.
        run: String,
        /// Its machine.
        host: String,
        /// Its process.
        pid: u32,
    },
    /// A request to the server failed.
    #[error("the NATS server: {0}")]
    Server(String),
    /// The device or the compiler of this machine failed.
    #[error("{0}")]
    Machine(String),
    /// Internal error.
    #[error("{0}; please report this")]
    Defect(String),
}

impl FleetError {
    /// Creates an internal error.
    pub(crate) fn defect(error: impl std::fmt::Display) -> Self {
        Self::Defect(error.to_string())
    }

    /// Creates a server error.
    pub(crate) fn server(error: impl std::fmt::Display) -> Self {
        Self::Server(error.to_string())
    }

    /// Reports whether a different argument is the remedy (exit code 2), rather than a repair.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Server(_) | Self::Machine(_) | Self::Defect(_))
    }
}

impl From<ObjectError> for FleetError {
    fn from(error: ObjectError) -> Self {
        Self::Server(error.to_string())
    }
}

/// A connection with the parts of a fleet that both sides use.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) context: Context,
    pub(crate) names: Names,
    /// Files, assignments and long messages.
    pub(crate) files: Objects,
    /// Compiled code.
    pub(crate) cubins: Objects,
    /// Names of the objects with compiled code.
    pub(crate) compiled: kv::Store,
    pub(crate) workers: kv::Store,
    pub(crate) hubs: kv::Store,
    /// Limits for creating the fleet; `None` on a worker.
    limits: Option<Limits>,
    connected: Arc<Connection>,
}

/// A connection before the fleet's streams were found.
pub(crate) struct Wire {
    pub(crate) client: Client,
    pub(crate) context: Context,
    connected: Arc<Connection>,
}

/// Limits of a fleet's streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Age at which a worker's or hub's record expires.
    pub(crate) presence: Duration,
    /// Maximum size of compiled code, bytes.
    pub(crate) cubin_bytes: u64,
}

impl Wire {
    /// Connects to the server. With `keep_trying`, retries every second while the server does not answer,
    /// and reports that once through `say`; a refusal is an error.
    pub(crate) async fn connect(
        access: &Access,
        keep_trying: bool,
        say: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Self, FleetError> {
        let servers = access.servers()?;
        let connected = Arc::new(Connection::default());
        let mut told = false;
        loop {
            let seen = Arc::clone(&connected);
            let options = access
                .options()?
                .name("tuner")
                .connection_timeout(REQUEST_TIMEOUT)
                .request_timeout(Some(REQUEST_TIMEOUT))
                .reconnect_delay_callback(|tries| Duration::from_millis(50 << tries.min(5)))
                .event_callback(move |event| notice(Arc::clone(&seen), event));
            let error = match options.connect(&servers[..]).await {
                Ok(client) => {
                    let mut context = jetstream::new(client.clone());
                    context.set_timeout(REQUEST_TIMEOUT);
                    return Ok(Self {
                        client,
                        context,
                        connected,
                    });
                }
                Err(error) => error,
            };
            let server = access.shown();
            let why = error.to_string();
            match error.kind() {
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                    return Err(FleetError::Refused { server, why });
                }
                ConnectErrorKind::Tls => return Err(FleetError::Tls { server, why }),
                _ if is_tls(&error) => return Err(FleetError::Tls { server, why }),
                ConnectErrorKind::ServerParse => {
                    return Err(FleetError::Unreachable { server, why });
                }
                _ if !keep_trying => return Err(FleetError::Unreachable { server, why }),
                _ => {}
            }
            if !told {
                say(format!(
                    "no NATS server answers at {server} ({why}); trying again until one does"
                ));
                told = true;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Opens the fleet for a hub and creates missing parts.
    pub(crate) async fn create(
        self,
        names: &Names,
        limits: Limits,
        server: &str,
    ) -> Result<Link, FleetError> {
        let refused = |why: String| FleetError::NoJetStream {
            server: server.to_owned(),
            why,
        };
        let made = make(&self.context, names, Some(limits)).await;
        made.map_err(refused)?;
        let found = self.find(names).await;
        let mut link = found.map_err(refused)?;
        link.limits = Some(limits);
        Ok(link)
    }

    /// Opens the fleet for a worker; the error names a missing part.
    pub(crate) async fn find(&self, names: &Names) -> Result<Link, String> {
        let bucket = async |bucket: String| {
            let found = self.context.get_key_value(&bucket).await;
            found.map_err(|error| format!("{bucket}: {error}"))
        };
        let stream = self.context.get_stream_no_info(names.work()).await;
        stream.map_err(|error| error.to_string())?;
        Ok(Link {
            workers: bucket(names.workers()).await?,
            hubs: bucket(names.hubs()).await?,
            compiled: bucket(names.compiled()).await?,
            files: Objects::open(&self.context, &names.files(), false).await?,
            cubins: Objects::open(&self.context, &names.cubins(), true).await?,
            names: names.clone(),
            client: self.client.clone(),
            context: self.context.clone(),
            limits: None,
            connected: Arc::clone(&self.connected),
        })
    }
}

/// Reports whether a connection failed because of certificates: the client reports a handshake failure as
/// an I/O error of the kind that rustls uses for rejected data.
fn is_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain
        .filter_map(|error| error.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::InvalidData)
}

/// Observed state of a connection.
#[derive(Debug, Default)]
struct Connection {
    lost: AtomicBool,
    losses: AtomicU64,
}

async fn notice(connection: Arc<Connection>, event: Event) {
    match event {
        Event::Connected => {
            if connection.lost.swap(false, Ordering::Relaxed) {
                tracing::info!("connected to the NATS server again");
            }
        }
        Event::Disconnected => {
            connection.losses.fetch_add(1, Ordering::Relaxed);
            if !connection.lost.swap(true, Ordering::Relaxed) {
                tracing::warn!("the NATS server is gone; trying again until it answers");
            }
        }
        Event::SlowConsumer(_) => {
            tracing::warn!("messages come faster than they are read; they come again");
        }
        other => tracing::debug!("NATS: {other}"),
    }
}

/// Creates missing parts of a fleet; a worker only creates streams.
async fn make(context: &Context, names: &Names, limits: Option<Limits>) -> Result<(), String> {
    make_streams(context, names).await?;
    let Some(limits) = limits else { return Ok(()) };
    Objects::make(context, &names.files(), None, RETENTION).await?;
    let most = Some(limits.cubin_bytes);
    Objects::make(context, &names.cubins(), most, RETENTION).await?;
    for (bucket, max_age) in [
        (names.workers(), limits.presence),
        (names.hubs(), limits.presence),
        (names.compiled(), RETENTION),
    ] {
        if context.get_key_value(&bucket).await.is_ok() {
            continue;
        }
        let config = kv::Config {
            bucket,
            history: 1,
            max_age,
            ..kv::Config::default()
        };
        let made = context.create_key_value(config).await;
        made.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Creates missing streams.
async fn make_streams(context: &Context, names: &Names) -> Result<(), String> {
    let queue = |name: String, subjects: String| Config {
        name,
        subjects: vec![subjects],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        max_age: RETENTION,
        duplicate_window: DUPLICATE_WINDOW,
        // `hub/watch` reads single messages to determine whether an order is lost.
        allow_direct: true,
        ..Config::default()
    };
    let events = Config {
        name: names.events(),
        subjects: vec![names.all_events()],
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::Old,
        max_messages: 10_000,
        max_bytes: 4 << 20,
        max_age: EVENTS_KEPT,
        duplicate_window: DUPLICATE_WINDOW,
        ..Config::default()
    };
    let streams = [
        queue(names.work(), names.all_work()),
        queue(names.results(), names.all_results()),
        events,
    ];
    for stream in streams {
        let made = context.get_or_create_stream(stream).await;
        made.map_err(|error| error.to_string())?;
    }
    Ok(())
}

impl Link {
    /// Reports whether the server is connected.
    pub(crate) fn is_connected(&self) -> bool {
        !self.connected.lost.load(Ordering::Relaxed)
    }

    /// Returns the number of lost connections.
    pub(crate) fn losses(&self) -> u64 {
        self.connected.losses.load(Ordering::Relaxed)
    }

    /// Creates missing parts, for example after the server lost its disk.
    pub(crate) async fn mend(&self) -> Result<(), FleetError> {
        make(&self.context, &self.names, self.limits)
            .await
            .map_err(FleetError::Server)
    }

    /// Publishes until the stream has stored the message. Within two minutes the server discards a second
    /// message with the same `id`.
    pub(crate) async fn publish(&self, subject: &str, id: &str, payload: bytes::Bytes) {
        let mut told = false;
        loop {
            let mut headers = async_nats::HeaderMap::new();
            headers.insert("Nats-Msg-Id", id);
            let sent =
                self.context
                    .publish_with_headers(subject.to_owned(), headers, payload.clone());
            let error = match sent.await {
                Ok(acknowledged) => match acknowledged.await {
                    Ok(_) => return,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if !told {
                tracing::warn!(%error, "the NATS server does not take a message; trying again");
                told = true;
            }
            let _ = self.mend().await;
            tokio::time::sleep(AGAIN / 4).await;
        }
    }

    /// Publishes an event without waiting.
    pub(crate) fn tell(&self, kind: &str, text: &str) {
        let event = serde_json::json!({ "at": jiff::Timestamp::now().to_string(), "text": text });
        let (client, subject) = (self.client.clone(), self.names.event(kind));
        tokio::spawn(async move {
            let _ = client.publish(subject, event.to_string().into()).await;
        });
    }

    /// Creates the consumer shared by the workers of a queue.
    pub(crate) async fn make_queue(
        &self,
        queue: &super::names::Queue,
        ack_wait: Duration,
    ) -> Result<(), FleetError> {
        let config = consumer(queue.consumer(), self.names.queue(queue), ack_wait);
        let made = self
            .context
            .create_consumer_on_stream(config, self.names.work());
        made.await.map(drop).map_err(FleetError::server)
    }

    /// Recreates the consumer of a run's answers: unacknowledged ones are delivered immediately.
    pub(crate) async fn make_results(
        &self,
        run: &str,
    ) -> Result<jetstream::consumer::Consumer<pull::Config>, FleetError> {
        let name = results_consumer(run);
        let stream = self.names.results();
        let _ = self
            .context
            .delete_consumer_from_stream(&name, &stream)
            .await;
        let config = consumer(name, self.names.results_of(run), Duration::from_secs(60));
        let made = self.context.create_consumer_on_stream(config, stream).await;
        made.map_err(FleetError::server)
    }
}

/// Configures a consumer for messages to these subjects.
fn consumer(name: String, subjects: String, ack_wait: Duration) -> pull::Config {
    pull::Config {
        durable_name: Some(name),
        filter_subject: subjects,
        ack_wait,
        // A worker that receives an order too often answers with the verdict.
        max_deliver: -1,
        max_ack_pending: IN_HAND_MAX,
        ..pull::Config::default()
    }
}

/// Returns the consumer name of a run's answers.
pub(crate) fn results_consumer(run: &str) -> String {
    format!("run_{run}")
}
