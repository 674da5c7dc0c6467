//! Reads git repositories. The folder of a kernel may be untrusted. The configuration of its repository may
//! name programs (`core.fsmonitor`, filters, hooks, transports of a partial clone). gix only reads objects
//! and references, so none of them is started.

use crate::files;
use gix::objs::{Kind, compute_hash};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// Maximum wait for a repository: it may be on a dead network mount, or contain FIFOs.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Setting of gix that limits the size of objects, bytes: a small object may unpack to terabytes.
const ALLOCATION_LIMIT: &str = "gitoxide.objects.allocLimit=268435456";

/// Commit of a tree, and the state of some of its files.
pub(crate) struct TreeState {
    /// Hash of the checked-out commit.
    pub(crate) commit: String,
    /// SHA-256, in hexadecimal digits, of the `sha256sum` output for the files that differ from the commit.
    /// The files are sorted and named from the root of the tree. `None`: all are as committed.
    pub(crate) difference: Option<String>,
}

/// Compares files with the commit of the tree that contains `folder`. Paths are absolute, without links.
/// Contents are compared as stored on disk: no filter and no conversion of line ends runs.
///
/// # Errors
/// The reason why the tree has no readable commit.
pub(crate) fn compare(folder: &Path, files: Vec<PathBuf>) -> Result<TreeState, String> {
    let folder = folder.to_owned();
    within(TIMEOUT, move || {
        compare_files(&folder, &files).map_err(|error| error.to_string())
    })
}

/// Resolves a name of a commit, and returns it with those of `known` that it contains.
///
/// # Errors
/// The reason why the tree that holds `folder` has no such commit.
pub(crate) fn find_commit(
    folder: &Path,
    name: &str,
    known: &[String],
) -> Result<(String, Vec<String>), String> {
    let (folder, name, known) = (folder.to_owned(), name.to_owned(), known.to_vec());
    within(TIMEOUT, move || {
        find_contained(&folder, &name, known).map_err(|error| error.to_string())
    })
}

fn compare_files(folder: &Path, files: &[PathBuf]) -> Result<TreeState, gix::Error> {
    let repository = open(folder)?;
    let commit = repository.head_commit()?;
    let tree = commit.tree()?;
    let root = repository
        .workdir()
        .and_then(|path| path.canonicalize().ok());
    let mut differing = String::new();
    for file in files {
        let inside = root
            .as_deref()
            .and_then(|root| file.strip_prefix(root).ok());
        let committed = match inside {
            Some(path) => tree.lookup_entry_by_path(path)?,
            None => None,
        };
        let content = files::read(file, files::MAX_RECORDING_BYTES).unwrap_or_default();
        let id = compute_hash(repository.object_hash(), Kind::Blob, &content)?;
        if committed.is_none_or(|entry| entry.object_id() != id) {
            // The path of a file outside the tree would distinguish equal checkouts.
            let name = inside.or_else(|| file.file_name().map(Path::new));
            let name = name.unwrap_or(file).display();
            let _ = writeln!(
                differing,
                "{}  {name}",
                hex::encode(Sha256::digest(content))
            );
        }
    }
    Ok(TreeState {
        commit: commit.id.to_string(),
        difference: (!differing.is_empty()).then(|| hex::encode(Sha256::digest(differing))),
    })
}

fn find_contained(
    folder: &Path,
    name: &str,
    mut known: Vec<String>,
) -> Result<(String, Vec<String>), gix::Error> {
    let repository = open(folder)?;
    let commit = repository
        // An annotated tag is a separate object; `^{commit}` resolves it to the commit.
        .rev_parse_single(&*format!("{name}^{{commit}}"))?
        .detach();
    known.retain(|known| {
        let Ok(known) = gix::ObjectId::from_hex(known.as_bytes()) else {
            return false;
        };
        let base = repository.merge_base(known, commit);
        known == commit || base.is_ok_and(|base| base.is_some_and(|base| base == known))
    });
    Ok((commit.to_string(), known))
}

/// Opens the repository that contains a folder. Only its own configuration is read, without includes.
fn open(folder: &Path) -> Result<gix::Repository, gix::Error> {
    let options = || gix::open::Options::isolated().config_overrides([ALLOCATION_LIMIT]);
    let options = gix::sec::trust::Mapping {
        full: options(),
        reduced: options(),
    };
    let found = gix::ThreadSafeRepository::discover_opts(folder, Default::default(), options)?;
    Ok(found.to_thread_local())
}

/// Reads in a thread that is abandoned if it does not return in time.
fn within<T: Send + 'static>(
    timeout: Duration,
    read: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name("repository".to_owned());
    let started = thread.spawn(move || {
        // The receiver is dropped after a timeout.
        let _ = sender.send(read());
    });
    started.map_err(|error| format!("no thread to read it: {error}"))?;
    match receiver.recv_timeout(timeout) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            Err(format!("it was not read within {} s", timeout.as_secs()))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => Err("it cannot be read".to_owned()),
    }
}

#[cfg(test)]
mod tests;
