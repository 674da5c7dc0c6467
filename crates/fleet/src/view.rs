//! Snapshot of a fleet for display.

use super::access::Access;
use super::link::{FleetError, Link, Wire};
use super::names::Names;
use super::presence;
use async_nats::jetstream::stream::Stream;
use futures_util::TryStreamExt as _;
use tuner_engine::fleet::{FleetView, PROTOCOL, QueueView};

/// Reads a fleet's state once.
///
/// # Errors
/// The server does not answer or has no fleet of this name.
pub async fn look(access: &Access, names: &Names) -> Result<FleetView, FleetError> {
    let wire = Wire::connect(access, false, &|_| {}).await?;
    let server = access.shown();
    Ok(match wire.find(names).await {
        Ok(link) => read(&link, &server).await,
        // No hub has opened it yet: an empty fleet, not an error.
        Err(_) => empty(names, &server, true),
    })
}

fn empty(names: &Names, server: &str, connected: bool) -> FleetView {
    FleetView {
        fleet: names.fleet().to_owned(),
        server: server.to_owned(),
        connected,
        protocol: PROTOCOL,
        ..FleetView::default()
    }
}

/// Reads the buckets and streams; unreadable parts stay empty.
pub(crate) async fn read(link: &Link, server: &str) -> FleetView {
    let mut view = empty(&link.names, server, link.is_connected());
    view.workers = presence::workers(&link.workers).await.unwrap_or_default();
    view.hubs = presence::hubs(&link.hubs).await.unwrap_or_default();
    if let Ok(stream) = link.context.get_stream(link.names.work()).await {
        view.queues = queues(&stream).await;
    }
    if let Ok(stream) = link.context.get_stream(link.names.results()).await {
        view.results_waiting = stream.cached_info().state.messages;
    }
    for bucket in [link.names.files(), link.names.cubins()] {
        if let Ok(stream) = link.context.get_stream(format!("OBJ_{bucket}")).await {
            view.object_bytes += stream.cached_info().state.bytes;
        }
    }
    view
}

async fn queues(stream: &Stream) -> Vec<QueueView> {
    let found: Result<Vec<_>, _> = stream.consumers().try_collect().await;
    let mut queues: Vec<QueueView> = found
        .unwrap_or_default()
        .into_iter()
        .map(|info| QueueView {
            name: info.name.replacen('_', ".", 1),
            waiting: info.num_pending,
            in_hand: info.num_ack_pending as u64,
            redelivered: info.num_redelivered as u64,
        })
        .collect();
    queues.sort_by(|a, b| a.name.cmp(&b.name));
    queues
}
