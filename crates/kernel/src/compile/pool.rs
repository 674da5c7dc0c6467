//! Pool of compile workers, started on demand, replaced when they hang, crash, grow or reach their maximum
//! number of compiles.

use super::error::CompileError;
use super::image::{RawResult, over_memory};
use super::options;
use super::precompiled::PrecompiledSettings;
use super::request::Request;
use super::worker::{WORKER_COMMAND, WorkerConfig};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tuner_core::judgement::Judgement;
use tuner_core::panics::lock;
use tuner_core::private::create_folder;
use tuner_core::record::Verdict;
use tuner_process::{ATTEMPTS, Failure, Limits, Process, Program, pause, start_error, to_json};

/// Compiles after which a worker is replaced, so that leaks in the compiler stay small.
const COMPILES_PER_WORKER: u32 = 500;
/// Address space beyond the limit on resident memory: the libraries' mappings and the arenas that
/// glibc reserves for each thread.
const ADDRESS_SPACE_SLACK_BYTES: u64 = 3 << 30;

/// The limits and the program of the workers.
#[derive(Debug, Clone)]
pub(super) struct PoolSettings {
    /// The executable that has the `compile-worker` subcommand.
    pub(super) program: PathBuf,
    /// The NVRTC that workers load.
    pub(super) library: PathBuf,
    /// Maximum duration of a compile.
    pub(super) deadline: Duration,
    /// Maximum resident memory of one worker.
    pub(super) memory_bytes: u64,
    /// Location of precompiled headers; `None` for none.
    pub(super) precompiled: Option<PrecompiledPlace>,
}

/// Location of the precompiled headers of all workers.
#[derive(Debug, Clone)]
pub(super) struct PrecompiledPlace {
    /// Folder of all caches.
    pub(super) cache: PathBuf,
    /// Maximum size of one worker's files, bytes.
    pub(super) bytes_max: u64,
}

