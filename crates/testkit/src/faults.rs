//! Faults that tests inject into workers, to check that the tuner survives them.
//!
//! `TUNER_FAULT=WHAT@N` triggers in a device worker at its candidate N (from 0; `every` for each);
//! `TUNER_COMPILE_FAULT=WHAT` in a compile worker at a source that contains the word `tuner_fault`.
//! `TUNER_FAKE_FINAL_SLOWER=N` makes the stand-in for a GPU slower by N thousandths from a final comparison
//! on, like a power limit of a real GPU.

use rustix::process::{Signal, getpid, kill_process};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tuner_process::{Parts, die, watch_requests};

/// Requests of a candidate; opening the device is not counted.
const CANDIDATES: [&str; 5] = ["judge", "measure", "calibrate", "duel", "finale"];

/// Allows the environment of this process to inject faults into its workers.
pub fn plant() {
    watch_requests(strike);
}

fn strike(request: &Parts) {
    static CANDIDATE: AtomicU64 = AtomicU64::new(0);
    let header = String::from_utf8_lossy(request.first().map_or(&[][..], Vec::as_slice));
    if header.contains("tuner_fault") {
        if let Ok(what) = std::env::var("TUNER_COMPILE_FAULT") {
            happen(&what);
        }
        return;
    }
    let kind = header.trim_start_matches(['{', '"']);
    if !CANDIDATES.iter().any(|name| kind.starts_with(name)) {
        return;
    }
    // The reference of a baseline is timed by the same request, at another level.
    if kind.starts_with("finale")
        && header.contains(r#""level":"final""#)
        && let Ok(slower) = std::env::var("TUNER_FAKE_FINAL_SLOWER")
    {
        crate::fake::throttle(slower.parse().unwrap_or(0));
    }
    let number = CANDIDATE.fetch_add(1, Ordering::Relaxed);
    if let Ok(fault) = std::env::var("TUNER_FAULT")
        && let Some((what, when)) = fault.split_once('@')
        && (when == "every" || when.parse() == Ok(number))
    {
        happen(what);
    }
}

fn happen(what: &str) {
    match what {
        "hang" => std::thread::sleep(Duration::from_secs(3600)),
        "abort" | "crash" => std::process::abort(),
        "exit" => exit(7),
        "kill" => die(),
        "stop" => {
            let _ = kill_process(getpid(), Signal::STOP);
        }
        // Through the descriptor that a C library would use.
        "noise" => drop(std::io::stdout().write_all(b"noise on standard output\n")),
        _ => {}
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the process ends in the middle of its work"
)]
fn exit(code: i32) -> ! {
    std::process::exit(code)
}
