//! Reading of user-supplied files: regular files only, up to a limit.
//!
//! A FIFO or a device with a familiar name blocks its reader forever, and a small gzip file may unpack to
//! more than the memory. Both are rejected with an explanation.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Largest hand-written text: a template, a space, a list of configurations.
pub const MAX_TEXT_BYTES: u64 = 16 << 20;
/// Largest recording, unpacked. The largest public ones have some 300 MB.
pub const MAX_RECORDING_BYTES: u64 = 1 << 30;
/// Largest ratio of a text to its gzip data; recordings have ratios of 5 to 40.
const MAX_RATIO: u64 = 200;
/// Size up to which the ratio is not checked: a short repetitive text compresses well.
const SMALL_BYTES: u64 = 16 << 20;
/// First bytes of gzip data (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Opens a regular file to read.
///
/// # Errors
/// Errors of opening, and `InvalidInput` for a folder, FIFO, socket or device.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Without O_NONBLOCK, opening a FIFO waits for a writer.
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if !kind.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file but a FIFO, socket or device",
        ));
    }
    Ok(file)
}

/// Reads the bytes of a regular file of at most `max` bytes.
///
/// # Errors
/// As [`open_regular`], errors of reading, and `FileTooLarge`.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let expected = file.metadata()?.len();
    if expected > max {
        return Err(too_large(max));
    }
    let mut bytes = Vec::new();
    bytes
        // A failed infallible allocation would end the process.
        .try_reserve_exact(usize::try_from(expected).unwrap_or(usize::MAX))
        .map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error))?;
    // One byte beyond the limit detects a file that has grown since its length was read.
    file.take(max + 1).read_to_end(&mut bytes)?;
    within(bytes, max)
}

/// Reads the text of a regular file of at most `max` bytes.
///
/// # Errors
/// As [`read`], and `InvalidData` for text that is not UTF-8.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    let text = String::from_utf8(read(path, max)?);
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

fn within(bytes: Vec<u8>, max: u64) -> io::Result<Vec<u8>> {
    if bytes.len() as u64 > max {
        return Err(too_large(max));
    }
    Ok(bytes)
}

fn too_large(max: u64) -> io::Error {
    let limit = match max >> 20 {
        0 => format!("{max} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    };
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!("it holds more than {limit}"),
    )
}

/// Content of gzip data.
#[derive(Debug)]
pub struct GzipContent {
    /// The plain bytes, up to the damage if there is any.
    pub bytes: Vec<u8>,
    /// Reason why the rest could not be unpacked.
    pub damage: Option<io::Error>,
}

/// Unpacks bytes that begin like gzip data; returns others unchanged.
///
/// # Errors
/// `FileTooLarge` if the plain bytes exceed `max` or the allowed ratio to the data.
pub fn unpack(bytes: Vec<u8>, max: u64) -> io::Result<GzipContent> {
    if !bytes.starts_with(&GZIP) {
        return Ok(GzipContent {
            bytes: within(bytes, max)?,
            damage: None,
        });
    }
    let proportionate = SMALL_BYTES.max(MAX_RATIO.saturating_mul(bytes.len() as u64));
    let limit = max.min(proportionate);
    let mut plain = Vec::new();
    let damage = flate2::read::MultiGzDecoder::new(bytes.as_slice())
        .take(limit + 1)
        .read_to_end(&mut plain)
        .err();
    if plain.len() as u64 > max {
        return Err(too_large(max));
    }
    if plain.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "its gzip data of {} KiB unpack to more than {MAX_RATIO} times their size",
                bytes.len() >> 10
            ),
        ));
    }
    Ok(GzipContent {
        bytes: plain,
        damage,
    })
}

#[cfg(test)]
mod tests;
