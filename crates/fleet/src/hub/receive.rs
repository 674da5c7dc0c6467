//! Incoming answers.

use super::count;
use super::run::{Receipt, Run, UNABLE_MAX, UncommittedAnswer, fits, is_held};
use crate::link::{AGAIN, results_consumer, turned};
use crate::message::{AnswerMessage, Malformed, Outcome, read};
use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt as _;
use std::sync::Arc;
use std::time::Duration;
use tuner_core::units::ContentHash;
use tuner_engine::fleet::Answer;

/// Most answers of a fetch.
const BATCH: usize = 256;

/// Expiry of a fetch request on the server.
const EXPIRES: Duration = Duration::from_secs(10);

/// Idle heartbeat interval.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// Most bytes of answers kept for orders of an earlier process; answers to unknown orders count
/// too.
const MAX_UNASKED_BYTES: usize = 64 << 20;

/// Approximate memory of an answer besides its share of the message, bytes.
const ANSWER_BYTES: usize = 2 << 10;

/// Receives answers until the run ends.
pub(super) async fn receive(run: Arc<Run>, mut consumer: Consumer<pull::Config>) {
    let mut ended = run.ended.subscribe();
    loop {
        let messages = consumer
            .stream()
            .max_messages_per_batch(BATCH)
            .expires(EXPIRES)
            .heartbeat(HEARTBEAT)
            .messages()
            .await;
        if let Ok(mut messages) = messages {
            loop {
                let message = tokio::select! {
                    message = messages.next() => message,
                    () = turned(&mut ended) => return,
                };
                match message {
                    Some(Ok(message)) => take(&run, message).await,
                    Some(Err(error)) => {
                        tracing::debug!(%error, "answers are asked for anew");
                        break;
                    }
                    None => break,
                }
            }
        }
        if *ended.borrow() {
            return;
        }
        tokio::time::sleep(AGAIN / 4).await;
        let (link, name) = (&run.link, &run.name);
        let found = link
            .context
            .get_consumer_from_stream(results_consumer(name), link.names.results());
        match found.await {
            Ok(found) => consumer = found,
            Err(_) => {
                let _ = link.mend().await;
                if let Ok(made) = link.make_results(name).await {
                    consumer = made;
                }
            }
        }
    }
}

/// Handles a message.
async fn take(run: &Arc<Run>, message: Message) {
    let answer: AnswerMessage = match read(&run.link, &message.payload).await {
        Ok(answer) => answer,
        Err(Malformed::Object(error)) if error.passes() => {
            let _ = message.ack_with(AckKind::Nak(Some(AGAIN))).await;
            return;
        }
        Err(error) => {
            count(&run.counters.malformed);
            tracing::warn!(%error, "a message among the answers is dropped");
            let _ = message.ack_with(AckKind::Term).await;
            return;
        }
    };
    if answer.answers.is_empty() {
        let _ = message.ack().await;
        return;
    }
    let alone = answer.answers.len() == 1;
    let bytes = message.payload.len() / answer.answers.len() + ANSWER_BYTES;
    let receipt = Receipt::new(message, answer.answers.len());
    for one in answer.answers {
        let from = From {
            worker: &answer.worker,
            attempt: answer.attempt,
            alone,
            bytes,
            receipt: Arc::clone(&receipt),
        };
        take_one(run, &one.id, one.outcome, from);
    }
}

/// Origin of an answer.
struct From<'a> {
    worker: &'a str,
    attempt: u32,
    /// Only answer of its message.
    alone: bool,
    /// Approximate memory, bytes.
    bytes: usize,
    receipt: Arc<Receipt>,
}

/// Handles the outcome of an order.
fn take_one(run: &Arc<Run>, id: &ContentHash, outcome: Outcome, from: From<'_>) {
    match outcome {
        Outcome::Leaving => {
            run.send_again(id);
            run.settle(from.receipt);
        }
        Outcome::Unable(why) => {
            let why = format!("{}: {why}", from.worker);
            tracing::warn!("a worker returned an order: {why}");
            unable(run, id, why, from);
        }
        // Retries each order alone to find the one that crashes workers.
        Outcome::Lost(_) if !from.alone => {
            run.send_again(id);
            run.settle(from.receipt);
        }
        Outcome::Compared(times) => {
            run.assign_group(from.worker, times);
            run.settle(from.receipt);
        }
        Outcome::Lost(_) if !is_certain(run, id, from.attempt) => run.settle(from.receipt),
        Outcome::Lost(deliveries) => {
            let why = format!(
                "it was handed out {deliveries} times, and each time its worker was lost: killed, \
                 stopped or cut off"
            );
            run.link.tell("not_judged", &why);
            deliver(run, id, Answer::NotJudged(why), from);
        }
        Outcome::Answer(answered) => deliver(run, id, answered, from),
    }
}

