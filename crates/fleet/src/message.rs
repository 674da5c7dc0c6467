//! Messages and their decoding: invalid input is an error and never panics.

use super::link::{AGAIN, FleetError, Link};
use super::objects::ObjectError;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tuner_core::units::ContentHash;
use tuner_engine::fleet::{Answer, PROTOCOL, SiblingTimes, WorkOrder};

/// Largest message read, bytes, including an object: far above any answer.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Space in a message in addition to its payload, bytes.
const MESSAGE_MARGIN: usize = 8 << 10;

/// Orders in transit: one order, or several look-ups in a recording, each cheaper than a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OrderMessage {
    pub(crate) protocol: u32,
    /// Run to answer.
    pub(crate) run: String,
    /// Assignment of the orders: an object in the fleet's files.
    pub(crate) assignment: ContentHash,
    /// Number of earlier sendings.
    pub(crate) attempt: u32,
    pub(crate) orders: Vec<WorkOrder>,
}

/// Outcomes of a message's orders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AnswerMessage {
    pub(crate) protocol: u32,
    /// Answering worker.
    pub(crate) worker: String,
    pub(crate) attempt: u32,
    pub(crate) answers: Vec<OrderOutcome>,
}

/// Outcome of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OrderOutcome {
    pub(crate) id: ContentHash,
    pub(crate) outcome: Outcome,
}

/// Returns the name of a message with these orders: that of a single order, or the hash of all.
pub(crate) fn name_of<'o>(orders: impl ExactSizeIterator<Item = &'o WorkOrder>) -> ContentHash {
    let mut ids = orders.map(|order| &order.id);
    match (ids.len(), ids.next()) {
        (1, Some(only)) => only.clone(),
        (_, first) => ContentHash::from_parts(
            first
                .into_iter()
                .chain(ids)
                .map(|id| id.as_str().as_bytes()),
        ),
    }
}

/// Outcome of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// An answer.
    Answer(Answer),
    /// The worker shuts down; the order is not the cause.
    Leaving,
    /// The worker could not carry it out.
    Unable(String),
    /// Number of deliveries without an answer.
    Lost(u32),
    /// Before the first candidate of a task: the worker's GPU times for reference kernels. The
    /// order stays with the worker.
    Compared(SiblingTimes),
}

/// Reference to an object with a message that was too large.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectReference {
    protocol: u32,
    object: ContentHash,
}

/// Message header common to all versions.
#[derive(Debug, Deserialize)]
struct Head {
    protocol: u32,
}

/// An invalid message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("it has {0} bytes, more than a message may")]
    TooLarge(usize),
    #[error("it is of protocol {0}, and this program speaks protocol {PROTOCOL}")]
    Protocol(u32),
    #[error("not a fleet message: {0}")]
    Nonsense(String),
    #[error("its object cannot be fetched: {0}")]
    Object(#[from] ObjectError),
}

/// Decodes a message; a reference to a larger one is followed.
pub(crate) async fn read<T: DeserializeOwned>(link: &Link, bytes: &[u8]) -> Result<T, Malformed> {
    read_sized(link, bytes).await.map(|(message, _)| message)
}

/// Like [`read`], but also returns the number of bytes read.
pub(crate) async fn read_sized<T: DeserializeOwned>(
    link: &Link,
    bytes: &[u8],
) -> Result<(T, usize), Malformed> {
    let error = match parse(bytes) {
        Ok(message) => return Ok((message, bytes.len())),
        Err(error) => error,
    };
    let spilled = match (&error, rmp_serde::from_slice::<ObjectReference>(bytes)) {
        (Malformed::Nonsense(_), Ok(spilled)) => spilled,
        _ => return Err(error),
    };
    let content = link.files.get(&spilled.object, MESSAGE_BYTES_MAX).await?;
    Ok((parse(&content)?, content.len()))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Malformed> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(Malformed::TooLarge(bytes.len()));
    }
    let nonsense = |error: rmp_serde::decode::Error| Malformed::Nonsense(error.to_string());
    // A message of another version may have a different body.
    let head = rmp_serde::from_slice::<Head>(bytes);
    if let Ok(Head { protocol }) = head
        && protocol != PROTOCOL
    {
        return Err(Malformed::Protocol(protocol));
    }
    let message = rmp_serde::from_slice(bytes).map_err(nonsense)?;
    head.map(|_| message).map_err(nonsense)
}

/// Parses bytes as orders and as answers, and checks the answers, for fuzz tests.
///
/// # Errors
/// The message for the log if they are neither.
pub fn check_message(bytes: &[u8]) -> Result<(), String> {
    if let Ok(message) = parse::<AnswerMessage>(bytes) {
        for one in message.answers {
            match one.outcome {
                Outcome::Answer(answer) => drop((answer.is_consistent(), answer.candidate())),
                Outcome::Compared(times) => drop(times.is_consistent()),
                Outcome::Leaving | Outcome::Unable(_) | Outcome::Lost(_) => {}
            }
        }
        return Ok(());
    }
    let orders = parse::<OrderMessage>(bytes);
    orders.map(drop).map_err(|error| error.to_string())
}

/// Encodes a message; one above the server's limit becomes an object.
async fn write<T: Serialize>(link: &Link, message: &T) -> Result<Bytes, FleetError> {
    let bytes = encode(message)?;
    let most = link.client.server_info().max_payload;
    if bytes.len() + MESSAGE_MARGIN <= most {
        return Ok(bytes.into());
    }
    let object = link.files.put(&bytes).await?;
    let spilled = ObjectReference {
        protocol: PROTOCOL,
        object,
    };
    Ok(encode(&spilled)?.into())
}

/// Encodes a message and retries until it succeeds; `what` names it in the log.
pub(crate) async fn write_or_wait<T: Serialize>(link: &Link, message: &T, what: &str) -> Bytes {
    loop {
        match write(link, message).await {
            Ok(payload) => return payload,
            Err(error) => tracing::warn!(%error, "{what} cannot be sent; trying again"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Encodes MessagePack with field names: numbers stay exact, and a version with fewer fields can
/// read one with more.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, FleetError> {
    rmp_serde::to_vec_named(value).map_err(FleetError::defect)
}

#[cfg(test)]
mod tests;
