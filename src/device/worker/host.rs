//! The tuner's side: starts the worker, sends jobs, keeps deadlines, restarts it.

use super::protocol::{Job, Judgement, Request, Response, Step, receive, send};
use crate::record::Verdict;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How to start a worker, and how long each of its steps may take.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Program to start: this one.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Added to its environment.
    pub environment: Vec<(String, String)>,
    /// Deadline for reading code.
    pub load: Duration,
    /// Deadline for running and comparing one problem.
    pub gate: Duration,
    /// Deadline for timing.
    pub time: Duration,
}

impl Settings {
    /// A worker of this very program for the device named `selector`.
    ///
    /// # Errors
    /// The path of the running program is unknown.
    pub fn for_device(selector: &str) -> std::io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            arguments: vec!["device-worker".into(), "--device".into(), selector.into()],
            environment: Vec::new(),
            load: Duration::from_secs(30),
            gate: Duration::from_secs(120),
            time: Duration::from_secs(60),
        })
    }

    fn deadline(&self, step: Step) -> Duration {
        match step {
            Step::Load => self.load,
            Step::Gate => self.gate,
            Step::Time => self.time,
        }
    }
}

/// Why a worker could not be used at all. A candidate that fails, hangs or crashes is not one.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The process did not start.
    #[error("the device worker did not start ({program}): {source}")]
    Start {
        /// Program.
        program: String,
        /// Cause.
        source: std::io::Error,
    },
    /// The space file and its oracle do not fit together.
    #[error("{0}")]
    Unusable(String),
}

/// A device behind a process border.
pub struct Worker {
    settings: Settings,
    running: Option<Running>,
    restarts: u64,
}

struct Running {
    child: Child,
    requests: ChildStdin,
    responses: Receiver<std::io::Result<Response>>,
    /// Last lines of standard error, for the outcome of a crash.
    noise: Arc<Mutex<VecDeque<String>>>,
}

/// Lines of a worker's standard error that an outcome keeps.
const NOISE_LINES: usize = 20;

impl Worker {
    /// A worker that is started when the first job comes.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            running: None,
            restarts: 0,
        }
    }

    /// How often a worker had to be started anew after the first.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Judges one candidate. A worker that hangs or dies is an outcome of the candidate.
    ///
    /// # Errors
    /// The worker cannot be started, or the job itself is unusable.
    pub fn judge(&mut self, job: Job) -> Result<Judgement, WorkerError> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => start(&self.settings)?,
        };
        let request = Request::Judge(Box::new(job));
        if send(&mut running.requests, &request).is_err() {
            // It died while idle: no fault of this candidate.
            self.restarts += 1;
            running.kill();
            running = start(&self.settings)?;
            if let Err(error) = send(&mut running.requests, &request) {
                return Ok(self.died(running, &error.to_string()));
            }
        }
        let mut step = Step::Load;
        loop {
            match running.responses.recv_timeout(self.settings.deadline(step)) {
                Ok(Ok(Response::Begins(next))) => step = next,
                Ok(Ok(Response::Judged(judgement))) => {
                    self.running = Some(running);
                    return Ok(*judgement);
                }
                Ok(Ok(Response::Unusable(why))) => {
                    self.running = Some(running);
                    return Err(WorkerError::Unusable(why));
                }
                Ok(Err(error)) => {
                    // It talks nonsense, and may well be alive.
                    let _ = running.child.kill();
                    return Ok(self.died(running, &error.to_string()));
                }
                Err(RecvTimeoutError::Timeout) => return Ok(self.hung(running, step)),
                Err(RecvTimeoutError::Disconnected) => return Ok(self.died(running, "")),
            }
        }
    }

    fn hung(&mut self, running: Running, step: Step) -> Judgement {
        self.restarts += 1;
        running.kill();
        let limit = self.settings.deadline(step).as_secs_f64();
        fault(
            Verdict::Timeout,
            format!("no answer within {limit} s ({step:?}); worker killed"),
        )
    }

    fn died(&mut self, mut running: Running, error: &str) -> Judgement {
        self.restarts += 1;
        let status = running
            .child
            .wait()
            .map_or_else(|e| e.to_string(), |s| s.to_string());
        let noise = running
            .noise
            .lock()
            .map(|lines| lines.iter().cloned().collect::<Vec<_>>());
        let noise = noise.unwrap_or_default().join("\n");
        let parts = [
            format!("the device worker died: {status}"),
            error.to_owned(),
            noise,
        ];
        let text: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        fault(Verdict::Crashed, text.join("; "))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }
}

impl Running {
    /// SIGKILL, and wait for the end so that no zombie or device memory stays behind.
    fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn fault(verdict: Verdict, detail: String) -> Judgement {
    Judgement {
        verdict,
        detail,
        hazards: Vec::new(),
        max_error: None,
        measurement: None,
        explanation: None,
    }
}

fn start(settings: &Settings) -> Result<Running, WorkerError> {
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
        noise,
    })
}
