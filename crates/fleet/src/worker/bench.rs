//! Benches for the runs' assignments, created for the first order of each.

use super::machine::Machine;
use crate::link::Link;
use crate::message::MESSAGE_BYTES_MAX;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;
use tuner_core::units::ContentHash;
use tuner_engine::fleet::{Assignment, Bundle, PackedFiles, unpack};
use tuner_engine::job::{Bench, LendError, LocalPaths, WorkerResource};
use tuner_engine::threads::run_blocking;
use tuner_kernel::catalog::check_laid_out;

/// Maximum size of a fetched kernel file, bytes: argument data.
const FILE_BYTES_MAX: usize = 1 << 30;

/// Maximum number of benches of each kind: each may keep a device open.
const MAX_BENCHES: usize = 2;

/// Use of a bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Compiling.
    Compile,
    /// Judging.
    Device,
}

/// Benches in use.
#[derive(Default)]
pub(super) struct Benches {
    known: Mutex<VecDeque<(ContentHash, Use, Arc<Bench>)>>,
}

impl Benches {
    /// Returns the bench for an assignment; concurrent callers share one creation.
    pub(super) async fn get(
        &self,
        link: &Link,
        machine: &Machine,
        assignment: &ContentHash,
        used: Use,
    ) -> Result<Arc<Bench>, LendError> {
        let mut known = self.known.lock().await;
        let same = |(hash, other, _): &(ContentHash, Use, _)| hash == assignment && *other == used;
        if let Some((.., bench)) = known.iter().find(|bench| same(bench)) {
            return Ok(Arc::clone(bench));
        }
        let bench = Arc::new(make(link, machine, assignment, used).await?);
        known.push_back((assignment.clone(), used, Arc::clone(&bench)));
        if known.iter().filter(|(_, other, _)| *other == used).count() > MAX_BENCHES
            && let Some(oldest) = known.iter().position(|(_, other, _)| *other == used)
        {
            let oldest = known.remove(oldest);
            // It may wait for a process to end.
            let thread = std::thread::Builder::new().name("drop".to_owned());
            // Without a thread it is dropped here.
            let _ = thread.spawn(move || drop(oldest));
        }
        Ok(bench)
    }
}

async fn make(
    link: &Link,
    machine: &Machine,
    hash: &ContentHash,
    used: Use,
) -> Result<Bench, LendError> {
    let text = fetch(link, hash, MESSAGE_BYTES_MAX).await?;
    let assignment: Assignment = serde_json::from_slice(&text)
        .map_err(|error| LendError::Here(format!("the assignment cannot be read: {error}")))?;
    if let WorkerResource::Recording(recording) = &machine.lent {
        return Bench::recorded(recording, &assignment);
    }
    let mut files = PackedFiles::new();
    for file in assignment.kernels.iter().flat_map(|kernel| &kernel.files) {
        if !files.contains_key(&file.hash) {
            let content = fetch(link, &file.hash, FILE_BYTES_MAX).await?;
            files.insert(file.hash.clone(), content);
        }
    }
    let folder = machine.folder.join(hash.as_str());
    let (lent, compiler) = (machine.lent.clone(), machine.compiler.clone());
    let making = move || {
        let lay = |(place, bundle)| {
            let below = folder.join(format!("{place}"));
            let space = unpack(bundle, &files, &below);
            let space = space.map_err(|error| LendError::Here(error.to_string()))?;
            // The hub may be untrusted: its kernels must not read files of this machine.
            check_laid_out(&space, &below).map_err(|error| LendError::Here(error.to_string()))?;
            Ok::<PathBuf, LendError>(space)
        };
        let spaces: Result<Vec<PathBuf>, _> =
            assignment.kernels.iter().enumerate().map(lay).collect();
        let spaces = spaces?;
        let laid_out = |(place, bundle): (usize, &Bundle)| -> Vec<(ContentHash, Arc<str>)> {
            let below = folder.join(format!("{place}"));
            let files = bundle.files.iter();
            files
                .map(|file| {
                    let path = below.join(&file.path);
                    (file.hash.clone(), Arc::from(path.to_string_lossy()))
                })
                .collect()
        };
        let files = assignment.kernels.iter().enumerate().flat_map(laid_out);
        let files: LocalPaths = files.collect();
        match (used, lent, compiler) {
            (Use::Device, WorkerResource::Device(device), _) => {
                Bench::on_device(&assignment, &spaces, &folder, &device, files)
            }
            (Use::Compile, _, Some(compiler)) => {
                Bench::compiling(&assignment, &spaces, &folder, &compiler)
            }
            _ => Err(LendError::Here(
                "this worker lends nothing of the kind".to_owned(),
            )),
        }
    };
    let made = run_blocking("bench", making).await;
    made.unwrap_or_else(|panic| Err(LendError::Here(panic.to_string())))
}

async fn fetch(link: &Link, hash: &ContentHash, most: usize) -> Result<Vec<u8>, LendError> {
    let content = link.files.get(hash, most).await;
    content.map_err(|error| LendError::Here(error.to_string()))
}
