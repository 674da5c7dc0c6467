//! The other side: a worker process and its parent.

use crate::frame::{Decoder, Parts, encode};
use rustix::process::{Signal, getpid, kill_process};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Exit code of a worker whose request was damaged on its way.
pub const EXIT_BAD_REQUEST: i32 = 76;

static WATCH: OnceLock<fn(&Parts)> = OnceLock::new();

/// Shows every request to `watch` before it is answered. For a program that tests are made of: what
/// users run never calls it.
pub fn watch_requests(watch: fn(&Parts)) {
    let _ = WATCH.set(watch);
}

/// The parent of this worker: requests come in on standard input, and replies go out on what was
/// standard output.
///
/// Standard output itself is pointed at standard error, so that nothing a library prints gets
/// between the replies.
pub struct Parent {
    requests: Receiver<Parts>,
    replies: Replies,
}

impl Parent {
    /// Takes over the standard streams of this process. A thread reads the requests, so that the
    /// worker ends with its parent even while it hangs in a request: when the parent dies, its end
    /// of the pipe closes.
    ///
    /// # Errors
    /// The streams cannot be moved, or the thread not started.
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

    /// The next request; `None` at the end.
    #[must_use]
    pub fn request(&self) -> Option<Parts> {
        let request = self.requests.recv().ok()?;
        if let Some(watch) = WATCH.get() {
            watch(&request);
        }
        Some(request)
    }

    /// Where replies go.
    #[must_use]
    pub fn replies(&self) -> Replies {
        self.replies.clone()
    }
}

/// The pipe to the parent, for all threads of a worker.
#[derive(Clone)]
pub struct Replies(Arc<Mutex<(File, u32)>>);

impl Replies {
    /// Sends a message.
    ///
    /// # Errors
    /// The parent is gone, or the message is too large.
    pub fn send(&self, parts: &[&[u8]]) -> io::Result<()> {
        let mut pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (pipe, count) = &mut *pipe;
        pipe.write_all(&encode(*count, parts)?)?;
        *count = count.wrapping_add(1);
        Ok(())
    }
}

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

/// Ends the process without its exit handlers: those of a library in the middle of work, such as
/// the CUDA driver's, would wait for it.
pub fn die() -> ! {
    // Never fails for a process's own number.
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
