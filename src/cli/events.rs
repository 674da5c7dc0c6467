//! Event log of `tuner run`, and its signals.

use super::{CliError, terminal, usage};
use crate::{atomic, exit};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tuner_core::activity;
use tuner_core::escape;
use tuner_engine::Event;

/// Sink of `--events`. A write error is reported once and ends the log, not the run; but the end of the reader of
/// standard output is a signal to end.
pub(super) struct EventLog {
    out: Option<Box<dyn Write + Send>>,
    pub(super) stdout: bool,
    /// Notified when the reader of standard output has ended.
    unread: Arc<Notify>,
}

impl EventLog {
    pub(super) fn open(path: Option<&Path>) -> Result<Self, CliError> {
        let stdout = path.is_some_and(|path| path == Path::new("-"));
        let out: Option<Box<dyn Write + Send>> = match path {
            None => None,
            Some(_) if stdout => Some(Box::new(std::io::stdout())),
            Some(path) => Some(Box::new(create_log(path).map_err(|error| {
                usage(format!(
                    "{}: cannot write events: {error}; name a writable file, or - for \
                     standard output",
                    path.display()
                ))
            })?)),
        };
        let unread = Arc::new(Notify::new());
        Ok(Self {
            out,
            stdout,
            unread,
        })
    }

    /// Does what [`watch_signals`] does, and takes the end of the reader of standard output for a signal: a run
    /// must not outlive a program that was killed.
    pub(super) fn watch_signals(
        &self,
        tell: impl Fn() + Send + 'static,
    ) -> std::io::Result<watch::Receiver<bool>> {
        watch_ends(tell, Arc::clone(&self.unread))
    }

    pub(super) fn write(&mut self, event: &Event) {
        let Some(out) = &mut self.out else { return };
        // One write for each line, so that a reader never sees a partial line.
        let written = serde_json::to_string(event)
            .map_err(std::io::Error::from)
            .and_then(|line| out.write_all(format!("{}\n", escape::json(&line)).as_bytes()))
            .and_then(|()| out.flush());
        if let Err(error) = written {
            if error.kind() != std::io::ErrorKind::BrokenPipe {
                say!("warning: the event log ends here: {error}");
            } else if self.stdout {
                self.unread.notify_one();
            }
            self.out = None;
        }
    }
}

/// Creates the event log, truncated.
fn create_log(path: &Path) -> std::io::Result<std::fs::File> {
    atomic::refuse_unwritable(path)?;
    std::fs::File::create(path)
}

/// Becomes true at the first SIGINT, SIGTERM or SIGHUP, and calls `tell`; the second ends the process
/// immediately. Announced results are stored by then. A SIGHUP that the process inherited as ignored
/// (`nohup`) remains ignored.
pub(super) fn watch_signals(
    tell: impl Fn() + Send + 'static,
) -> std::io::Result<watch::Receiver<bool>> {
    watch_ends(tell, Arc::new(Notify::new()))
}

/// Does what [`watch_signals`] does, and takes a notification for a signal.
fn watch_ends(
    tell: impl Fn() + Send + 'static,
    unread: Arc<Notify>,
) -> std::io::Result<watch::Receiver<bool>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // The handler would replace the inherited SIG_IGN of `nohup`.
    let mut hangup = if ignores_hangup() {
        None
    } else {
        Some(signal(SignalKind::hangup())?)
    };
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        #[expect(
            clippy::disallowed_methods,
            reason = "asked twice: at once; all announced is stored"
        )]
        for last in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                () = unread.notified() => {}
                Some(_) = async { hangup.as_mut()?.recv().await } => {}
            }
            if last {
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
            tell();
            sender.send_replace(true);
        }
    });
    Ok(receiver)
}

/// Reports whether this process ignores SIGHUP, by the mask of ignored signals (proc(5)).
fn ignores_hangup() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| mask & HANGUP != 0)
}

/// Prints the message of the first signal.
pub(super) fn stopping() {
    let now = activity::now();
    let what = if now.is_empty() {
        "the candidate on the device".to_owned()
    } else {
        terminal::doing(&now)
    };
    say!("finishing {what}; press Ctrl-C again to stop now");
}
