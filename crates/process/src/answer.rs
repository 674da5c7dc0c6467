//! Commands that answer one question, with limits on time and output.

use crate::descendants::Descendants;
use crate::pipes::{Pipes, Program, State};
use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Polling interval of a running command.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum wait for output after the command ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Limits on a command that answers a question.
#[derive(Debug, Clone, Copy)]
pub struct AnswerLimits {
    /// Time.
    pub within: Duration,
    /// Bytes of standard output.
    pub output_bytes: usize,
}

/// Reason why a command did not answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// It cannot be started or watched.
    #[error(transparent)]
    Host(#[from] io::Error),
    /// It was too slow, and was killed.
    #[error("it did not answer within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// It wrote too much, and was killed.
    #[error("its answer has more than {0} bytes")]
    TooMuch(usize),
    /// It ended with a failure.
    #[error("it ended with {status}{}", said_text(.said))]
    Failed {
        /// Exit code or signal.
        status: ExitStatus,
        /// The last lines of its standard error.
        said: String,
    },
    /// The caller stopped it.
    #[error("it was stopped")]
    Stopped,
}

fn said_text(said: &str) -> String {
    let line = said.lines().rev().find(|line| !line.trim().is_empty());
    line.map_or_else(String::new, |line| format!(": {}", line.trim()))
}

/// Runs a command with `question` on its standard input, and returns its standard output. Before it
/// returns, it kills the command's process group and descendants in other sessions.
///
/// # Errors
/// The command did not answer within the limits, or `stopped` returned true.
pub fn ask(
    program: &Program,
    question: Vec<u8>,
    limits: AnswerLimits,
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<u8>, NoAnswer> {
    let descendants = Descendants::new();
    let mut program = program.clone();
    program.environment.push(descendants.variable());
    // Dropped before the descendants are searched for, which ends its group.
    let mut pipes = Pipes::start(&program)?;
    pipes.queue(question);
    pipes.close_input();
    let deadline = Instant::now() + limits.within;
    let mut ended_at: Option<Instant> = None;
    let mut output = Vec::new();
    loop {
        // The state is queried before the pipes are read, so the output of an ended command is complete.
        let state = pipes.state();
        let wait = match pipes.output_ended() {
            true => Duration::from_millis(1),
            false => POLL_INTERVAL,
        };
        let moved = pipes.turn(wait, &mut output)?;
        if output.len() > limits.output_bytes {
            return Err(NoAnswer::TooMuch(limits.output_bytes));
        }
        if state == State::Ended {
            // Background processes of the command could keep the pipes open.
            let since = *ended_at.get_or_insert_with(Instant::now);
            if moved == 0 || since.elapsed() >= OUTPUT_TIMEOUT {
                break;
            }
        } else if stopped() {
            return Err(NoAnswer::Stopped);
        } else if Instant::now() >= deadline {
            return Err(NoAnswer::Late(limits.within));
        }
    }
    let ending = pipes.end();
    match ending.status {
        Some(status) if !status.success() => Err(NoAnswer::Failed {
            status,
            said: ending.said,
        }),
        _ => Ok(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, within_ms: u64, output_bytes: usize) -> Result<Vec<u8>, NoAnswer> {
        let program = Program {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            ..Program::default()
        };
        let limits = AnswerLimits {
            within: Duration::from_millis(within_ms),
            output_bytes,
        };
        ask(&program, b"question".to_vec(), limits, &|| false)
    }

    #[test]
    fn the_answer_is_all_of_standard_output() {
        assert_eq!(sh("cat; echo x >&2", 60_000, 100).unwrap(), b"question");
        assert_eq!(sh("sleep 100 & echo 1", 60_000, 100).unwrap(), b"1\n");
    }

    #[test]
    fn a_child_in_another_session_does_not_survive() {
        let name = format!("tuner-answer-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let path = file.display();
        let script = format!(
            "setsid sh -c 'echo $$ > {path}; exec sleep 1000' & while [ ! -s {path} ]; do sleep 0.01; done; echo 1"
        );
        assert_eq!(sh(&script, 60_000, 100).unwrap(), b"1\n");
        let child = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        // A killed child loses its environment before it ends, and may wait to be reaped.
        let runs = || {
            let status = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
            status.is_ok_and(|text| !text.contains(") Z ") && !text.contains(") X "))
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while runs() {
            assert!(Instant::now() < deadline, "the child runs");
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    #[test]
    fn each_failure_has_its_reason() {
        assert!(matches!(sh("sleep 100", 50, 100), Err(NoAnswer::Late(_))));
        let flood = sh(
            "while :; do echo 0123456789012345678901234567890123456789; done",
            60_000,
            10_000,
        );
        assert!(matches!(flood, Err(NoAnswer::TooMuch(10_000))));
        let failed = sh("echo why >&2; exit 3", 60_000, 100).unwrap_err();
        assert!(
            failed.to_string().ends_with("exit status: 3: why"),
            "{failed}"
        );
        let absent = sh("no-such-command-44", 60_000, 100).unwrap_err();
        assert!(absent.to_string().contains("127"), "{absent}");
        let missing = Program {
            path: "/no/such".into(),
            ..Program::default()
        };
        let limits = AnswerLimits {
            within: Duration::from_secs(1),
            output_bytes: 1,
        };
        assert!(matches!(
            ask(&missing, Vec::new(), limits, &|| false),
            Err(NoAnswer::Host(_))
        ));
    }

    #[test]
    fn a_stop_ends_the_command() {
        let program = Program {
            path: "/bin/sleep".into(),
            arguments: vec!["100".into()],
            ..Program::default()
        };
        let limits = AnswerLimits {
            within: Duration::from_secs(100),
            output_bytes: 1,
        };
        assert!(matches!(
            ask(&program, Vec::new(), limits, &|| true),
            Err(NoAnswer::Stopped)
        ));
    }
}
