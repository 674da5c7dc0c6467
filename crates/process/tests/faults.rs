//! Fault injection for the protocol between the tuner and a worker: messages delayed, cut,
//! duplicated and garbled; workers killed, stopped and left half dead; descriptors and processes
//! exhausted. After each fault: no panic, no answer to another request, no leaked resource, and the
//! next worker answers.
//!
//! The program is also the worker and the proxy, so it has no test harness: exit code 0 means that
//! every point passed.
#![expect(clippy::expect_used, reason = "a test that cannot go on should fail")]

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;
use tuner_process::{
    ATTEMPTS, Limits, Parent, Parts, Process, Program, from_json, start_error, to_json,
};
use tuner_testkit::points;
use tuner_testkit::proxy::{self, Point};

/// Bytes of each request's attachment; the second exceeds a pipe's capacity.
const SIZES: [usize; 3] = [1_000, 150_000, 0];
/// Deadline of an answer, and of the silence where none is expected.
const PATIENCE: Duration = Duration::from_secs(20);
const IMPATIENCE: Duration = Duration::from_millis(400);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["worker", ..] => points::code(worker().map(|()| 0)),
        ["proxy", point, ..] => {
            let point: Result<Point, _> = point.parse();
            points::code(
                point
                    .map_err(io::Error::other)
                    .and_then(|point| proxy::run(point, &arguments[2..])),
            )
        }
        ["limited", what, limit] => limited(what, limit),
        // The query that test runners send to every test program.
        ["--list", ..] => ExitCode::SUCCESS,
        _ => all(),
    }
}

/// Answers each request with its number and its reversed attachment.
fn worker() -> io::Result<()> {
    let parent = Parent::connect()?;
    while let Some(request) = parent.request() {
        // A library's output must not get between the replies.
        writeln!(io::stdout(), "noise")?;
        let number: usize = from_json(&request)?;
        let reply = answer(number);
        let slices: Vec<&[u8]> = reply.iter().map(Vec::as_slice).collect();
        parent.replies().send(&slices)?;
    }
    Ok(())
}

fn attachment(number: usize) -> Vec<u8> {
    (0..SIZES[number])
        .map(|at| (at * 31 + number) as u8)
        .collect()
}

fn answer(number: usize) -> Parts {
    let bytes = attachment(number).into_iter().rev().collect();
    vec![to_json(&(number + 100)).expect("a number"), bytes]
}

fn program(arguments: &[String]) -> Program {
    Program {
        path: std::env::current_exe().expect("this program has a path"),
        arguments: arguments.iter().map(Into::into).collect(),
        ..Program::default()
    }
}

/// Sends all requests; the first worker is behind the proxy. Returns failures blamed on a request.
fn conversation(point: Option<Point>) -> Result<Vec<String>, String> {
    let plain = vec!["worker".to_owned()];
    let mut first = point.map(|point| {
        let mut all = vec!["proxy".to_owned(), point.to_string()];
        all.extend(plain.clone());
        all
    });
    let waits = point.is_some_and(|point| point.waits());
    let within = if waits { IMPATIENCE } else { PATIENCE };
    let mut running: Option<Process> = None;
    let mut blamed = Vec::new();
    for number in 0..SIZES.len() {
        let mut answered = false;
        for _ in 0..ATTEMPTS {
            let idle = running.take().filter(|process| !process.is_gone());
            let mut process = match idle {
                Some(process) => process,
                None => {
                    let arguments = first.take().unwrap_or_else(|| plain.clone());
                    Process::start(&program(&arguments)).map_err(|error| error.to_string())?
                }
            };
            let limits = Limits {
                within: if first.is_none() && blamed.is_empty() {
                    within
                } else {
                    PATIENCE
                },
                memory_bytes: None,
            };
            let request = to_json(&number).map_err(|error| error.to_string())?;
            let sent = process.send(&[&request, &attachment(number)]);
            sent.map_err(|error| error.to_string())?;
            match process.receive(limits) {
                Ok(parts) if parts == answer(number) => {
                    running = Some(process);
                    answered = true;
                }
                Ok(parts) => return Err(format!("{number} was answered with {parts:?}")),
                Err(failure) if failure.is_from_outside() => {}
                Err(failure) => {
                    blamed.push(failure.to_string());
                    answered = true;
                }
            }
            if answered {
                break;
            }
        }
        if !answered {
            return Err(format!("{number} was not answered by fresh workers"));
        }
    }
    Ok(blamed)
}

