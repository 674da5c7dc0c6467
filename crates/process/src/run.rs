//! A command that runs to its end.

use crate::pipes::{Pipes, Program, State};
use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How often a running command is looked at.
const TICK: Duration = Duration::from_millis(20);
/// How long output may trail behind the end of its process.
const TRAIL: Duration = Duration::from_secs(1);

/// What a command left.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended; `None` where it did not end in time and was killed.
    pub status: Option<ExitStatus>,
    /// The end of its standard output.
    pub output: Vec<u8>,
    /// The end of its standard error.
    pub said: String,
}

/// Runs a program with `input` on its standard input until it ends, at most `within`. Of its
/// output at least the last `kept_bytes` are kept. When this returns, all that it started is gone.
///
/// # Errors
/// It cannot be started or watched.
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
        // Closed pipes do not wake: the end of the process is looked for.
        let tick = if pipes.output_ended() {
            Duration::from_millis(1)
        } else {
            TICK
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
    // Whatever it left running would hold the pipes open.
    pipes.kill();
    let deadline = Instant::now() + TRAIL;
    while !pipes.output_ended() && Instant::now() < deadline {
        pipes.turn(TICK, &mut output)?;
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

/// Drops the beginning of what grew to twice the size.
fn keep(output: &mut Vec<u8>, bytes: usize) {
    if output.len() > bytes.saturating_mul(2) {
        output.drain(..output.len() - bytes);
    }
}
