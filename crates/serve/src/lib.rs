//! The daemon: a run queue in the database, one engine per device, an HTTP API with live events, a
//! dashboard.
//!
//! ```text
//! HTTP ──► api ──► queue (database) ──► dispatch ──► engine ──► store
//!           ▲                                          │ events
//!           └──────────── stream ◄──── live ◄──────────┘
//! ```
//!
//! The queue and all results are in the database; the in-memory state may be lost at any time, which costs
//! a restarted daemon only the candidates in flight.
//!
#![doc = include_str!("../README.md")]
// The daemon must not panic on an index either.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod api;
mod app;
pub mod client;
mod clocks;
mod conditions;
mod confine;
mod crash;
mod dispatch;
mod guard;
mod health;
mod http;
mod live;
mod metrics;
mod problem;
mod sources;
mod stream;
mod summary;
pub mod view;

use app::App;
pub use app::{stored_run, stored_runs};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tuner_engine::fleet::Fleet;
use tuner_store::{DaemonRow, Store, StoreError};

/// Shortest accepted token.
pub const SHORTEST_TOKEN: usize = 16;

/// Settings of the daemon.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Listening address.
    pub listen: SocketAddr,
    /// The database.
    pub db: PathBuf,
    /// Token for clients; required if other machines can reach the listener.
    pub token: Option<String>,
    /// Folders whose kernels and recordings HTTP requests may name.
    pub folders: Vec<PathBuf>,
    /// Maximum number of devices in use at a time.
    pub engines: usize,
    /// Fleet that judges candidates; `None` for this machine.
    pub fleet: Option<Arc<dyn Fleet>>,
}

/// Reason why the daemon does not start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener is reachable from other machines without a token.
    #[error(
        "{0} can be reached from other machines: set a token of at least {SHORTEST_TOKEN} \
         characters in the environment variable TUNER_TOKEN or with --token-file FILE (clients \
         show it the same way), or listen on 127.0.0.1"
    )]
    NeedsToken(SocketAddr),
    /// The token is too short.
    #[error(
        "the token is shorter than {SHORTEST_TOKEN} characters; make one with \
         `openssl rand -hex 32`"
    )]
    ShortToken,
    /// An invalid kernel folder.
    #[error("{}: not a folder that can be read ({why}); name one with --kernels DIR", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// System error.
        why: std::io::Error,
    },
    /// Another program listens there.
    #[error(
        "{listen} is taken by another program; choose another port with --listen, such as \
         --listen {}:0 for any free one, or find out who has it with `ss -ltnp`", listen.ip()
    )]
    PortTaken {
        /// The address.
        listen: SocketAddr,
    },
    /// The address cannot be bound.
    #[error("cannot listen on {listen}: {why}; choose an address of this machine with --listen")]
    CannotListen {
        /// The address.
        listen: SocketAddr,
        /// System error.
        why: std::io::Error,
    },
    /// Another daemon owns the database.
    #[error(
        "{}: the daemon at http://{} owns this database since {} ({}); send runs there with \
         `tuner submit`, end it, or name another file with --db",
        db.display(), owner.address, owner.started_at, owner.owner
    )]
    Owned {
        /// The database.
        db: PathBuf,
        /// The daemon.
        owner: Box<DaemonRow>,
    },
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ServeError {
    /// Reports whether a different argument is the remedy (exit code 2), rather than a repair.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Store(error) => error.is_bad_input(),
            _ => true,
        }
    }
}

/// Serves until `ending` turns true; `ready` receives the address once requests are answered.
///
/// # Errors
/// [`ServeError`]: the daemon does not start. A started daemon serves until `ending`.
pub async fn serve(
    mut settings: Settings,
    ending: watch::Receiver<bool>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    check_token(&settings)?;
    settings.folders = canonical(&settings.folders)?;
    // Before the claim, which stores the port for clients: the system may choose it.
    let listener = listen(settings.listen).await?;
    let address = listener.local_addr().unwrap_or(settings.listen);
    let store = Store::open_or_wait(&settings.db).await?;
    let instance = instance();
    let claimed = store
        .claim(
            &reachable(address).to_string(),
            &instance,
            crash::happened(&settings.db),
        )
        .await;
    if let Ok(Err(owner)) = claimed {
        store.close().await?;
        return Err(ServeError::Owned {
            db: settings.db,
            owner: Box::new(owner),
        });
    }
    let _claimed = claimed?;
    // The claim has handled the marker.
    crash::forget(&settings.db);
    crash::watch(&settings.db);
    let app = App::new(settings, store.clone(), instance.clone(), ending).await?;
    let app = Arc::new(app);
    tracing::info!(%address, db = %app.settings.db.display(), instance, "serving");
    ready(address);
    let http = tokio::spawn(http::serve(Arc::clone(&app), listener));
    let publisher = tokio::spawn(stream::publish(Arc::clone(&app)));
    let watcher = tokio::spawn(health::watch(Arc::clone(&app)));
    dispatch::dispatch(Arc::clone(&app), app.settings.engines.max(1)).await;
    for (task, name) in [(http, "http"), (publisher, "events"), (watcher, "health")] {
        if let Err(error) = task.await {
            tracing::error!(%error, name, "a part of the daemon panicked; please report this");
        }
    }
    app.close_readers().await;
    store.release(&instance).await?;
    store.close().await?;
    crash::forget(&app.settings.db);
    tracing::info!("ended; everything announced is stored");
    Ok(())
}

fn check_token(settings: &Settings) -> Result<(), ServeError> {
    match &settings.token {
        None if !settings.listen.ip().is_loopback() => Err(ServeError::NeedsToken(settings.listen)),
        Some(token) if token.len() < SHORTEST_TOKEN => Err(ServeError::ShortToken),
        _ => Ok(()),
    }
}

fn canonical(folders: &[PathBuf]) -> Result<Vec<PathBuf>, ServeError> {
    let one = |path: &PathBuf| {
        let real = path.canonicalize().and_then(|real| {
            // A folder without permission is rejected now instead of with every request.
            std::fs::read_dir(&real)?;
            Ok(real)
        });
        real.map_err(|why| ServeError::Folder {
            path: path.clone(),
            why,
        })
    };
    folders.iter().map(one).collect()
}

async fn listen(listen: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(listen).await.map_err(|why| {
        if why.kind() == std::io::ErrorKind::AddrInUse {
            ServeError::PortTaken { listen }
        } else {
            ServeError::CannotListen { listen, why }
        }
    })
}

/// Returns the address of a listener for clients on this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Creates a unique name of this daemon: time, process and random bytes of the kernel.
fn instance() -> String {
    use tuner_core::units::ContentHash;
    let mut chance = [0_u8; 16];
    if let Ok(mut source) = std::fs::File::open("/dev/urandom") {
        // Without random bytes the time and the process still distinguish instances.
        let _ = std::io::Read::read_exact(&mut source, &mut chance);
    }
    let now = jiff::Timestamp::now().as_nanosecond().to_le_bytes();
    let hash = ContentHash::from_parts([&now[..], &std::process::id().to_le_bytes(), &chance]);
    hash.short().to_owned()
}
