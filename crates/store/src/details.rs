//! Long details of verdicts, such as compiler messages, compressed.

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::{Read as _, Write as _};

/// Bytes of a detail that are stored in `verdicts` itself: lists show less.
pub(super) const MAX_PLAIN_BYTES: usize = 1024;
/// Maximum size of a detail that is read back, bytes; the stored form is much smaller.
const MAX_BYTES: u64 = 16 << 20;

/// Returns the text for `verdicts`, and for a long detail also the complete text, compressed.
pub(super) fn packed(detail: &str) -> (&str, Option<Vec<u8>>) {
    if detail.len() <= MAX_PLAIN_BYTES {
        return (detail, None);
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(detail.as_bytes());
    match written.and_then(|()| encoder.finish()) {
        Ok(body) => {
            let end = detail.floor_char_boundary(MAX_PLAIN_BYTES);
            (detail.get(..end).unwrap_or(detail), Some(body))
        }
        // Writing to memory does not fail; if it did, the detail would be stored uncompressed.
        Err(_) => (detail, None),
    }
}

/// Returns the unpacked detail; only its beginning if the body is damaged.
pub(super) fn unpacked(plain: String, body: Option<&[u8]>) -> String {
    let Some(body) = body else {
        return plain;
    };
    let mut text = String::new();
    match ZlibDecoder::new(body)
        .take(MAX_BYTES)
        .read_to_string(&mut text)
    {
        Ok(_) => text,
        Err(_) => plain,
    }
}

#[cfg(test)]
mod tests;
