//! A child and its pipes, all moved by the thread that waits for the child.

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

/// Maximum bytes of a child's standard error that are kept.
const MAX_SAID_BYTES: usize = 8 << 10;
/// Maximum lines of standard error that are shown.
const MAX_SAID_LINES: usize = 20;
/// Maximum bytes that are moved before deadlines are checked again.
const PIECE_BYTES: usize = 64 << 10;
/// Maximum wait for the end of a killed child. A child that hangs in a driver call ends later.
const REAP_TIMEOUT: Duration = Duration::from_secs(5);

/// Environment variable with the daemon's token. Removed for children: the code that they run may
/// read the environment.
const TOKEN_VARIABLE: &str = "TUNER_TOKEN";

/// Command line, environment and folder of a child.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Path of the executable.
    pub path: PathBuf,
    /// Command-line arguments.
    pub arguments: Vec<OsString>,
    /// Variables added to this process's environment.
    pub environment: Vec<(String, String)>,
    /// Working directory; `None` for this process's directory.
    pub folder: Option<PathBuf>,
}

/// Formats the reason for a failed start, with a fix if one is known.
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

/// Reports whether a retry may succeed: other processes may free the missing resource.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM | Errno::TXTBSY)
    )
}

/// Builds the command that starts a program.
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
        // A separate group: Ctrl-C at the terminal only reaches this process, which finishes work in
        // progress; and killing the group also ends processes that the child started.
        .process_group(0);
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    command
}

/// Killed children that have not been reaped yet.
static UNREAPED: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Run state of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Runs,
    Stopped,
    /// The child ended; its status is not collected yet.
    Ended,
}

/// A child and its three pipes. Dropping it kills the child and its process group.
pub(crate) struct Pipes {
    child: Option<Child>,
    id: Option<Pid>,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    outgoing: Vec<u8>,
    written: usize,
    /// Closes the child's input once everything is written.
    closes_input: bool,
    said: Vec<u8>,
    before: OomKills,
}

impl Pipes {
    /// Starts the child in a separate process group, with non-blocking pipes.
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        let mut left = UNREAPED.lock().unwrap_or_else(PoisonError::into_inner);
        // Children that ended late would remain zombies until this process ends.
        left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        drop(left);
        // Before the start, so that a kill of this child increments them.
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
            // A full or silent pipe must not block the thread that watches the deadline.
            ioctl_fionbio(input, true)?;
            ioctl_fionbio(output, true)?;
            ioctl_fionbio(errors, true)?;
        }
        Ok(pipes)
    }

    pub(crate) fn id(&self) -> Option<Pid> {
        self.id
    }

    /// Queues bytes for the child's input.
    pub(crate) fn queue(&mut self, bytes: Vec<u8>) {
        if self.written == self.outgoing.len() {
            (self.outgoing, self.written) = (bytes, 0);
        } else {
            self.outgoing.extend_from_slice(&bytes);
        }
    }

    /// Closes the child's input after the queued bytes.
    pub(crate) fn close_input(&mut self) {
        self.closes_input = true;
    }

    /// Reports whether standard output has ended.
    pub(crate) fn output_ended(&self) -> bool {
        self.output.is_none()
    }

    /// Moves pending bytes of all pipes and waits at most `wait` for the first. Returns the number
    /// of bytes moved; those of standard output are appended to `output`.
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

    /// Writes a piece of the queued input and returns the number of bytes.
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
            // The child closed its input. Its remaining output or its end explains why.
            Err(_) => {
                self.input = None;
                0
            }
        }
    }

    /// Queries the run state and leaves the status to be collected by `reap`.
    pub(crate) fn state(&self) -> State {
        let Some(id) = self.id else {
            return State::Ended;
        };
        // NOWAIT keeps an ended child a zombie, so that its process id is not reused before `kill`.
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

    /// Returns the last lines of standard error.
    pub(crate) fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.said);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let first = lines.len().saturating_sub(MAX_SAID_LINES);
        lines.get(first..).unwrap_or_default().join("\n")
    }

    pub(crate) fn forget_said(&mut self) {
        self.said.clear();
    }

    /// Kills the child's process group. The child has not been reaped, so its id is still valid.
    pub(crate) fn kill(&self) {
        if let (Some(_), Some(id)) = (&self.child, self.id) {
            // A group that has already ended is not an error.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }

    /// Kills the rest of the child's group and collects the exit status.
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

/// Waits for the end of a killed child, which leaves neither a zombie nor device memory.
fn reap(mut child: Child) -> Option<ExitStatus> {
    let end = Instant::now() + REAP_TIMEOUT;
    let mut pause = Duration::from_micros(100);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < end => std::thread::sleep(pause),
            Ok(None) => {
                UNREAPED
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(child);
                return None;
            }
            Err(_) => return None,
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Reads a piece; closes the pipe at its end or on an error.
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
