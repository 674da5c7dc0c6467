//! Checks of many points, and their summary.

use crate::proxy::Point;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Points checked at once: most of their time is spent waiting.
const CONCURRENT_POINTS: usize = 4;

/// Checks every point, and prints those that fail. Returns their count.
pub fn check_all(
    points: &[Point],
    check: impl Fn(usize, Point) -> Result<(), String> + Sync,
) -> usize {
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..CONCURRENT_POINTS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(point) = points.get(number) else {
                        return;
                    };
                    if let Err(why) = check(number, *point) {
                        failed.fetch_add(1, Ordering::Relaxed);
                        say(&format!("FAILED {point}: {why}"));
                    }
                }
            });
        }
    });
    failed.into_inner()
}

/// Prints the summary, and returns the exit code.
#[must_use]
pub fn conclude(place: &str, count: usize, failed: usize) -> ExitCode {
    say(&format!("{count} points {place}: {failed} failed"));
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns the exit code of a process that is part of a test.
#[must_use]
pub fn code(ended: io::Result<i32>) -> ExitCode {
    match ended {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn say(text: &str) {
    use std::io::Write as _;
    // Standard output may be a pipe to the tuner.
    let _ = writeln!(io::stderr(), "{text}");
}