fn check(point: Point) -> Result<(), String> {
    let blamed = conversation(Some(point))?;
    let allowed = usize::from(point.may_be_blamed());
    if blamed.len() > allowed {
        return Err(format!("blamed on a request: {blamed:?}"));
    }
    if blamed.iter().any(|what| what.trim().len() < 10) {
        return Err(format!("a message without a cause: {blamed:?}"));
    }
    Ok(())
}

/// Counts entries of `/proc/self` that show a leak.
fn held() -> (usize, usize) {
    let count = |path: &str| std::fs::read_dir(path).map_or(0, Iterator::count);
    let children = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .filter_map(|task| {
            let path = task.ok()?.path().join("children");
            Some(
                std::fs::read_to_string(path)
                    .ok()?
                    .split_whitespace()
                    .count(),
            )
        })
        .sum();
    (count("/proc/self/fd"), children)
}

fn all() -> ExitCode {
    let requests = SIZES.len() as u32;
    let mut all = Point::list_fast(requests, requests);
    all.extend(Point::slow(requests, requests));
    let before = held();
    let mut failed = points::check_all(&all, |_, point| check(point));
    if held() != before {
        failed += 1;
        eprintln!(
            "FAILED: (descriptors, children) were {before:?}, and now {:?}",
            held()
        );
    }
    let (shortages, wrong) = shortages();
    points::conclude("at the process door", all.len() + shortages, failed + wrong)
}

/// Runs conversations with few descriptors and without further processes, each in a separate
/// process with these limits.
fn shortages() -> (usize, usize) {
    let own = std::env::current_exe().expect("this program has a path");
    let descriptors = (3..40).map(|limit| ("descriptors", limit));
    let all: Vec<(&str, u64)> = descriptors
        .chain((0..3).map(|limit| ("processes", limit)))
        .collect();
    let mut wrong = 0;
    for (what, limit) in &all {
        let mut command = Command::new(&own);
        command
            .args(["limited", what, &limit.to_string()])
            .current_dir("/");
        if *what == "processes" && rustix::process::getuid().is_root() {
            // The limit does not apply to root.
            command.uid(65_534).gid(65_534);
        }
        let ended = command.output().expect("this program runs");
        let text = String::from_utf8_lossy(&ended.stderr).into_owned();
        let refused = text.contains("ulimit") || text.contains("answered");
        if text.contains("panicked") || (*limit > 5 && !refused) {
            wrong += 1;
            eprintln!("FAILED {what} {limit}: {:?} {text}", ended.status);
        }
    }
    (all.len(), wrong)
}

fn limited(what: &str, limit: &str) -> ExitCode {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let resource = match what {
        "descriptors" => Resource::Nofile,
        _ => Resource::Nproc,
    };
    let limit: u64 = limit.parse().expect("a number");
    let limits = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(resource, limits).expect("a lower limit is allowed");
    match Process::start(&program(&["worker".to_owned()])) {
        Err(error) => eprintln!("{}", start_error(&PathBuf::from("worker"), &error)),
        Ok(mut process) => {
            let request = to_json(&0).expect("a number");
            process
                .send(&[&request, &attachment(0)])
                .expect("a small message");
            let limits = Limits {
                within: PATIENCE,
                memory_bytes: None,
            };
            match process.receive(limits) {
                Ok(parts) => eprintln!("answered: {}", parts == answer(0)),
                Err(failure) => eprintln!("{failure}; see ulimit"),
            }
        }
    }
    ExitCode::SUCCESS
}
