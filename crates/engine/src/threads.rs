//! Runtimes and threads for blocking work. If the system refuses a thread or a descriptor, the caller gets
//! an error with the reason: tokio's own functions panic then, or wait forever.

use rustix::io::Errno;
use std::any::Any;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tuner_core::panics::{catch_quietly, lock};

/// Descriptors that a runtime opens, rounded up: epoll, an event, and three for signals.
const RUNTIME_DESCRIPTORS: usize = 8;
/// Maximum wait for the first instructions of a runtime's threads.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Idle time before a runtime ends a blocking thread. The thread that was started with the runtime runs
/// work for which no other thread can be started later.
const KEEP_ALIVE: Duration = Duration::from_secs(1 << 28);
/// Maximum time that blocking work waits for a thread.
const THREAD_TIMEOUT: Duration = Duration::from_secs(3);

/// Blocking work that has no result.
#[derive(Debug, thiserror::Error)]
pub enum BlockingError {
    /// The system refused a thread.
    #[error(transparent)]
    NoThread(io::Error),
    /// It panicked; the message of the panic.
    #[error("it panicked: {0}; please report this")]
    Panicked(String),
}

/// Starts a runtime with this number of worker threads, and one thread for blocking work.
///
/// # Errors
/// The system refuses threads or descriptors; the text names the limit.
pub fn start_runtime(name: &'static str, workers: usize) -> io::Result<Runtime> {
    let workers = workers.max(1);
    check_threads(workers + 1)?;
    check_descriptors()?;
    let started = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&started);
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(workers)
        .thread_name(name)
        .thread_keep_alive(KEEP_ALIVE)
        .on_thread_start(move || {
            count.fetch_add(1, Ordering::Release);
        })
        .enable_all();
    let runtime = build(&mut builder)?;
    // Tokio panics if the system refuses a thread for the pool.
    let reserved = catch_quietly(|| drop(runtime.spawn_blocking(|| ())));
    // A worker without a thread is not reported, and its tasks never end.
    let deadline = Instant::now() + START_TIMEOUT;
    while reserved.is_ok() && started.load(Ordering::Acquire) <= workers {
        if Instant::now() > deadline {
            break;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    if started.load(Ordering::Acquire) <= workers {
        runtime.shutdown_background();
        return Err(thread_error(&Errno::AGAIN.into()));
    }
    Ok(runtime)
}

/// Starts a runtime that works on the calling thread alone.
///
/// # Errors
/// The system refuses descriptors.
pub fn start_local_runtime() -> io::Result<Runtime> {
    check_descriptors()?;
    build(Builder::new_current_thread().enable_all())
}

/// Runs blocking work on a separate thread; waits a few seconds for a free one.
///
/// # Errors
/// The system refuses a thread, or the work panicked.
pub async fn run_blocking<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BlockingError> {
    let deadline = Instant::now() + THREAD_TIMEOUT;
    let mut pause = Duration::from_millis(10);
    let mut work = work;
    let reply = loop {
        match start_blocking(name, work) {
            Ok(reply) => break reply,
            Err((error, _)) if Instant::now() > deadline => {
                return Err(BlockingError::NoThread(error));
            }
            Err((_, back)) => work = back,
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    };
    match reply.await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(panic)) => Err(BlockingError::Panicked(panic_text(&*panic))),
        Err(_) => Err(BlockingError::Panicked("its thread is lost".to_owned())),
    }
}

/// Result of blocking work, or the payload of its panic.
pub type BlockingReply<T> = oneshot::Receiver<std::thread::Result<T>>;

/// Starts blocking work on a separate thread, in the context of the current runtime.
///
/// # Errors
/// The system refuses a thread; returns the work.
pub fn start_blocking<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
    name: &str,
    work: W,
) -> Result<BlockingReply<T>, (io::Error, W)> {
    let (sender, reply) = oneshot::channel();
    // A failed `spawn` drops its closure, so the work is outside it and can be given back.
    let slot = Arc::new(Mutex::new(Some(work)));
    let taken = Arc::clone(&slot);
    let handle = Handle::current();
    let thread = std::thread::Builder::new().name(name.to_owned());
    let started = thread.spawn(move || {
        let Some(work) = lock(&taken).take() else {
            return;
        };
        let _context = handle.enter();
        // The receiver may have been dropped.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    match started {
        Ok(_) => Ok(reply),
        Err(error) => match lock(&slot).take() {
            Some(work) => Err((thread_error(&error), work)),
            None => Ok(reply),
        },
    }
}

/// Formats the payload of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

/// Builds a runtime; converts panics that the earlier checks did not prevent into errors.
fn build(builder: &mut Builder) -> io::Result<Runtime> {
    match catch_quietly(|| builder.build()) {
        Ok(built) => built,
        Err(panic) => Err(io::Error::other(panic_text(&*panic))),
    }
}

/// Checks that the system provides this number of threads.
fn check_threads(count: usize) -> io::Result<()> {
    let mut threads = Vec::with_capacity(count);
    let mut result = Ok(());
    for _ in 0..count {
        let (release, released) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new();
        match thread.spawn(move || released.recv().is_ok()) {
            Ok(thread) => threads.push((thread, release)),
            Err(error) => {
                result = Err(thread_error(&error));
                break;
            }
        }
    }
    for (thread, release) in threads {
        drop(release);
        let _ = thread.join();
    }
    result
}

/// Checks that the system provides the descriptors of a runtime.
fn check_descriptors() -> io::Result<()> {
    let files: io::Result<Vec<File>> = (0..RUNTIME_DESCRIPTORS)
        .map(|_| File::open("/dev/null"))
        .collect();
    files.map(drop).map_err(|error| {
        let fix = match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE) => "; raise the limit on open files (ulimit -n)",
            _ => "",
        };
        io::Error::new(error.kind(), format!("cannot open a file: {error}{fix}"))
    })
}

/// Adds the limits that refuse threads to the system's words.
fn thread_error(error: &io::Error) -> io::Error {
    let text = format!(
        "cannot start a thread: {error}; raise the limit on processes (ulimit -u) or on memory \
         (ulimit -v)"
    );
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests;