/// Reports whether workers lost the order. If the server was away meanwhile, that may explain the
/// redeliveries, and the order is sent again; reports on an earlier attempt are ignored.
fn is_certain(run: &Arc<Run>, id: &ContentHash, attempt: u32) -> bool {
    let uncertain = {
        let state = run.state();
        let Some(waiting) = state.waiting.get(id) else {
            return true;
        };
        if waiting.attempt != attempt {
            return false;
        }
        waiting.losses != run.link.losses()
    };
    if uncertain {
        run.send_again(id);
    }
    !uncertain
}

/// Handles a worker's failure to carry out an order; several failures become the verdict.
fn unable(run: &Arc<Run>, id: &ContentHash, why: String, from: From<'_>) {
    let reasons = {
        let mut state = run.state();
        let Some(waiting) = state.waiting.get_mut(id) else {
            drop(state);
            run.settle(from.receipt);
            return;
        };
        waiting.unable.push(why);
        (waiting.unable.len() >= UNABLE_MAX).then(|| waiting.unable.join("; "))
    };
    match reasons {
        None => {
            run.send_again(id);
            run.settle(from.receipt);
        }
        Some(reasons) => {
            let why = format!("{UNABLE_MAX} workers could not judge it: {reasons}");
            deliver(run, id, Answer::NotJudged(why), from);
        }
    }
}

/// Passes an answer to the waiting caller. The message is acknowledged after the result is
/// committed.
fn deliver(run: &Arc<Run>, id: &ContentHash, answer: Answer, from: From<'_>) {
    let mut state = run.state();
    if let Some(waiting) = state.waiting.get(id) {
        if !fits(&waiting.order, &answer) {
            drop(state);
            count(&run.counters.refused);
            let said = answer.candidate().map_or("nothing", ContentHash::short);
            let why = if answer.is_consistent() {
                format!("{} answered for another candidate ({said})", from.worker)
            } else {
                format!(
                    "{} contradicts itself: a wrong result with a time, or an impossible one",
                    from.worker
                )
            };
            tracing::warn!("an answer is dropped: {why}");
            unable(run, id, why, from);
            return;
        }
        let Some(waiting) = state.waiting.remove(id) else {
            return;
        };
        let held = is_held(&waiting.order.step) && !matches!(answer, Answer::FalseObject(_));
        if held {
            let held = UncommittedAnswer {
                answer: answer.clone(),
                receipt: from.receipt,
                unasked_bytes: 0,
            };
            state.held.insert(id.clone(), held);
        } else {
            run.settle(from.receipt);
        }
        // The caller may be gone; the answer is then kept for the next one.
        let _ = waiting.reply.send(answer);
        return;
    }
    if state.done.contains(id) {
        count(&run.counters.duplicates);
        run.settle(from.receipt);
        return;
    }
    let receipt = from.receipt;
    let full = state.unasked_bytes + from.bytes > MAX_UNASKED_BYTES;
    match state.held.get_mut(id) {
        Some(held) if same_message(&held.receipt.message, &receipt.message) => {
            held.receipt = receipt;
        }
        Some(_) => {
            count(&run.counters.duplicates);
            run.settle(receipt);
        }
        None if full => {
            // A later request for it is judged again.
            drop(state);
            count(&run.counters.refused);
            run.settle(receipt);
        }
        // An order of an earlier process: it may still be requested.
        None => {
            state.unasked_bytes += from.bytes;
            let unasked_bytes = from.bytes;
            let held = UncommittedAnswer {
                answer,
                receipt,
                unasked_bytes,
            };
            state.held.insert(id.clone(), held);
        }
    }
}

/// Reports whether two deliveries are of the same message.
fn same_message(a: &Message, b: &Message) -> bool {
    match (a.info(), b.info()) {
        (Ok(a), Ok(b)) => a.stream_sequence == b.stream_sequence,
        _ => false,
    }
}
