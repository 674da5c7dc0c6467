//! Outgoing orders: concurrent look-ups in a recording are batched into one message.

use super::run::Run;
use crate::link::turned;
use crate::message::{OrderMessage, name_of, write_or_wait};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tuner_engine::fleet::{PROTOCOL, Step, WorkOrder};

/// Maximum number of look-ups in a message. A message is the unit of redelivery and of a worker's prefetch,
/// so it stays small compared with the candidates in flight.
const LOOKUPS_MAX: usize = 64;

/// Time to collect look-ups for a message: a fraction of a round trip to a worker.
const BATCH_WINDOW: Duration = Duration::from_micros(200);

/// An order to send.
pub(super) struct Outgoing {
    pub(super) order: WorkOrder,
    pub(super) attempt: u32,
}

/// Sends orders until the run ends.
pub(super) async fn post(run: Arc<Run>, mut orders: mpsc::UnboundedReceiver<Outgoing>) {
    let mut ended = run.ended.subscribe();
    let mut waiting = Vec::new();
    loop {
        tokio::select! {
            count = orders.recv_many(&mut waiting, LOOKUPS_MAX) => if count == 0 { return },
            () = turned(&mut ended) => return,
        }
        if waiting.iter().any(|outgoing| is_shared(&run, outgoing)) {
            tokio::time::sleep(BATCH_WINDOW).await;
            while waiting.len() < LOOKUPS_MAX
                && let Ok(more) = orders.try_recv()
            {
                waiting.push(more);
            }
        }
        let (shared, alone): (Vec<_>, Vec<_>) = waiting
            .drain(..)
            .partition(|outgoing| is_shared(&run, outgoing));
        let orders = shared.into_iter().map(|outgoing| outgoing.order).collect();
        send(&run, orders, run.first_attempt);
        for outgoing in alone {
            send(&run, vec![outgoing.order], outgoing.attempt);
        }
    }
}

/// Reports whether an order may share a message. A retry is sent alone, so that a report on the message
/// applies to this order.
fn is_shared(run: &Run, outgoing: &Outgoing) -> bool {
    matches!(outgoing.order.step, Step::Recorded) && outgoing.attempt == run.first_attempt
}

/// Publishes a message in the background until the server has stored it.
fn send(run: &Arc<Run>, orders: Vec<WorkOrder>, attempt: u32) {
    let Some(first) = orders.first() else { return };
    let name = name_of(orders.iter());
    let subject = run.subject(&first.step, &name);
    {
        let mut state = run.state();
        for order in &orders {
            if let Some(waiting) = state.waiting.get_mut(&order.id) {
                // `watch` searches for a lost order by the name of its message.
                waiting.sent_in = name.clone();
            }
        }
    }
    let id = format!("{}.{name}.{attempt}", run.name);
    let message = OrderMessage {
        protocol: PROTOCOL,
        run: run.name.clone(),
        assignment: run.assignment.clone(),
        attempt,
        orders,
    };
    let run = Arc::clone(run);
    tokio::spawn(async move {
        let sending = async {
            let payload = write_or_wait(&run.link, &message, "an order").await;
            run.link.publish(&subject, &id, payload).await;
        };
        let mut ended = run.ended.subscribe();
        tokio::select! {
            () = sending => {}
            () = turned(&mut ended) => {}
        }
    });
}
