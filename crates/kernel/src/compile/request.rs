//! One compile, as sent to a worker.

use super::template::Header;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tuner_core::units::ContentHash;

/// One compile, as sent to a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) text: String,
    /// The paths of the template and its headers, to be restored in the PTX.
    pub(super) names: Vec<String>,
    pub(super) headers: Vec<Header>,
    pub(super) options: Vec<String>,
    /// Folders of headers that may be read.
    pub(super) folders: Vec<PathBuf>,
    /// C++ expressions that name kernels.
    pub(super) expressions: Vec<String>,
    /// Targets of links among CUDA's own headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) linked_folders: Vec<PathBuf>,
    /// Include lines of libraries at the start of the text; precompiled, they save time.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) prelude: String,
}

impl Request {
    /// Returns the hash of everything that determines how a prelude is parsed.
    pub(super) fn prelude_key(&self, prelude: &str) -> ContentHash {
        let mut parts = vec![prelude.as_bytes()];
        parts.extend(self.options.iter().map(String::as_bytes));
        for header in &self.headers {
            parts.extend([header.spelled.as_bytes(), header.text.as_bytes()]);
        }
        ContentHash::from_parts(parts)
    }
}
