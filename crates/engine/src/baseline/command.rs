//! One question to a baseline's command.

use serde::{Deserialize, Serialize};
use std::io::{Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tuner_core::record::{ConfigValues, config_as_object};

/// What a command prints: one JSON object, alone or as its last line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Answer {
    /// What was timed, such as `PyTorch 2.9 SDPA (flash)`.
    pub name: String,
    /// Median, microseconds.
    pub p50_us: f64,
    /// 90th percentile, microseconds.
    pub p90_us: f64,
    /// Version of what was timed.
    #[serde(default)]
    pub version: Option<String>,
}

/// Why a command gave no figure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BaselineError {
    /// There is no such program.
    #[error("`{program}` is not here ({why}); install it, or leave `baseline` out of the space")]
    Absent {
        /// The program.
        program: String,
        /// The system's words.
        why: String,
    },
    /// It ended with a failure.
    #[error("`{program}` failed with {status}{}", quoted(.said))]
    Failed {
        /// The program.
        program: String,
        /// Exit code or signal.
        status: String,
        /// The end of its standard error.
        said: String,
    },
    /// It did not end.
    #[error("`{program}` did not end within {} s and was stopped{}", .deadline.as_secs(), quoted(.said))]
    Hung {
        /// The program.
        program: String,
        /// The deadline.
        deadline: Duration,
        /// The end of its standard error.
        said: String,
    },
    /// It printed something else than an answer.
    #[error(
        "`{program}` printed no answer: {why}; it should print {{\"name\", \"p50_us\", \"p90_us\"}}"
    )]
    Rubbish {
        /// The program.
        program: String,
        /// What is wrong with it.
        why: String,
    },
}

impl BaselineError {
    /// Whether the command would fail for every other problem too.
    #[must_use]
    pub(crate) fn holds_everywhere(&self) -> bool {
        matches!(self, Self::Absent { .. } | Self::Hung { .. })
    }
}

fn quoted(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("; its last words: {text}")
    }
}

/// Bytes of output that are kept of a command; more is drained and forgotten.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// How long output may trail behind the end of its process, for example from a helper it left.
const TRAIL: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct Problem<'a>(#[serde(with = "config_as_object")] &'a ConfigValues);

/// Runs a command in `folder` with the problem on its standard input, and reads its answer.
///
/// # Errors
/// See [`BaselineError`]; the process and all it started are gone then.
pub fn ask(
    command: &[String],
    folder: &Path,
    problem: &ConfigValues,
    gpu: Option<&str>,
    deadline: Duration,
) -> Result<Answer, BaselineError> {
    let program = command.first().cloned().unwrap_or_default();
    let mut process = Command::new(&program);
    process
        .args(command.iter().skip(1))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that what it starts can be ended with it.
        .process_group(0);
    if let Some(gpu) = gpu {
        process.env("CUDA_VISIBLE_DEVICES", gpu);
        // The driver's numbering, not "fastest first".
        process.env("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    }
    let mut child = process.spawn().map_err(|error| BaselineError::Absent {
        program: program.clone(),
        why: error.to_string(),
    })?;
    let input = serde_json::to_string(&Problem(problem)).unwrap_or_default();
    if let Some(mut stdin) = child.stdin.take() {
        // A problem is shorter than a pipe's buffer, so this cannot wait; a command that does not
        // read it may be gone by now, and says so by its exit code.
        let _ = writeln!(stdin, "{input}");
    }
    let output = drain(child.stdout.take());
    let words = drain(child.stderr.take());
    let ended = wait(&mut child, deadline);
    let text = |receiver: &Receiver<Vec<u8>>| {
        let bytes = receiver.recv_timeout(TRAIL).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    // Whatever it left running would hold the pipes open and disturb the timing that follows.
    end_group(&mut child);
    let (output, said) = (text(&output), last_words(&text(&words)));
    let Some(status) = ended else {
        return Err(BaselineError::Hung {
            program,
            deadline,
            said,
        });
    };
    if !status.success() {
        return Err(BaselineError::Failed {
            program,
            status: status.to_string(),
            said,
        });
    }
    parse(&output).map_err(|why| BaselineError::Rubbish { program, why })
}

/// Reads everything on a thread, so that neither pipe can fill up and block the command.
fn drain(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut pipe) = pipe {
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                kept.extend_from_slice(&buffer[..count]);
                // The end is what counts: the answer is the last line.
                if kept.len() > 2 * OUTPUT_BYTES_MAX {
                    kept.drain(..kept.len() - OUTPUT_BYTES_MAX);
                }
            }
        }
        // Nobody waits when the command hung.
        let _ = sender.send(kept);
    });
    receiver
}

fn wait(child: &mut Child, deadline: Duration) -> Option<std::process::ExitStatus> {
    let end = Instant::now() + deadline;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

/// Ends the command and all that it started.
fn end_group(child: &mut Child) {
    if let Ok(id) = i32::try_from(child.id())
        && let Some(group) = rustix::process::Pid::from_raw(id)
    {
        // Gone already is as good.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

/// The last line that says something, shortened.
fn last_words(text: &str) -> String {
    const LONGEST: usize = 200;
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or_default()
        .trim()
        .chars()
        .take(LONGEST)
        .collect()
}

/// Reads an answer: the whole output, or its last line.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse(output: &str) -> Result<Answer, String> {
    let whole = output.trim();
    if whole.is_empty() {
        return Err("nothing at all".to_owned());
    }
    let last = whole.lines().last().unwrap_or_default();
    let answer: Answer = serde_json::from_str(whole)
        .or_else(|_| serde_json::from_str(last))
        .map_err(|error| {
            let shown: String = last.chars().take(80).collect();
            format!("`{shown}` ({error})")
        })?;
    let time = |us: f64| us.is_finite() && us > 0.0;
    if !time(answer.p50_us) || !time(answer.p90_us) || answer.p90_us < answer.p50_us {
        return Err(format!(
            "p50_us {} and p90_us {} are no times",
            answer.p50_us, answer.p90_us
        ));
    }
    if answer.name.trim().is_empty() {
        return Err("its name is empty".to_owned());
    }
    Ok(answer)
}