impl PrecompiledPlace {
    /// Creates the folder of one worker, which is deleted with the pool, and removes folders of programs
    /// that ended without doing so. Only this user can write it: others could plant files.
    fn folder(&self) -> io::Result<TempDir> {
        let all = create_folder(&self.cache, &["preludes"])?;
        for entry in std::fs::read_dir(&all)?.flatten() {
            let name = entry.file_name();
            let program = name.to_str().and_then(|name| name.split('-').nth(1));
            let program = program.and_then(|text| text.parse::<u32>().ok());
            if program.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        let private = Permissions::from_mode(0o700);
        tempfile::Builder::new()
            .prefix(&format!("worker-{}-", std::process::id()))
            .permissions(private)
            .tempdir_in(all)
    }
}

/// Outcome of a request. The inner error means that the worker did not answer; the outer one is the
/// machine's fault, not the source's.
pub(super) type PoolReply = Result<Result<RawResult, Judgement>, CompileError>;

/// The pool. Dropping it ends the workers.
pub(super) struct Pool {
    settings: PoolSettings,
    places: Mutex<Places>,
    freed: Condvar,
}

struct Places {
    idle: Vec<Worker>,
    /// Number of further workers that may be busy.
    free: usize,
}

impl Places {
    /// Takes the last idle worker with the same lasting options: its state does not change the code of a
    /// request with these. If there is none and no slot is free, takes a plain worker, or returns another
    /// worker to end as the second value.
    fn take(&mut self, lasting: &[String]) -> (Option<Worker>, Option<Worker>) {
        let with = |wanted: &[String]| self.idle.iter().rposition(|it| it.lasting == wanted);
        let is_full = self.idle.len() > self.free;
        let suitable = with(lasting).or_else(|| with(&[]).filter(|_| is_full));
        match suitable {
            Some(at) => (Some(self.idle.remove(at)), None),
            None if is_full => (None, Some(self.idle.remove(0))),
            None => (None, None),
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Pool {
    /// Creates a pool of at most `workers` workers; they are started on demand.
    pub(super) fn new(workers: usize, settings: PoolSettings) -> Self {
        let places = Places {
            idle: Vec::new(),
            free: workers.max(1),
        };
        Self {
            settings,
            places: Mutex::new(places),
            freed: Condvar::new(),
        }
    }

    /// Reports whether the workers may precompile headers.
    pub(super) fn precompiles(&self) -> bool {
        self.settings.precompiled.is_some()
    }

    /// Compiles one request; blocks until a worker has answered or was abandoned.
    pub(super) fn compile(&self, request: &Request) -> PoolReply {
        let lasting = options::lasting(&request.options);
        let request = to_json(request).map_err(|error| CompileError::new(error.to_string()))?;
        let mut places = self
            .freed
            .wait_while(lock(&self.places), |places| places.free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        // Decremented before the worker starts, so that the limit is never exceeded.
        places.free -= 1;
        let (mut slot, ended) = places.take(&lasting);
        drop(places);
        drop(ended);
        let reply = self.serve(&mut slot, &request, &lasting);
        let mut places = lock(&self.places);
        places.free += 1;
        places.idle.extend(slot);
        self.freed.notify_one();
        reply
    }

    /// Serves a request with this worker, or a new one. A worker that did not answer is killed; if the
    /// request did not cause that, it is retried on another worker.
    fn serve(&self, slot: &mut Option<Worker>, request: &[u8], lasting: &[String]) -> PoolReply {
        let mut lost = String::new();
        for attempt in 0..ATTEMPTS {
            pause(attempt);
            // An idle worker may have been killed since, which is not the fault of this request.
            let waiting = slot.take().filter(|worker| !worker.process.is_gone());
            let mut worker = match waiting.map_or_else(|| Worker::start(&self.settings), Ok) {
                Ok(worker) => worker,
                Err(error) => {
                    let why = start_error(&self.settings.program, &error);
                    return Err(CompileError::new(format!("no compile worker: {why}")));
                }
            };
            lasting.clone_into(&mut worker.lasting);
            let detail = match worker.compile(request, &self.settings) {
                Ok(result) => {
                    *slot = Some(worker).filter(|worker| worker.served < COMPILES_PER_WORKER);
                    return Ok(Ok(result));
                }
                Err(Failure::Late) => format!(
                    "the compiler did not end within {} s and was killed",
                    self.settings.deadline.as_secs_f64()
                ),
                Err(Failure::OverMemory) => {
                    return Ok(Err(over_memory(self.settings.memory_bytes)));
                }
                Err(failure) if failure.is_from_outside() => {
                    lost = failure.to_string();
                    continue;
                }
                Err(failure) => format!("the compiler crashed: {failure}"),
            };
            return Ok(Err(Judgement::new(Verdict::CompileFailed, detail)));
        }
        let detail = format!("the compile worker was lost {ATTEMPTS} times: {lost}");
        Ok(Err(Judgement::new(Verdict::NotJudged, detail)))
    }
}

/// Returns the variable that makes NVRTC create its temporary files next to precompiled headers: a confined
/// thread can write only there.
fn temporary_files(precompiled: &PrecompiledSettings) -> (String, String) {
    ("TMPDIR".to_owned(), precompiled.folder.clone())
}

struct Worker {
    process: Process,
    served: u32,
    /// Options of earlier compiles that are still in effect in NVRTC.
    lasting: Vec<String>,
    /// Folder of its files. Dropped after the process, since a killed process does not remove them.
    _folder: Option<TempDir>,
}

impl Worker {
    fn start(settings: &PoolSettings) -> io::Result<Self> {
        let folder = settings.precompiled.as_ref().and_then(|place| {
            let folder = place.folder();
            folder
                .inspect_err(|error| tracing::debug!("no precompiled headers: {error}"))
                .ok()
        });
        let precompiled = settings.precompiled.as_ref().and_then(|place| {
            Some(PrecompiledSettings {
                folder: folder.as_ref()?.path().to_str()?.to_owned(),
                bytes_max: place.bytes_max,
            })
        });
        let mut process = Process::start(&Program {
            path: settings.program.clone(),
            arguments: vec![WORKER_COMMAND.into()],
            environment: precompiled.iter().map(temporary_files).collect(),
            ..Program::default()
        })?;
        let address_space = settings
            .memory_bytes
            .saturating_add(ADDRESS_SPACE_SLACK_BYTES);
        let hello = WorkerConfig {
            library: settings.library.clone(),
            address_space_bytes: address_space,
            precompiled,
        };
        process.send(&[&to_json(&hello)?])?;
        Ok(Self {
            process,
            served: 0,
            lasting: Vec::new(),
            _folder: folder,
        })
    }

    fn compile(&mut self, request: &[u8], settings: &PoolSettings) -> Result<RawResult, Failure> {
        self.served += 1;
        let limits = Limits {
            within: settings.deadline,
            memory_bytes: Some(settings.memory_bytes),
        };
        self.process.send(&[request]).map_err(Failure::Host)?;
        let parts = self.process.receive(limits)?;
        RawResult::from_parts(parts)
            .ok_or_else(|| Failure::Nonsense("something that is not a compiled image".to_owned()))
    }
}
