//! Precompiled library headers of one worker.
//!
//! Parsing `<cooperative_groups.h>` or `<cuda/barrier>` takes NVRTC a second, ten times as long as most
//! kernels. NVRTC 12.8 and later can store the parsed headers in a file. Only the same process can use it,
//! because it contains addresses of that process.

use super::image::RawStatus;
use super::nvrtc::Nvrtc;
use super::request::Request;
use super::sandbox::{Folders, run_confined};
use super::template::Header;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use tuner_core::private::open_file;
use tuner_core::units::ContentHash;

/// Maximum precompiled preludes of a worker.
const ENTRIES_MAX: usize = 4;
/// End of the text that is precompiled.
const END: &str = "#pragma nv_hdrstop\n";

/// Location and size limit of the files of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PrecompiledSettings {
    /// Folder of this user and worker, in which files are created and immediately removed. NVRTC must
    /// create its temporary files there too (`TMPDIR`).
    pub(super) folder: String,
    /// Maximum size of one worker's files, bytes.
    pub(super) bytes_max: u64,
}

/// Precompiled preludes of a worker, the most recently used first.
#[derive(Debug)]
pub(super) struct Precompiled {
    settings: PrecompiledSettings,
    entries: VecDeque<Entry>,
    created: u32,
}

#[derive(Debug)]
struct Entry {
    key: ContentHash,
    /// The unlinked file; `None` if the prelude cannot be precompiled.
    file: Option<File>,
    bytes: u64,
}

/// A text that begins with a precompiled prelude, and the options to use it.
pub(super) struct WithPrelude {
    pub(super) text: String,
    pub(super) options: Vec<String>,
}

impl Precompiled {
    /// Creates it empty.
    pub(super) fn new(settings: PrecompiledSettings) -> Self {
        Self {
            settings,
            entries: VecDeque::new(),
            created: 0,
        }
    }

    /// Returns the request's text and options with its prelude precompiled, creating the file if it does
    /// not exist. `None` without a prelude, or if NVRTC cannot precompile it.
    pub(super) fn begun(
        &mut self,
        nvrtc: &Nvrtc,
        request: &Request,
        headers: &[Header],
        folders: &Folders,
    ) -> Option<WithPrelude> {
        if request.prelude.is_empty() {
            return None;
        }
        let key = request.prelude_key(&request.prelude);
        let known = self.entries.iter().position(|entry| entry.key == key);
        let entry = match known.and_then(|at| self.entries.remove(at)) {
            Some(entry) => entry,
            None => self.create(key, nvrtc, request, headers, folders),
        };
        let begun = entry.file.as_ref().map(|file| {
            let mut options = request.options.clone();
            options.push(format!("--use-pch=/proc/self/fd/{}", file.as_raw_fd()));
            options.push("--pch-messages=false".to_owned());
            let text = format!("{}{END}{}", request.prelude, request.text);
            WithPrelude { text, options }
        });
        self.entries.push_front(entry);
        self.evict();
        begun
    }

    /// Drops the most recently used prelude because NVRTC rejected it.
    pub(super) fn give_up(&mut self) {
        if let Some(entry) = self.entries.front_mut() {
            entry.file = None;
            entry.bytes = 0;
        }
    }

    /// Returns the folders of a compile plus the folder of precompiled headers, in which NVRTC also creates
    /// a temporary file to read one.
    pub(super) fn with_own(&self, folders: &Folders) -> Folders {
        Folders {
            written: Some(self.folder()),
            ..folders.clone()
        }
    }

    fn folder(&self) -> PathBuf {
        PathBuf::from(&self.settings.folder)
    }

    fn create(
        &mut self,
        key: ContentHash,
        nvrtc: &Nvrtc,
        request: &Request,
        headers: &[Header],
        folders: &Folders,
    ) -> Entry {
        self.created += 1;
        let name = format!("prelude-{}-{}", std::process::id(), self.created);
        let path = self.folder().join(name);
        let file = self.write(&path, nvrtc, request, headers, folders);
        // Without a name, the file is freed when the process ends for any reason.
        let _ = std::fs::remove_file(&path);
        let bytes = file
            .as_ref()
            .and_then(|file| file.metadata().ok())
            .map_or(0, |data| data.len());
        let fits = (1..=self.settings.bytes_max).contains(&bytes);
        Entry {
            key,
            file: file.filter(|_| fits),
            bytes: if fits { bytes } else { 0 },
        }
    }

    fn write(
        &self,
        path: &std::path::Path,
        nvrtc: &Nvrtc,
        request: &Request,
        headers: &[Header],
        folders: &Folders,
    ) -> Option<File> {
        let text = format!("{}{END}", request.prelude);
        let mut options = request.options.clone();
        options.push(format!("--create-pch={}", path.display()));
        let folders = self.with_own(folders);
        let compiled = run_confined(&folders, || {
            nvrtc.compile(&text, "prelude", headers, &options, &[])
        });
        match compiled {
            Ok(Ok(result)) if result.head.status == RawStatus::Compiled => open_file(path).ok(),
            _ => None,
        }
    }

    /// Drops the least recently used files, to stay within the limits.
    fn evict(&mut self) {
        let mut left = self.settings.bytes_max;
        let mut kept = 0;
        self.entries.retain(|entry| {
            let rest = left.checked_sub(entry.bytes);
            kept += 1;
            left = rest.unwrap_or(0);
            rest.is_some() && kept <= ENTRIES_MAX
        });
    }
}

#[cfg(test)]
mod tests;
