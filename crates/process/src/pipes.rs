//! A child with its pipes, which are all moved by the thread that waits for it.

use crate::ending::Ending;
use crate::oom::OomKills;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsString;
use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of standard error that are kept of a child.
const MAX_SAID_BYTES: usize = 8 << 10;
/// Lines of it that are shown.
const MAX_SAID_LINES: usize = 20;
/// Bytes moved before deadlines are looked at again.
const PIECE_BYTES: usize = 64 << 10;
/// How long the end of a killed child is waited for. One that hangs in a driver's call ends later.
const REAP_TIMEOUT: Duration = Duration::from_secs(5);

/// Variable with the daemon's token, which is no business of a child: what it runs may read its
/// environment.
const TOKEN_VARIABLE: &str = "TUNER_TOKEN";

/// What to start.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Added to this process's environment.
    pub environment: Vec<(String, String)>,
    /// Where it runs; `None` for this process's folder.
    pub folder: Option<PathBuf>,
}

/// Why a program did not start, with what to do about it.
#[must_use]
pub fn start_error(program: &Path, error: &io::Error) -> String {
    let fix = match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => "; raise the limit on open files (ulimit -n)",
        Some(Errno::AGAIN) => "; raise the limit on processes (ulimit -u) or lower --jobs",
        Some(Errno::NOMEM) => "; free memory or lower --jobs",
        _ => "",
    };
    format!("cannot start {}: {error}{fix}", program.display())
}

/// Whether the next try may succeed: others may give back what is missing.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM | Errno::TXTBSY)
    )
}

/// The command that starts a program.
fn command(program: &Program) -> Command {
    let mut command = Command::new(&program.path);
    let added = program.environment.iter();
    command
        .args(&program.arguments)
        .env_remove(TOKEN_VARIABLE)
        .envs(added.map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own: Ctrl-C at the terminal is for this process, which lets what is
        // under way end; and what the child starts ends with it.
        .process_group(0);
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    command
}

/// Killed children whose end was not seen yet.
static LEFT: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// What a child is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Runs,
    Stopped,
    /// It ended, and its status is still to be taken.
    Ended,
}

/// A child and the three pipes to it. Dropped, the child and all it started are killed.
pub(crate) struct Pipes {
    child: Option<Child>,
    id: Option<Pid>,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    outgoing: Vec<u8>,
    written: usize,
    /// Its input ends once everything is written.
    closes_input: bool,
    said: Vec<u8>,
    before: OomKills,
}

impl Pipes {
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        drop(left);
        let before = OomKills::read();
        let mut child = command(program).spawn()?;
        let pipes = Self {
            id: i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            input: child.stdin.take(),
            output: child.stdout.take(),
            errors: child.stderr.take(),
            child: Some(child),
            outgoing: Vec::new(),
            written: 0,
            closes_input: false,
            said: Vec::new(),
            before,
        };
        if let (Some(input), Some(output), Some(errors)) =
            (&pipes.input, &pipes.output, &pipes.errors)
        {
            ioctl_fionbio(input, true)?;
            ioctl_fionbio(output, true)?;
            ioctl_fionbio(errors, true)?;
        }
        Ok(pipes)
    }

    pub(crate) fn id(&self) -> Option<Pid> {
        self.id
    }

    /// Queues bytes for its input.
    pub(crate) fn queue(&mut self, bytes: Vec<u8>) {
        if self.written == self.outgoing.len() {
            (self.outgoing, self.written) = (bytes, 0);
        } else {
            self.outgoing.extend_from_slice(&bytes);
        }
    }

    /// Ends its input after what is queued.
    pub(crate) fn close_input(&mut self) {
        self.closes_input = true;
    }

    /// Whether nothing more can come from it.
    pub(crate) fn output_ended(&self) -> bool {
        self.output.is_none()
    }

    /// Moves what can be moved, waiting at most `wait` for the first of it. Gives the count of
    /// bytes that moved; those of standard output are appended to `output`.
    pub(crate) fn turn(&mut self, wait: Duration, output: &mut Vec<u8>) -> io::Result<usize> {
        let pending = self.written < self.outgoing.len();
        if !pending && self.closes_input {
            self.input = None;
        }
        let mut waited = Vec::with_capacity(3);
        let input = self.input.as_ref().filter(|_| pending);
        waited.extend(input.map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        waited.extend(
            self.output
                .as_ref()
                .map(|pipe| PollFd::new(pipe, PollFlags::IN)),
        );
        waited.extend(
            self.errors
                .as_ref()
                .map(|pipe| PollFd::new(pipe, PollFlags::IN)),
        );
        let wait = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        match poll(&mut waited, Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut moved = self.write();
        moved += read(&mut self.output, output);
        moved += read(&mut self.errors, &mut self.said);
        let surplus = self.said.len().saturating_sub(MAX_SAID_BYTES);
        self.said.drain(..surplus);
        Ok(moved)
    }

    fn write(&mut self) -> usize {
        let Some(input) = &mut self.input else {
            return 0;
        };
        let pending = self.outgoing.get(self.written..).unwrap_or_default();
        match input.write(pending.get(..PIECE_BYTES).unwrap_or(pending)) {
            Ok(count) => {
                self.written += count;
                count
            }
            Err(error) if is_retried(&error) => 0,
            // It reads no more. What it still says, or its end, tells why.
            Err(_) => {
                self.input = None;
                0
            }
        }
    }

    pub(crate) fn state(&self) -> State {
        let Some(id) = self.id else {
            return State::Ended;
        };
        let options = WaitIdOptions::EXITED
            | WaitIdOptions::STOPPED
            | WaitIdOptions::NOHANG
            | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(id), options) {
            Ok(None) => State::Runs,
            Ok(Some(status)) if status.stopped() => State::Stopped,
            Ok(Some(_)) | Err(_) => State::Ended,
        }
    }

    /// The end of its standard error.
    pub(crate) fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.said);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let first = lines.len().saturating_sub(MAX_SAID_LINES);
        lines.get(first..).unwrap_or_default().join("\n")
    }

    pub(crate) fn forget_said(&mut self) {
        self.said.clear();
    }

    /// Kills the child's group. The child is not waited for before, so its number is still its own.
    pub(crate) fn kill(&self) {
        if let (Some(_), Some(id)) = (&self.child, self.id) {
            // Gone already is as good.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }

    /// Kills what is left of the child and takes its status.
    pub(crate) fn end(&mut self) -> Ending {
        self.kill();
        let status = self.child.take().and_then(reap);
        Ending::new(status, self.said(), &self.before)
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        self.kill();
        self.child.take().and_then(reap);
    }
}

/// Waits for the end of a killed child, so that no zombie and no device memory stays behind.
fn reap(mut child: Child) -> Option<ExitStatus> {
    let end = Instant::now() + REAP_TIMEOUT;
    let mut pause = Duration::from_micros(100);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < end => std::thread::sleep(pause),
            Ok(None) => {
                LEFT.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(child);
                return None;
            }
            Err(_) => return None,
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Reads a piece; a pipe that ended or broke is closed.
fn read(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) -> usize {
    let Some(reader) = pipe else { return 0 };
    let mut buffer = [0; PIECE_BYTES];
    match reader.read(&mut buffer) {
        Ok(count @ 1..) => {
            into.extend(buffer.iter().take(count));
            count
        }
        Err(error) if is_retried(&error) => 0,
        Ok(_) | Err(_) => {
            *pipe = None;
            0
        }
    }
}

fn is_retried(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests;
