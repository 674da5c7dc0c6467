//! Messages and how they are read: whatever comes, reading it is an error at worst.

use super::link::{FleetError, Link};
use super::objects::ObjectError;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tuner_core::units::ContentHash;
use tuner_engine::fleet::{Answer, PROTOCOL, WorkOrder};

/// Largest message that is read, bytes, an object included: far above any answer.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Room in a message beside what it carries, bytes.
const MESSAGE_MARGIN: usize = 8 << 10;

/// An order on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OrderMessage {
    pub(crate) protocol: u32,
    /// Whom to answer.
    pub(crate) run: String,
    /// What the order is part of: an object of the fleet's files.
    pub(crate) assignment: ContentHash,
    /// How often the hub sent it before.
    pub(crate) attempt: u32,
    pub(crate) order: WorkOrder,
}

/// What became of an order, on its way back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AnswerMessage {
    pub(crate) protocol: u32,
    pub(crate) id: ContentHash,
    /// Who answers.
    pub(crate) worker: String,
    pub(crate) attempt: u32,
    pub(crate) outcome: Outcome,
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
    check(bytes)?;
    if let Ok(spilled) = rmp_serde::from_slice::<Spilled>(bytes) {
        let content = link.files.get(&spilled.object, MESSAGE_BYTES_MAX).await?;
        return parse(&content);
    }
    parse(bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Malformed> {
    check(bytes)?;
    rmp_serde::from_slice(bytes).map_err(|error| Malformed::Nonsense(error.to_string()))
}

fn check(bytes: &[u8]) -> Result<(), Malformed> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(Malformed::TooLarge(bytes.len()));
    }
    match rmp_serde::from_slice::<Head>(bytes) {
        Ok(head) if head.protocol == PROTOCOL => Ok(()),
        Ok(head) => Err(Malformed::Protocol(head.protocol)),
        Err(error) => Err(Malformed::Nonsense(error.to_string())),
    }
}

/// A message as it is sent: one that the server would not take becomes an object.
pub(crate) async fn write<T: Serialize>(link: &Link, message: &T) -> Result<Bytes, FleetError> {
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

/// MessagePack with names of fields: numbers stay the same to the last bit, and a version that knows
/// more fields is read by one that knows fewer.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, FleetError> {
    rmp_serde::to_vec_named(value).map_err(FleetError::defect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_of_any_kind_is_an_error_with_a_sentence() {
        let pack = |value: serde_json::Value| rmp_serde::to_vec_named(&value).unwrap();
        let other = pack(serde_json::json!({"protocol": 7, "id": "x"}));
        let half = pack(serde_json::json!({"protocol": 1}));
        let list = pack(serde_json::json!([]));
        let cut = &other[..other.len() - 1];
        for (bytes, hint) in [
            (&b""[..], "no message"),
            (&b"\xff\xfe\x00"[..], "no message"),
            (cut, "no message"),
            (&other[..], "protocol 7"),
            (&half[..], "no message"),
            (&list[..], "no message"),
        ] {
            let error = parse::<AnswerMessage>(bytes).unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
        let large = vec![b' '; MESSAGE_BYTES_MAX + 1];
        assert!(matches!(
            parse::<AnswerMessage>(&large),
            Err(Malformed::TooLarge(_))
        ));
    }
}
