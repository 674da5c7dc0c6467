//! Reader of captures.

use crate::{DATA, DOCUMENT, Document, FORMAT, Launch};
use sha2::Digest as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Largest document that is read, bytes.
const MAX_DOCUMENT_BYTES: u64 = 1 << 30;
/// Maximum size of a buffer's contents that are read, bytes.
const MAX_CONTENTS_BYTES: u64 = 4 << 30;
/// Maximum length of a value's name, characters: it is part of file names.
const MAX_NAME: usize = 64;

/// A capture on disk.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Its folder.
    pub folder: PathBuf,
    /// Its document.
    pub document: Document,
}

/// Reason why a capture cannot be used. The text describes the remedy.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The folder has no capture.
    #[error(
        "{folder} has no {DOCUMENT}; make one with: tuner exec --capture {folder} -- PROGRAM ARGS"
    )]
    Missing {
        /// The folder.
        folder: String,
    },
    /// The document cannot be read.
    #[error("{path}: {why}; capture the program again into another folder")]
    Document {
        /// The document.
        path: String,
        /// The reason.
        why: String,
    },
    /// The contents of a buffer are missing or were changed.
    #[error("{path}: {why}; capture the program again into another folder")]
    Contents {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
}

impl Capture {
    /// Reads the document of a folder.
    ///
    /// # Errors
    /// A folder without a capture, a damaged document, or one of another version.
    pub fn open(folder: &Path) -> Result<Capture, CaptureError> {
        let path = folder.join(DOCUMENT);
        let damaged = |why: String| CaptureError::Document {
            path: path.display().to_string(),
            why,
        };
        let text = match open_regular(&path) {
            Ok(file) => {
                let mut text = String::new();
                file.take(MAX_DOCUMENT_BYTES)
                    .read_to_string(&mut text)
                    .map_err(|error| damaged(error.to_string()))?;
                text
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CaptureError::Missing {
                    folder: folder.display().to_string(),
                });
            }
            Err(error) => return Err(damaged(error.to_string())),
        };
        let document: Document =
            serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if document.format != FORMAT {
            let found = document.format;
            return Err(damaged(format!(
                "it has format {found}, and this program reads format {FORMAT}"
            )));
        }
        // They are used as names of problems, of folders and of macros.
        if let Some(name) = document.values.keys().find(|name| !is_value_name(name)) {
            return Err(damaged(format!("{name:.80?} is not a name of a value")));
        }
        Ok(Capture {
            folder: folder.to_owned(),
            document,
        })
    }

    /// Returns the launches of a kernel by its name in the source, with or without namespaces and template
    /// arguments.
    pub fn launches<'c>(&'c self, kernel: &'c str) -> impl Iterator<Item = &'c Launch> {
        let launches = self.document.launches.iter();
        launches.filter(move |launch| base_name(&launch.kernel) == base_name(kernel))
    }

    /// Reads the contents of a hash.
    ///
    /// # Errors
    /// A file that is missing, damaged or does not match its name.
    pub fn contents(&self, hash: &str) -> Result<Vec<u8>, CaptureError> {
        let path = self.folder.join(DATA).join(format!("{hash}.gz"));
        let failed = |why: String| CaptureError::Contents {
            path: path.display().to_string(),
            why,
        };
        // The document may be untrusted: `../` would leave the folder.
        if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(failed("its name is not a SHA-256 hash".to_owned()));
        }
        let limit = self.size_of(hash).min(MAX_CONTENTS_BYTES);
        let file = open_regular(&path).map_err(|error| failed(error.to_string()))?;
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(file)
            // One more byte distinguishes contents that are too large from contents of exactly this size.
            .take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| failed(error.to_string()))?;
        if bytes.len() as u64 > limit {
            return Err(failed(format!("it unpacks to more than {limit} bytes")));
        }
        if hex::encode(sha2::Sha256::digest(&bytes)) != hash {
            return Err(failed("its contents are not those of its name".to_owned()));
        }
        Ok(bytes)
    }

    /// Returns the size of the largest buffer that has these contents, bytes.
    fn size_of(&self, hash: &str) -> u64 {
        let launches = self.document.launches.iter();
        let buffers = launches.flat_map(|launch| &launch.buffers);
        let named = buffers.filter(|buffer| {
            let mut hashes = buffer.before.iter().chain(&buffer.after);
            hashes.any(|known| known == hash)
        });
        named.map(|buffer| buffer.bytes).max().unwrap_or(0)
    }
}

/// Opens a regular file to read; a FIFO would block until it gets a writer.
fn open_regular(path: &Path) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

/// Reports whether a value of a capture may have this name: a C identifier of limited length.
#[must_use]
pub fn is_value_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let first_is_digit = name.starts_with(|c: char| c.is_ascii_digit());
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(word) && !first_is_digit
}

/// Returns the last part of a kernel's name, without template arguments.
#[must_use]
pub fn base_name(name: &str) -> &str {
    // The bracket in this word would end the name below.
    let name = name
        .rsplit("(anonymous namespace)::")
        .next()
        .unwrap_or(name);
    let plain = name.split(['<', '(']).next().unwrap_or(name).trim();
    plain.rsplit("::").next().unwrap_or(plain)
}
