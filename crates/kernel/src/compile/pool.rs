//! The pool: threads that each own one worker process, feed it, watch its deadline and memory, and
//! replace it when it hangs, crashes or grows.

use super::image::RawResult;
use super::wire::{read_frame, write_frame};
use super::worker::{Hello, Request, WORKER_COMMAND};
use std::io::{self, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a busy worker's memory is looked at.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);
/// A worker is replaced after this many compiles, so that leaks in the compiler stay small.
const COMPILES_PER_WORKER: u32 = 500;
/// Address space beyond the limit on resident memory: the libraries' own mappings and the arenas
/// that glibc reserves a thread.
const ADDRESS_SPACE_SLACK_BYTES: u64 = 3 << 30;

/// The limits and the program of the workers.
#[derive(Debug, Clone)]
pub(super) struct PoolSettings {
    /// The executable that has the `compile-worker` subcommand.
    pub(super) program: PathBuf,
    /// The NVRTC that workers load.
    pub(super) library: PathBuf,
    /// Longest compile.
    pub(super) deadline: Duration,
    /// Most resident memory of one worker.
    pub(super) memory_bytes: u64,
}

/// How a request ended.
#[derive(Debug)]
pub(super) enum PoolReply {
    /// The worker answered.
    Done(RawResult),
    /// It did not answer in time.
    TimedOut,
    /// It grew too large.
    OutOfMemory,
    /// It died.
    Crashed(String),
    /// It could not be started or spoken to: the machine's fault, not the source's.
    Broken(String),
}

struct Job {
    request: Vec<u8>,
    reply: SyncSender<PoolReply>,
}

/// The pool. Dropping it ends the workers.
#[derive(Debug)]
pub(super) struct Pool {
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts the threads; processes are started when there is work.
    pub(super) fn new(workers: usize, settings: PoolSettings) -> Self {
        let (sender, receiver) = mpsc::channel();
        let queue = Arc::new(Mutex::new(receiver));
        let settings = Arc::new(settings);
        let threads = (0..workers.max(1))
            .map(|_| {
                let (queue, settings) = (Arc::clone(&queue), Arc::clone(&settings));
                std::thread::spawn(move || serve_jobs(&queue, &settings))
            })
            .collect();
        Self {
            jobs: Some(sender),
            threads,
        }
    }

    /// Compiles one request; blocks until a worker has answered or was given up.
    pub(super) fn compile(&self, request: &Request) -> PoolReply {
        let bytes = match serde_json::to_vec(request) {
            Ok(bytes) => bytes,
            Err(error) => return PoolReply::Broken(error.to_string()),
        };
        let (reply, answer) = mpsc::sync_channel(1);
        let sent = self.jobs.as_ref().is_some_and(|jobs| {
            jobs.send(Job {
                request: bytes,
                reply,
            })
            .is_ok()
        });
        let gone = || PoolReply::Broken("the compile pool has stopped".to_owned());
        if sent {
            answer.recv().unwrap_or_else(|_| gone())
        } else {
            gone()
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve_jobs(queue: &Mutex<Receiver<Job>>, settings: &PoolSettings) {
    let mut worker: Option<Worker> = None;
    loop {
        let next = match queue.lock() {
            Ok(receiver) => receiver.recv(),
            Err(_) => return,
        };
        let Ok(job) = next else {
            return;
        };
        let _ = job
            .reply
            .send(serve_job(&mut worker, &job.request, settings));
    }
}

/// Serves one job with the thread's worker, which is started where there is none and dropped
/// (killed) whenever it did not answer properly.
fn serve_job(slot: &mut Option<Worker>, request: &[u8], settings: &PoolSettings) -> PoolReply {
    let started = match slot.take() {
        Some(worker) => Ok(worker),
        None => Worker::start(settings),
    };
    let mut worker = match started {
        Ok(worker) => worker,
        Err(error) => {
            let program = settings.program.display();
            return PoolReply::Broken(format!(
                "cannot start a compile worker ({program}): {error}"
            ));
        }
    };
    let reply = worker.compile(request, settings);
    if matches!(reply, PoolReply::Done(_)) && worker.served < COMPILES_PER_WORKER {
        *slot = Some(worker);
    }
    reply
}

/// One worker process with the thread that reads its replies.
struct Worker {
    child: Child,
    input: ChildStdin,
    replies: Receiver<Vec<Vec<u8>>>,
    served: u32,
}

impl Worker {
    fn start(settings: &PoolSettings) -> io::Result<Self> {
        let mut child = Command::new(&settings.program)
            .arg(WORKER_COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A group of its own: Ctrl-C at the terminal is for the parent, which lets the
            // compiles under way end.
            .process_group(0)
            .spawn()?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the worker has no pipes"));
        };
        let (sender, replies) = mpsc::channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Ok(Some(frame)) = read_frame(&mut output) {
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        let hello = Hello {
            library: settings.library.clone(),
            address_space_bytes: settings
                .memory_bytes
                .saturating_add(ADDRESS_SPACE_SLACK_BYTES),
        };
        let hello = serde_json::to_vec(&hello).map_err(io::Error::other)?;
        // A worker that died at once is found by the first request.
        let _ = write_frame(&mut input, &[&hello]);
        Ok(Self {
            child,
            input,
            replies,
            served: 0,
        })
    }

    fn compile(&mut self, request: &[u8], settings: &PoolSettings) -> PoolReply {
        self.served += 1;
        if write_frame(&mut self.input, &[request]).is_err() {
            return self.post_mortem();
        }
        let deadline = Instant::now() + settings.deadline;
        loop {
            match self.replies.recv_timeout(WATCH_INTERVAL) {
                Ok(frame) => {
                    return RawResult::from_parts(frame).map_or_else(
                        || PoolReply::Broken("a compile worker sent nonsense".to_owned()),
                        PoolReply::Done,
                    );
                }
                Err(RecvTimeoutError::Disconnected) => return self.post_mortem(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if resident_bytes(self.child.id()).is_some_and(|bytes| bytes > settings.memory_bytes) {
                return PoolReply::OutOfMemory;
            }
            if Instant::now() >= deadline {
                return PoolReply::TimedOut;
            }
        }
    }

    /// Why a worker is gone.
    fn post_mortem(&mut self) -> PoolReply {
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) => died(status),
            Err(error) => PoolReply::Crashed(error.to_string()),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn died(status: ExitStatus) -> PoolReply {
    match status.signal() {
        Some(signal) => PoolReply::Crashed(format!("the compile worker died of signal {signal}")),
        None => PoolReply::Crashed(format!("the compile worker ended with {status}")),
    }
}

/// Resident memory of a process, bytes.
fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}
