//! Frames: lists of byte strings, each with its length before it. The compile workers speak them
//! over pipes, and a cache entry is one frame in a file.

use std::io::{self, Read, Write};

/// No part is larger: a corrupt length must not make the reader allocate the machine's memory.
const PART_BYTES_MAX: u64 = 1 << 30;
/// No frame has more parts.
const PARTS_MAX: u32 = 16;

/// Writes one frame and flushes.
pub(super) fn write_frame(writer: &mut impl Write, parts: &[&[u8]]) -> io::Result<()> {
    let count = u32::try_from(parts.len()).map_err(io::Error::other)?;
    writer.write_all(&count.to_le_bytes())?;
    for part in parts {
        writer.write_all(&(part.len() as u64).to_le_bytes())?;
        writer.write_all(part)?;
    }
    writer.flush()
}

/// Reads one frame; `None` at a clean end of the stream.
pub(super) fn read_frame(reader: &mut impl Read) -> io::Result<Option<Vec<Vec<u8>>>> {
    let mut count = [0; 4];
    match reader.read(&mut count)? {
        0 => return Ok(None),
        some => reader.read_exact(&mut count[some..])?,
    }
    let count = u32::from_le_bytes(count);
    if count > PARTS_MAX {
        return Err(invalid(format!("a frame of {count} parts")));
    }
    let mut parts = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let mut length = [0; 8];
        reader.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        if length > PART_BYTES_MAX {
            return Err(invalid(format!("a frame part of {length} bytes")));
        }
        // `take` grows the buffer as bytes arrive, so a wrong length costs nothing up front.
        let mut part = Vec::new();
        reader.by_ref().take(length).read_to_end(&mut part)?;
        if part.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        parts.push(part);
    }
    Ok(Some(parts))
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::{read_frame, write_frame};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_reads_back_as_it_was_written(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8),
        ) {
            let mut bytes = Vec::new();
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            write_frame(&mut bytes, &slices).unwrap();
            let mut reader = bytes.as_slice();
            prop_assert_eq!(read_frame(&mut reader).unwrap(), Some(parts));
            prop_assert_eq!(read_frame(&mut reader).unwrap(), None);
        }

        #[test]
        fn garbage_is_an_error_or_a_frame_but_never_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let _ = read_frame(&mut bytes.as_slice());
        }
    }

    #[test]
    fn a_truncated_frame_is_an_error() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &[b"hello", b"world"]).unwrap();
        for end in 1..bytes.len() {
            assert!(read_frame(&mut &bytes[..end]).is_err(), "cut at {end}");
        }
    }
}
