//! Writer of captures.

use crate::{Buffer, DATA, DOCUMENT, Document, Ended, FORMAT, Launch};
use sha2::Digest as _;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Bounds of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum launch shapes captured per kernel.
    pub launches: usize,
    /// Bytes of contents, before compression.
    pub bytes: u64,
}

/// Extents of a launch: one launch of each is captured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub shared_bytes: u32,
}

/// A buffer with its contents.
#[derive(Debug, Clone, Default)]
pub struct BufferContents {
    /// The buffer; its hashes are filled in by the writer.
    pub buffer: Buffer,
    /// Contents before the launch.
    pub before: Option<Vec<u8>>,
    /// Contents after the launch.
    pub after: Option<Vec<u8>>,
}

/// Writes a capture, for all processes of a program.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    document: Document,
    /// Shapes that were captured or skipped, by mangled name.
    shapes: BTreeMap<String, BTreeSet<Shape>>,
    /// Contents that are on disk.
    stored: BTreeSet<String>,
    /// Their bytes before compression.
    bytes: u64,
    /// The folder can no longer be written.
    failed: bool,
}

impl State {
    fn skip(&mut self, text: String) {
        if !self.document.skipped.contains(&text) {
            self.document.skipped.push(text);
        }
    }
}

impl Writer {
    /// Starts a capture in a folder, which is created if missing.
    ///
    /// # Errors
    /// A folder that already contains a capture, or that cannot be written.
    pub fn create(folder: &Path, limits: Limits, document: Document) -> io::Result<Writer> {
        if folder.join(DOCUMENT).exists() {
            let text = format!(
                "{} has a capture already; name another folder, or remove that one",
                folder.display()
            );
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        std::fs::create_dir_all(folder.join(DATA))?;
        let document = Document {
            format: FORMAT,
            ..document
        };
        let writer = Writer {
            folder: folder.to_owned(),
            limits,
            state: Mutex::new(State {
                document,
                ..State::default()
            }),
        };
        // Immediately, so that an unwritable folder is rejected before the program runs.
        writer.save(&writer.lock().document)?;
        Ok(writer)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // The state is consistent at every possible panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports whether a launch of this shape is to be captured; records that a limit is reached.
    pub fn wants(&self, symbol: &str, kernel: &str, shape: &Shape) -> bool {
        let mut state = self.lock();
        if state.failed {
            return false;
        }
        let most = self.limits.launches;
        let known = state.shapes.entry(symbol.to_owned()).or_default();
        if known.contains(shape) {
            return false;
        }
        if known.len() < most {
            known.insert(shape.clone());
            return true;
        }
        state.skip(format!(
            "{kernel}: {most} launch shapes were captured, and it has more; keep more with \
             --capture-limit N"
        ));
        false
    }

    /// Returns the maximum bytes of contents of a capture.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.limits.bytes
    }

    /// Reports whether contents of `bytes` may be stored; records it if they may not.
    pub fn has_room(&self, kernel: &str, bytes: u64) -> bool {
        let mut state = self.lock();
        let fits = bytes <= self.limits.bytes;
        if !fits {
            state.skip(too_large(
                kernel,
                bytes,
                self.limits.bytes,
                self.limits.bytes,
            ));
        }
        fits
    }

    /// Records the reason why a launch was not captured.
    pub fn skip(&self, text: String) {
        self.lock().skip(text);
    }

    /// Adds a launch with the contents of its buffers. If that fails, the capture ends with its present
    /// launches, and the reason is recorded.
    pub fn add(&self, mut launch: Launch, buffers: Vec<BufferContents>) {
        let mut state = self.lock();
        if state.failed {
            return;
        }
        let mut contents: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for item in buffers {
            let mut named = |bytes: Option<Vec<u8>>| {
                let bytes = bytes?;
                let hash = hex::encode(sha2::Sha256::digest(&bytes));
                contents.insert(hash.clone(), bytes);
                Some(hash)
            };
            let (before, after) = (named(item.before), named(item.after));
            launch.buffers.push(Buffer {
                before,
                after,
                ..item.buffer
            });
        }
        // A buffer that is unchanged since an earlier launch does not count towards the limit.
        contents.retain(|hash, _| !state.stored.contains(hash));
        let new: u64 = contents.values().map(|bytes| bytes.len() as u64).sum();
        let left = self.limits.bytes.saturating_sub(state.bytes);
        if new > left {
            state.skip(too_large(&launch.kernel, new, left, self.limits.bytes));
            return;
        }
        state.document.launches.push(launch);
        let written = contents
            .iter()
            .try_for_each(|(hash, bytes)| self.store(hash, bytes))
            .and_then(|()| self.save(&state.document));
        match written {
            Ok(()) => {
                state.stored.extend(contents.into_keys());
                state.bytes += new;
            }
            Err(error) => {
                state.failed = true;
                // The document on disk lacks this launch; `finish` writes the state again.
                let lost = state.document.launches.pop();
                let kernel = lost.map(|launch| launch.kernel).unwrap_or_default();
                let kept = state.document.launches.len();
                for hash in contents.keys() {
                    let _ = std::fs::remove_file(self.path_of(hash));
                }
                state.skip(format!(
                    "{kernel}: the capture ended here, {} cannot be written: {error}; make room or \
                     name another folder, and run again ({kept} launches captured before are complete)",
                    self.folder.display()
                ));
            }
        }
    }

    /// Records the end of the program.
    ///
    /// # Errors
    /// The document cannot be written; the existing one stays.
    pub fn finish(&self, ended: Ended) -> io::Result<Document> {
        let mut state = self.lock();
        state.document.ended = Some(ended);
        let saved = self.save(&state.document);
        match saved {
            // `skipped` has the reason of an earlier failure.
            Err(error) if !state.failed => Err(error),
            _ => Ok(state.document.clone()),
        }
    }

    fn path_of(&self, hash: &str) -> PathBuf {
        self.folder.join(DATA).join(format!("{hash}.gz"))
    }

    fn store(&self, hash: &str, bytes: &[u8]) -> io::Result<()> {
        replace(&self.path_of(hash), |file| {
            // The program waits while its launch is stored.
            let fast = flate2::Compression::fast();
            let mut encoder = flate2::write::GzEncoder::new(file, fast);
            encoder.write_all(bytes)?;
            encoder.finish().map(|_| ())
        })
    }

    fn save(&self, document: &Document) -> io::Result<()> {
        let text = serde_json::to_string_pretty(document)?;
        replace(&self.folder.join(DOCUMENT), |file| {
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")
        })
    }
}

fn too_large(kernel: &str, wanted: u64, left: u64, all: u64) -> String {
    format!(
        "{kernel}: a launch was not captured, its buffers take {} and {} of --capture-bytes {} are left; \
         give a larger --capture-bytes, or run a smaller problem",
        shown_bytes(wanted),
        shown_bytes(left),
        shown_bytes(all)
    )
}

/// Formats a size for display, such as `1.5 MiB`.
#[must_use]
pub fn shown_bytes(bytes: u64) -> String {
    let scaled = |unit: u64| {
        let value = bytes as f64 / unit as f64;
        let text = format!("{value:.1}");
        text.strip_suffix(".0").unwrap_or(&text).to_owned()
    };
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", scaled(1 << 10)),
        1_048_576..1_073_741_824 => format!("{} MiB", scaled(1 << 20)),
        _ => format!("{} GiB", scaled(1 << 30)),
    }
}

/// Writes a file under a temporary name and renames it.
fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let made = File::create(&temporary).and_then(|mut file| {
        write(&mut file)?;
        // Otherwise the rename may reach the disk before the data.
        file.sync_data()
    });
    let done = made.and_then(|()| std::fs::rename(&temporary, path));
    if done.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    done
}
