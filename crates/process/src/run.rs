//! Commands that run to their end.

use crate::pipes::{Pipes, Program, State};
use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Polling interval of a running command.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum wait for output after the process ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Result of a command.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Exit status; `None` if the command exceeded its time and was killed.
    pub status: Option<ExitStatus>,
    /// The last bytes of standard output.
    pub output: Vec<u8>,
    /// The last lines of standard error.
    pub said: String,
}

/// Runs a program with `input` on standard input for at most `within`. Keeps at least the last `kept_bytes`
/// of its output. Kills the program's process group before it returns.
///
/// # Errors
/// The program cannot be started or watched.
pub fn run(
    program: &Program,
    input: Vec<u8>,
    within: Duration,
    kept_bytes: usize,
) -> io::Result<Finished> {
    let mut pipes = Pipes::start(program)?;
    pipes.queue(input);
    pipes.close_input();
    let deadline = Instant::now() + within;
    let mut output = Vec::new();
    loop {
        let state = pipes.state();
        let wait = deadline.saturating_duration_since(Instant::now());
        // Closed pipes never wake `poll`, so the end of the process is polled for.
        let tick = if pipes.output_ended() {
            Duration::from_millis(1)
        } else {
            POLL_INTERVAL
        };
        pipes.turn(wait.min(tick), &mut output)?;
        keep(&mut output, kept_bytes);
        if state == State::Ended {
            break;
        }
        if wait.is_zero() {
            return Ok(Finished {
                status: None,
                output,
                said: pipes.end().said,
            });
        }
    }
    // Background processes of the command could keep the pipes open.
    pipes.kill();
    let deadline = Instant::now() + OUTPUT_TIMEOUT;
    while !pipes.output_ended() && Instant::now() < deadline {
        pipes.turn(POLL_INTERVAL, &mut output)?;
        keep(&mut output, kept_bytes);
    }
    while pipes.turn(Duration::ZERO, &mut output)? > 0 && Instant::now() < deadline {}
    let ending = pipes.end();
    Ok(Finished {
        status: ending.status,
        output,
        said: ending.said,
    })
}

/// Drops the oldest bytes once the buffer reaches twice its size, which keeps the cost linear.
fn keep(output: &mut Vec<u8>, bytes: usize) {
    if output.len() > bytes.saturating_mul(2) {
        output.drain(..output.len() - bytes);
    }
}
