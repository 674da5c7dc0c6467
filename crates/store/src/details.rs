//! Long details of verdicts, such as a compiler's messages, compressed.

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::{Read as _, Write as _};

/// Bytes of a detail that stand in `verdicts` themselves: lists show less.
pub(super) const MAX_PLAIN_BYTES: usize = 1024;
/// Longest detail that is read back, bytes; what is stored is a small part of it.
const MAX_BYTES: u64 = 16 << 20;

/// What stands in `verdicts`, and of a long detail all of it, compressed.
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
        // Writing to memory does not fail; were it so, the detail would stand as it is.
        Err(_) => (detail, None),
    }
}

/// The detail that was packed; the beginning of it where its body is damaged.
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
mod tests {
    use super::{MAX_PLAIN_BYTES, packed, unpacked};

    #[test]
    fn a_long_detail_reads_back_and_takes_a_small_part_of_its_size() {
        for length in [0, 1, 700, 5_000] {
            let detail = "kernel.cu(3): error: „x“ is undefined\n".repeat(length);
            let (plain, body) = packed(&detail);
            assert!(plain.len() <= MAX_PLAIN_BYTES && detail.starts_with(plain));
            let size = body.as_ref().map_or(0, Vec::len);
            assert!(
                plain.len() + size <= detail.len().min(2 * MAX_PLAIN_BYTES),
                "{size} for {}",
                detail.len()
            );
            assert_eq!(unpacked(plain.to_owned(), body.as_deref()), detail);
        }
    }

    #[test]
    fn of_a_damaged_body_the_beginning_is_left() {
        let detail = "x".repeat(5000);
        let (plain, body) = packed(&detail);
        let mut body = body.unwrap();
        body.truncate(body.len() / 2);
        assert_eq!(unpacked(plain.to_owned(), Some(&body)), plain);
    }
}
