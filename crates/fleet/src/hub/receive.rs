//! Incoming answers.

use super::count;
use super::run::{Receipt, Run, UncommittedAnswer, is_held};
use super::trust::{Examined, Inability, REPEATED_PAUSE, SET_ASIDE_PAUSE, examine, unable_verdict};
use crate::link::{AGAIN, results_consumer, turned};
use crate::message::{AnswerMessage, Malformed, Outcome, read_sized};
use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt as _;
use std::sync::Arc;
use std::time::Duration;
use tuner_core::units::ContentHash;
use tuner_engine::fleet::Answer;

/// Maximum number of answers of a fetch.
const MAX_FETCHED_ANSWERS: usize = 256;

/// Expiry of a fetch request on the server.
const FETCH_EXPIRY: Duration = Duration::from_secs(10);

/// Idle heartbeat interval.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum bytes of answers kept for orders of an earlier process; answers to unknown orders are included.
const MAX_UNASKED_BYTES: usize = 64 << 20;

/// Approximate memory of an answer in addition to its share of the message, bytes.
const ANSWER_BYTES: usize = 2 << 10;

/// Receives answers until the run ends.
pub(super) async fn receive(run: Arc<Run>, mut consumer: Consumer<pull::Config>) {
    let mut ended = run.ended.subscribe();
    loop {
        let messages = consumer
            .stream()
            .max_messages_per_batch(MAX_FETCHED_ANSWERS)
            .expires(FETCH_EXPIRY)
            .heartbeat(HEARTBEAT_INTERVAL)
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
                        tracing::debug!(%error, "answers are requested again");
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
    let read = read_sized::<AnswerMessage>(&run.link, &message.payload).await;
    let (answer, read_bytes) = match read {
        Ok(answer) => answer,
        // The object store may answer later: the message is delivered again.
        Err(Malformed::Object(error)) if error.passes() => {
            let _ = message.ack_with(AckKind::Nak(Some(AGAIN))).await;
            return;
        }
        Err(error) => {
            count(&run.counters.malformed);
            tracing::warn!(%error, "a message among the answers is dropped");
            // The server would redeliver it forever.
            let _ = message.ack_with(AckKind::Term).await;
            return;
        }
    };
    if answer.answers.is_empty() {
        let _ = message.ack().await;
        return;
    }
    let alone = answer.answers.len() == 1;
    // The message is held with its answers, and an answer may be a separate object.
    let held_bytes = message.payload.len() + read_bytes;
    let bytes = held_bytes / answer.answers.len() + ANSWER_BYTES;
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
    /// It is the only answer of its message.
    alone: bool,
    /// Approximate memory, bytes.
    bytes: usize,
    receipt: Arc<Receipt>,
}

/// Handles the outcome of an order.
fn take_one(run: &Arc<Run>, id: &ContentHash, outcome: Outcome, from: From<'_>) {
    if run.state().set_aside.contains(from.worker) {
        if matches!(outcome, Outcome::Answer(_)) {
            count(&run.counters.refused);
        }
        run.send_again_later(id, SET_ASIDE_PAUSE);
        run.settle(from.receipt);
        return;
    }
    match outcome {
        Outcome::Leaving => {
            run.send_again(id);
            run.settle(from.receipt);
        }
        Outcome::Unable(why) => {
            tracing::warn!("a worker returned an order: {}: {why}", from.worker);
            unable(run, id, why, false, from);
        }
        // Retries each order separately to find the one that crashes workers.
        Outcome::Lost(_) if !from.alone => {
            run.send_again(id);
            run.settle(from.receipt);
        }
        Outcome::Compared(times) if times.is_consistent() => {
            run.assign_group(from.worker, times);
            run.settle(from.receipt);
        }
        Outcome::Compared(_) => {
            count(&run.counters.refused);
            run.set_aside(from.worker, "it sent an impossible time of the reference");
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
        Outcome::Answer(answer) => examine_one(run, id, answer, from),
    }
}

/// Processes an answer if it fits its order.
fn examine_one(run: &Arc<Run>, id: &ContentHash, answer: Answer, from: From<'_>) {
    let examined = run
        .state()
        .waiting
        .get(id)
        .map(|waiting| examine(&waiting.order, &answer));
    match examined {
        Some(Examined::BlamesFiles(why)) => {
            tracing::warn!(
                "a worker cannot use the run's files: {}: {why}",
                from.worker
            );
            unable(run, id, why, true, from);
        }
        Some(Examined::False(why)) => refuse(run, id, &why, from),
        // A reported inability without a waiting caller is dropped.
        None if matches!(answer, Answer::Unusable(_) | Answer::NotJudged(_)) => {
            run.settle(from.receipt);
        }
        Some(Examined::Believed) | None => deliver(run, id, answer, from),
    }
}

/// Reports whether workers lost the order. An outage of the server may explain the redeliveries, and then
/// the order is sent again; reports on an earlier attempt are ignored.
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

/// Records that a worker could not carry an order out, for a reason that may blame the run's files. The
/// order goes to another worker; after several failures, that is its verdict.
fn unable(run: &Arc<Run>, id: &ContentHash, why: String, blames_files: bool, from: From<'_>) {
    let tries = {
        let mut state = run.state();
        let Some(waiting) = state.waiting.get_mut(id) else {
            drop(state);
            run.settle(from.receipt);
            return;
        };
        waiting.unable.push(Inability {
            worker: from.worker.to_owned(),
            why,
            blames_files,
        });
        waiting.unable.clone()
    };
    if let Some(why) = unable_verdict(&tries, run.count_others(&tries)) {
        deliver(run, id, Answer::NotJudged(why), from);
        return;
    }
    let repeated = tries.iter().filter(|one| one.worker == from.worker).count() > 1;
    if repeated {
        run.send_again_later(id, REPEATED_PAUSE);
    } else {
        run.send_again(id);
    }
    run.settle(from.receipt);
}

/// Drops a false answer, sets its worker aside and assigns the order to another worker.
fn refuse(run: &Arc<Run>, id: &ContentHash, why: &str, from: From<'_>) {
    count(&run.counters.refused);
    tracing::warn!("an answer of {} is dropped: {why}", from.worker);
    run.set_aside(from.worker, why);
    run.send_again(id);
    run.settle(from.receipt);
}

/// Passes an answer to the waiting caller. The message is acknowledged after the result is
/// committed.
fn deliver(run: &Arc<Run>, id: &ContentHash, answer: Answer, from: From<'_>) {
    let mut state = run.state();
    if let Some(waiting) = state.waiting.remove(id) {
        let is_judged = matches!(answer, Answer::Judged(_) | Answer::Compiled(_));
        let refuted = (is_judged && !waiting.unable.is_empty()).then(|| waiting.unable.clone());
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
        // The caller may have been dropped; the answer is then kept for the next one.
        let _ = waiting.reply.send(answer);
        drop(state);
        if let Some(tries) = refuted {
            run.refute(&tries, from.worker);
        }
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
