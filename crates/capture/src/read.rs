//! Reader of captures.

use crate::{DATA, DOCUMENT, Document, FORMAT, Launch};
use sha2::Digest as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Largest document that is read, bytes.
const MAX_DOCUMENT_BYTES: u64 = 1 << 30;

/// A capture on disk.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Its folder.
    pub folder: PathBuf,
    /// Its document.
    pub document: Document,
}

/// Why a capture cannot be used. The text says what to do.
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
        let text = match std::fs::File::open(&path) {
            Ok(file) => {
                let mut text = String::new();
                file.take(MAX_DOCUMENT_BYTES)
                    .read_to_string(&mut text)
                    .map_err(|error| damaged(error.to_string()))?;
                text
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
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
        Ok(Capture {
            folder: folder.to_owned(),
            document,
        })
    }

    /// The launches of a kernel by its name in the source, with or without namespaces and template
    /// arguments.
    pub fn launches<'c>(&'c self, kernel: &'c str) -> impl Iterator<Item = &'c Launch> {
        let launches = self.document.launches.iter();
        launches.filter(move |launch| base_name(&launch.kernel) == base_name(kernel))
    }

    /// Reads the contents of a hash.
    ///
    /// # Errors
    /// A file that is missing, damaged or not what its name says.
    pub fn contents(&self, hash: &str) -> Result<Vec<u8>, CaptureError> {
        let path = self.folder.join(DATA).join(format!("{hash}.gz"));
        let failed = |why: String| CaptureError::Contents {
            path: path.display().to_string(),
            why,
        };
        let file = std::fs::File::open(&path).map_err(|error| failed(error.to_string()))?;
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(file)
            .read_to_end(&mut bytes)
            .map_err(|error| failed(error.to_string()))?;
        if hex::encode(sha2::Sha256::digest(&bytes)) != hash {
            return Err(failed("its contents are not those of its name".to_owned()));
        }
        Ok(bytes)
    }
}

/// Returns the last part of a kernel's name, without template arguments.
#[must_use]
pub fn base_name(name: &str) -> &str {
    let name = name
        .rsplit("(anonymous namespace)::")
        .next()
        .unwrap_or(name);
    let plain = name.split(['<', '(']).next().unwrap_or(name).trim();
    plain.rsplit("::").next().unwrap_or(plain)
}
