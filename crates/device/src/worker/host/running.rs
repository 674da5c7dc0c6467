//! A worker process with its pipes.

use super::{Settings, WorkerError};
use crate::worker::protocol::{Response, receive};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tuner_core::record::Verdict;

/// Lines of a worker's standard error that an outcome keeps.
const NOISE_LINES: usize = 20;
/// The driver prints a failed assertion while the error is on its way: so long it may lag behind.
const NOISE_LAG: Duration = Duration::from_millis(50);

/// A process that was started and not yet ended.
pub(super) struct Running {
    child: Child,
    pub(super) requests: ChildStdin,
    pub(super) responses: Receiver<std::io::Result<Response>>,
    /// It said that it cannot go on after its next answer.
    pub(super) spoiled: bool,
    /// Last lines of standard error, for the outcome of a crash.
    noise: Arc<Mutex<VecDeque<String>>>,
}

impl Running {
    /// SIGKILL, and wait for the end so that no zombie or device memory stays behind.
    pub(super) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// What is printed from here on belongs to the next candidate.
    pub(super) fn forget_noise(&mut self) {
        if let Ok(mut lines) = self.noise.lock() {
            lines.clear();
        }
    }

    fn noise(&self) -> String {
        let lines = self
            .noise
            .lock()
            .map(|lines| lines.iter().cloned().collect::<Vec<_>>());
        lines.unwrap_or_default().join("\n")
    }

    /// Adds what was printed (a failed assertion, say) to the verdict of a crash.
    pub(super) fn with_noise(&self, mut response: Response) -> Response {
        if let Response::Judged(timed) | Response::Measured(timed, _) = &mut response
            && self.spoiled
            && timed.judgement.verdict == Verdict::Crashed
        {
            std::thread::sleep(NOISE_LAG);
            let noise = self.noise();
            if !noise.is_empty() {
                let detail = &mut timed.judgement.detail;
                *detail = format!("{detail}; {noise}");
            }
        }
        response
    }

    /// Ends the process, if it lives, and tells how it ended.
    pub(super) fn last_words(&mut self, error: &str) -> String {
        if !error.is_empty() {
            // It talks nonsense, and may well be alive.
            let _ = self.child.kill();
        }
        let status = self
            .child
            .wait()
            .map_or_else(|error| error.to_string(), |status| status.to_string());
        let parts = [
            format!("the device worker died: {status}"),
            error.to_owned(),
            self.noise(),
        ];
        let text: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        text.join("; ")
    }
}

/// Starts a worker.
pub(super) fn start(settings: &Settings) -> Result<Running, WorkerError> {
    let failed = |source| WorkerError::Start {
        program: settings.program.display().to_string(),
        source,
    };
    let mut child = Command::new(&settings.program)
        .args(&settings.arguments)
        .envs(
            settings
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C at the terminal is for the tuner, which lets the candidate on the device finish.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let missing = || failed(std::io::Error::other("no pipe"));
    let requests = child.stdin.take().ok_or_else(missing)?;
    let mut output = BufReader::new(child.stdout.take().ok_or_else(missing)?);
    let errors = BufReader::new(child.stderr.take().ok_or_else(missing)?);
    let (sender, responses) = channel();
    std::thread::spawn(move || {
        loop {
            let message = match receive::<Response>(&mut output) {
                Ok(Some(message)) => Ok(message),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            let last = message.is_err();
            if sender.send(message).is_err() || last {
                return;
            }
        }
    });
    let noise = Arc::new(Mutex::new(VecDeque::new()));
    let lines = Arc::clone(&noise);
    std::thread::spawn(move || {
        for line in errors.lines().map_while(Result::ok) {
            if let Ok(mut kept) = lines.lock() {
                if kept.len() == NOISE_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        }
    });
    Ok(Running {
        child,
        requests,
        responses,
        spoiled: false,
        noise,
    })
}
