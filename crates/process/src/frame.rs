//! Frames: a JSON header and raw attachments, counted and with checksums.
//!
//! ```text
//! "TNF1" | number u32 | parts u32 | bytes u64 | CRC of the bytes u32 | CRC of the head u32
//!        | bytes: a length u64 a part, then the parts
//! ```
//!
//! Little endian. The number counts the frames of one direction and reveals lost and repeated frames. The
//! head has a separate checksum: a damaged length is an immediate error, not a frame for which the reader
//! waits.

use serde::{Serialize, de::DeserializeOwned};
use std::io;

/// The parts of a frame; by convention the first is JSON and the others are raw bytes.
pub type Parts = Vec<Vec<u8>>;

const MAGIC: &[u8; 4] = b"TNF1";
const HEAD_BYTES: usize = 28;
/// Largest frame, bytes: a corrupt length must not make the reader allocate the machine's memory.
const MAX_FRAME_BYTES: u64 = 1 << 30;
/// Maximum number of parts of a frame: a comparison of many candidates has two for each.
const MAX_PARTS: u32 = 4096;

/// Encodes the frame with this number.
///
/// # Errors
/// More or larger parts than a reader accepts.
pub fn encode(number: u32, parts: &[&[u8]]) -> io::Result<Vec<u8>> {
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let bytes: u64 = parts.iter().map(|part| 8 + part.len() as u64).sum();
    if count > MAX_PARTS || bytes > MAX_FRAME_BYTES {
        return Err(invalid(format!(
            "a message of {count} parts and {bytes} bytes is too large"
        )));
    }
    let mut frame = Vec::with_capacity(HEAD_BYTES + bytes as usize);
    frame.extend_from_slice(MAGIC);
    frame.extend_from_slice(&number.to_le_bytes());
    frame.extend_from_slice(&count.to_le_bytes());
    frame.extend_from_slice(&bytes.to_le_bytes());
    let mut body = crc32fast::Hasher::new();
    for part in parts {
        body.update(&(part.len() as u64).to_le_bytes());
    }
    for part in parts {
        body.update(part);
    }
    frame.extend_from_slice(&body.finalize().to_le_bytes());
    let head = crc32fast::hash(frame.get(MAGIC.len()..).unwrap_or_default());
    frame.extend_from_slice(&head.to_le_bytes());
    for part in parts {
        frame.extend_from_slice(&(part.len() as u64).to_le_bytes());
    }
    for part in parts {
        frame.extend_from_slice(part);
    }
    Ok(frame)
}

/// The head of a frame: everything before the lengths of the parts.
struct Head {
    number: u32,
    parts: u32,
    bytes: u64,
    body_sum: u32,
}

impl Head {
    /// Parses a head and verifies its checksum and limits.
    fn read(head: &[u8; HEAD_BYTES]) -> io::Result<Self> {
        let (words, _) = head.as_chunks();
        let [_, number, parts, low, high, body_sum, head_sum] = words else {
            return Err(damaged());
        };
        let summed = head.get(MAGIC.len()..HEAD_BYTES - head_sum.len());
        let field = |word: &[u8; 4]| u32::from_le_bytes(*word);
        if field(head_sum) != crc32fast::hash(summed.unwrap_or_default()) {
            return Err(damaged());
        }
        let read = Self {
            number: field(number),
            parts: field(parts),
            bytes: u64::from(field(high)) << 32 | u64::from(field(low)),
            body_sum: field(body_sum),
        };
        // `take` splits the body after the table, which therefore has to fit.
        let table = 8 * u64::from(read.parts);
        if read.parts > MAX_PARTS || read.bytes > MAX_FRAME_BYTES || read.bytes < table {
            return Err(damaged());
        }
        Ok(read)
    }
}

/// Incremental decoder: builds frames from bytes in pieces of any size.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Frames decoded so far; the number that the next one must have.
    count: u32,
}

impl Decoder {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Reports whether the bytes end between two frames.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the next frame once it is complete.
    ///
    /// # Errors
    /// The bytes are not a frame, or not the next one. Later bytes cannot be trusted.
    pub fn take(&mut self) -> io::Result<Option<Parts>> {
        let different = |(seen, expected): (&u8, &u8)| seen != expected;
        // At the first byte: text of a library on the pipe may be shorter than a head.
        if self.buffer.iter().zip(MAGIC).any(different) {
            return Err(invalid("bytes that begin no message".to_owned()));
        }
        let Some(head) = self.buffer.first_chunk() else {
            return Ok(None);
        };
        let head = Head::read(head)?;
        if head.number != self.count {
            return Err(invalid(format!(
                "message {} where {} was due",
                head.number, self.count
            )));
        }
        let end = HEAD_BYTES + head.bytes as usize;
        let Some(body) = self.buffer.get(HEAD_BYTES..end) else {
            return Ok(None);
        };
        if crc32fast::hash(body) != head.body_sum {
            return Err(damaged());
        }
        let (table, mut rest) = body.split_at(8 * head.parts as usize);
        let mut parts = Vec::with_capacity(head.parts as usize);
        for length in table.as_chunks::<8>().0 {
            let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
            let (part, others) = rest.split_at_checked(length).ok_or_else(damaged)?;
            parts.push(part.to_vec());
            rest = others;
        }
        self.buffer.drain(..end);
        self.count = self.count.wrapping_add(1);
        Ok(Some(parts))
    }
}

fn damaged() -> io::Error {
    invalid("a message that was damaged on its way".to_owned())
}

/// Encodes the first part of a message.
///
/// # Errors
/// The message cannot be expressed as JSON.
pub fn to_json<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    serde_json::to_vec(message).map_err(io::Error::from)
}

/// Decodes the first part of a message.
///
/// # Errors
/// The part is missing, or is not a `T`.
pub fn from_json<T: DeserializeOwned>(parts: &[Vec<u8>]) -> io::Result<T> {
    let header = parts.first().map(Vec::as_slice).unwrap_or_default();
    serde_json::from_slice(header).map_err(io::Error::from)
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests;
