//! The worker's end of the pipes: requests from the parent, replies to it.

use crate::frame::{Decoder, Parts, encode};
use rustix::process::{Signal, getpid, kill_process};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Exit code of a worker that received a damaged request.
pub const EXIT_BAD_REQUEST: i32 = 76;

static WATCH: OnceLock<fn(&Parts)> = OnceLock::new();

/// Registers a function that receives every request before it is answered. Only the tests' program calls
/// it.
pub fn watch_requests(watch: fn(&Parts)) {
    let _ = WATCH.set(watch);
}

/// The parent of this worker: requests arrive on standard input; replies leave on the original
/// standard output.
/// Standard output is redirected to standard error, so that a library's output does not mix with replies.
pub struct Parent {
    requests: Receiver<Parts>,
    replies: Replies,
}

impl Parent {
    /// Takes over the standard streams of this process. A thread reads the requests and notices when the
    /// parent dies and closes the pipe, so that the worker ends even if it hangs in a request.
    ///
    /// # Errors
    /// The streams cannot be redirected, or the thread cannot be started.
    pub fn connect() -> io::Result<Self> {
        let pipe = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
        let (sender, requests) = sync_channel(1);
        std::thread::Builder::new()
            .name("requests".to_owned())
            .spawn(move || read(&sender))?;
        let replies = Replies(Arc::new(Mutex::new((pipe, 0))));
        Ok(Self { requests, replies })
    }

    /// Returns the next request; `None` at the end.
    #[must_use]
    pub fn request(&self) -> Option<Parts> {
        let request = self.requests.recv().ok()?;
        if let Some(watch) = WATCH.get() {
            watch(&request);
        }
        Some(request)
    }

    /// Returns the channel for replies.
    #[must_use]
    pub fn replies(&self) -> Replies {
        self.replies.clone()
    }
}

/// The pipe to the parent, shared by all threads of a worker.
#[derive(Clone)]
pub struct Replies(Arc<Mutex<(File, u32)>>);

impl Replies {
    /// Sends a message.
    ///
    /// # Errors
    /// The parent ended, or the message is too large.
    pub fn send(&self, parts: &[&[u8]]) -> io::Result<()> {
        let mut pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (pipe, count) = &mut *pipe;
        pipe.write_all(&encode(*count, parts)?)?;
        *count = count.wrapping_add(1);
        Ok(())
    }
}

/// Reads requests, and ends the process when the parent has ended or a request is damaged.
fn read(requests: &SyncSender<Parts>) {
    let mut input = io::stdin().lock();
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match decoder.take() {
            Ok(Some(request)) => {
                if requests.send(request).is_err() {
                    return;
                }
                continue;
            }
            Ok(None) => {}
            Err(error) => {
                let _ = writeln!(io::stderr(), "a request cannot be read: {error}");
                end(EXIT_BAD_REQUEST);
            }
        }
        match input.read(&mut buffer) {
            Ok(count @ 1..) => decoder.push(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => die(),
        }
    }
}

/// Ends the process without exit handlers: those of a busy library, such as the CUDA driver, would wait for
/// its work.
pub fn die() -> ! {
    // A process may always signal itself.
    let _ = kill_process(getpid(), Signal::KILL);
    end(0)
}

#[expect(
    clippy::disallowed_methods,
    reason = "other threads may hang in a compile or a launch and never return"
)]
fn end(code: i32) -> ! {
    std::process::exit(code)
}
