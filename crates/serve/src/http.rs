//! The listener: connections with deadlines, a connection limit, an orderly shutdown.

use super::app::App;
use super::{api, guard};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

/// Largest request body, bytes.
pub(super) const MAX_BODY: usize = 64 * 1024;

/// Maximum number of connections if the process may open enough files; more connections wait in the
/// system's queue.
const MAX_CONNECTIONS: usize = 8192;
/// Divisor of the open-file limit for connections. The rest is for the database, the workers' pipes
/// and the runs' files.
const CONNECTION_SHARE: u64 = 2;

/// Timeout of a request head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// Time for open connections at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Builds the router with all layers.
pub(super) fn router(app: &Arc<App>) -> Router {
    api::router(Arc::clone(app))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(axum::middleware::from_fn_with_state(
            Arc::clone(app),
            guard::guard,
        ))
}

/// Serves until the daemon ends, then completes open requests.
pub(super) async fn serve(app: Arc<App>, listener: TcpListener) {
    let router = router(&app);
    let max_connections = max_connections(getrlimit(Resource::Nofile).current);
    let room = Arc::new(Semaphore::new(max_connections));
    let mut ending = app.ending.clone();
    loop {
        // Before `accept`: at the limit, connections wait in the system's queue and use no descriptor.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            break;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = tuner_engine::turned(&mut ending) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (router, app) = (router.clone(), Arc::clone(&app));
                tokio::spawn(async move {
                    converse(stream, router, &app).await;
                    drop(permit);
                });
            }
            Err(error) => {
                // Probably out of file descriptors: open connections must end first.
                tracing::warn!(%error, "no connection can be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    if !wait_closed(&room, max_connections).await {
        tracing::debug!("connections are cut");
    }
}

/// Waits for the end of all connections; returns whether they ended in time.
async fn wait_closed(room: &Semaphore, max_connections: usize) -> bool {
    // All permits are available once all connections are closed.
    let all = u32::try_from(max_connections).unwrap_or(u32::MAX);
    let closed = tokio::time::timeout(SHUTDOWN_GRACE, room.acquire_many(all));
    closed.await.is_ok()
}

/// Returns the connection limit for a limit on open files; `None` means unlimited.
fn max_connections(open_files: Option<u64>) -> usize {
    let share = open_files.map(|limit| limit / CONNECTION_SHARE);
    let share = share.and_then(|share| usize::try_from(share).ok());
    share.map_or(MAX_CONNECTIONS, |share| share.clamp(1, MAX_CONNECTIONS))
}

/// Serves one connection.
async fn converse(stream: TcpStream, router: Router, app: &App) {
    // Nagle's algorithm would delay small events until the client acknowledges.
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request: hyper::Request<_>| {
        router.clone().oneshot(request.map(axum::body::Body::new))
    });
    let mut ending = app.ending.clone();
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = tuner_engine::turned(&mut ending) => {
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(SHUTDOWN_GRACE, connection).await {
                Ok(result) => result,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection broke");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_open_connection_is_waited_for() {
        let room = Arc::new(Semaphore::new(3));
        let mut permit = Some(Arc::clone(&room).acquire_owned().await.unwrap());
        let closing = wait_closed(&room, 3);
        tokio::pin!(closing);
        tokio::select! {
            biased;
            _ = &mut closing => panic!("one connection is open"),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
        permit.take();
        assert!(closing.await);
    }

    #[test]
    fn connections_leave_descriptors_for_work() {
        let limits = [None, Some(1 << 20), Some(1024), Some(64), Some(1)];
        assert_eq!(limits.map(max_connections), [8192, 8192, 512, 32, 1]);
    }
}
