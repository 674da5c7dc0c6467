//! Messages and how they are read: whatever comes, reading it is an error at worst.

use super::link::{AGAIN, FleetError, Link};
use super::objects::ObjectError;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tuner_core::units::ContentHash;
use tuner_engine::fleet::{Answer, PROTOCOL, SiblingTimes, WorkOrder};

/// Largest message that is read, bytes, an object included: far above any answer.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Room in a message beside what it carries, bytes.
const MESSAGE_MARGIN: usize = 8 << 10;

/// Orders on their way: one, or several look-ups in a recording, which take less than a message does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OrderMessage {
    pub(crate) protocol: u32,
    /// Whom to answer.
    pub(crate) run: String,
    /// What the orders are part of: an object of the fleet's files.
    pub(crate) assignment: ContentHash,
    /// How often the hub sent them before.
    pub(crate) attempt: u32,
    pub(crate) orders: Vec<WorkOrder>,
}

/// What became of the orders of a message, on its way back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AnswerMessage {
    pub(crate) protocol: u32,
    /// Who answers.
    pub(crate) worker: String,
    pub(crate) attempt: u32,
    pub(crate) answers: Vec<OrderOutcome>,
}

/// What became of the order of that name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OrderOutcome {
    pub(crate) id: ContentHash,
    pub(crate) outcome: Outcome,
}

/// The name of a message with these orders: that of its only one, or the hash of all.
pub(crate) fn name_of<'o>(orders: impl ExactSizeIterator<Item = &'o WorkOrder>) -> ContentHash {
    let mut ids = orders.map(|order| &order.id);
    match (ids.len(), ids.next()) {
        (1, Some(only)) => only.clone(),
        (_, first) => ContentHash::of(
            first
                .into_iter()
                .chain(ids)
                .map(|id| id.as_str().as_bytes()),
        ),
    }
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// An answer.
    Answer(Answer),
    /// The worker leaves; nobody is to blame.
    Leaving,
    /// The worker could not carry it out.
    Unable(String),
    /// It was handed out so often, and nobody answered.
    Lost(u32),
    /// Before its first candidate of a task: what the worker's GPU takes for what others were timed
    /// with. The order stays in hand.
    Compared(SiblingTimes),
}

/// A message that stands for one that was too large.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spilled {
    protocol: u32,
    object: ContentHash,
}

/// The part of a message that all versions have.
#[derive(Debug, Deserialize)]
struct Head {
    protocol: u32,
}

/// A message that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("it has {0} bytes, more than a message may")]
    TooLarge(usize),
    #[error("it is of protocol {0}, and this program speaks protocol {PROTOCOL}")]
    Protocol(u32),
    #[error("it is no message of a fleet: {0}")]
    Nonsense(String),
    #[error("what it stands for cannot be fetched: {0}")]
    Object(#[from] ObjectError),
}

/// Reads a message; one that stands for a larger one is followed.
pub(crate) async fn read<T: DeserializeOwned>(link: &Link, bytes: &[u8]) -> Result<T, Malformed> {
    read_sized(link, bytes).await.map(|(message, _)| message)
}

/// The same with the number of bytes that it was read from.
pub(crate) async fn read_sized<T: DeserializeOwned>(
    link: &Link,
    bytes: &[u8],
) -> Result<(T, usize), Malformed> {
    let error = match parse(bytes) {
        Ok(message) => return Ok((message, bytes.len())),
        Err(error) => error,
    };
    let spilled = match (&error, rmp_serde::from_slice::<Spilled>(bytes)) {
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
    // One of another version need not look like ours.
    let head = rmp_serde::from_slice::<Head>(bytes);
    if let Ok(Head { protocol }) = head
        && protocol != PROTOCOL
    {
        return Err(Malformed::Protocol(protocol));
    }
    let message = rmp_serde::from_slice(bytes).map_err(nonsense)?;
    head.map(|_| message).map_err(nonsense)
}

/// Reads bytes as orders and as answers, and checks the answers, as the fuzz tests call it.
///
/// # Errors
/// The message for the log, where they are neither.
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

/// A message as it is sent: one that the server would not take becomes an object.
async fn write<T: Serialize>(link: &Link, message: &T) -> Result<Bytes, FleetError> {
    let bytes = encode(message)?;
    let most = link.client.server_info().max_payload;
    if bytes.len() + MESSAGE_MARGIN <= most {
        return Ok(bytes.into());
    }
    let object = link.files.put(&bytes).await?;
    let spilled = Spilled {
        protocol: PROTOCOL,
        object,
    };
    Ok(encode(&spilled)?.into())
}

/// The same, tried until it succeeds; `what` it is, for the log.
pub(crate) async fn write_or_wait<T: Serialize>(link: &Link, message: &T, what: &str) -> Bytes {
    loop {
        match write(link, message).await {
            Ok(payload) => return payload,
            Err(error) => tracing::warn!(%error, "{what} cannot be sent; trying again"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// MessagePack with names of fields: numbers stay the same to the last bit, and a version that knows
/// more fields is read by one that knows fewer.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, FleetError> {
    rmp_serde::to_vec_named(value).map_err(FleetError::defect)
}

#[cfg(test)]
mod tests;
