//! One call of a baseline's command.

use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use tuner_core::record::{ConfigValues, config_as_object};
use tuner_process::{Program, run};

/// Output of a command: one JSON object, alone or as its last line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Answer {
    /// Measured subject, such as `PyTorch 2.9 SDPA (flash)`.
    pub name: String,
    /// Median, microseconds.
    pub p50_us: f64,
    /// 90th percentile, microseconds.
    pub p90_us: f64,
    /// Version of the subject.
    #[serde(default)]
    pub version: Option<String>,
}

/// Reason why a command returned no figure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BaselineError {
    /// The program does not exist.
    #[error("`{program}` is not here ({why}); install it, or leave `baseline` out of the space")]
    Absent {
        /// The program.
        program: String,
        /// The system's error message.
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
    /// It did not end in time.
    #[error("`{program}` did not end within {} s and was stopped{}", .deadline.as_secs(), quoted(.said))]
    Hung {
        /// The program.
        program: String,
        /// The deadline.
        deadline: Duration,
        /// The end of its standard error.
        said: String,
    },
    /// Its output is not a valid answer.
    #[error(
        "`{program}` printed no answer: {why}; it should print {{\"name\", \"p50_us\", \"p90_us\"}}"
    )]
    Rubbish {
        /// The program.
        program: String,
        /// The defect of the output.
        why: String,
    },
}

impl BaselineError {
    /// Reports whether the command would fail for every other problem as well.
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

/// Bytes of output kept from the end of a command: the answer is the last line.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

#[derive(Serialize)]
struct Problem<'a>(#[serde(with = "config_as_object")] &'a ConfigValues);

/// Runs a command in `folder` with the problem on its standard input, and reads its answer.
///
/// # Errors
/// See [`BaselineError`]; on an error the process and all its children have been killed.
pub fn ask(
    command: &[String],
    folder: &Path,
    problem: &ConfigValues,
    gpu: Option<&str>,
    deadline: Duration,
) -> Result<Answer, BaselineError> {
    let program = command.first().cloned().unwrap_or_default();
    let environment = gpu.map(|gpu| {
        [
            ("CUDA_VISIBLE_DEVICES", gpu),
            // The driver's numbering instead of CUDA's default "fastest first".
            ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
    });
    let started = Program {
        path: program.clone().into(),
        arguments: command.iter().skip(1).map(Into::into).collect(),
        environment: environment.into_iter().flatten().collect(),
        folder: Some(folder.to_owned()),
    };
    let mut input = serde_json::to_vec(&Problem(problem)).unwrap_or_default();
    input.push(b'\n');
    let finished = run(&started, input, deadline, MAX_OUTPUT_BYTES).map_err(|error| {
        BaselineError::Absent {
            program: program.clone(),
            why: error.to_string(),
        }
    })?;
    let said = last_words(&finished.said);
    let Some(status) = finished.status else {
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
    parse(&String::from_utf8_lossy(&finished.output))
        .map_err(|why| BaselineError::Rubbish { program, why })
}

/// Returns the last non-empty line, shortened.
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
/// A sentence about the defect.
pub fn parse(output: &str) -> Result<Answer, String> {
    let whole = output.trim();
    if whole.is_empty() {
        return Err("nothing at all".to_owned());
    }
    let last = whole.lines().last().unwrap_or_default();
    // The whole output first: the last line of an object over several lines is not an object.
    let answer: Answer = serde_json::from_str(whole)
        .or_else(|_| serde_json::from_str(last))
        .map_err(|error| {
            let shown: String = last.chars().take(80).collect();
            format!("`{shown}` ({error})")
        })?;
    let time = |us: f64| us.is_finite() && us > 0.0;
    if !time(answer.p50_us) || !time(answer.p90_us) || answer.p90_us < answer.p50_us {
        return Err(format!(
            "p50_us {} and p90_us {} are not valid times",
            answer.p50_us, answer.p90_us
        ));
    }
    if answer.name.trim().is_empty() {
        return Err("its name is empty".to_owned());
    }
    Ok(answer)
}
